"""Tests of the steps of imports: repetition, waiting, and changed files."""

import asyncio
import csv
import hashlib
import io
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from shared.backends.embedded import jobs, quotas
from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.backends.embedded.jobs import SqliteJobLeaseStore, SqliteJobStore
from shared.backends.embedded.quotas import SqliteQuotaStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.background.ports import JobClaim
from shared.catalog.models import Connection, Policies, TelemetryPolicy
from shared.catalog.snapshot import Catalog
from shared.cold_data.archive import Compaction
from shared.cold_data.names import build_hour_folder
from shared.cold_data.reading import ColdReader
from shared.disk_space.guard import DiskGuard
from shared.disk_space.ports import DiskUsage
from shared.downloads.expiry import ORPHAN_AGE, DownloadExpiry, build_upload_blob_name, remove_files_of_ended_job
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest, UploadedFile
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import DownloadFormat, Job, JobStatus
from shared.errors import Kind, WorkspaceError
from shared.imports import csv_reader, work
from shared.imports.archive_writer import HistoryArchive, ImportSource, UnstoredBlob
from shared.imports.csv_reader import CsvReader
from shared.imports.step_rows import StepRows
from shared.imports.uploads import find_upload
from shared.imports.work import ImportRunner, ImportStores, RunResult
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.ports import CurrentCatalog
from tests.unit.shared.telemetry.fakes import build_catalog, build_catalog_getter
from tests.virtual_time import VirtualTime

START = datetime(2026, 1, 5, 10, tzinfo=UTC)
DAY = timedelta(days=1)


class FakeTable:
    """Fake query table that stores rows by tag, and raises the errors that the test has set."""

    def __init__(self, blobs: FolderBlobStore, folder: Path) -> None:
        self._blobs = blobs
        self._folder = folder
        self.failures = 0
        self.rows: dict[str, list[str]] = {}
        self.surfaces = set[str]()

    async def ingest(self, blob_name: str, ingestion_tag: str) -> None:
        """Store the ids of a file's rows, or raise the error that the test has set."""
        if self.failures:
            self.failures -= 1
            raise WorkspaceError(Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE", "down")
        await self._blobs.download_to_file(blob_name, self._folder / "fetched.parquet")
        table = pq.read_table(self._folder / "fetched.parquet")
        self.surfaces.update(table.column("SurfaceLookups").to_pylist())
        self.rows.setdefault(ingestion_tag, table.column("MessageId").to_pylist())

    @property
    def ids(self) -> Counter[str]:
        """Number of stored rows for each message id."""
        return Counter(each for rows in self.rows.values() for each in rows)


class FakeDisk:
    """Fake disk that is full as long as the test has set this."""

    free = 10**12

    async def read_usage(self) -> DiskUsage:
        """Return the disk usage."""
        return DiskUsage(2 * 10**12, self.free)


class FakeProgress:
    """Fake progress of an archive that is always complete."""

    async def wait_until_archived(self, timeout_seconds: float) -> bool:
        """Return True, because the archive is complete."""
        return timeout_seconds > 0


class Environment:
    """Import stores in one folder."""

    def __init__(self, folder: Path, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        schema = jobs.SCHEMA + quotas.SCHEMA
        self.database = SqliteDatabase(folder / "jobs.sqlite", schema)
        links = FileLinks("http://127.0.0.1", folder / "key")
        self.folder = folder
        self.jobs = SqliteJobStore(self.database)
        self.blobs = FolderBlobStore(folder / "downloads", links)
        self.cold = FolderBlobStore(folder / "cold", links)
        self.archive = HistoryArchive(self.cold, folder / "scratch")
        self.table = FakeTable(self.blobs, folder)
        self.disk = FakeDisk()
        read_catalog = build_catalog_getter(
            build_catalog(Connection.model_validate({"lookup": "pump", "name": "Pump", "type": "CLOUD_EVENT_HUB"}))
        )
        quota = JobQuota(SqliteQuotaStore(self.database), self.jobs, read_catalog)
        self.leases = SqliteJobLeaseStore(self.database)
        stores = ImportStores(
            self.jobs,
            self.blobs,
            self.archive,
            self.table,
            self.leases,
            FakeProgress(),
            folder / "scratch",
            DiskGuard(self.disk),
        )
        self._stores = stores
        self.work = ImportRunner(read_catalog, stores, quota, runtime=runtime)
        self._runtime = runtime
        self._dependencies = read_catalog, quota

    def replace_archive(self, archive: HistoryArchive, read_catalog: CurrentCatalog | None = None) -> None:
        """Import into another archive, and optionally with another catalog."""
        catalog, quota = self._dependencies
        self.work = ImportRunner(
            read_catalog or catalog, replace(self._stores, archive=archive), quota, runtime=self._runtime
        )

    async def store_import(self, content: str, job_id: str = "a1") -> None:
        """Store an import with an uploaded file, ready to run."""
        await self.blobs.create_if_missing(build_upload_blob_name(job_id), content.encode())
        blob = await find_upload(self.blobs, job_id)
        assert blob is not None
        request = ImportRequest(
            format=ImportFormat.CSV,
            file_name="a.csv",
            mapping=ImportMapping(timestamp="time"),
            upload_expires_at=START + DAY,
            started_at=START,
            file=UploadedFile(size=blob.size, written_at=blob.written_at, etag=blob.etag),
        )
        job = Job(
            id=job_id,
            owner="editor@t",
            format=DownloadFormat.CSV,
            start=START,
            end=START,
            connections=("pump",),
            created_at=START,
            expires_at=START + DAY,
            import_request=request,
        )
        await self.jobs.create(job)

    async def run_import(self, job_id: str = "a1") -> tuple[JobStatus, int, int, int, str | None]:
        """Run an import to its end, and return its status and counts."""
        while await self.work.run_steps(job_id) is not RunResult.ENDED:
            pass
        job = await self.jobs.find_job(job_id)
        assert job is not None
        assert job.import_request is not None
        request = job.import_request
        return job.status, request.accepted, request.duplicates, request.rejected, job.error

    async def cancel(self, job_id: str = "a1") -> None:
        """Cancel an import, and delete the files that its work does not need."""
        job = await self.jobs.change(job_id, Job.cancel)
        assert job is not None
        await remove_files_of_ended_job(self.blobs, job)

    async def expire(self, job_id: str = "a1", *, age: timedelta = timedelta()) -> None:
        """Set the age of an import since its expiry, and delete the expired jobs."""
        expires_at = datetime.now(UTC) - age
        await self.jobs.change(job_id, lambda job: job.model_copy(update={"expires_at": expires_at}))
        _, quota = self._dependencies
        await DownloadExpiry(self.jobs, self.blobs, quota, self.folder / "scratch").delete_expired_jobs_and_files()

    async def list_archived(self) -> list[str]:
        """Return the ids of all archived messages."""
        reader = ColdReader(self.cold, self.folder / "scratch")
        batches = reader.stream_rows("pump", START - DAY, START + 2 * DAY)
        return [each async for batch in batches for each in batch.column("messageId").to_pylist()]


@pytest.fixture
async def import_environment(tmp_path: Path) -> AsyncIterator[Environment]:
    """Return import stores in a new folder."""
    made = Environment(tmp_path)
    yield made
    await made.database.close()


def build_file(rows: int, first: int = 0) -> str:
    """Return a file with one row per minute, so that an hour has several rows."""
    lines = (f"{(START + timedelta(minutes=n)).isoformat()},{n}" for n in range(first, first + rows))
    return "\n".join(["time,x", *lines, ""])


async def test_a_step_that_failed_is_repeated_with_the_same_result(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """If a step fails after writing to the archive, its repetition stores each row once in archive and table."""
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 1000)
    await import_environment.store_import(build_file(200))
    import_environment.table.failures = 1
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    compaction = Compaction(import_environment.cold, timedelta(0), import_environment.folder / "scratch")
    for _ in range(2):
        await compaction.merge_due_hours_and_count_them(START + 100 * DAY)
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 200, 0, 0, None)
    assert len(import_environment.table.rows) > 1
    assert set(import_environment.table.ids.values()) == {1}
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids)
    assert len(import_environment.table.ids) == 200
    assert [blob.name async for blob in import_environment.blobs.list("")] == []


