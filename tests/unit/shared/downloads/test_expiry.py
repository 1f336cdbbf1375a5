"""Tests of the deletion of expired jobs and their files."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.cold_data.ports import Blob
from shared.downloads.expiry import (
    DELETE_BATCH,
    ORPHAN_AGE,
    DownloadExpiry,
    build_job_blob_prefix,
    build_step_blob_name,
)
from shared.downloads.import_request import ImportFormat, ImportMapping, ImportRequest, ImportStep
from shared.downloads.models import DownloadFormat, Job, JobStatus
from tests.virtual_time import START, VirtualTime


class Stores:
    """Fake job store, blob store and quota that record their calls.

    Attributes:
        calls: names of the calls, in order.
    """

    def __init__(self) -> None:
        self.jobs: dict[str, Job] = {}
        self.blobs: dict[str, datetime] = {}
        self.calls: list[str] = []
        self.undeletable = ""

    async def list_expired_job_ids(self, at: datetime) -> list[str]:
        """Return the ids of expired jobs."""
        return [job.id for job in self.jobs.values() if job.expires_at <= at]

    async def find_job(self, job_id: str) -> Job | None:
        """Return a job."""
        return self.jobs.get(job_id)

    async def delete(self, target: str | list[str]) -> None:
        """Record the deletion of a job or of blobs."""
        if isinstance(target, str):
            self.calls.append("delete job")
            del self.jobs[target]
            return
        if self.undeletable in target:
            raise ConnectionError
        self.calls.append(f"delete {len(target)} blobs")
        for name in target:
            del self.blobs[name]

    async def list(self, prefix: str) -> AsyncIterator[Blob]:
        """Yield the blobs with a prefix."""
        for name, written_at in list(self.blobs.items()):
            if name.startswith(prefix):
                yield Blob(name, 1, written_at)

    async def release_job_and_bytes(self, owner: str, job_id: str) -> None:
        """Record that the job's place in the quota was released."""
        self.calls.append(f"release {owner} {job_id}")


def build_service(folder: Path) -> tuple[DownloadExpiry, Stores]:
    """Return the service with one expired job and one that has not expired."""
    stores, time = Stores(), VirtualTime()
    for job_id, expires_at in (("old", START), ("new", START + ORPHAN_AGE)):
        stores.jobs[job_id] = Job(
            id=job_id,
            owner="ann",
            format=DownloadFormat.CSV,
            start=START,
            end=START,
            connections=(),
            created_at=START,
            expires_at=expires_at,
        )
        stores.blobs[f"{build_job_blob_prefix(job_id)}0"] = START
    service = DownloadExpiry(stores, stores, stores, folder / "scratch", runtime=time.runtime)  # type: ignore[arg-type]
    return service, stores


async def test_an_expired_job_is_deleted_after_its_files(tmp_path: Path) -> None:
    """The files of an expired job are deleted, then the job, and its place in the quota is released."""
    service, stores = build_service(tmp_path)
    await service.delete_expired_jobs_and_files()
    assert stores.calls == ["delete 1 blobs", "release ann old", "delete job"]
    assert (list(stores.jobs), list(stores.blobs)) == (["new"], ["new/0"])


async def test_a_failed_deletion_is_repeated(tmp_path: Path) -> None:
    """If files cannot be deleted, the job stays, so that the next run deletes both."""
    service, stores = build_service(tmp_path)
    stores.undeletable = "old/0"
    with pytest.raises(ConnectionError):
        await service.delete_expired_jobs_and_files()
    assert list(stores.jobs) == ["old", "new"]
    stores.undeletable = ""
    await service.delete_expired_jobs_and_files()
    assert list(stores.jobs) == ["new"]


async def test_a_job_that_cannot_be_deleted_does_not_block_the_others(tmp_path: Path) -> None:
    """If the files of one expired job cannot be deleted, other expired jobs and files are deleted, then it fails."""
    service, stores = build_service(tmp_path)
    stores.jobs["other"] = stores.jobs["old"].model_copy(update={"id": "other"})
    stores.blobs |= {"other/0": START, "lost/0": START - ORPHAN_AGE - timedelta(seconds=1)}
    stores.undeletable = "old/0"
    with pytest.raises(ConnectionError):
        await service.delete_expired_jobs_and_files()
    assert (list(stores.jobs), sorted(stores.blobs)) == (["old", "new"], ["new/0", "old/0"])
    assert stores.calls[1:3] == ["release ann other", "delete job"]


async def test_files_without_a_job_are_deleted_later(tmp_path: Path) -> None:
    """Files without a job are deleted after a delay, because their job is possibly not stored yet."""
    service, stores = build_service(tmp_path)
    stores.blobs |= {"lost/0": START - ORPHAN_AGE, "fresh/0": START}
    stores.blobs["older/0"] = datetime(2020, 1, 1, tzinfo=UTC)
    await service.delete_expired_jobs_and_files()
    assert sorted(stores.blobs) == ["fresh/0", "lost/0", "new/0"]


async def test_the_file_of_a_partly_stored_step_remains_with_its_job(tmp_path: Path) -> None:
    """The file of an import's partly stored step is deleted with the import, however old it is, but not sooner."""
    service, stores = build_service(tmp_path)
    request = ImportRequest(
        format=ImportFormat.CSV,
        file_name="a.csv",
        mapping=ImportMapping(timestamp="time"),
        upload_expires_at=START,
        started_at=START,
        open_step=3,
        open_result=ImportStep(next_position=9, rows=1, accepted=1, duplicates=0, rejected=0, attempt="a"),
    )
    job = stores.jobs["new"].model_copy(update={"import_request": request, "status": JobStatus.FAILED})
    stores.jobs["new"] = job
    old = START - ORPHAN_AGE - timedelta(seconds=1)
    steps = [("new", 3, "a"), ("new", 3, "b"), ("new", 3, ""), ("new", 2, "a"), ("lost", 3, "a")]
    names = [build_step_blob_name(*step) for step in steps]
    stores.blobs |= dict.fromkeys([*names, "new/tables/000003.parquet"], old)
    await service.delete_expired_jobs_and_files()
    assert sorted(stores.blobs) == ["new/0", names[0]]
    stores.jobs["new"] = job.model_copy(update={"import_request": request.model_copy(update={"open_step": None})})
    await service.delete_expired_jobs_and_files()
    assert sorted(stores.blobs) == ["new/0"]


async def test_files_are_deleted_in_groups(tmp_path: Path) -> None:
    """Many files are deleted in several calls, because one call can delete only a limited number."""
    service, stores = build_service(tmp_path)
    stores.blobs |= {f"old/{number}": START for number in range(DELETE_BATCH + 1)}
    await service.delete_expired_jobs_and_files()
    assert stores.calls[:2] == [f"delete {DELETE_BATCH} blobs", "delete 1 blobs"]
