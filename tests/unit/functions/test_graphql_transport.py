"""Refusals of the GraphQL interface that a test cannot bring about over HTTP."""

import json

import pytest

from functions.graphql_transport import GRAPHQL_JSON, graphql_problem
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request


@pytest.mark.parametrize(("kind", "status"), [(Kind.THROTTLED, 429), (Kind.UNAVAILABLE, 503)])
@pytest.mark.parametrize("accept", [GRAPHQL_JSON, "application/json"])
def test_a_crowd_is_told_in_the_media_type_that_is_asked_for(kind: Kind, status: int, accept: str) -> None:
    """429 and 503 come in the preferred media type, and say when to come back."""
    error = WorkspaceError(kind, "THROTTLED", "Later.", retryAfter=7)
    reply = graphql_problem(error, "t", Request("POST", "/v1/w/graphql", "", {"accept": accept}, b""))
    assert (reply.status, reply.headers["Content-Type"], reply.headers["Retry-After"]) == (
        status,
        f"{accept}; charset=utf-8",
        "7",
    )
    assert json.loads(reply.body)["errors"][0]["extensions"]["traceId"] == "t"