@pytest.mark.parametrize(("is_open", "accepted"), [(True, 1), (False, 2)])
async def test_a_repeated_step_has_the_rows_of_the_attempt_that_opened_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_open: bool, accepted: int
) -> None:
    """If an attempt fails, the next one converts the rows again only if none of them can be archived yet."""
    clock = [START]
    environment = Environment(tmp_path, Runtime(now=lambda: clock[0]))
    times = [START, START + timedelta(seconds=303), START + DAY]
    await environment.store_import("".join(["time,x\n", *(f"{time.isoformat()},1\n" for time in times)]))
    change = environment.jobs.change

    async def fail_once(job_id: str, transition: Callable[[Job], Job]) -> Job | None:
        job = await change(job_id, lambda job: job)
        assert job is not None
        request = transition(job).import_request
        assert request is not None
        if (request.steps, request.open_result is None) == ((1, True) if is_open else (0, False)):
            monkeypatch.setattr(environment.jobs, "change", change)
            raise WorkspaceError(Kind.UNAVAILABLE, "DOWNLOADS_UNAVAILABLE", "down")
        return await change(job_id, transition)

    monkeypatch.setattr(environment.jobs, "change", fail_once)
    with pytest.raises(WorkspaceError):
        await environment.work.run_steps("a1")
    clock[0] += timedelta(seconds=5)
    rejected = len(times) - accepted
    assert await environment.run_import() == (JobStatus.COMPLETED, accepted, 0, rejected, None)
    assert sorted(await environment.list_archived()) == sorted(environment.table.ids.elements())
    assert len(environment.table.ids) == accepted
    job = await environment.jobs.find_job("a1")
    assert job is not None
    [(_, file)] = job.list_files()
    assert (await environment.blobs.read(file.blob)).count(b"ahead of the service's clock") == file.rows == rejected
    await environment.database.close()


