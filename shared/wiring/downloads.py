"""Services of downloads: jobs that convert archived telemetry to files."""

from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.webhooks import WebhookServices

if TYPE_CHECKING:
    from shared.cold_data.ports import BlobStore
    from shared.downloads.expiry import DownloadExpiry
    from shared.downloads.job_quota import JobQuota
    from shared.downloads.ports import ArchiveProgress, JobStore
    from shared.downloads.service import DownloadService
    from shared.downloads.work import DownloadRunner
    from shared.fair_use.ports import QuotaStore

DOWNLOADS = "downloads"
"""Name of the blob container of downloadable files."""


class DownloadServices:
    """Builds, at first use, the services that convert the telemetry archive to downloadable files."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, cold_data: ColdDataServices, webhooks: WebhookServices
    ) -> None:
        self._backends = backends
        self._webhooks = webhooks
        self._settings = backends.settings
        self._catalog = catalog
        self._cold_data = cold_data

    @cached_property
    def blobs(self) -> "BlobStore":
        """Store of the downloadable files."""
        return self._backends.register_for_closing(self._backends.build_blob_store(DOWNLOADS))

    @cached_property
    def service(self) -> "DownloadService":
        """Service that starts downloads and reports their state."""
        from shared.downloads.service import DownloadService

        lifetime = timedelta(hours=self._settings.download_hours)
        return DownloadService(
            self._catalog.reader.get_catalog,
            self.jobs,
            self.blobs,
            self.job_quota,
            lifetime,
            runtime=self._backends.runtime,
        )

    @cached_property
    def job_quota(self) -> "JobQuota":
        """Limits on the number of each principal's jobs and on the size of their files."""
        from shared.downloads.job_quota import JobQuota

        return JobQuota(
            self._job_quota_store, self.jobs, self._catalog.reader.get_catalog, runtime=self._backends.runtime
        )

    @cached_property
    def _job_quota_store(self) -> "QuotaStore":
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_quotas import CosmosQuotaStore

            return CosmosQuotaStore(self._backends.cosmos)
        from shared.backends.embedded.quotas import SqliteQuotaStore

        return SqliteQuotaStore(self._backends.workspace_file)

    @cached_property
    def runner(self) -> "DownloadRunner":
        """Service that executes the steps of a download."""
        from shared.downloads.work import DownloadRunner

        return DownloadRunner(
            self.jobs,
            self._cold_data.reader,
            self.blobs,
            self._cold_data.scratch,
            self.archive_progress,
            self.job_quota,
            on_end=self._webhooks.announce_download,
            runtime=self._backends.runtime,
        )

    @cached_property
    def expiry(self) -> "DownloadExpiry":
        """Service that deletes expired downloads."""
        from shared.downloads.expiry import DownloadExpiry

        return DownloadExpiry(
            self.jobs, self.blobs, self.job_quota, self._cold_data.scratch, runtime=self._backends.runtime
        )

    @cached_property
    def archive_progress(self) -> "ArchiveProgress":
        """Progress of the telemetry archive in reading the messages of the event hub."""
        if self._backends.uses_azure:
            from shared.downloads.ports import UnknownArchiveProgress

            return UnknownArchiveProgress()
        from shared.backends.embedded.hub_retention import HubArchiveProgress

        return HubArchiveProgress(self._settings.data_dir / "hub.sqlite", runtime=self._backends.runtime)

    @cached_property
    def jobs(self) -> "JobStore":
        """Store of the jobs: downloads, imports and audit bundles."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_jobs import CosmosJobStore

            return CosmosJobStore(self._backends.cosmos)
        from shared.backends.embedded.jobs import SqliteJobStore

        return SqliteJobStore(self._backends.workspace_file)
