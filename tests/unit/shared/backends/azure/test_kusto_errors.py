"""Tests of the conversion of errors that the real Kusto client raises."""

from typing import Any

import pytest

from shared.errors import Kind
from tests.unit.shared.backends.azure.kusto_wire import Endpoint, build_failure, endpoint, query_error

__all__ = ["endpoint"]  # the fixture


@pytest.mark.parametrize(
    ("status", "body", "kind", "code"),
    [
        (400, build_failure("General_BadRequest", "Syntax error"), Kind.INVALID, "QUERY_INVALID"),
        (400, build_failure("E_QUERY_RESULT_SET_TOO_LARGE", "x"), Kind.INVALID, "QUERY_TOO_LARGE"),
        (400, build_failure("LimitsExceeded", "x"), Kind.INVALID, "QUERY_TOO_LARGE"),
        (400, build_failure("General_BadRequest", "no column E_RUNAWAY_QUERY"), Kind.INVALID, "QUERY_INVALID"),
        (504, build_failure("Timeout", "x", permanent=False), Kind.TIMEOUT, "QUERY_TIMEOUT"),
        (429, build_failure("TooManyRequests", "x"), Kind.THROTTLED, "THROTTLED"),
        (401, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (403, build_failure("Forbidden", "principal x"), Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (404, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (500, build_failure("Internal", "secret", permanent=False), Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (503, {}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (200, {"unexpected": "shape"}, Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
        (200, [], Kind.UNAVAILABLE, "QUERY_ENGINE_UNAVAILABLE"),
    ],
)
async def test_every_failure_has_its_code(endpoint: Endpoint, status: int, body: Any, kind: Kind, code: str) -> None:
    """A rejected query is an error of the caller; a failure of the engine is a 503 without details."""
    endpoint.answers(body, status)
    error = await query_error(endpoint)
    assert (error.kind, error.code) == (kind, code)
    assert "secret" not in error.detail


async def test_a_position_refers_to_the_callers_text(endpoint: Endpoint) -> None:
    """The line of an error is a line of the caller's query, without the lines that the service inserts before it."""
    endpoint.answers(build_failure("General_BadRequest", "Syntax error [line:position=2:5]"), 400)
    error = await query_error(endpoint)
    assert (error.members["line"], error.members["column"]) == (1, 5)
    assert "[line:position=1:5]" in error.detail


async def test_a_construct_that_only_data_explorer_supports_is_named(endpoint: Endpoint) -> None:
    """The error about a construct that only Data Explorer supports names the construct and where it can run."""
    endpoint.answers(build_failure("BadRequest_NotSupported", "Semantic error: EMB0001: 'fork' is not supported"), 400)
    error = await query_error(endpoint)
    assert error.code == "QUERY_INVALID"
    assert "'fork' is not supported. The query runs on Data Explorer only." in error.detail