@pytest.mark.parametrize("is_complete", [False, True])
async def test_an_attempt_does_not_replace_the_step_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_complete: bool
) -> None:
    """An attempt that is about to open a step archives nothing if another attempt has opened or completed the step."""
    slow = Environment(tmp_path, Runtime(now=lambda: START))
    fast = Environment(tmp_path, Runtime(now=lambda: START + timedelta(seconds=5)))
    times = [START, START + timedelta(seconds=303), START + DAY]
    await slow.store_import("".join(["time,x\n", *(f"{time.isoformat()},1\n" for time in times)]))
    fast.table.failures = 0 if is_complete else 1
    change = slow.jobs.change

    async def let_fast_attempt_store_the_step(job_id: str, transition: Callable[[Job], Job]) -> Job | None:
        monkeypatch.setattr(slow.jobs, "change", change)
        with monkeypatch.context() as patch, suppress(WorkspaceError):
            patch.setattr(work, "RUN_SECONDS", -1)
            await fast.work.run_steps(job_id)
        return await change(job_id, transition)

    monkeypatch.setattr(slow.jobs, "change", let_fast_attempt_store_the_step)
    with pytest.raises(WorkspaceError, match="Another attempt"):
        await slow.work.run_steps("a1")
    assert await slow.run_import() == (JobStatus.COMPLETED, 2, 0, 1, None)
    assert await slow.list_archived() == list((fast.table.ids + slow.table.ids).elements())
    job = await slow.jobs.find_job("a1")
    assert job is not None
    [(_, file)] = job.list_files()
    assert (await slow.blobs.read(file.blob)).count(b"ahead of the service's clock") == file.rows == 1
    for environment in (fast, slow):
        await environment.database.close()


async def test_an_attempt_does_not_continue_after_a_step_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a longer step of another attempt counts instead of the own one, the attempt is repeated after that step."""
    slow, fast = Environment(tmp_path), Environment(tmp_path)
    row_bytes = len(build_file(1)) - len("time,x\n")
    await slow.store_import(build_file(4), "a0")
    await slow.run_import("a0")
    await slow.store_import(build_file(8))
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 4 * row_bytes)
    change = slow.jobs.change

    async def let_fast_attempt_store_a_longer_step(job_id: str, transition: Callable[[Job], Job]) -> Job | None:
        monkeypatch.setattr(slow.jobs, "change", change)
        with monkeypatch.context() as patch:
            patch.setattr(work, "RUN_SECONDS", -1)
            patch.setattr(csv_reader, "BULK_STEP_BYTES", 6 * row_bytes)
            await fast.work.run_steps(job_id)
        return await change(job_id, transition)

    # All rows of the slow attempt's first step are stored already, so the attempt counts the step without opening it.
    monkeypatch.setattr(slow.jobs, "change", let_fast_attempt_store_a_longer_step)
    with pytest.raises(WorkspaceError, match="Another attempt"):
        await slow.work.run_steps("a1")
    assert await slow.run_import() == (JobStatus.COMPLETED, 4, 4, 0, None)
    assert Counter(await slow.list_archived()) == fast.table.ids + slow.table.ids
    for environment in (fast, slow):
        await environment.database.close()


async def test_a_step_whose_file_another_attempt_has_deleted_is_retried(
    import_environment: Environment, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """If another attempt completes an open step and deletes its file before this one reads it, this one is repeated."""
    await import_environment.store_import(build_file(3))
    import_environment.table.failures = 1
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    other = Environment(tmp_path)
    download = import_environment.blobs.download_to_file

    async def let_other_attempt_complete(blob: str, path: Path) -> None:
        await other.run_import()
        await download(blob, path)

    monkeypatch.setattr(import_environment.blobs, "download_to_file", let_other_attempt_complete)
    with pytest.raises(WorkspaceError, match="Another attempt") as caught:
        await import_environment.work.run_steps("a1")
    assert caught.value.kind is Kind.UNAVAILABLE
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    await other.database.close()


async def test_rejected_rows_of_an_attempt_without_a_result_are_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an attempt fails before its step counts, its rejected rows are not listed, also if the next rejects none."""
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 30)
    clock = [START]
    environment = Environment(tmp_path, Runtime(now=lambda: clock[0]))
    await environment.store_import(f"time,x\n{(START + timedelta(seconds=303)).isoformat()},1\nno time,2\n")
    with monkeypatch.context() as patch:
        patch.setattr(environment.jobs, "change", None)
        with pytest.raises(TypeError):
            await environment.work.run_steps("a1")
    clock[0] += timedelta(seconds=5)
    assert await environment.run_import() == (JobStatus.COMPLETED, 1, 0, 1, None)
    job = await environment.jobs.find_job("a1")
    assert job is not None
    [(_, file)] = job.list_files()
    _, *rows = csv.reader((await environment.blobs.read(file.blob)).decode().splitlines())
    assert [row[0] for row in rows] == ["2"]
    await environment.database.close()


