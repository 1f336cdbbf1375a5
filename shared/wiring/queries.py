"""Warm queries and the engine that runs them."""

from functools import cached_property

from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.definitions import QueryDefinitions
from shared.warm_queries.observed_engine import ObservedEngine
from shared.warm_queries.ports import QueryEngine
from shared.warm_queries.service import WarmQueries
from shared.wiring.provenance import ProvenanceServices


class QueryServices(ProvenanceServices):
    """Executes and governs queries."""

    @cached_property
    def engine(self) -> QueryEngine:
        """Runs KQL."""
        from shared.backends.azure.kusto import KustoEngine  # noqa: PLC0415

        configured = self.settings
        engine = KustoEngine(configured.kusto_uri, configured.kusto_database, configured.managed_identity_client_id)
        return ObservedEngine(engine)

    @cached_property
    def warm_queries(self) -> WarmQueries:
        """Executes queries."""
        return WarmQueries(self.catalog.current, self.engine, self.settings.query_timeout_seconds)

    @cached_property
    def query_columns(self) -> QueryColumns:
        """Knows which columns queries give."""
        return QueryColumns(self.engine)

    @cached_property
    def query_definitions(self) -> QueryDefinitions:
        """Makes, approves and removes queries."""
        return QueryDefinitions(self.catalog_service, self.query_columns)
