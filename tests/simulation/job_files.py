"""Files of background jobs in a simulated world: modification times, links and expiry."""

import hashlib
import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from shared.backends.embedded.blobs import FolderBlobStore
from shared.backends.embedded.file_links import FileLinks
from shared.catalog.models import Quotas
from shared.catalog.snapshot import Catalog
from shared.downloads.expiry import DownloadExpiry
from shared.downloads.job_quota import JobQuota
from shared.runtime import Runtime
from shared.wiring import Services
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.scheduler import MICROSECONDS, Scheduler
from tests.simulation.world import World
from tests.virtual_time import START

_AFTER_EXPIRY: Final = timedelta(hours=60)


class DatedBlobs(FolderBlobStore):
    """Blob store in a folder; its blobs have virtual modification times, which do not change with the hosts' clocks."""

    def __init__(self, folder: Path, runtime: Runtime, scheduler: Scheduler) -> None:
        links = FileLinks("https://files.example", folder.parents[1] / "files-key", runtime=runtime)
        super().__init__(folder, links, runtime=runtime)
        self._scheduler = scheduler

    def _try_create_blob(self, path: Path, content: bytes) -> bool:
        is_new = super()._try_create_blob(path, content)
        if is_new:
            self._set_time(path)
        return is_new

    def _copy_file_to_blob(self, path: Path, source: Path) -> None:
        super()._copy_file_to_blob(path, source)
        self._set_time(path)

    def _set_time(self, path: Path) -> None:
        at = START.timestamp() + self._scheduler.now / MICROSECONDS
        os.utime(path, (at, at))


def attach_files(world: World, services: Services) -> None:
    """Give the files of a process's background jobs virtual modification times."""
    folder = world.folder / "blobs" / "downloads"
    vars(services.downloads).update(blobs=DatedBlobs(folder, services.runtime, world.scheduler))


def attach_quota(services: Services, quotas: Quotas) -> None:
    """Limit the jobs and files of each member by a quota that the workspace does not have."""

    async def get_catalog() -> Catalog:
        catalog = await services.catalog.reader.get_catalog()
        return replace(catalog, policies=catalog.policies.model_copy(update={"quotas": quotas}))

    downloads = services.downloads
    quota = JobQuota(downloads._job_quota_store, downloads.jobs, get_catalog, runtime=services.runtime)
    vars(downloads).update(job_quota=quota)


def find_linked_file(world: World, url: str) -> Path:
    """Return the path of the file that a download link opens."""
    return world.folder / "blobs" / unquote(urlsplit(url).path).partition("/files/")[2]


def read_linked_file(world: World, file: Mapping[str, Any]) -> bytes:
    """Return the content of a file that a job lists, after checking its size and hash.

    Raises:
        ViolationError: the file is missing or has another content.
    """
    path = find_linked_file(world, file["url"])
    world.require(path.exists(), f"the file {path.name} of a completed job is missing")
    content = path.read_bytes()
    is_equal = len(content) == file["bytes"] and hashlib.sha256(content).hexdigest() == file["sha256"]
    world.require(is_equal, f"the content of {path.name} is not the one that its job states")
    return content


async def expire_jobs(world: World) -> None:
    """Delete all jobs by running their expiry with a clock that is far ahead."""
    while not await try_to_expire_jobs(world):
        await world.sleep(1)


async def try_to_expire_jobs(world: World) -> bool:
    """Run the expiry once with a clock that is far ahead; return whether it has deleted all jobs."""

    async def delete_expired_jobs(services: Services) -> None:
        now = services.runtime.now
        later = replace(services.runtime, now=lambda: now() + _AFTER_EXPIRY)
        # The local files of running jobs stay, because their times are not virtual.
        downloads, scratch = services.downloads, world.folder / "no-scratch"
        expiry = DownloadExpiry(downloads.jobs, downloads.blobs, downloads.job_quota, scratch, runtime=later)
        await expiry.delete_expired_jobs_and_files()

    try:
        await run_on_instance(world, delete_expired_jobs)
    except WorkFailedError:
        return False
    return True


def require_no_files(world: World, job: str, ending: str) -> None:
    """Check that an unsuccessful job has no files, unless a process crashed before it could delete them.

    Args:
        world: world of the job.
        job: id of the job.
        ending: how the job ended, for the text of the violation.
    """
    files = _list_files(world.folder / "blobs" / "downloads" / job)
    world.require(not files or bool(world.points.crashed), f"job {job} is {ending}, but has the files {files}")


def require_nothing_left(world: World, folder: Path) -> None:
    """Check that no file and no quota reservation remains after all jobs have expired.

    The reservation of a process that died or could not write before it stored its job is released when the quota is
    reached.
    """
    files = _list_files(folder / "blobs" / "downloads")
    world.require(not files, f"files without a job are left: {files}")
    is_exact = not (world.stores_fail or world.points.crashed)
    if world.account is None and is_exact:
        with closing(sqlite3.connect(folder / "workspace.sqlite")) as file:
            places = file.execute("SELECT id FROM places WHERE purpose = 'jobs'").fetchall()
        world.require(not places, f"reservations of jobs are left: {places}")


def _list_files(folder: Path) -> list[str]:
    found = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return sorted(str(path) for path in found if not path.parts[0].startswith("."))
