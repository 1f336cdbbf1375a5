"""Download services: jobs and their work."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.catalog import CatalogServices
from shared.wiring.cold import ColdServices

if TYPE_CHECKING:
    from shared.downloads.expiry import DownloadExpiry
    from shared.downloads.job_quota import JobQuota
    from shared.downloads.ports import ArchiveProgress, JobStore
    from shared.downloads.service import Downloads
    from shared.downloads.work import DownloadWork
    from shared.fair_use.ports import PlaceStore


class DownloadServices(ColdServices, CatalogServices):
    """Converts the archive to downloadable files."""

    @cached_property
    def downloads(self) -> "Downloads":
        """Starts downloads and reports their state."""
        from shared.downloads.service import Downloads

        lifetime = timedelta(hours=self.settings.download_hours)
        return Downloads(self.catalog.current, self._download_jobs, self.download_blobs, self._job_quota, lifetime)

    @cached_property
    def _job_quota(self) -> "JobQuota":
        from shared.downloads.job_quota import JobQuota

        return JobQuota(self._job_places, self._download_jobs, self.catalog.current)

    @cached_property
    def _job_places(self) -> "PlaceStore":
        if self.on_azure:
            from shared.backends.azure.cosmos_places import CosmosPlaceStore

            return CosmosPlaceStore(self.cosmos)
        from shared.backends.embedded.places import SqlitePlaceStore

        return SqlitePlaceStore(self._workspace_file)

    @cached_property
    def download_work(self) -> "DownloadWork":
        """Executes the steps of downloads."""
        from shared.downloads.work import DownloadWork

        return DownloadWork(
            self._download_jobs,
            self.cold_reader,
            self.download_blobs,
            self._scratch,
            self._arrivals,
            self._job_quota,
        )

    @cached_property
    def download_expiry(self) -> "DownloadExpiry":
        """Deletes expired downloads."""
        from shared.downloads.expiry import DownloadExpiry

        return DownloadExpiry(self._download_jobs, self.download_blobs, self._job_quota, self._scratch)

    @cached_property
    def _arrivals(self) -> "ArchiveProgress":
        if self.on_azure:
            from shared.downloads.ports import UnknownArchiveProgress

            return UnknownArchiveProgress()
        from shared.backends.embedded.hub_archive_progress import HubArchiveProgress

        return HubArchiveProgress(self.settings.data_dir / "hub.sqlite")

    @cached_property
    def _download_jobs(self) -> "JobStore":
        if self.on_azure:
            from shared.backends.azure.cosmos_download_jobs import CosmosJobStore

            return CosmosJobStore(self.cosmos)
        from shared.backends.embedded.download_jobs import SqliteJobStore

        return SqliteJobStore(self._workspace_file)
