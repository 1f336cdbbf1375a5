"""Tests of the import service that API requests use."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.backends.embedded.blobs import build_block_folder
from shared.backends.embedded.quotas import SqliteQuotaStore
from shared.catalog.models import Connection
from shared.disk_space.guard import DiskGuard
from shared.downloads.expiry import build_step_blob_name, build_upload_blob_name
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest, ImportStep
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import Job
from shared.downloads.service import DownloadService
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose
from shared.imports.service import ImportService, get_import_request
from shared.imports.uploads import require_waiting_import
from tests.unit.shared.imports.test_work import Environment
from tests.unit.shared.telemetry.fakes import build_catalog, build_catalog_getter

DAY = timedelta(days=1)
ANN = Principal("ann@t", "ann@t", "Ann", frozenset(), CredentialKind.JWT, "t", None)


class FakeRunner:
    """Fake runner that rejects a start while the job runs, as Durable Functions does, and records stopped jobs."""

    def __init__(self) -> None:
        self.is_available = True
        self.started: list[str] = []
        self.stopped: list[str] = []

    async def start(self, job_id: str) -> None:
        """Start the work of a job; raise an error if it is running."""
        if not self.is_available or job_id in self.started:
            raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", "The job was not started.")
        self.started.append(job_id)

    async def stop(self, job_id: str) -> None:
        """Record that a job was stopped."""
        self.stopped.append(job_id)


@pytest.fixture
async def environment(tmp_path: Path) -> AsyncIterator[Environment]:
    """Return stores with an import ``a1`` whose file is uploaded."""
    made = Environment(tmp_path)
    await made.blobs.create_if_missing(build_upload_blob_name("a1"), b"time\n")
    yield made
    await made.database.close()


@pytest.fixture
async def imports(environment: Environment) -> ImportService:
    """Return the import service for stores with the import ``a1``."""
    pump = Connection.model_validate({"lookup": "pump", "name": "Pump", "type": "CLOUD_EVENT_HUB"})
    read_catalog = build_catalog_getter(build_catalog(pump))
    quota = JobQuota(SqliteQuotaStore(environment.database), environment.jobs, read_catalog)
    downloads = DownloadService(read_catalog, environment.jobs, environment.blobs, quota, DAY)
    disk = DiskGuard(environment.disk)
    made = ImportService(read_catalog, environment.jobs, environment.blobs, quota, downloads, disk, DAY)
    await made.create(ANN, "pump", build_request, job_id="a1")
    return made


def build_request(until: datetime) -> ImportRequest:
    """Return the request for an import whose upload link expires at the given time."""
    mapping = ImportMapping(timestamp="time")
    return ImportRequest(format=ImportFormat.CSV, file_name="a.csv", mapping=mapping, upload_expires_at=until)


def run_before_change(
    environment: Environment, monkeypatch: pytest.MonkeyPatch, action: Callable[[], Awaitable[None]]
) -> None:
    """Run an action just before the next change of a job, as a concurrent request would."""
    change = environment.jobs.change

    async def change_after_action(job_id: str, update: Callable[[Job], Job]) -> Job | None:
        await action()
        return await change(job_id, update)

    monkeypatch.setattr(environment.jobs, "change", change_after_action)


async def test_an_import_counts_after_another_attempt_of_its_request_failed(
    imports: ImportService, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If two attempts of a request overlap and one fails, the import of the other one counts towards the quota."""
    create = environment.jobs.create

    async def create_after_another_attempt(job: Job) -> None:
        monkeypatch.setattr(environment.jobs, "create", create)
        await imports.create(ANN, "pump", build_request, job_id="b1")
        await create(job)

    monkeypatch.setattr(environment.jobs, "create", create_after_another_attempt)
    with pytest.raises(WorkspaceError, match="does not respond"):
        await imports.create(ANN, "pump", build_request, job_id="b1")
    places = await SqliteQuotaStore(environment.database).list_reservations("ann@t", Purpose.JOBS)
    assert {place.id for place in places} == {"a1", "b1"}


@pytest.mark.parametrize("job_id", ["", "b1"])
async def test_an_import_that_could_not_be_stored_does_not_count(
    imports: ImportService, environment: Environment, monkeypatch: pytest.MonkeyPatch, job_id: str
) -> None:
    """An import that the store rejects does not count towards the quota."""

    async def fail(job: Job) -> None:
        raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", f"{job.id} was not stored")

    monkeypatch.setattr(environment.jobs, "create", fail)
    with pytest.raises(WorkspaceError, match="was not stored"):
        await imports.create(ANN, "pump", build_request, job_id=job_id)
    places = await SqliteQuotaStore(environment.database).list_reservations("ann@t", Purpose.JOBS)
    assert [place.id for place in places] == ["a1"]


async def test_an_import_waits_24_hours_for_its_file(imports: ImportService) -> None:
    """An import that is not started expires after 24 hours, and so does the link with which its file is uploaded."""
    job = await imports.get(ANN, "a1")
    end = job.created_at + timedelta(hours=24)
    assert (job.expires_at, get_import_request(job).upload_expires_at) == (end, end)
    link = await imports.create_upload_link(job)
    assert httpx.URL(link).params["exp"] == str(int(end.timestamp()))


async def test_a_repeated_start_returns_the_import(imports: ImportService) -> None:
    """If an import is started again while it runs, the reply is the import instead of an error."""
    runner = FakeRunner()
    started = await imports.start(ANN, "a1", runner, None)
    assert await imports.start(ANN, "a1", runner, None) == started
    assert runner.started == ["a1"]


