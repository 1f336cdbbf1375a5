"""GraphQL services."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.queries import QueryServices
from shared.wiring.telemetry import TelemetryServices

if TYPE_CHECKING:
    from shared.graphql_api.service import GraphQLService


class GraphQLServices(QueryServices, TelemetryServices):
    """Executes GraphQL requests."""

    @cached_property
    def graphql(self) -> "GraphQLService":
        """Executes GraphQL documents."""
        # Import here: graphql-core and ariadne take long to import, and other routes do not use them.
        from shared.graphql_api.service import GraphQLService

        return GraphQLService(self.catalog.current, self.connection_states, self.warm_queries, self.query_columns)
