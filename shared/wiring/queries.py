"""Query services: engine, warm queries and GraphQL."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.settings import EMBEDDED_ENGINE
from shared.wiring.provenance import ProvenanceServices
from shared.wiring.telemetry import TelemetryServices

if TYPE_CHECKING:
    from shared.graphql_api.service import GraphQLService
    from shared.warm_queries.columns import QueryColumns
    from shared.warm_queries.definitions import QueryDefinitions
    from shared.warm_queries.ports import QueryEngine
    from shared.warm_queries.service import WarmQueries


class QueryServices(ProvenanceServices):
    """Executes and governs queries."""

    @cached_property
    def engine(self) -> "QueryEngine":
        """Executes KQL."""
        from shared.backends.azure.kusto import KustoEngine
        from shared.warm_queries.instrumented_engine import InstrumentedEngine

        configured = self.settings
        uri, database = self._find_engine_uri(), configured.kusto_database
        return self.close_at_exit(
            InstrumentedEngine(KustoEngine(uri, database, configured.managed_identity_client_id), database)
        )

    def _find_engine_uri(self) -> str:
        """Return the configured engine, else the one noted in the data directory by its host, else the default."""
        configured = self.settings
        noted = configured.data_dir / EMBEDDED_ENGINE
        if "kusto_uri" in configured.model_fields_set or not noted.exists():
            return configured.kusto_uri
        return noted.read_text(encoding="utf-8")

    @cached_property
    def warm_queries(self) -> "WarmQueries":
        """Executes queries."""
        from shared.warm_queries.service import WarmQueries

        return WarmQueries(self.catalog.current, self.engine, self.settings.query_timeout_seconds)

    @cached_property
    def query_columns(self) -> "QueryColumns":
        """Determines the columns of queries."""
        from shared.warm_queries.columns import QueryColumns

        return QueryColumns(self.engine)

    @cached_property
    def query_definitions(self) -> "QueryDefinitions":
        """Creates, approves and removes queries."""
        from shared.warm_queries.definitions import QueryDefinitions

        return QueryDefinitions(self.catalog_service, self.query_columns)


class GraphQLServices(QueryServices, TelemetryServices):
    """Executes GraphQL requests."""

    @cached_property
    def graphql(self) -> "GraphQLService":
        """Executes GraphQL documents."""
        # Import here: graphql-core and ariadne take long to import, and other routes do not use them.
        from shared.graphql_api.service import GraphQLService

        return GraphQLService(self.catalog.current, self.connection_states, self.warm_queries, self.query_columns)
