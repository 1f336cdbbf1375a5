"""Telemetry ingestion services."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.base import CatalogServices

if TYPE_CHECKING:
    from shared.telemetry.acceptance import TelemetryService
    from shared.telemetry.ingest import TelemetryIngestor
    from shared.telemetry.ports import ConnectionStateStore, EventSender
    from shared.telemetry.simulators import Simulators


class TelemetryServices(CatalogServices):
    """Accepts and normalises telemetry."""

    @cached_property
    def sender(self) -> "EventSender":
        """Sends events to the hubs."""
        from shared.telemetry.instrumented_sender import InstrumentedSender

        if self.on_azure:
            from shared.backends.azure.event_hubs import EventHubsSender

            configured = self.settings
            sender = EventHubsSender(configured.event_hubs_namespace, configured.managed_identity_client_id)
            return self.close_at_exit(InstrumentedSender(sender, "eventhubs"))
        from shared.backends.embedded.hub import HubWriter

        return self.close_at_exit(InstrumentedSender(HubWriter(self.settings.data_dir / "hub.sqlite"), "workspace.hub"))

    @cached_property
    def telemetry(self) -> "TelemetryService":
        """Accepts telemetry."""
        from shared.telemetry.acceptance import TelemetryService

        return TelemetryService(self.catalog.current, self.sender)

    @cached_property
    def connection_states(self) -> "ConnectionStateStore":
        """Store of the status and statistics of connections."""
        if self.on_azure:
            from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates

            return self.close_at_exit(CosmosConnectionStates(self.cosmos))
        from shared.backends.embedded.connection_states import SqliteConnectionStates

        return self.close_at_exit(SqliteConnectionStates(self.settings.data_dir / "workspace.sqlite"))

    @cached_property
    def ingest(self) -> "TelemetryIngestor":
        """Converts hub events to impulses."""
        from shared.telemetry.ingest import TelemetryIngestor

        return TelemetryIngestor(self.catalog.current, self.sender, self.connection_states)

    @cached_property
    def simulators(self) -> "Simulators":
        """Sends simulated telemetry."""
        from shared.telemetry.simulators import Simulators

        return Simulators(self.catalog.current, self.sender)
