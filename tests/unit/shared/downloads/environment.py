"""Environment for download tests: an archive with generated rows, stores, and jobs."""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from shared.backends.embedded import jobs, quotas
from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.backends.embedded.jobs import SqliteJobStore
from shared.backends.embedded.quotas import SqliteQuotaStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.catalog.models import Policies, Quotas, Tier
from shared.catalog.snapshot import Catalog
from shared.cold_data.reading import HourSummary
from shared.downloads.job_quota import JobQuota
from shared.downloads.models import DownloadFormat, Job
from shared.downloads.work import DownloadRunner
from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime
from shared.telemetry.json_text import serialise_lossless_json

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)


class FakeArchive:
    """Fake archive that generates its rows from connection, hour and number.

    Args:
        hours: number of hours with rows.
        per_hour: number of rows per hour.
        payload: creates a row's payload from its hour and number.
        size: reported size of each hour in bytes.
    """

    def __init__(
        self,
        hours: int = 3,
        per_hour: int = 5,
        payload: Callable[[int, int], dict[str, Any]] = lambda hour, number: {"hour": hour, "n": number},
        size: int = 1000,
    ) -> None:
        self.hours = hours
        self.per_hour = per_hour
        self.payload = payload
        self.size = size
        self.down = False
        self.trouble: Exception | None = None
        self.reads = 0

    async def list_hours(self, connection: str, start: datetime, end: datetime) -> Sequence[HourSummary]:
        """Return the hours of the archive within a range."""
        del connection
        begins = [START + hour * HOUR for hour in range(self.hours)]
        return [
            HourSummary(begin, self.per_hour, self.size) for begin in begins if begin < end and begin + HOUR > start
        ]

    async def stream_rows(self, connection: str, start: datetime, end: datetime) -> AsyncIterator[pa.RecordBatch]:
        """Yield one batch of rows for each hour."""
        for hour in range(self.hours):
            self.reads += 1
            if self.down:
                raise WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", "down")
            if self.trouble is not None:
                raise self.trouble
            begin = START + hour * HOUR
            instants = [begin + timedelta(seconds=number) for number in range(self.per_hour)]
            kept = [(number, at) for number, at in enumerate(instants) if start <= at < end]
            if kept:
                yield pa.RecordBatch.from_pydict(
                    {
                        "timestamp": pa.array([at for _, at in kept], pa.timestamp("us", tz="UTC")),
                        "deviceId": [f"{connection}-1"] * len(kept),
                        "messageId": [f"{hour}-{number}" for number, _ in kept],
                        "payload": [serialise_lossless_json(self.payload(hour, number)).decode() for number, _ in kept],
                    }
                )


class FakeArchiveProgress:
    """Fake progress of the archive."""

    are_settled = True

    async def wait_until_archived(self, timeout_seconds: float) -> bool:
        """Return whether the archive is complete, as the test has set."""
        assert timeout_seconds > 0
        return self.are_settled


class Environment:
    """Job store, blob store and download steps, with files in one folder."""

    def __init__(self, folder: Path, archive: FakeArchive) -> None:
        self.archive = archive
        self.database = SqliteDatabase(folder / "jobs.sqlite", jobs.SCHEMA + quotas.SCHEMA)
        self.places = SqliteQuotaStore(self.database)
        self.quotas = Quotas()
        self.now = START + HOUR
        self.jobs = SqliteJobStore(self.database)
        self.folder = folder / "blobs" / "downloads"
        self.blobs = FolderBlobStore(self.folder, FileLinks("http://127.0.0.1:7071", folder / "files-key"))
        self.scratch = folder / "scratch"
        self.arrivals = FakeArchiveProgress()
        self.quota = JobQuota(self.places, self.jobs, self.catalog, runtime=Runtime(now=lambda: self.now))
        self.work = DownloadRunner(self.jobs, archive, self.blobs, self.scratch, self.arrivals, self.quota)

    async def catalog(self) -> Catalog:
        """Return a catalog with the quotas of the test."""
        return Catalog(tier=Tier.ENTERPRISE, policies=Policies(quotas=self.quotas))

    async def plan_parts(self, job_id: str = "j1") -> list[int]:
        """Plan a job; return the parts to be converted next."""
        numbers = await self.work.plan_next_part_numbers_unless_busy(job_id)
        assert numbers is not None
        return list(numbers)

    async def store_job(self, job_id: str = "j1", form: DownloadFormat = DownloadFormat.CSV, **changes: Any) -> Job:
        """Store a download job for the whole archive, and return it."""
        job = Job(
            id=job_id,
            owner="editor@t",
            format=form,
            start=START,
            end=START + self.archive.hours * HOUR,
            connections=("press", "pump"),
            created_at=START,
            expires_at=START + timedelta(days=1),
        ).model_copy(update=changes)
        await self.jobs.create(job)
        return job

    async def run(self, job_id: str = "j1") -> Job:
        """Run all steps of a job in the order of the orchestration."""
        while numbers := await self.work.plan_next_part_numbers_unless_busy(job_id):
            for number in numbers:
                await self.work.convert_part_unless_busy(job_id, number)
        await self.work.complete_job(job_id)
        return await self.load_job(job_id)

    async def load_job(self, job_id: str = "j1") -> Job:
        """Return the job from the store."""
        job = await self.jobs.find_job(job_id)
        assert job is not None
        return job

    def list_files(self) -> list[str]:
        """Return the names of all blobs."""
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())


class EnvironmentFactory:
    """Factory of environments that share one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: list[Environment] = []

    def make(self, archive: FakeArchive | None = None) -> Environment:
        """Return a new environment with the shared folder."""
        environment = Environment(self._folder, archive or FakeArchive())
        self._made.append(environment)
        return environment

    async def close(self) -> None:
        """Close all environments."""
        for environment in self._made:
            await environment.database.close()
