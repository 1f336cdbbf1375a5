"""Tests of GraphQL replies that a request over HTTP can hardly cause: errors of an overload, and long replies."""

import json
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from functions.graphql import GRAPHQL_JSON, build_graphql_problem, build_graphql_reply
from shared.errors import Kind, WorkspaceError
from shared.http.messages import Request
from shared.text_formats.serialisation import serialise_json_in_parts


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


@pytest.mark.parametrize(("accept", "status"), [(GRAPHQL_JSON, 400), ("application/json", 200)])
@pytest.mark.parametrize(
    "body",
    [
        {"data": {"nodes": [{"a": "x" * 500_000, "b": "x" * 500_000}] * 20}},
        {"data": {"nodes": [{"a" * 500_000: 1}] * 40}},
        {"data": None, "errors": [{"message": "x", "path": ["a" * 500_000]}] * 40},
        {"data": {"x": "\x00" * 4_000_000}},
    ],
    ids=["values", "names", "errors", "escapes"],
)
def test_a_reply_above_the_limit_is_an_error(body: dict[str, Any], accept: str, status: int) -> None:
    """A reply with more than 16 MiB of JSON is replaced by an error that names the limit."""
    request = Request("POST", "/v1/w/graphql", "", {"accept": accept}, b"")
    reply = build_graphql_reply(request, body, is_executed=True)
    [error] = json.loads(reply.body)["errors"]
    assert (reply.status, error["path"], error["extensions"]) == (status, [], {"code": "VALIDATION_ERROR"})
    assert "more than 16777216 bytes" in error["message"]


@pytest.mark.parametrize(("row_bytes", "calls"), [(1_000_000, 0), (1_048_576, 1)])
def test_a_reply_with_large_rows_is_serialised_in_parts(
    row_bytes: int, calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that are serialised already count as characters of the reply when one call of the serialiser is chosen."""
    serialised = list[Any]()

    def serialise_in_parts(value: Any) -> Iterator[bytes]:
        serialised.append(value)
        return serialise_json_in_parts(value)

    monkeypatch.setattr("functions.graphql.serialise_json_in_parts", serialise_in_parts)
    text = b'"%b"' % (b"x" * (row_bytes - 2))
    body = {"data": {"rows": [orjson.Fragment(text)]}}
    request = Request("POST", "/v1/w/graphql", "", {}, b"")
    reply = build_graphql_reply(request, body, is_executed=True, row_bytes=row_bytes)
    assert (reply.body, len(serialised)) == (b'{"data":{"rows":[%b]}}' % text, calls)


@pytest.mark.parametrize("characters_per_call", [0, 1_000])
def test_a_reply_of_the_largest_size_is_returned(characters_per_call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reply whose size equals the limit is returned, also if it is serialised in parts."""
    monkeypatch.setattr("functions.graphql._CHARACTERS_PER_CALL", characters_per_call)
    body = {"data": {"x": "y"}}
    monkeypatch.setattr("functions.graphql.MAX_REPLY_BYTES", len(b'{"data":{"x":"y"}}'))
    reply = build_graphql_reply(Request("POST", "/v1/w/graphql", "", {}, b""), body, is_executed=True)
    assert json.loads(reply.body) == body