async def test_a_change_of_the_policy_does_not_reject_archived_rows(import_environment: Environment) -> None:
    """If the policy rejects rows that an interrupted step has archived, they get into the query table nevertheless."""
    await import_environment.store_import(build_file(3))
    import_environment.table.failures = 1
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    pump = Connection.model_validate(
        {"lookup": "pump", "name": "Pump", "type": "CLOUD_EVENT_HUB", "source": {"devices": ["rig-*"]}}
    )
    policies = Policies(telemetry=TelemetryPolicy(require_declared_devices=True))
    catalog = replace(build_catalog(pump, version=2), policies=policies)
    import_environment.replace_archive(import_environment.archive, build_catalog_getter(catalog))
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids.elements())
    assert len(import_environment.table.ids) == 3


async def test_rows_that_were_stored_before_the_repetition_of_a_step_are_duplicates(
    import_environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row of an interrupted step that another import has stored in the meantime counts as a duplicate."""
    await import_environment.store_import(build_file(3) + "no time,1\n")
    with monkeypatch.context() as patch:
        patch.setattr(import_environment.cold, "create_if_missing", None)
        with pytest.raises(TypeError):
            await import_environment.work.run_steps("a1")
    await import_environment.leases.release_lease("import-pump", "a1", datetime.now(UTC))
    await import_environment.store_import(build_file(2), "b2")
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 2, 0, 0, None)
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 1, 2, 1, None)
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids.elements())
    assert len(import_environment.table.ids) == 3


async def test_a_step_on_two_processes_keeps_the_result_of_the_first(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment, tmp_path: Path
) -> None:
    """If two processes run one import, only the rejected rows of the process that completes first are stored."""
    other = Environment(tmp_path)

    async def let_other_process_complete(blob: str, tag: str) -> None:
        assert (blob.startswith("a1/table/000000-"), tag) == (True, "import-a1-0")
        await other.run_import()

    monkeypatch.setattr(import_environment.table, "ingest", let_other_process_complete)
    await import_environment.store_import(build_file(3) + "no time,1\n")
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 1, None)
    job = await import_environment.jobs.find_job("a1")
    assert job is not None
    assert [blob.name async for blob in import_environment.blobs.list("")] == [
        file.blob for _, file in job.list_files()
    ]
    assert len(job.list_files()) == 1
    await other.database.close()


async def test_the_rejected_rows_of_all_steps_are_in_one_file(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """The file of rejected rows has those of each step, in the order of the rows."""
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 1000)
    lines = build_file(200).splitlines(keepends=True)
    for number in (10, 100, 190):
        lines[number] = f"no time,{number}\n"
    await import_environment.store_import("".join(lines))
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 197, 0, 3, None)
    job = await import_environment.jobs.find_job("a1")
    assert job is not None
    [(_, file)] = job.list_files()
    content = await import_environment.blobs.read(file.blob)
    assert (file.rows, file.size, file.sha256) == (3, len(content), hashlib.sha256(content).hexdigest())
    header, *rows = csv.reader(content.decode().splitlines())
    assert header == ["row", "reason", "record"]
    assert [(row[0], row[2]) for row in rows] == [(str(number), f"no time,{number}") for number in (10, 100, 190)]


async def test_overlapping_files_add_only_new_rows(import_environment: Environment) -> None:
    """A row that another import or the same file has added before counts as a duplicate."""
    await import_environment.store_import(build_file(100))
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 100, 0, 0, None)
    again = build_file(50, first=80)
    await import_environment.store_import(again + again.partition("\n")[2], "b2")
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 30, 70, 0, None)
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids.elements())


async def test_a_row_that_repeats_a_row_of_the_step_before_is_a_duplicate(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """The search for duplicates of a step starts only after the rows of the step before it are in the archive."""
    rows = build_file(20)
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", len(rows))
    next_step_read = threading.Event()
    calls = []

    class RecordingArchive(HistoryArchive):
        async def select_new_messages(
            self, source: ImportSource, first_row_number: int, messages: pa.Table
        ) -> pa.Table:
            calls.append(f"search from row {first_row_number}")
            return await super().select_new_messages(source, first_row_number, messages)

        async def store_messages(
            self, source: ImportSource, messages: pa.Table, blobs: Sequence[UnstoredBlob] | None = None
        ) -> None:
            # A search that started too early would start once the next step has been read.
            await asyncio.to_thread(next_step_read.wait, 30)
            for _ in range(100):
                await asyncio.sleep(0)
            await super().store_messages(source, messages, blobs)
            calls.append("write")

    def read_and_report(
        self: CsvReader, position: int, first_row_number: int, max_rows: int | None = None
    ) -> StepRows | None:
        step = read(self, position, first_row_number, max_rows)
        if first_row_number > 1:
            next_step_read.set()
        return step

    read = CsvReader.read_step
    monkeypatch.setattr(CsvReader, "read_step", read_and_report)
    import_environment.replace_archive(RecordingArchive(import_environment.cold, import_environment.folder / "scratch"))
    await import_environment.store_import(rows + rows.partition("\n")[2])
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 20, 20, 0, None)
    assert calls[:3] == ["search from row 1", "write", "search from row 21"]


async def test_a_surface_created_during_a_step_is_in_archive_and_query_table(import_environment: Environment) -> None:
    """If a surface is created while a step waits to be stored, the archive and the query table both name it."""
    pump = Connection.model_validate({"lookup": "pump", "name": "Pump", "type": "CLOUD_EVENT_HUB"})
    catalog = build_catalog(pump)

    class ArchiveWithLateSurface(HistoryArchive):
        async def build_blobs_unless_too_many(
            self, source: ImportSource, messages: pa.Table
        ) -> list[UnstoredBlob] | None:
            nonlocal catalog
            blobs = await super().build_blobs_unless_too_many(source, messages)
            catalog = build_catalog(pump, surfaces={"hall": ["pump"]})
            return blobs

    async def read_catalog() -> Catalog:
        return catalog

    archive = ArchiveWithLateSurface(import_environment.cold, import_environment.folder / "scratch")
    import_environment.replace_archive(archive, read_catalog)
    await import_environment.store_import(build_file(3))
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    assert import_environment.table.surfaces == {'["hall"]'}
    [blob] = [blob async for blob in import_environment.cold.list("")]
    archived = pq.read_table(io.BytesIO(await import_environment.cold.read(blob.name)))
    assert archived.column("surfaces").unique().to_pylist() == ['["hall"]']


@pytest.mark.parametrize("is_archived", [False, True])
async def test_a_surface_created_before_the_repetition_of_a_step_is_in_neither_store(
    import_environment: Environment, monkeypatch: pytest.MonkeyPatch, *, is_archived: bool
) -> None:
    """If a surface is created after a step was opened, neither archive nor query table name it for the step's rows."""
    await import_environment.store_import(build_file(3))
    import_environment.table.failures = 1
    with monkeypatch.context() as patch:
        if not is_archived:
            patch.setattr(import_environment.cold, "create_if_missing", None)
        with pytest.raises(WorkspaceError if is_archived else TypeError):
            await import_environment.work.run_steps("a1")
    import_environment.table.failures = 0
    pump = Connection.model_validate({"lookup": "pump", "name": "Pump", "type": "CLOUD_EVENT_HUB"})
    catalog = build_catalog(pump, surfaces={"hall": ["pump"]})
    import_environment.replace_archive(import_environment.archive, build_catalog_getter(catalog))
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    assert import_environment.table.surfaces == {"[]"}
    [blob] = [blob async for blob in import_environment.cold.list("")]
    archived = pq.read_table(io.BytesIO(await import_environment.cold.read(blob.name)))
    assert archived.column("surfaces").unique().to_pylist() == ["[]"]


async def test_imports_of_a_connection_wait_for_each_other(import_environment: Environment) -> None:
    """While one import adds rows of a connection, other imports of this connection wait."""
    await import_environment.store_import(build_file(3))
    now = datetime.now(UTC)
    await import_environment.leases.claim_job("import-pump", "other", now, now + DAY, now)
    assert await import_environment.work.run_steps("a1") is RunResult.WAITING
    await import_environment.leases.release_lease("import-pump", "other", now)
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)


