"""Webhook services: endpoints, the outbox of events, the worker that sends deliveries, and the sources of events."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.outbound import OutboundServices

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from shared.catalog.ports import PendingEvent
    from shared.downloads.models import Job
    from shared.provenance.ports import ChainKey
    from shared.signatures.attempts import LockOut
    from shared.webhooks.deliveries import DeliveryLog
    from shared.webhooks.events import EventOutbox
    from shared.webhooks.outbox import DeliveryOutbox
    from shared.webhooks.ports import WebhookStore
    from shared.webhooks.registry import EndpointRegistry
    from shared.webhooks.secrets import KeyMaterial, SecretVault
    from shared.webhooks.service import WebhookService
    from shared.webhooks.sources.catalog import ConnectionEvents
    from shared.webhooks.sources.runner import EventSources
    from shared.webhooks.worker import DeliveryWorker
    from shared.wiring.provenance import ProvenanceServices
    from shared.wiring.signatures import SignatureServices
    from shared.wiring.telemetry import TelemetryServices


class WebhookServices:
    """Stores and sends webhook deliveries; the services of other domains publish their events here."""

    def __init__(self, backends: Backends, outbound: OutboundServices, catalog: CatalogServices) -> None:
        self._backends = backends
        self._catalog = catalog
        self._settings = backends.settings
        self._outbound = outbound
        self._start_sources: Callable[[], None] | None = None

    def set_event_source_starter(self, start: "Callable[[], None]") -> None:
        """Set the function that starts the sources of webhook events, which are created after this service."""
        self._start_sources = start

    def start_event_sources(self) -> None:
        """Start the search for new webhook events; call this after a change that can cause such an event."""
        if self._start_sources is not None:
            self._start_sources()

    @cached_property
    def store(self) -> "WebhookStore":
        """Store of webhook endpoints and deliveries."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_webhooks import CosmosWebhookStore

            return CosmosWebhookStore(self._backends.cosmos)
        from shared.backends.embedded.webhooks import SqliteWebhookStore

        return SqliteWebhookStore(self._backends.workspace_file)

    @cached_property
    def registry(self) -> "EndpointRegistry":
        """Reader and writer of the stored webhook endpoints."""
        from shared.webhooks.registry import EndpointRegistry

        return EndpointRegistry(self.store)

    @cached_property
    def outbox(self) -> "DeliveryOutbox":
        """Service that stores a delivery for each event and subscribed endpoint."""
        from shared.webhooks.outbox import DeliveryOutbox

        return DeliveryOutbox(self.store, self.registry, self._wake_worker, runtime=self._backends.runtime)

    @cached_property
    def _recent_event_outbox(self) -> "EventOutbox":
        """Outbox for events that are announced again while the audit log rejects their records."""
        from shared.webhooks.outbox import RecentEventOutbox

        return RecentEventOutbox(self.outbox, runtime=self._backends.runtime)

    @cached_property
    def vault(self) -> "SecretVault":
        """Service that creates and encrypts the secrets with which deliveries are signed."""
        from shared.webhooks.secrets import SecretVault

        return SecretVault(self._key_material, runtime=self._backends.runtime)

    @cached_property
    def worker(self) -> "DeliveryWorker":
        """Worker that sends the deliveries that are due."""
        from shared.webhooks.sender import DeliverySender
        from shared.webhooks.worker import DeliveryWorker

        runtime = self._backends.runtime
        sender = DeliverySender(self._outbound.http, self.vault, self._settings.get_base_url(), runtime=runtime)
        is_audited = self._catalog.is_workspace_audited
        worker = DeliveryWorker(self.store, self.registry, sender, is_audited, runtime=runtime)
        return self._backends.register_for_closing(worker)

    async def announce_query_changes(self, pending_events: "Sequence[PendingEvent]") -> None:
        """Publish webhook events about changed warm queries (saved KQL queries)."""
        from shared.webhooks.sources.catalog import WarmQueryEvents

        await WarmQueryEvents(self._recent_event_outbox).publish_query_events(pending_events)

    async def announce_download(self, job: "Job") -> None:
        """Publish the webhook event about a download that has ended."""
        from shared.webhooks.sources.runner import build_download_event

        await self.outbox.publish([build_download_event(job, self._backends.runtime.now())])

    async def announce_broken_chain(self, chain: "ChainKey", broken_at: str, reason: str, period_start: str) -> None:
        """Publish the webhook event about an audit chain that verification found broken."""
        from shared.webhooks.sources.runner import build_broken_chain_event

        at = self._backends.runtime.now()
        await self.outbox.publish([build_broken_chain_event(chain, broken_at, reason, at, period_start)])

    async def announce_lock_out(self, member_id: str, event: "LockOut") -> None:
        """Publish the webhook event about a member whose signatures were refused several times."""
        from shared.webhooks.sources.runner import build_lock_out_event

        await self._recent_event_outbox.publish(
            [build_lock_out_event(member_id, event.append_id, event.at, event.attempts, event.since)]
        )

    def _wake_worker(self) -> None:
        """Make the delivery worker look for due deliveries; create the worker at the first event."""
        self.worker.wake()

    @property
    def _key_material(self) -> "KeyMaterial":
        if self._backends.uses_azure:
            secret = self._settings.webhook_secret_key.encode()

            async def read_key_material() -> bytes:
                return secret

            return read_key_material
        from shared.backends.embedded.key_files import FileSecret

        return FileSecret(
            self._settings.data_dir / "webhook-key", "WEBHOOK_KEY_UNAVAILABLE", runtime=self._backends.runtime
        )


