"""Service of the GraphQL endpoint."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.runtime import Runtime
from shared.wiring.catalog import CatalogServices
from shared.wiring.queries import QueryServices
from shared.wiring.telemetry import TelemetryServices

if TYPE_CHECKING:
    from shared.graphql_api.service import GraphQLService


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
            self._catalog.reader.current,
            self._telemetry.connection_states,
            self._telemetry.statuses,
            self._queries.service,
            self._queries.columns,
            runtime=self._runtime,
        )