class UnavailableArchive(HistoryArchive):
    """Archive that cannot be searched."""

    async def select_new_messages(self, source: ImportSource, first_row_number: int, messages: pa.Table) -> pa.Table:  # noqa: ARG002  signature of HistoryArchive
        """Raise the error of an unavailable blob store."""
        raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "down")


async def test_other_imports_wait_after_a_failed_attempt(import_environment: Environment, tmp_path: Path) -> None:
    """If one of two attempts of an import fails, other imports wait, because the other attempt may store rows later."""
    other, results = Environment(tmp_path), []

    class SlowArchive(HistoryArchive):
        async def store_messages(
            self, source: ImportSource, messages: pa.Table, blobs: Sequence[UnstoredBlob] | None = None
        ) -> None:
            with pytest.raises(WorkspaceError, match="down"):
                await other.work.run_steps("a1")
            results.append(await import_environment.work.run_steps("b2"))
            await super().store_messages(source, messages, blobs)

    other.replace_archive(UnavailableArchive(other.cold, tmp_path / "scratch"))
    slow = Environment(tmp_path)
    slow.replace_archive(SlowArchive(slow.cold, tmp_path / "scratch"))
    await import_environment.store_import(build_file(3))
    await import_environment.store_import(build_file(3), "b2")
    assert await slow.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    assert results == [RunResult.WAITING]
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 0, 3, 0, None)
    assert len(await import_environment.list_archived()) == 3
    for each in (other, slow):
        await each.database.close()


