"""Tests of GraphQL errors that cannot be caused by a request over HTTP."""

import json

import pytest

from functions.graphql import GRAPHQL_JSON, build_graphql_problem
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request


@pytest.mark.parametrize(("kind", "status"), [(Kind.THROTTLED, 429), (Kind.UNAVAILABLE, 503)])
@pytest.mark.parametrize("accept", [GRAPHQL_JSON, "application/json"])
def test_overload_replies_have_the_preferred_media_type(kind: Kind, status: int, accept: str) -> None:
    """429 and 503 replies have the media type that the client prefers and a Retry-After header."""
    error = WorkspaceError(kind, "THROTTLED", "Later.", retryAfter=7)
    reply = build_graphql_problem(error, "t", Request("POST", "/v1/w/graphql", "", {"accept": accept}, b""))
    assert (reply.status, reply.headers["Content-Type"], reply.headers["Retry-After"]) == (
        status,
        f"{accept}; charset=utf-8",
        "7",
    )
    assert json.loads(reply.body)["errors"][0]["extensions"]["traceId"] == "t"