class WebhookEndpointServices:
    """Manages webhook endpoints, and derives webhook events from stored changes."""

    def __init__(
        self,
        backends: Backends,
        outbound: OutboundServices,
        webhooks: WebhookServices,
        catalog: CatalogServices,
        provenance: "ProvenanceServices",
        telemetry: "TelemetryServices",
        signatures: "SignatureServices",
    ) -> None:
        self._backends = backends
        self._signatures = signatures
        self._outbound = outbound
        self._webhooks = webhooks
        self._catalog = catalog
        self._provenance = provenance
        self._telemetry = telemetry
        webhooks.set_event_source_starter(lambda: self.sources.run_soon())  # noqa: PLW0108  creates the sources at the first call

    @cached_property
    def service(self) -> "WebhookService":
        """Service that manages webhook endpoints."""
        from shared.webhooks.service import WebhookService

        return WebhookService(
            self._webhooks.registry,
            self._webhooks.vault,
            self._outbound.http,
            self._webhooks.outbox,
            self._provenance.audit_log,
            self._catalog.is_workspace_audited,
            on_subscribe=self._connection_events.publish_status_changes,
            runtime=self._backends.runtime,
        )

    @cached_property
    def log(self) -> "DeliveryLog":
        """Service that lists and repeats webhook deliveries."""
        from shared.webhooks.deliveries import DeliveryLog

        wake = self._webhooks.worker.wake
        return DeliveryLog(self._webhooks.store, self.service, wake, runtime=self._backends.runtime)

    @cached_property
    def sources(self) -> "EventSources":
        """Service that finds stored changes and publishes their webhook events."""
        from shared.webhooks.sources.amendments import AmendmentEvents
        from shared.webhooks.sources.runner import EventSources

        webhooks, runtime = self._webhooks, self._backends.runtime
        common = webhooks.store, webhooks.registry, webhooks.outbox
        amendments = AmendmentEvents(self._provenance.chain_store, *common, runtime=runtime)
        sources = {
            "catalog": self._provenance.catalog_service.flush_and_count_pending_events,
            "webhooks": self.service.flush_and_count_audit_events,
            "amendments": amendments.publish_new_events,
            "connections": self._connection_events.publish_status_changes,
            "signatures": self._signatures.attempts.report_unreported_lock_outs,
        }
        return self._backends.register_for_closing(EventSources(sources, webhooks.worker.wake))

    @cached_property
    def _connection_events(self) -> "ConnectionEvents":
        from shared.webhooks.sources.catalog import ConnectionEvents

        return ConnectionEvents(
            self._catalog.load_newest_catalog,
            self._telemetry.connection_states,
            self._telemetry.statuses,
            self._webhooks.store,
            self._webhooks.registry,
            self._webhooks.outbox,
            runtime=self._backends.runtime,
        )