async def test_other_imports_wait_during_a_step_that_takes_longer_than_a_reservation(tmp_path: Path) -> None:
    """While the search or the storage of a step takes long, other imports of the connection wait."""
    time = VirtualTime()
    one, other, results = Environment(tmp_path, time.runtime), Environment(tmp_path, time.runtime), []

    async def pass_time_and_run_other_import() -> None:
        for _ in range(4):
            time.advance(100)
            while not time.has_sleepers:  # noqa: ASYNC110  the extension of the reservation has no event
                await asyncio.sleep(0)
        results.append(await other.work.run_steps("b2"))

    class SlowArchive(HistoryArchive):
        async def select_new_messages(
            self, source: ImportSource, first_row_number: int, messages: pa.Table
        ) -> pa.Table:
            await pass_time_and_run_other_import()
            return await super().select_new_messages(source, first_row_number, messages)

        async def store_messages(
            self, source: ImportSource, messages: pa.Table, blobs: Sequence[UnstoredBlob] | None = None
        ) -> None:
            await pass_time_and_run_other_import()
            await super().store_messages(source, messages, blobs)

    one.replace_archive(SlowArchive(one.cold, tmp_path / "scratch"))
    await one.store_import(build_file(3))
    await one.store_import(build_file(3), "b2")
    assert await one.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    assert results == [RunResult.WAITING] * 2
    assert await other.run_import("b2") == (JobStatus.COMPLETED, 0, 3, 0, None)
    for each in (one, other):
        await each.database.close()


@pytest.mark.parametrize("is_noticed_during_search", [True, False])
async def test_a_step_is_not_stored_after_the_reservation_has_ended(
    tmp_path: Path, *, is_noticed_during_search: bool
) -> None:
    """If another import reserves the connection during the search of a step, the step is not stored but repeated."""
    time = VirtualTime()
    environment = Environment(tmp_path, time.runtime)

    class LateArchive(HistoryArchive):
        async def select_new_messages(
            self, source: ImportSource, first_row_number: int, messages: pa.Table
        ) -> pa.Table:
            found = await super().select_new_messages(source, first_row_number, messages)
            await environment.leases.release_lease("import-pump", "a1", time.now)
            await environment.leases.claim_job("import-pump", "other", time.now, time.now + DAY, time.now)
            if is_noticed_during_search:
                time.advance(100)
                await asyncio.Event().wait()
            return found

    archive = environment.archive
    environment.replace_archive(LateArchive(environment.cold, tmp_path / "scratch"))
    await environment.store_import(build_file(3))
    with pytest.raises(WorkspaceError, match="reservation of its connection has ended"):
        await environment.work.run_steps("a1")
    assert await environment.list_archived() == []
    await environment.leases.release_lease("import-pump", "other", time.now)
    environment.replace_archive(archive)
    assert await environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    await environment.database.close()


