"""Tests of the requests and replies of the Cosmos REST protocol."""

from collections.abc import Mapping

import pytest

from emulators.cosmos.wire import CosmosError, CosmosReply, CosmosRequest, get_operation_name

QUERY = {"x-ms-documentdb-isquery": "True"}


@pytest.mark.parametrize(
    ("method", "path", "headers", "expected"),
    [
        ("GET", "", {}, "read_account"),
        ("POST", "dbs", {}, "create_database"),
        ("POST", "dbs", QUERY, "query_databases"),
        ("POST", "dbs/d/colls", QUERY, "query_containers"),
        ("GET", "dbs/d/colls/c/docs/i", {}, "read_item"),
        ("POST", "dbs/d/colls/c/docs", {}, "create_item"),
        ("POST", "dbs/d/colls/c/docs", QUERY, "query"),
        ("POST", "dbs/d/colls/c/docs", {"x-ms-cosmos-is-batch-request": "true"}, "batch"),
        ("POST", "dbs/d/colls/c/docs", {"x-ms-documentdb-is-upsert": "TRUE"}, "upsert_item"),
        ("POST", "dbs/d/colls/c/docs", {"x-ms-documentdb-is-upsert": "false"}, "create_item"),
        ("POST", "dbs/d/colls/c/docs", {**QUERY, "x-ms-cosmos-is-query-plan-request": "True"}, "query_plan"),
        ("PATCH", "dbs/d/colls/c", {}, "unknown"),
        ("GET", "dbs/d/sprocs", {}, "unknown"),
    ],
)
def test_method_path_and_headers_determine_the_operation(
    method: str, path: str, headers: Mapping[str, str], expected: str
) -> None:
    """Method and path determine the operation; headers distinguish queries, batches and upserts."""
    assert get_operation_name(method, tuple(path.split("/")) if path else (), headers) == expected


def _build_request(*segments: str, body: bytes = b"", operation: str = "read_item", **headers: str) -> CosmosRequest:
    return CosmosRequest("GET", segments, headers, body, operation)


def test_database_container_and_item_are_read_from_the_path() -> None:
    """Database, container and item are read from the URL path; names that the path does not contain are None."""
    whole = _build_request("dbs", "d", "colls", "c", "docs", "i")
    assert (whole.database_name_or_rid, whole.container_name_or_rid, whole.item_id) == ("d", "c", "i")
    short = _build_request("dbs", "d", "colls")
    assert (short.database_name_or_rid, short.container_name_or_rid, short.item_id) == ("d", None, None)
    other = _build_request("offers", "o", "x", "y", "z", "i")
    assert (other.database_name_or_rid, other.container_name_or_rid, other.item_id) == (None, None, None)


@pytest.mark.parametrize(
    ("operation", "expected"),
    [("batch", True), ("delete_item", True), ("replace_offer", True), ("query", False), ("read_item", False)],
)
def test_operations_that_change_data_count_as_writes(operation: str, *, expected: bool) -> None:
    """An operation that changes items, containers or throughput counts as a write."""
    assert _build_request(operation=operation).is_write is expected


def test_header_flags_ignore_letter_case() -> None:
    """A header with a flag is set if its value is ``true`` in any letter case; a missing header is not set."""
    request = _build_request(one="True", two="1")
    assert [request.has_true_header(name) for name in ("one", "two", "three")] == [True, False, False]
    assert request.read_header("three", "default") == "default"


def test_a_body_that_is_not_json_is_rejected() -> None:
    """The body is parsed as JSON; an invalid body gets 400."""
    assert _build_request(body=b'{"a": 1}').json_body == {"a": 1}
    with pytest.raises(CosmosError, match="not valid JSON") as caught:
        _ = _build_request(body=b"{").json_body
    assert caught.value.status == 400


def test_an_error_becomes_a_reply_with_code_and_message() -> None:
    """The reply for an error has code and message in the body, and sub-status and delay in headers."""
    reply = CosmosError(429, "slow down", 3200, 15).build_reply()
    assert (reply.status, reply.body) == (429, {"code": "TooManyRequests", "message": "Message: slow down"})
    assert (reply.headers["x-ms-substatus"], reply.headers["x-ms-retry-after-ms"]) == ("3200", "15")
    plain = CosmosError(418, "tea").build_reply()
    assert plain.body["code"] == "Error"
    assert "x-ms-retry-after-ms" not in plain.headers


@pytest.mark.parametrize(("body", "expected"), [(None, b""), (b"raw", b"raw"), ({"a": [1]}, b'{"a":[1]}')])
def test_a_json_reply_body_is_encoded_once(body: object, expected: bytes) -> None:
    """A body of bytes is sent unchanged, a JSON value is encoded once, and a missing body is empty."""
    assert CosmosReply(200, body).encode_body() == expected
