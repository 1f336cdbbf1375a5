"""Telemetry ingestion services."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices

if TYPE_CHECKING:
    from shared.telemetry.acceptance import TelemetryService
    from shared.telemetry.ingest import TelemetryIngestor
    from shared.telemetry.ports import ConnectionStateStore, EventSender
    from shared.telemetry.simulators import Simulators


class TelemetryServices:
    """Accepts and normalises telemetry."""

    def __init__(self, backends: Backends, catalog: CatalogServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog

    @cached_property
    def sender(self) -> "EventSender":
        """Sends events to the hubs."""
        from shared.telemetry.instrumented_sender import InstrumentedSender

        if self._backends.on_azure:
            from shared.backends.azure.event_hubs import EventHubsSender

            configured = self._settings
            sender = EventHubsSender(configured.event_hubs_namespace, configured.managed_identity_client_id)
            return self._backends.close_at_exit(InstrumentedSender(sender, "eventhubs"))
        from shared.backends.embedded.hub import HubWriter

        return self._backends.close_at_exit(
            InstrumentedSender(HubWriter(self._settings.data_dir / "hub.sqlite"), "workspace.hub")
        )

    @cached_property
    def service(self) -> "TelemetryService":
        """Accepts telemetry."""
        from shared.telemetry.acceptance import TelemetryService

        return TelemetryService(self._catalog.reader.current, self.sender)

    @cached_property
    def connection_states(self) -> "ConnectionStateStore":
        """Store of the status and statistics of connections."""
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates

            return self._backends.close_at_exit(CosmosConnectionStates(self._backends.cosmos))
        from shared.backends.embedded.connection_states import SqliteConnectionStates

        return self._backends.close_at_exit(SqliteConnectionStates(self._settings.data_dir / "workspace.sqlite"))

    @cached_property
    def ingestor(self) -> "TelemetryIngestor":
        """Converts hub events to impulses."""
        from shared.telemetry.ingest import TelemetryIngestor

        return TelemetryIngestor(self._catalog.reader.current, self.sender, self.connection_states)

    @cached_property
    def simulators(self) -> "Simulators":
        """Sends simulated telemetry."""
        from shared.telemetry.simulators import Simulators

        return Simulators(self._catalog.reader.current, self.sender)