async def test_a_reservation_is_extended_after_a_failed_extension(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store of reservations does not respond once, the import continues and tries again."""
    time = VirtualTime()
    environment = Environment(tmp_path, time.runtime)
    extend, attempts = environment.leases.try_extend_lease, list[str]()

    async def fail_first_extension(name: str, holder: str, until: datetime) -> bool:
        attempts.append(name)
        if len(attempts) == 1:
            raise WorkspaceError(Kind.UNAVAILABLE, "BACKGROUND_JOBS_UNAVAILABLE", "down")
        return await extend(name, holder, until)

    class SlowArchive(HistoryArchive):
        async def select_new_messages(
            self, source: ImportSource, first_row_number: int, messages: pa.Table
        ) -> pa.Table:
            for count in (1, 2):
                time.advance(100)
                while len(attempts) < count or not time.has_sleepers:  # noqa: ASYNC110  as above
                    await asyncio.sleep(0)
            return await super().select_new_messages(source, first_row_number, messages)

    monkeypatch.setattr(environment.leases, "try_extend_lease", fail_first_extension)
    environment.replace_archive(SlowArchive(environment.cold, tmp_path / "scratch"))
    await environment.store_import(build_file(3))
    assert await environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    await environment.database.close()


async def test_other_imports_wait_between_two_runs_of_an_import(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """After the time of a run of an import has passed, other imports wait until the import has ended."""
    monkeypatch.setattr("shared.imports.work.RUN_SECONDS", -1)
    await import_environment.store_import(build_file(3))
    await import_environment.store_import(build_file(3), "b2")
    assert await import_environment.work.run_steps("a1") is RunResult.WORKING
    assert await import_environment.work.run_steps("b2") is RunResult.WAITING
    assert await import_environment.run_import() == (JobStatus.COMPLETED, 3, 0, 0, None)
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 0, 3, 0, None)


async def test_a_failed_import_has_the_code_of_its_failure(import_environment: Environment, tmp_path: Path) -> None:
    """If an error with a code fails an import, its state contains the code, and the reason begins with it."""
    archive = HistoryArchive(import_environment.cold, tmp_path / "scratch")
    import_environment.replace_archive(archive, build_catalog_getter(build_catalog()))
    await import_environment.store_import(build_file(3))
    assert (await import_environment.run_import())[0] is JobStatus.FAILED
    job = await import_environment.jobs.find_job("a1")
    assert job is not None
    assert (job.error, job.error_code) == (
        "CONNECTION_NOT_FOUND: The connection pump does not exist.",
        "CONNECTION_NOT_FOUND",
    )


async def test_other_imports_continue_after_a_failed_import(import_environment: Environment, tmp_path: Path) -> None:
    """As soon as an import has failed after its last attempt, other imports of the connection continue."""
    other = Environment(tmp_path)
    other.replace_archive(UnavailableArchive(other.cold, tmp_path / "scratch"))
    await import_environment.store_import(build_file(3))
    await import_environment.store_import(build_file(3), "b2")
    with pytest.raises(WorkspaceError, match="down"):
        await other.work.run_steps("a1")
    await other.work.fail_job("a1")
    assert await import_environment.work.run_steps("b2") is RunResult.WAITING
    assert await other.work.run_steps("a1") is RunResult.ENDED
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 3, 0, 0, None)
    await other.database.close()


async def test_imports_wait_for_disk_space(import_environment: Environment) -> None:
    """An import waits while the disk is full."""
    await import_environment.store_import(build_file(3))
    import_environment.disk.free = 0
    assert await import_environment.work.run_steps("a1") is RunResult.WAITING
    assert import_environment.table.rows == {}


async def test_a_file_that_changed_after_the_start_is_not_imported(import_environment: Environment) -> None:
    """If the uploaded file is replaced after the start of its import, the new file is not imported."""
    await import_environment.store_import(build_file(3))
    (import_environment.folder / "other").write_text(build_file(4))
    await import_environment.blobs.upload(build_upload_blob_name("a1"), import_environment.folder / "other")
    status, *_, error = await import_environment.run_import()
    assert (status, error) == (JobStatus.FAILED, "The file was uploaded again after the start; create a new import.")


async def test_a_cancelled_import_completes_its_running_step(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """If an import is cancelled during a step, the rows of the step get into archive and table, and no file remains."""
    monkeypatch.setattr(csv_reader, "BULK_STEP_BYTES", 1000)
    ingest = import_environment.table.ingest

    async def cancel_and_ingest(blob: str, tag: str) -> None:
        await import_environment.cancel()
        await ingest(blob, tag)

    monkeypatch.setattr(import_environment.table, "ingest", cancel_and_ingest)
    await import_environment.store_import(build_file(200))
    assert await import_environment.work.run_steps("a1") is RunResult.ENDED
    assert len(import_environment.table.rows) == 1
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids.elements())
    assert [blob.name async for blob in import_environment.blobs.list("")] == []


async def test_a_cancelled_import_stops(import_environment: Environment) -> None:
    """A cancelled import adds no more rows, and its files are deleted."""
    await import_environment.store_import(build_file(3))
    await import_environment.jobs.change("a1", Job.cancel)
    assert await import_environment.work.run_steps("a1") is RunResult.ENDED
    assert import_environment.table.rows == {}
    assert [blob.name async for blob in import_environment.blobs.list("")] == []


@pytest.mark.parametrize("status", [JobStatus.RUNNING, JobStatus.FAILED])
async def test_an_ended_import_releases_its_connection_although_its_files_cannot_be_deleted(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment, status: JobStatus
) -> None:
    """An import that has ended does not block other imports into its connection while its files cannot be deleted."""
    await import_environment.store_import(build_file(3))
    now = datetime.now(UTC)
    if status is JobStatus.FAILED:
        await import_environment.jobs.change("a1", lambda job: job.finish(status, "x"))
        assert (await import_environment.leases.claim_job("import-pump", "a1", now, now + DAY, now)).granted
    delete = import_environment.blobs.delete

    async def delete_unless_uploaded(names: Sequence[str]) -> None:
        if build_upload_blob_name("a1") in names:
            raise ConnectionError
        await delete(names)

    monkeypatch.setattr(import_environment.blobs, "delete", delete_unless_uploaded)
    with pytest.raises(ConnectionError):
        await import_environment.work.run_steps("a1")
    now = datetime.now(UTC)
    assert (await import_environment.leases.claim_job("import-pump", "b2", now, now + DAY, now)).granted
    job = await import_environment.jobs.find_job("a1")
    assert job is not None
    assert not job.is_unfinished


async def test_a_step_whose_process_was_killed_is_completed_after_a_cancellation(
    import_environment: Environment,
) -> None:
    """If rows are only archived when the process is killed, they get into the query table although the import ends."""
    await import_environment.store_import(build_file(200))
    import_environment.table.failures = 2
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    await import_environment.cancel()
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    assert await import_environment.work.run_steps("a1") is RunResult.ENDED
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids.elements())
    assert len(import_environment.table.ids) == 200
    assert [blob.name async for blob in import_environment.blobs.list("")] == []
    await import_environment.store_import(build_file(210), "b2")
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 10, 200, 0, None)
    assert set(import_environment.table.ids.values()) == {1}


async def test_a_partly_archived_step_is_completed_after_a_cancellation(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """If another import has stored some rows of an interrupted step, completing the step adds the missing rows."""
    create = import_environment.cold.create_if_missing

    async def create_first_hour(name: str, content: bytes) -> bool:
        if build_hour_folder("pump", START) not in name:
            raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "down")
        return await create(name, content)

    await import_environment.store_import(build_file(200))
    with monkeypatch.context() as patch:
        patch.setattr(import_environment.cold, "create_if_missing", create_first_hour)
        with pytest.raises(WorkspaceError):
            await import_environment.work.run_steps("a1")
    await import_environment.cancel()
    assert len(await import_environment.list_archived()) == 60
    # The reservation of the interrupted import ends.
    await import_environment.leases.release_lease("import-pump", "a1", datetime.now(UTC))
    await import_environment.store_import(build_file(150), "b2")
    assert await import_environment.run_import("b2") == (JobStatus.COMPLETED, 90, 60, 0, None)
    assert await import_environment.work.run_steps("a1") is RunResult.ENDED
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids.elements())
    assert len(import_environment.table.ids) == 200


async def test_a_step_is_completed_after_a_failure(import_environment: Environment) -> None:
    """If an import fails because the query table was not available, its archived rows are added to the table later."""
    await import_environment.store_import(build_file(3))
    import_environment.table.failures = 1
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    await import_environment.work.fail_job("a1")
    status, *_ = await import_environment.run_import()
    assert status is JobStatus.FAILED
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids)
    assert len(import_environment.table.ids) == 3
    assert [blob.name async for blob in import_environment.blobs.list("")] == []


async def test_the_completion_of_a_step_waits_for_other_imports(import_environment: Environment) -> None:
    """While another import adds rows of the connection, the open step of a cancelled import is not completed."""
    await import_environment.store_import(build_file(3))
    import_environment.table.failures = 1
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    await import_environment.cancel()
    now = datetime.now(UTC)
    # The reservation of the interrupted import ends.
    await import_environment.leases.release_lease("import-pump", "a1", now)
    await import_environment.leases.claim_job("import-pump", "other", now, now + DAY, now)
    assert await import_environment.work.run_steps("a1") is RunResult.WAITING
    assert import_environment.table.rows == {}


async def test_a_step_does_not_start_to_store_rows_after_a_cancellation(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """If an import is cancelled before its step is open, no row gets into the archive, and no file remains."""
    upload = import_environment.blobs.upload

    async def upload_and_cancel(name: str, source: Path) -> None:
        await upload(name, source)
        await import_environment.cancel()

    await import_environment.store_import(build_file(3))
    monkeypatch.setattr(import_environment.blobs, "upload", upload_and_cancel)
    assert await import_environment.work.run_steps("a1") is RunResult.ENDED
    assert await import_environment.list_archived() == []
    assert import_environment.table.rows == {}
    assert [blob.name async for blob in import_environment.blobs.list("")] == []


async def test_an_import_that_expires_during_a_step_completes_the_step(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """If an import expires while its rows are only archived, they get into the query table before it is deleted."""
    ingest = import_environment.table.ingest

    async def expire_and_ingest(blob: str, tag: str) -> None:
        await import_environment.expire()
        await ingest(blob, tag)

    monkeypatch.setattr(import_environment.table, "ingest", expire_and_ingest)
    await import_environment.store_import(build_file(3))
    status, *_ = await import_environment.run_import()
    assert status is JobStatus.FAILED
    assert sorted(await import_environment.list_archived()) == sorted(import_environment.table.ids)
    assert len(import_environment.table.ids) == 3
    await import_environment.expire()
    assert await import_environment.jobs.find_job("a1") is None
    assert [blob.name async for blob in import_environment.blobs.list("")] == []


async def test_an_expired_import_completes_an_interrupted_step_within_two_days(import_environment: Environment) -> None:
    """An expired import with an open step remains for two days, so that a service that was down can complete it."""
    for job_id, age in (("a1", ORPHAN_AGE - timedelta(hours=1)), ("b2", ORPHAN_AGE)):
        await import_environment.store_import(build_file(3, first=10 * len(import_environment.table.ids)), job_id)
        import_environment.table.failures = 1
        with pytest.raises(WorkspaceError):
            await import_environment.work.run_steps(job_id)
        await import_environment.expire(job_id, age=age)
        assert await import_environment.work.run_steps(job_id) is RunResult.ENDED
        assert len(import_environment.table.ids) == 3
    assert await import_environment.jobs.find_job("b2") is None


async def test_a_step_is_not_completed_after_the_reservation_has_ended(
    monkeypatch: pytest.MonkeyPatch, import_environment: Environment
) -> None:
    """If another import reserves the connection meanwhile, the step of a cancelled import is completed later."""
    claim = import_environment.leases.claim_job

    async def claim_and_lose(name: str, holder: str, at: datetime, until: datetime, first_due: datetime) -> JobClaim:
        result = await claim(name, holder, at, until, first_due)
        await import_environment.leases.release_lease(name, holder, at)
        await claim(name, "other", at, until, first_due)
        return result

    await import_environment.store_import(build_file(3))
    import_environment.table.failures = 1
    with pytest.raises(WorkspaceError):
        await import_environment.work.run_steps("a1")
    await import_environment.cancel()
    with monkeypatch.context() as patch:
        patch.setattr(import_environment.leases, "claim_job", claim_and_lose)
        with pytest.raises(WorkspaceError, match="reservation of its connection has ended"):
            await import_environment.work.run_steps("a1")
    assert import_environment.table.rows == {}
    await import_environment.leases.release_lease("import-pump", "other", datetime.now(UTC))
    assert await import_environment.work.run_steps("a1") is RunResult.ENDED
    assert len(import_environment.table.ids) == 3
