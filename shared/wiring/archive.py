"""Archive and download services."""

import tempfile
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from shared.wiring.base import Base, CatalogServices

if TYPE_CHECKING:
    from shared.cold_data.archive import Archive
    from shared.cold_data.compaction import Compaction
    from shared.cold_data.ports import BlobStore
    from shared.cold_data.reading import ColdReader
    from shared.downloads.expiry import DownloadExpiry
    from shared.downloads.job_quota import JobQuota
    from shared.downloads.ports import ArchiveProgress, JobStore
    from shared.downloads.service import DownloadService
    from shared.downloads.work import DownloadWork
    from shared.fair_use.ports import QuotaStore

COLD, DOWNLOADS = "cold", "downloads"


class ColdServices(Base):
    """Archives telemetry as blobs."""

    @cached_property
    def cold_blobs(self) -> "BlobStore":
        """Container of the telemetry archive."""
        return self.close_at_exit(self._build_blob_store(COLD))

    @cached_property
    def download_blobs(self) -> "BlobStore":
        """Container of download files."""
        return self.close_at_exit(self._build_blob_store(DOWNLOADS))

    @cached_property
    def archive(self) -> "Archive":
        """Writes impulses to the archive."""
        from shared.cold_data.archive import Archive

        return Archive(self.cold_blobs)

    @cached_property
    def compaction(self) -> "Compaction":
        """Merges archive blobs."""
        from shared.cold_data.compaction import Compaction

        return Compaction(self.cold_blobs, timedelta(minutes=self.settings.compaction_quiet_minutes), self._scratch)

    @cached_property
    def cold_reader(self) -> "ColdReader":
        """Reads the archive."""
        from shared.cold_data.reading import ColdReader

        return ColdReader(self.cold_blobs, self._scratch)

    @property
    def _scratch(self) -> Path:
        """Folder of temporary files; on Azure, the local disk is only suitable for temporary files."""
        root = Path(tempfile.gettempdir()) if self.on_azure else self.settings.data_dir
        return root / "scratch"

    def _build_blob_store(self, container: str) -> "BlobStore":
        from shared.cold_data.observed_blobs import ObservedBlobs

        return ObservedBlobs(self._build_unobserved_store(container), container)

    def _build_unobserved_store(self, container: str) -> "BlobStore":
        configured = self.settings
        if self.on_azure:
            from shared.backends.azure.blobs import AzureBlobStore

            return AzureBlobStore(self.blob_account, container)
        from shared.backends.embedded.blobs import FolderBlobStore
        from shared.backends.embedded.file_links import FileLinks

        folder = configured.data_dir
        links = FileLinks(configured.files_url, folder / "files-key")
        return FolderBlobStore(folder / "blobs" / container, links)


class DownloadServices(ColdServices, CatalogServices):
    """Converts the archive to downloadable files."""

    @cached_property
    def downloads(self) -> "DownloadService":
        """Starts downloads and reports their state."""
        from shared.downloads.service import DownloadService

        lifetime = timedelta(hours=self.settings.download_hours)
        return DownloadService(
            self.catalog.current, self._download_jobs, self.download_blobs, self._job_quota, lifetime
        )

    @cached_property
    def _job_quota(self) -> "JobQuota":
        from shared.downloads.job_quota import JobQuota

        return JobQuota(self._job_places, self._download_jobs, self.catalog.current)

    @cached_property
    def _job_places(self) -> "QuotaStore":
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
