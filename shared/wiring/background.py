"""Recurring background jobs of the app."""

from collections.abc import Iterator
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from shared.disk_space.guard import DiskState
from shared.observability.logs import fields, get_logger
from shared.wiring.access import AccessServices
from shared.wiring.alerts import AlertServices
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.downloads import DownloadServices
from shared.wiring.live_stream import LiveStreamServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.signatures import SignatureServices
from shared.wiring.telemetry import TelemetryServices
from shared.wiring.webhooks import WebhookEndpointServices, WebhookServices

if TYPE_CHECKING:
    from shared.background.runner import BackgroundJob, BackgroundRunner, Schedule

_EXPIRED_AT_ONCE = 1_000
_INDEX_SECONDS = 600.0
"""Seconds in which one run may add the signatures of existing records to their index."""
_REPEAT_FAILED_VERIFICATION_AFTER = timedelta(minutes=5)
_LOG = get_logger("background")


class BackgroundServices:
    """Creates and runs the recurring background jobs of the app."""

    def __init__(
        self,
        backends: Backends,
        catalog: CatalogServices,
        provenance: ProvenanceServices,
        access: AccessServices,
        telemetry: TelemetryServices,
        cold_data: ColdDataServices,
        downloads: DownloadServices,
        live_stream: LiveStreamServices,
        webhooks: WebhookServices,
        webhook_endpoints: WebhookEndpointServices,
        alerts: AlertServices,
        signatures: SignatureServices,
    ) -> None:
        self._signatures = signatures
        self._backends = backends
        self._catalog = catalog
        self._provenance = provenance
        self._access = access
        self._telemetry = telemetry
        self._cold_data = cold_data
        self._downloads = downloads
        self._live_stream = live_stream
        self._webhooks = webhooks
        self._webhook_endpoints = webhook_endpoints
        self._alerts = alerts

    @cached_property
    def runner(self) -> "BackgroundRunner":
        """Runner of the background jobs that are due."""
        from shared.background.runner import BackgroundRunner

        return BackgroundRunner(tuple(self._iterate_jobs()), self._backends.job_leases, runtime=self._backends.runtime)

    @cached_property
    def _verification_schedule(self) -> "Schedule":
        from shared.background.runner import Schedule

        return Schedule(self._backends.settings.verify_schedule)

    async def close(self) -> None:
        """Stop the running jobs, if the runner was created."""
        if "runner" in self.__dict__:
            await self.runner.close()

    def _iterate_jobs(self) -> "Iterator[BackgroundJob]":
        """Yield the recurring background jobs of this deployment."""
        from shared.background.runner import BackgroundJob, Schedule
        from shared.oauth.grant_ending import SCHEDULE

        configured = self._backends.settings
        if configured.simulators_enabled:
            yield BackgroundJob("simulators", Schedule(configured.simulator_schedule), self._send_simulated_telemetry)
        if configured.web_pubsub_endpoint:
            yield BackgroundJob("live-streams", Schedule(configured.live_schedule), self._close_expired_streams)
        yield BackgroundJob("oauth-grants", Schedule(SCHEDULE), self._complete_revocations_and_end_grants)
        yield BackgroundJob("checkpoints", Schedule(configured.checkpoint_schedule), self._sign_checkpoints)
        yield BackgroundJob("alerts", Schedule(configured.alert_schedule), self._evaluate_alert_rules)
        overview = Schedule(configured.audit_overview_schedule)
        yield BackgroundJob("audit-overview", overview, self._complete_audit_overview)
        yield BackgroundJob(
            "verification", self._verification_schedule, self._verify_chains, _REPEAT_FAILED_VERIFICATION_AFTER
        )
        yield BackgroundJob("compaction", Schedule(configured.compaction_schedule), self._compact_archive)
        yield BackgroundJob(
            "download-expiry", Schedule(configured.download_expiry_schedule), self._delete_expired_downloads
        )
        yield BackgroundJob("webhooks", Schedule(configured.webhook_schedule), self._publish_webhook_events)
        yield BackgroundJob(
            "webhook-expiry", Schedule(configured.webhook_expiry_schedule), self._delete_expired_deliveries
        )

    async def _send_simulated_telemetry(self) -> None:
        """Send the simulated telemetry that is due, unless the disk is nearly full."""
        if await self._backends.disk_guard.read_disk_state() is DiskState.FULL:
            return
        await self._telemetry.simulators.send_and_count_due_messages(self._backends.runtime.now())

    async def _evaluate_alert_rules(self) -> None:
        """Evaluate due alert rules."""
        await self._alerts.scheduler.evaluate_due_rules()

    async def _close_expired_streams(self) -> None:
        """Close live streams whose token is no longer valid."""
        await self._live_stream.service.close_and_count_unauthorised_streams()

    async def _complete_revocations_and_end_grants(self) -> None:
        """Complete interrupted revocations and interrupted ends of OAuth grants, and end orphaned grants.

        Orphaned grants are those of disabled members and removed clients.
        """
        try:
            await self._access.revoker.complete_pending_revocations()
        finally:
            await self._access.grant_ender.complete_ends_and_end_orphaned_grants()

    async def _sign_checkpoints(self) -> None:
        """Sign a checkpoint of every audit chain that has new records.

        The policy ``provenance`` is not required: the events of its removal need a checkpoint, too.
        """
        if made := await self._provenance.checkpoints.create_all_and_count_them():
            _LOG.info("checkpoints signed", extra=fields(count=made))

    async def _complete_audit_overview(self) -> None:
        """Complete the overview of audit chains and the index of signatures, if the workspace has an audit log.

        Count the records of chains that an earlier version wrote, remove decided amendments from the pending ones, and
        add new signatures to their index.
        """
        if (await self._catalog.get_current_catalog()).policies.provenance is None:
            return
        if counted := await self._provenance.overview.complete_record_counts():
            _LOG.info("counted audit chains of an earlier version", extra=fields(chains=counted))
        await self._signatures.list.try_index_new_signatures(_INDEX_SECONDS)

    async def _verify_chains(self) -> object:
        """Verify the audit chains that have grown; return ``UNFINISHED`` if another run must continue, else None."""
        from shared.background.runner import UNFINISHED

        if (await self._catalog.get_current_catalog()).policies.provenance is None:
            return None
        period_start = self._verification_schedule.compute_last_due_time(self._backends.runtime.now())
        return (
            None if await self._provenance.background_verification.try_verify_due_chains(period_start) else UNFINISHED
        )

    async def _compact_archive(self) -> None:
        """Merge the archive's blobs of each connection and past hour into one blob."""
        if merged := await self._cold_data.compaction.merge_due_hours_and_count_them(self._backends.runtime.now()):
            _LOG.info("merged hours of the archive", extra=fields(hours=merged))

    async def _delete_expired_downloads(self) -> None:
        """Delete expired downloads."""
        await self._downloads.expiry.delete_expired_jobs_and_files()

    async def _publish_webhook_events(self) -> None:
        """Publish webhook events about stored changes, and start the deliveries that are due."""
        await self._webhook_endpoints.sources.run()
        await self._webhooks.worker.reschedule_after_clock_setback()

    async def _delete_expired_deliveries(self) -> None:
        """Delete webhook deliveries whose retention time has ended."""
        at = self._backends.runtime.now()
        while await self._webhooks.store.delete_and_count_expired_deliveries(at, _EXPIRED_AT_ONCE):
            pass
