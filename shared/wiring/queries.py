"""Services of warm queries (saved KQL queries) and of GraphQL, and the query engine."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.runtime import Runtime
from shared.settings import EMBEDDED_ENGINE_URL_FILE
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.telemetry import TelemetryServices

if TYPE_CHECKING:
    from shared.graphql_api.service import GraphQLService
    from shared.warm_queries.columns import QueryColumns
    from shared.warm_queries.definitions import QueryDefinitions
    from shared.warm_queries.ports import QueryEngine
    from shared.warm_queries.service import WarmQueries


class QueryServices:
    """Executes warm queries, and manages their definitions and approvals."""

    def __init__(self, backends: Backends, catalog: CatalogServices, provenance: ProvenanceServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._provenance = provenance

    @cached_property
    def engine(self) -> "QueryEngine":
        """Engine that executes KQL: Azure Data Explorer, or the embedded engine."""
        from shared.backends.azure.kusto import KustoEngine
        from shared.warm_queries.fair_engine import FairEngine
        from shared.warm_queries.instrumented_engine import InstrumentedEngine

        configured = self._settings
        uri, database = self.get_engine_uri(), configured.kusto_database
        engine = KustoEngine(uri, database, configured.managed_identity_client_id, runtime=self._backends.runtime)
        measured = InstrumentedEngine(engine, database, runtime=self._backends.runtime)
        return self._backends.register_for_closing(FairEngine(measured, configured.max_queries_per_principal))

    def get_engine_uri(self) -> str:
        """Return the query engine's URI: the setting, else the URI file in the data directory, else the default."""
        configured = self._settings
        noted = configured.data_dir / EMBEDDED_ENGINE_URL_FILE
        if "kusto_uri" in configured.model_fields_set or not noted.exists():
            return configured.kusto_uri
        return noted.read_text(encoding="utf-8")

    @cached_property
    def service(self) -> "WarmQueries":
        """Service that executes saved queries."""
        from shared.warm_queries.service import WarmQueries

        return WarmQueries(
            self._catalog.reader.get_catalog,
            self.engine,
            self._settings.query_timeout_seconds,
            runtime=self._backends.runtime,
        )

    @cached_property
    def columns(self) -> "QueryColumns":
        """Service that determines the result columns of queries."""
        from shared.warm_queries.columns import QueryColumns

        return QueryColumns(self.engine, runtime=self._backends.runtime)

    @cached_property
    def definitions(self) -> "QueryDefinitions":
        """Service that creates, approves and removes saved queries."""
        from shared.warm_queries.definitions import QueryDefinitions

        return QueryDefinitions(self._provenance.catalog_service, self.columns, runtime=self._backends.runtime)


class GraphQLServices:
    """Executes GraphQL requests."""

    def __init__(
        self, runtime: Runtime, catalog: CatalogServices, telemetry: TelemetryServices, queries: QueryServices
    ) -> None:
        self._runtime = runtime
        self._catalog = catalog
        self._telemetry = telemetry
        self._queries = queries

    @cached_property
    def service(self) -> "GraphQLService":
        """Service that executes GraphQL documents."""
        # Import here: graphql-core and ariadne take long to import, and other routes do not use them.
        from shared.graphql_api.service import GraphQLService

        return GraphQLService(
            self._catalog.reader.get_catalog,
            self._telemetry.connection_states,
            self._telemetry.statuses,
            self._queries.service,
            self._queries.columns,
            runtime=self._runtime,
        )