@pytest.mark.parametrize("is_concurrent", [False, True])
async def test_a_started_import_accepts_no_other_mapping(
    imports: ImportService, environment: Environment, monkeypatch: pytest.MonkeyPatch, *, is_concurrent: bool
) -> None:
    """A start with another mapping than that of the first start, also a concurrent one, gets an error.

    The mapping of the first start can be repeated.
    """
    runner, first = FakeRunner(), ImportMapping(timestamp="time", columns=("t",))

    async def start_first() -> None:
        monkeypatch.undo()
        await imports.start(ANN, "a1", runner, first)

    if is_concurrent:
        run_before_change(environment, monkeypatch, start_first)
    else:
        await start_first()
    with pytest.raises(WorkspaceError, match="another mapping") as raised:
        await imports.start(ANN, "a1", runner, ImportMapping(timestamp="time"))
    assert (raised.value.kind, raised.value.code) == (Kind.CONFLICT, "IMPORT_STARTED")
    assert get_import_request(await imports.start(ANN, "a1", runner, first)).mapping == first
    assert runner.started == ["a1"]


async def test_an_import_that_is_cancelled_during_its_start_does_not_start(
    imports: ImportService, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A start gets the error of an ended import if a concurrent request cancels the import."""
    runner = FakeRunner()

    async def cancel() -> None:
        monkeypatch.undo()
        await imports.cancel(ANN, "a1", runner)

    run_before_change(environment, monkeypatch, cancel)
    with pytest.raises(WorkspaceError) as raised:
        await imports.start(ANN, "a1", runner, None)
    assert (raised.value.code, runner.started) == ("IMPORT_ENDED", [])


async def test_a_started_import_accepts_no_other_file(imports: ImportService, environment: Environment) -> None:
    """An upload is refused as soon as the import of the file has started, and with another code after its end."""
    name, runner = build_upload_blob_name("a1"), FakeRunner()
    assert (await require_waiting_import(environment.jobs, name)).owner == ANN.member_id
    await imports.start(ANN, "a1", runner, None)
    with pytest.raises(WorkspaceError, match="has started") as raised:
        await require_waiting_import(environment.jobs, name)
    assert (raised.value.kind, raised.value.code) == (Kind.CONFLICT, "IMPORT_STARTED")
    await imports.cancel(ANN, "a1", runner)
    with pytest.raises(WorkspaceError) as raised:
        await require_waiting_import(environment.jobs, name)
    assert raised.value.code == "IMPORT_ENDED"


async def test_a_start_that_failed_can_be_repeated(imports: ImportService) -> None:
    """If the work of an import cannot be started, the client gets the error and can start it again."""
    runner = FakeRunner()
    runner.is_available = False
    with pytest.raises(WorkspaceError):
        await imports.start(ANN, "a1", runner, None)
    runner.is_available = True
    await imports.start(ANN, "a1", runner, None)
    assert runner.started == ["a1"]


async def test_the_cancellation_of_an_import_with_an_open_step_starts_its_work(
    imports: ImportService, environment: Environment
) -> None:
    """If a step's rows are possibly archived but not in the query table, a cancellation leaves the step to the work."""
    runner = FakeRunner()
    await imports.start(ANN, "a1", runner, None)
    await environment.blobs.create_if_missing(build_step_blob_name("a1", 0, ""), b"rows")
    step = ImportStep(next_position=10, rows=1, accepted=1, duplicates=0, rejected=0)
    await environment.jobs.change("a1", lambda job: job.mark_step_partly_stored(0, step))
    runner.started.clear()
    await imports.cancel(ANN, "a1", runner)
    assert (runner.started, runner.stopped) == (["a1"], [])
    assert [blob.name async for blob in environment.blobs.list("")] == [build_step_blob_name("a1", 0, "")]


async def test_the_cancellation_of_an_import_without_an_open_step_stops_its_work(
    imports: ImportService, environment: Environment
) -> None:
    """If archive and query table have the same rows, a cancellation stops the work and deletes all files."""
    runner = FakeRunner()
    await imports.start(ANN, "a1", runner, None)
    await environment.blobs.create_if_missing(build_step_blob_name("a1", 0, ""), b"rows")
    await imports.cancel(ANN, "a1", runner)
    assert (runner.started, runner.stopped) == (["a1"], ["a1"])
    assert [blob.name async for blob in environment.blobs.list("")] == []


def upload_block(environment: Environment) -> Path:
    """Store a block of the import's file as an upload does, without the file itself; return the folder of blocks."""
    blocks = build_block_folder(environment.folder / "downloads", build_upload_blob_name("a1"))
    blocks.mkdir(parents=True)
    (blocks / "00").write_bytes(b"time\n")
    return blocks


async def test_blocks_are_deleted_when_their_import_ends(imports: ImportService, environment: Environment) -> None:
    """The cancellation of an import deletes uploaded blocks; if it failed before, its repetition deletes them."""
    await environment.blobs.delete([build_upload_blob_name("a1")])
    blocks = upload_block(environment)
    await imports.cancel(ANN, "a1", FakeRunner())
    assert not blocks.exists()
    blocks = upload_block(environment)
    with pytest.raises(WorkspaceError) as refusal:
        await imports.cancel(ANN, "a1", FakeRunner())
    assert refusal.value.code == "IMPORT_ENDED"
    assert not blocks.exists()


async def test_blocks_are_deleted_when_their_import_expires(imports: ImportService, environment: Environment) -> None:
    """If an import expires before its blocks were joined, the blocks are deleted with the import."""
    await environment.blobs.delete([build_upload_blob_name("a1")])
    blocks = upload_block(environment)
    await environment.expire()
    assert not blocks.exists()
    with pytest.raises(WorkspaceError) as missing:
        await imports.get(ANN, "a1")
    assert missing.value.code == "IMPORT_NOT_FOUND"
