"""Download services."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices

if TYPE_CHECKING:
    from shared.cold_data.ports import BlobStore
    from shared.downloads.expiry import DownloadExpiry
    from shared.downloads.job_quota import JobQuota
    from shared.downloads.ports import ArchiveProgress, JobStore
    from shared.downloads.service import DownloadService
    from shared.downloads.work import DownloadWork
    from shared.fair_use.ports import QuotaStore

DOWNLOADS = "downloads"
"""Container of download files."""


class DownloadServices:
    """Converts the archive to downloadable files."""

    def __init__(self, backends: Backends, catalog: CatalogServices, cold_data: ColdDataServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._cold_data = cold_data

    @cached_property
    def blobs(self) -> "BlobStore":
        """Container of download files."""
        return self._backends.close_at_exit(self._backends.build_blob_store(DOWNLOADS))

    @cached_property
    def service(self) -> "DownloadService":
        """Starts downloads and reports their state."""
        from shared.downloads.service import DownloadService

        lifetime = timedelta(hours=self._settings.download_hours)
        return DownloadService(self._catalog.reader.current, self._jobs, self.blobs, self._job_quota, lifetime)

    @cached_property
    def _job_quota(self) -> "JobQuota":
        from shared.downloads.job_quota import JobQuota

        return JobQuota(self._job_places, self._jobs, self._catalog.reader.current)

    @cached_property
    def _job_places(self) -> "QuotaStore":
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_places import CosmosPlaceStore

            return CosmosPlaceStore(self._backends.cosmos)
        from shared.backends.embedded.places import SqlitePlaceStore

        return SqlitePlaceStore(self._backends.workspace_file)

    @cached_property
    def work(self) -> "DownloadWork":
        """Executes the steps of downloads."""
        from shared.downloads.work import DownloadWork

        return DownloadWork(
            self._jobs,
            self._cold_data.reader,
            self.blobs,
            self._cold_data.scratch,
            self._arrivals,
            self._job_quota,
        )

    @cached_property
    def expiry(self) -> "DownloadExpiry":
        """Deletes expired downloads."""
        from shared.downloads.expiry import DownloadExpiry

        return DownloadExpiry(self._jobs, self.blobs, self._job_quota, self._cold_data.scratch)

    @cached_property
    def _arrivals(self) -> "ArchiveProgress":
        if self._backends.on_azure:
            from shared.downloads.ports import UnknownArchiveProgress

            return UnknownArchiveProgress()
        from shared.backends.embedded.hub_archive_progress import HubArchiveProgress

        return HubArchiveProgress(self._settings.data_dir / "hub.sqlite")

    @cached_property
    def _jobs(self) -> "JobStore":
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_download_jobs import CosmosJobStore

            return CosmosJobStore(self._backends.cosmos)
        from shared.backends.embedded.download_jobs import SqliteJobStore

        return SqliteJobStore(self._backends.workspace_file)
