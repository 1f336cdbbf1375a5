"""Tests of the download service that API requests use."""

from datetime import datetime, timedelta

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.catalog.models import Connection, ConnectionType, Member, Surface
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest
from shared.downloads.models import DownloadFormat, Job, JobKind, JobStatus, Part, StoredFile
from shared.downloads.service import DownloadService, can_have_stopped, is_pending_too_long, list_download_file_names
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose
from shared.runtime import Runtime
from tests.unit.shared.downloads.environment import HOUR, START, Environment, EnvironmentFactory

TEAM = [
    Member.model_validate({"name": "Someone", "role": "Admin", "id": "admin@t"}),
    Member.model_validate({"name": "Someone", "role": "Admin", "id": "disabled@t", "enabled": False}),
    Member.model_validate({"name": "Someone", "role": "Admin", "id": "robot", "service": True}),
    Member.model_validate({"name": "Someone", "role": "Viewer", "id": "viewer@t"}),
]


def build_caller(member: str, *rights: AccessRight) -> Principal:
    """Return a caller with a token of a member that has the given rights."""
    return Principal(member, member, member, frozenset(rights), CredentialKind.JWT, "t", None)


async def get_catalog() -> Catalog:
    """Return a catalog with two connections and a surface that has one of them."""
    connections = {
        lookup: CatalogEntry(Connection(lookup=lookup, name=lookup, type=ConnectionType.SIMULATOR), START, START, "x")
        for lookup in ("pump", "press")
    }
    surface = Surface(lookup="hall", name="Hall", connections=("pump",))
    return Catalog(
        members={member.id: member for member in TEAM},
        connections=connections,
        surfaces={"hall": CatalogEntry(surface, START, START, "x")},
    )


class JobRunner:
    """Fake runner that records calls, and can reject starts."""

    def __init__(self, *, refuse: bool = False) -> None:
        self.refuse = refuse
        self.started: list[str] = []
        self.stopped: list[str] = []

    async def start(self, job_id: str) -> None:
        """Record that a job was started, or reject the start if the test has set this."""
        if self.refuse:
            raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", "no")
        self.started.append(job_id)

    async def stop(self, job_id: str) -> None:
        """Record that a job was stopped."""
        self.stopped.append(job_id)


@pytest.fixture
def download_environment(environment_factory: EnvironmentFactory) -> Environment:
    """Return an environment with a small archive."""
    return environment_factory.make()


def build_service(download_environment: Environment) -> DownloadService:
    """Return the download service, an hour after the start of the archive."""
    return DownloadService(
        get_catalog,
        download_environment.jobs,
        download_environment.blobs,
        download_environment.quota,
        timedelta(days=1),
        runtime=Runtime(now=lambda: START + HOUR),
    )


async def test_job_is_visible_to_owner_and_administrators(download_environment: Environment) -> None:
    """Only the owner, and administrators whose token may manage keys, see a job; all other callers get 404."""
    job = await download_environment.store_job()
    for allowed in (build_caller("editor@t"), build_caller("admin@t", AccessRight.KEYS_MANAGE)):
        assert await build_service(download_environment).get(allowed, "j1") == job
    for refused in (
        build_caller("viewer@t"),
        build_caller(""),
        build_caller("admin@t", AccessRight.COLD_DATA_EXPORT),
        *(build_caller(member, AccessRight.KEYS_MANAGE) for member in ("viewer@t", "disabled@t", "robot", "unknown")),
    ):
        with pytest.raises(WorkspaceError) as refusal:
            await build_service(download_environment).get(refused, "j1")
        assert refusal.value.code == "DOWNLOAD_NOT_FOUND"
    late = DownloadService(
        get_catalog,
        download_environment.jobs,
        download_environment.blobs,
        download_environment.quota,
        timedelta(days=1),
        runtime=Runtime(now=lambda: job.expires_at),
    )
    with pytest.raises(WorkspaceError):
        await late.get(build_caller("editor@t"), "j1")
    assert await late.list(build_caller("editor@t")) == []
    assert await build_service(download_environment).list(build_caller("editor@t")) == [job]
    assert await build_service(download_environment).list(build_caller("admin@t")) == []


