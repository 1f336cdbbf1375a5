"""Services of telemetry ingestion."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.webhooks import WebhookServices

if TYPE_CHECKING:
    from shared.telemetry.acceptance import TelemetryService
    from shared.telemetry.connection_status import ConnectionStatuses
    from shared.telemetry.ingest import TelemetryIngestor
    from shared.telemetry.ports import ConnectionStateStore, EventSender
    from shared.telemetry.simulators import Simulators


class TelemetryServices:
    """Accepts telemetry from callers, and converts event hub messages to telemetry events (impulses)."""

    def __init__(self, backends: Backends, catalog: CatalogServices, webhooks: WebhookServices) -> None:
        self._backends = backends
        self._webhooks = webhooks
        self._settings = backends.settings
        self._catalog = catalog

    @cached_property
    def sender(self) -> "EventSender":
        """Client that sends events to the event hubs."""
        from shared.telemetry.acceptance import InstrumentedSender

        if self._backends.uses_azure:
            from shared.backends.azure.event_hubs import EventHubsSender

            configured = self._settings
            sender = EventHubsSender(
                configured.event_hubs_namespace,
                configured.managed_identity_client_id,
                runtime=self._backends.runtime,
            )
            return self._backends.register_for_closing(InstrumentedSender(sender, "eventhubs"))
        from shared.backends.embedded.hub import HubWriter

        return self._backends.register_for_closing(
            InstrumentedSender(
                HubWriter(self._settings.data_dir / "hub.sqlite", runtime=self._backends.runtime), "workspace.hub"
            )
        )

    @cached_property
    def service(self) -> "TelemetryService":
        """Service that accepts telemetry from callers."""
        from shared.telemetry.acceptance import TelemetryService

        return TelemetryService(
            self._catalog.reader.get_catalog,
            self.sender,
            require_disk_space=self._backends.disk_guard.require_disk_space,
            runtime=self._backends.runtime,
        )

    @cached_property
    def connection_states(self) -> "ConnectionStateStore":
        """Store of the status and message counts of data connections."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates

            return self._backends.register_for_closing(CosmosConnectionStates(self._backends.cosmos))
        from shared.backends.embedded.connection_states import SqliteConnectionStates

        return self._backends.register_for_closing(
            SqliteConnectionStates(self._settings.data_dir / "workspace.sqlite", runtime=self._backends.runtime)
        )

    @cached_property
    def statuses(self) -> "ConnectionStatuses":
        """Service that determines the status of data connections."""
        from shared.telemetry.connection_status import ConnectionStatuses
        from shared.telemetry.event_hub_sources import parse_event_hub_sources

        return ConnectionStatuses(parse_event_hub_sources(self._settings.event_hub_sources))

    @cached_property
    def ingestor(self) -> "TelemetryIngestor":
        """Service that converts event hub messages to telemetry events (impulses)."""
        from shared.telemetry.ingest import TelemetryIngestor

        return TelemetryIngestor(
            self._catalog.reader.get_catalog,
            self.sender,
            self.connection_states,
            on_status=self._webhooks.start_event_sources,
            runtime=self._backends.runtime,
        )

    @cached_property
    def simulators(self) -> "Simulators":
        """Service that sends simulated telemetry."""
        from shared.telemetry.simulators import Simulators

        return Simulators(self._catalog.reader.get_catalog, self.sender)
