"""Wiring: joins domains and adapters; every service is created on first use."""

from contextlib import AsyncExitStack
from functools import cache

from shared.observability import logs
from shared.observability.readiness import Readiness
from shared.settings import Settings, settings
from shared.wiring.access import AccessServices
from shared.wiring.backends import Backends
from shared.wiring.background import BackgroundServices
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.data_stores import DataStoreServices
from shared.wiring.downloads import DownloadServices
from shared.wiring.features import Features
from shared.wiring.graphql import GraphQLServices
from shared.wiring.idempotency import IdempotencyServices
from shared.wiring.live_stream import LiveStreamServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.queries import QueryServices
from shared.wiring.rate_limits import RateLimitServices
from shared.wiring.readiness import ReadinessProbes
from shared.wiring.telemetry import TelemetryServices


class Services:
    """All services of the app for one set of settings, in one group for each domain.

    A group creates its services on first use; creating a group opens and imports nothing.

    Args:
        configured: settings of the app.
    """

    def __init__(self, configured: Settings) -> None:
        self.settings = configured
        self.backends = Backends(configured)
        self.catalog = CatalogServices(self.backends)
        self.features = Features(self.catalog)
        self.provenance = ProvenanceServices(self.backends, self.catalog)
        self.idempotency = IdempotencyServices(self.backends)
        self.access = AccessServices(self.backends, self.catalog, self.provenance)
        self.rate_limits = RateLimitServices(self.backends, self.catalog)
        self.telemetry = TelemetryServices(self.backends, self.catalog)
        self.queries = QueryServices(self.backends, self.catalog, self.provenance)
        self.graphql = GraphQLServices(self.catalog, self.telemetry, self.queries)
        self.data_stores = DataStoreServices(self.backends, self.catalog, self.provenance)
        self.cold_data = ColdDataServices(self.backends)
        self.downloads = DownloadServices(self.backends, self.catalog, self.cold_data)
        self.live_stream = LiveStreamServices(self.backends, self.catalog, self.access, self.queries)
        self.background = BackgroundServices(
            self.backends,
            self.catalog,
            self.provenance,
            self.telemetry,
            self.cold_data,
            self.downloads,
            self.live_stream,
        )
        probes = ReadinessProbes(self.backends, self.features, self.provenance, self.queries, self.cold_data)
        self.readiness = Readiness(probes.build)

    async def close(self) -> None:
        """Stop background work and close all created resources."""
        async with AsyncExitStack() as parts:
            parts.push_async_callback(self.backends.close)
            # Background jobs create services while they run, so they must stop before the first resource is closed.
            parts.push_async_callback(self.background.close)


@cache
def services() -> Services:
    """Return the services of this process; configures logs and traces on first use."""
    configured = settings()
    logs.add_fields_to_handlers(configured.log_level)
    if configured.application_insights:
        from shared.backends.azure.monitor import start

        start(configured.application_insights, configured.managed_identity_client_id)
    return Services(configured)
