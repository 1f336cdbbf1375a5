"""Wiring: connects the domains' services to the adapters of their stores; every service is created on first use."""

from contextlib import AsyncExitStack
from functools import cache
from typing import TYPE_CHECKING

from shared.observability import logs
from shared.observability.readiness import Readiness
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.settings import Settings, settings
from shared.wiring.access import AccessServices, OAuthServices
from shared.wiring.alerts import AlertServices
from shared.wiring.backends import Backends
from shared.wiring.background import BackgroundServices
from shared.wiring.catalog import CatalogServices
from shared.wiring.cold_data import ColdDataServices
from shared.wiring.data_stores import DataStoreServices, WorkspaceDocumentServices
from shared.wiring.downloads import DownloadServices
from shared.wiring.features import Features
from shared.wiring.jobs import AuditBundleServices, ImportServices
from shared.wiring.live_stream import LiveStreamServices
from shared.wiring.outbound import OutboundServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.queries import GraphQLServices, QueryServices
from shared.wiring.readiness import ReadinessProbes
from shared.wiring.requests import IdempotencyServices, RateLimitServices
from shared.wiring.signatures import SignatureServices
from shared.wiring.telemetry import TelemetryServices
from shared.wiring.webhooks import WebhookEndpointServices, WebhookServices

if TYPE_CHECKING:
    from shared.http.load_shedding import LoadShedder


class Services:
    """Services of the app, created from one set of settings; each attribute is the group of services of one domain.

    A group creates its services on first use; creating a group opens no store and imports no module.

    Args:
        configured: settings of the app.
        runtime: clock, randomness and threads of all services.
    """

    def __init__(self, configured: Settings, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self.settings = configured
        self.runtime = runtime
        self.backends = Backends(configured, runtime)
        self.outbound = OutboundServices(self.backends)
        self.catalog = CatalogServices(self.backends)
        self.webhooks = WebhookServices(self.backends, self.outbound, self.catalog)
        self.features = Features(self.catalog)
        self.telemetry = TelemetryServices(self.backends, self.catalog, self.webhooks)
        self.provenance = ProvenanceServices(self.backends, self.catalog, self.webhooks, self.telemetry)
        self.signatures = SignatureServices(self.backends, self.catalog, self.provenance, self.webhooks)
        self.idempotency = IdempotencyServices(self.backends)
        self.access = AccessServices(self.backends, self.catalog, self.provenance)
        self.oauth = OAuthServices(self.backends, self.catalog, self.access, self.outbound)
        self.rate_limits = RateLimitServices(self.backends, self.catalog)
        self.queries = QueryServices(self.backends, self.catalog, self.provenance)
        self.graphql = GraphQLServices(runtime, self.catalog, self.telemetry, self.queries)
        self.data_stores = DataStoreServices(self.backends, self.catalog, self.provenance)
        self.workspace_documents = WorkspaceDocumentServices(self.backends, self.provenance, self.data_stores)
        self.cold_data = ColdDataServices(self.backends)
        self.downloads = DownloadServices(self.backends, self.catalog, self.cold_data, self.webhooks)
        self.imports = ImportServices(self.backends, self.catalog, self.cold_data, self.downloads, self.queries)
        self.audit_bundles = AuditBundleServices(
            self.backends, self.catalog, self.cold_data, self.provenance, self.downloads
        )
        self.live_stream = LiveStreamServices(self.backends, self.catalog, self.access, self.queries)
        sources = (self.catalog, self.provenance, self.telemetry, self.signatures)
        self.webhook_endpoints = WebhookEndpointServices(self.backends, self.outbound, self.webhooks, *sources)
        self.alerts = AlertServices(
            self.backends, self.catalog, self.provenance, self.telemetry, self.queries, self.webhooks
        )
        self.background = BackgroundServices(
            self.backends,
            self.catalog,
            self.provenance,
            self.access,
            self.telemetry,
            self.cold_data,
            self.downloads,
            self.live_stream,
            self.webhooks,
            self.webhook_endpoints,
            self.alerts,
            self.signatures,
        )
        probes = ReadinessProbes(self.backends, self.features, self.provenance, self.queries, self.cold_data)
        self.readiness = Readiness(probes.build_probes_by_name, runtime=runtime)

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
    logs.add_fields_to_log_handlers(configured.log_level)
    if configured.application_insights:
        from shared.backends.azure.monitor import start_export_if_configured

        start_export_if_configured(configured.application_insights, configured.managed_identity_client_id)
    return Services(configured, SYSTEM_RUNTIME)


@cache
def get_load_shedder() -> "LoadShedder":
    """Return the load shedder of this process, which the request pipeline and the local host share."""
    from shared.http.load_shedding import LoadShedder

    return LoadShedder(settings().max_at_work, runtime=SYSTEM_RUNTIME)
