"""Recurring background jobs of the app."""

from collections.abc import Iterator
from functools import cached_property
from typing import TYPE_CHECKING

from shared.observability.logs import fields, get_logger
from shared.timestamps import now
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.downloads import DownloadServices
from shared.wiring.live_stream import LiveStreamServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.telemetry import TelemetryServices

if TYPE_CHECKING:
    from shared.background.ports import JobLeaseStore
    from shared.background.runner import BackgroundJob, BackgroundRunner

_LOG = get_logger("background")


class BackgroundServices:
    """Creates and runs background jobs."""

    def __init__(
        self,
        backends: Backends,
        catalog: CatalogServices,
        provenance: ProvenanceServices,
        telemetry: TelemetryServices,
        cold_data: ColdDataServices,
        downloads: DownloadServices,
        live_stream: LiveStreamServices,
    ) -> None:
        self._backends = backends
        self._catalog = catalog
        self._provenance = provenance
        self._telemetry = telemetry
        self._cold_data = cold_data
        self._downloads = downloads
        self._live_stream = live_stream

    @cached_property
    def runner(self) -> "BackgroundRunner":
        """Runs due jobs."""
        from shared.background.runner import BackgroundRunner

        return BackgroundRunner(tuple(self._background_jobs()), self._job_leases, now)

    async def close(self) -> None:
        """Stop running jobs, if any was created."""
        if "runner" in self.__dict__:
            await self.runner.close()

    @cached_property
    def _job_leases(self) -> "JobLeaseStore":
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_job_leases import CosmosJobLeaseStore

            return CosmosJobLeaseStore(self._backends.cosmos)
        from shared.backends.embedded.job_leases import SqliteJobLeaseStore

        return SqliteJobLeaseStore(self._backends.workspace_file)

    def _background_jobs(self) -> "Iterator[BackgroundJob]":
        """Yield the jobs of this deployment."""
        from shared.background.runner import BackgroundJob
        from shared.background.schedules import Schedule

        configured = self._backends.settings
        if configured.simulators_enabled:
            yield BackgroundJob("simulators", Schedule(configured.simulator_schedule), self._simulate)
        if configured.web_pubsub_endpoint:
            yield BackgroundJob("live-streams", Schedule(configured.live_schedule), self._close_expired_streams)
        yield BackgroundJob("checkpoints", Schedule(configured.checkpoint_schedule), self._sign_checkpoints)
        yield BackgroundJob("compaction", Schedule(configured.compaction_schedule), self._compact)
        yield BackgroundJob("download-expiry", Schedule(configured.download_expiry_schedule), self._expire_downloads)

    async def _simulate(self) -> None:
        """Send due simulated telemetry."""
        await self._telemetry.simulators.run(now())

    async def _close_expired_streams(self) -> None:
        """Close live streams whose token is no longer valid."""
        await self._live_stream.service.close_expired()

    async def _sign_checkpoints(self) -> None:
        """Sign a checkpoint of every chain that has new records."""
        if (await self._catalog.current()).policies.provenance is None:
            return
        if made := await self._provenance.checkpoints.create_all():
            _LOG.info("checkpoints signed", extra=fields(count=made))

    async def _compact(self) -> None:
        """Merge the archive's blobs of past hours."""
        if merged := await self._cold_data.compaction.run(now()):
            _LOG.info("merged hours of the archive", extra=fields(hours=merged))

    async def _expire_downloads(self) -> None:
        """Delete expired downloads."""
        await self._downloads.expiry.run()
