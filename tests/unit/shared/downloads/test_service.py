"""Downloads as their owners see them."""

from datetime import timedelta

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import Connection, ConnectionType, Surface
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.downloads.models import Format, Job, JobStatus, Part, StoredFile
from shared.downloads.service import Downloads, list_file_names
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.downloads.plant import HOUR, START, Plant, Plants


def caller(member: str, *rights: AccessRight) -> Principal:
    """Return a member as the caller, with a token of some rights."""
    return Principal(member, member, member, frozenset(rights), CredentialKind.JWT, "t", None)


async def catalog() -> Catalog:
    """Return a catalog of two connections and a surface with one of them."""
    connections = {
        lookup: CatalogEntry(Connection(lookup=lookup, name=lookup, type=ConnectionType.SIMULATOR), START, START, "x")
        for lookup in ("pump", "press")
    }
    surface = Surface(lookup="hall", name="Hall", connections=("pump",))
    return Catalog(connections=connections, surfaces={"hall": CatalogEntry(surface, START, START, "x")})


class JobRunner:
    """Notes what it is asked, and may refuse to start."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.refuse = refuse
        self.started: list[str] = []
        self.stopped: list[str] = []

    async def start(self, job_id: str) -> None:
        """Note or refuse a start."""
        if self.refuse:
            raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", "no")
        self.started.append(job_id)

    async def stop(self, job_id: str) -> None:
        """Note a stop."""
        self.stopped.append(job_id)


@pytest.fixture
def plant(plants: Plants) -> Plant:
    """Return stores over a small archive."""
    return plants.make()


def downloads(plant: Plant) -> Downloads:
    """Return downloads of the plant, an hour after the archive begins."""
    return Downloads(catalog, plant.jobs, plant.blobs, plant.quota, timedelta(days=1), clock=lambda: START + HOUR)


async def test_only_the_owner_and_who_manages_keys_see_a_job(plant: Plant) -> None:
    """Everybody else gets 404: the right to manage keys counts where the token has it, not where its member has it."""
    job = await plant.job()
    for allowed in (caller("editor@t"), caller("viewer@t", AccessRight.KEYS_MANAGE)):
        assert await downloads(plant).get(allowed, "j1") == job
    for refused in (caller("viewer@t"), caller(""), caller("admin@t", AccessRight.COLD_DATA_EXPORT)):
        with pytest.raises(WorkspaceError) as refusal:
            await downloads(plant).get(refused, "j1")
        assert refusal.value.code == "DOWNLOAD_NOT_FOUND"
    late = Downloads(catalog, plant.jobs, plant.blobs, plant.quota, timedelta(days=1), clock=lambda: job.expires_at)
    with pytest.raises(WorkspaceError):
        await late.get(caller("editor@t"), "j1")
    assert await late.list(caller("editor@t")) == []
    assert await downloads(plant).list(caller("editor@t")) == [job]
    assert await downloads(plant).list(caller("admin@t")) == []


async def test_a_job_that_cannot_be_started_leaves_nothing(plant: Plant) -> None:
    """The refusal to start is the caller's answer, and no job waits for ever."""
    with pytest.raises(WorkspaceError):
        await downloads(plant).start(
            caller("editor@t"), ("pump",), Format.CSV, START, START + HOUR, JobRunner(refuse=True)
        )
    assert await plant.jobs.list_owned("editor@t") == []


async def test_a_job_that_was_never_begun_begins_when_it_is_looked_at(plant: Plant) -> None:
    """A process may end between storing a job and beginning it; a look at it half a minute later begins it."""
    at = [START]
    downloads = Downloads(catalog, plant.jobs, plant.blobs, plant.quota, timedelta(days=1), clock=lambda: at[0])
    job = await downloads.start(caller("editor@t"), ("pump",), Format.CSV, START, START + HOUR, JobRunner())
    runner = JobRunner()
    await downloads.restart_if_stalled(job, runner)
    assert runner.started == []
    at[0] += timedelta(seconds=31)
    await downloads.restart_if_stalled(job, JobRunner(refuse=True))
    await downloads.restart_if_stalled(job, runner)
    assert runner.started == [job.id]
    await plant.run(job.id)
    await downloads.restart_if_stalled(await plant.stored(job.id), runner)
    assert runner.started == [job.id]


async def test_cancelling_stops_the_work_once(plant: Plant) -> None:
    """A cancelled job has ended: its files go, and it cannot be cancelled again."""
    runner = JobRunner()
    started = await downloads(plant).start(caller("editor@t"), ("pump",), Format.CSV, START, START + HOUR, runner)
    await plant.work.next_parts(started.id)
    await plant.work.convert(started.id, 0)
    assert plant.files()
    with pytest.raises(WorkspaceError):
        await downloads(plant).cancel(caller("viewer@t"), started.id, runner)
    await downloads(plant).cancel(caller("admin@t", AccessRight.KEYS_MANAGE), started.id, runner)
    assert (plant.files(), runner.stopped) == ([], [started.id])
    with pytest.raises(WorkspaceError) as refusal:
        await downloads(plant).cancel(caller("editor@t"), started.id, runner)
    assert (refusal.value.code, refusal.value.members) == ("DOWNLOAD_ENDED", {"currentStatus": "cancelled"})


async def test_connections_of_surfaces(plant: Plant) -> None:
    """A surface gives its own connections and no other's."""
    told = downloads(plant)
    assert await told.select_connection("press") == ("press",)
    assert (
        await told.select_surface_connections("hall")
        == await told.select_surface_connections("hall", "pump")
        == ("pump",)
    )
    for refused, code in (
        (told.select_connection("x"), "CONNECTION_NOT_FOUND"),
        (told.select_surface_connections("x"), "SURFACE_NOT_FOUND"),
        (told.select_surface_connections("hall", "press"), "CONNECTION_NOT_FOUND"),
    ):
        with pytest.raises(WorkspaceError) as refusal:
            await refused
        assert refusal.value.code == code


async def test_links_end_with_the_job(plant: Plant) -> None:
    """A link lives a quarter of an hour, but not longer than its job; only completed jobs have any."""
    await plant.job()
    assert await downloads(plant).create_links(await plant.stored()) == []
    job = await plant.run()
    assert {each.expires_at for each in await downloads(plant).create_links(job)} == {
        START + HOUR + timedelta(minutes=15)
    }
    late = Downloads(
        catalog, plant.jobs, plant.blobs, plant.quota, timedelta(0), clock=lambda: job.expires_at - timedelta(minutes=1)
    )
    assert {each.expires_at for each in await late.create_links(job)} == {job.expires_at}


def test_several_files_of_a_connection_are_numbered() -> None:
    """Files are saved under their connection's name, with a number where there are several."""
    file = StoredFile(blob="x", rows=1, size=1, sha256="")
    parts = (
        Part(connection="a", start=START, end=START + HOUR, files=(file, file)),
        Part(connection="a", start=START + HOUR, end=START + 2 * HOUR, files=(file,)),
        Part(connection="b", start=START, end=START + 2 * HOUR, files=(file,)),
    )
    job = Job(
        id="j",
        owner="o",
        format=Format.CSV,
        start=START,
        end=START + HOUR,
        connections=("a", "b"),
        created_at=START,
        expires_at=START,
        status=JobStatus.COMPLETED,
        parts=parts,
    )
    assert list_file_names(job) == ["a-0001.csv", "a-0002.csv", "a-0003.csv", "b.csv"]