async def test_job_is_deleted_if_its_start_is_rejected(download_environment: Environment) -> None:
    """If the runner rejects the start of a job, the caller gets the error and the job is deleted."""
    with pytest.raises(WorkspaceError):
        await build_service(download_environment).start(
            build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, JobRunner(refuse=True)
        )
    assert await download_environment.jobs.list_jobs_of_owner("editor@t") == []


async def test_a_failed_start_keeps_the_job_of_another_attempt(
    download_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an attempt of a request fails, the job that an overlapping attempt of the request has returned stays."""
    service, runner, jobs = build_service(download_environment), JobRunner(), download_environment.jobs
    request = build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, runner
    create = jobs.create

    async def fail_after_another_attempt(job: Job) -> None:
        monkeypatch.setattr(jobs, "create", create)
        assert (await service.start(*request, job_id="a1")).id == job.id
        raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", "busy")

    monkeypatch.setattr(jobs, "create", fail_after_another_attempt)
    with pytest.raises(WorkspaceError, match="busy"):
        await service.start(*request, job_id="a1")
    assert ([job.id for job in await jobs.list_jobs_of_owner("editor@t")], runner.started) == (["a1"], ["a1"])
    assert [place.id for place in await download_environment.places.list_reservations("editor@t", Purpose.JOBS)] == [
        "a1"
    ]


async def test_a_job_that_could_not_be_stored_does_not_count(
    download_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job that the store rejects does not count towards the quota, even if its request can be repeated."""

    async def fail(job: Job) -> None:
        raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", f"{job.id} was not stored")

    monkeypatch.setattr(download_environment.jobs, "create", fail)
    for job_id in ("", "a1"):
        with pytest.raises(WorkspaceError):
            await build_service(download_environment).start(
                build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, JobRunner(), job_id=job_id
            )
    assert await download_environment.places.list_reservations("editor@t", Purpose.JOBS) == []


async def test_stalled_job_is_started_at_a_read(download_environment: Environment) -> None:
    """If a process crashed before starting a job, reading the job half a minute later starts it."""
    at = [START]
    downloads = DownloadService(
        get_catalog,
        download_environment.jobs,
        download_environment.blobs,
        download_environment.quota,
        timedelta(days=1),
        runtime=Runtime(now=lambda: at[0]),
    )
    job = await downloads.start(
        build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, JobRunner()
    )
    runner = JobRunner()
    await downloads.restart_if_stalled(job, runner)
    assert runner.started == []
    at[0] += timedelta(seconds=31)
    await downloads.restart_if_stalled(job, JobRunner(refuse=True))
    await downloads.restart_if_stalled(job, runner)
    assert runner.started == [job.id]
    await download_environment.run(job.id)
    await downloads.restart_if_stalled(await download_environment.load_job(job.id), runner)
    assert runner.started == [job.id]


@pytest.mark.parametrize(
    ("status", "seconds", "expected"),
    [
        (JobStatus.PENDING, 30, False),
        (JobStatus.PENDING, 31, True),
        (JobStatus.RUNNING, 300, False),
        (JobStatus.RUNNING, 301, True),
        (JobStatus.RUNNING, -301, True),
        (JobStatus.COMPLETED, 301, False),
        (JobStatus.CANCELLED, 301, False),
    ],
)
async def test_an_old_unfinished_job_is_started_again(
    download_environment: Environment, status: JobStatus, seconds: int, *, expected: bool
) -> None:
    """A running job is started again after five minutes, because its work may have ended without it."""
    job = await download_environment.store_job(status=status)
    assert can_have_stopped(job, START, START + timedelta(seconds=seconds)) is expected


@pytest.mark.parametrize(("seconds", "expected"), [(-31, True), (-30, False), (0, False), (30, False), (31, True)])
def test_job_is_stalled_after_half_a_minute(seconds: int, *, expected: bool) -> None:
    """A pending job is stalled if its creation is over half a minute in the past, or in the future by the clock."""
    assert is_pending_too_long(START, START + timedelta(seconds=seconds)) is expected


async def test_a_repeated_start_returns_the_same_job(download_environment: Environment) -> None:
    """A request with the id of a job whose work has begun returns this job and starts no other."""
    runner, service = JobRunner(), build_service(download_environment)
    request = build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, runner
    await service.start(*request, job_id="a1")
    await download_environment.plan_parts("a1")
    first = await download_environment.load_job("a1")
    assert await service.start(*request, job_id="a1") == first
    assert (first.id, runner.started, len(await service.list(build_caller("editor@t")))) == ("a1", ["a1"], 1)


async def test_a_repeated_request_starts_a_job_whose_start_failed(download_environment: Environment) -> None:
    """If the start of a job fails, the repeated request starts the same job at once; it is returned in any case."""
    service, runner = build_service(download_environment), JobRunner(refuse=True)
    request = build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, runner
    with pytest.raises(WorkspaceError):
        await service.start(*request, job_id="a1")
    assert (await service.start(*request, job_id="a1")).id == "a1"
    runner.refuse = False
    assert (await service.start(*request, job_id="a1")).id == "a1"
    assert (runner.started, len(await service.list(build_caller("editor@t")))) == (["a1"], 1)


async def test_job_can_be_cancelled_once(download_environment: Environment) -> None:
    """Cancelling a job ends it and deletes its files; cancelling it again is rejected."""
    runner = JobRunner()
    started = await build_service(download_environment).start(
        build_caller("editor@t"), ("pump",), DownloadFormat.CSV, START, START + HOUR, runner
    )
    await download_environment.work.plan_next_part_numbers_unless_busy(started.id)
    await download_environment.work.convert_part_unless_busy(started.id, 0)
    assert download_environment.list_files()
    with pytest.raises(WorkspaceError):
        await build_service(download_environment).cancel(build_caller("viewer@t"), started.id, runner)
    await build_service(download_environment).cancel(
        build_caller("admin@t", AccessRight.KEYS_MANAGE), started.id, runner
    )
    assert (download_environment.list_files(), runner.stopped) == ([], [started.id])
    with pytest.raises(WorkspaceError) as refusal:
        await build_service(download_environment).cancel(build_caller("editor@t"), started.id, runner)
    assert (refusal.value.code, refusal.value.members) == ("DOWNLOAD_ENDED", {"currentStatus": "cancelled"})


async def test_a_repeated_cancellation_deletes_remaining_files(download_environment: Environment) -> None:
    """If a cancellation ended before it deleted the files, repeating it deletes them."""
    service, runner, editor = build_service(download_environment), JobRunner(), build_caller("editor@t")
    started = await service.start(editor, ("pump",), DownloadFormat.CSV, START, START + HOUR, runner)
    await download_environment.work.plan_next_part_numbers_unless_busy(started.id)
    await download_environment.work.convert_part_unless_busy(started.id, 0)
    await download_environment.jobs.change(started.id, Job.cancel)
    assert download_environment.list_files()
    with pytest.raises(WorkspaceError, match="cancelled"):
        await service.cancel(editor, started.id, runner)
    assert (download_environment.list_files(), runner.stopped) == ([], [started.id])


async def test_a_surface_download_contains_only_its_connections(download_environment: Environment) -> None:
    """The download of a surface contains only the surface's connections."""
    told = build_service(download_environment)
    assert await told.select_one_connection("press") == ("press",)
    assert (
        await told.select_surface_connections("hall")
        == await told.select_surface_connections("hall", "pump")
        == ("pump",)
    )
    for refused, code in (
        (told.select_one_connection("x"), "CONNECTION_NOT_FOUND"),
        (told.select_surface_connections("x"), "SURFACE_NOT_FOUND"),
        (told.select_surface_connections("hall", "press"), "CONNECTION_NOT_FOUND"),
    ):
        with pytest.raises(WorkspaceError) as refusal:
            await refused
        assert refusal.value.code == code


async def test_file_links_expire_no_later_than_the_job(download_environment: Environment) -> None:
    """A link expires after 15 minutes, or with its job if that is earlier; only completed jobs have links."""
    await download_environment.store_job()
    assert await build_service(download_environment).create_links(await download_environment.load_job()) == []
    job = await download_environment.run()
    assert {each.expires_at for each in await build_service(download_environment).create_links(job)} == {
        START + HOUR + timedelta(minutes=15)
    }
    late = DownloadService(
        get_catalog,
        download_environment.jobs,
        download_environment.blobs,
        download_environment.quota,
        timedelta(0),
        runtime=Runtime(now=lambda: job.expires_at - timedelta(minutes=1)),
    )
    assert {each.expires_at for each in await late.create_links(job)} == {job.expires_at}


def test_several_files_of_a_connection_are_numbered() -> None:
    """A file has the name of its connection, with a number if there are several."""
    file = StoredFile(blob="x", rows=1, size=1, sha256="")
    parts = (
        Part(connection="a", start=START, end=START + HOUR, files=(file, file)),
        Part(connection="a", start=START + HOUR, end=START + 2 * HOUR, files=(file,)),
        Part(connection="b", start=START, end=START + 2 * HOUR, files=(file,)),
    )
    job = Job(
        id="j",
        owner="o",
        format=DownloadFormat.CSV,
        start=START,
        end=START + HOUR,
        connections=("a", "b"),
        created_at=START,
        expires_at=START,
        status=JobStatus.COMPLETED,
        parts=parts,
    )
    assert list_download_file_names(job) == ["a-0001.csv", "a-0002.csv", "a-0003.csv", "b.csv"]


async def store_import(environment: Environment, *, started_at: datetime | None, open_step: int | None = None) -> Job:
    """Store an import with the id ``i1``."""
    request = ImportRequest(
        format=ImportFormat.CSV,
        file_name="a.csv",
        mapping=ImportMapping(timestamp="time"),
        upload_expires_at=START,
        started_at=started_at,
        open_step=open_step,
    )
    job = await environment.store_job()
    stored = job.model_copy(update={"id": "i1", "import_request": request})
    await environment.jobs.create(stored)
    return stored


@pytest.mark.parametrize("started", [False, True])
async def test_only_a_started_import_has_work_to_stop(download_environment: Environment, *, started: bool) -> None:
    """Cancelling an import that was not started stops no background work."""
    job = await store_import(download_environment, started_at=START if started else None)
    runner = JobRunner()
    await build_service(download_environment).cancel(build_caller(job.owner), "i1", runner, kind=JobKind.IMPORT)
    assert runner.stopped == (["i1"] if started else [])


async def test_the_work_that_completes_a_step_of_a_cancelled_import_is_started(
    download_environment: Environment,
) -> None:
    """If the start of the work that completes a partly stored step fails, a repeated cancellation starts the work."""
    service = build_service(download_environment)
    job = await store_import(download_environment, started_at=START, open_step=0)
    runner = JobRunner(refuse=True)
    with pytest.raises(WorkspaceError, match="no"):
        await service.cancel(build_caller(job.owner), "i1", runner, kind=JobKind.IMPORT)
    runner.refuse = False
    with pytest.raises(WorkspaceError, match="cancelled"):
        await service.cancel(build_caller(job.owner), "i1", runner, kind=JobKind.IMPORT)
    assert (runner.started, runner.stopped) == (["i1"], [])


async def test_the_work_of_an_ended_import_with_a_partly_stored_step_is_started_again(
    download_environment: Environment,
) -> None:
    """The work of an ended import that must still complete a step is started again after five minutes."""
    job = await store_import(download_environment, started_at=START, open_step=0)
    ended = job.model_copy(update={"status": JobStatus.FAILED})
    assert not can_have_stopped(ended, START, START + timedelta(seconds=300))
    assert can_have_stopped(ended, START, START + timedelta(seconds=301))
