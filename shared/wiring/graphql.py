"""The GraphQL interface over the domains."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.queries import QueryServices
from shared.wiring.telemetry import TelemetryServices

if TYPE_CHECKING:
    from shared.graphql_api.service import GraphQLService


class GraphQLServices(QueryServices, TelemetryServices):
    """Answers GraphQL requests."""

    @cached_property
    def graphql(self) -> "GraphQLService":
        """Runs GraphQL documents."""
        # graphql-core and ariadne take time to import that other routes do not need.
        from shared.graphql_api.service import GraphQLService

        return GraphQLService(self.catalog.current, self.connection_states, self.warm_queries, self.query_columns)
