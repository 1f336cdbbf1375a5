"""Requests, replies and errors of the REST protocol."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

MAX_BYTES = 2 * 1024 * 1024
"""The largest document, and the largest request body, in bytes."""

CODES = {
    400: "BadRequest",
    401: "Unauthorized",
    403: "Forbidden",
    404: "NotFound",
    405: "MethodNotAllowed",
    408: "RequestTimeout",
    409: "Conflict",
    410: "Gone",
    412: "PreconditionFailed",
    413: "RequestEntityTooLarge",
    429: "TooManyRequests",
    449: "RetryWith",
    500: "InternalServerError",
    503: "ServiceUnavailable",
}


class CosmosError(Exception):
    """Error reply to a request.

    Args:
        status: The HTTP status.
        message: The message of the error body.
        substatus: The sub-status; 0 for none.
        retry_after_ms: The retry delay in milliseconds.
    """

    def __init__(self, status: int, message: str, substatus: int = 0, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.substatus = substatus
        self.retry_after_ms = retry_after_ms

    def reply(self) -> "CosmosReply":
        """Return the reply with the error body and headers."""
        body = {"code": CODES.get(self.status, "Error"), "message": f"Message: {self.message}"}
        headers = {"x-ms-substatus": str(self.substatus), "x-ms-request-charge": "1.0"}
        if self.retry_after_ms is not None:
            headers["x-ms-retry-after-ms"] = str(self.retry_after_ms)
        return CosmosReply(self.status, body, headers)


def unsupported(feature: str) -> CosmosError:
    """Return the error for a feature that this test server does not implement."""
    return CosmosError(400, f"the Cosmos test server does not implement {feature}")


@dataclass(frozen=True)
class CosmosRequest:
    """Parsed request.

    Attributes:
        method: The HTTP method.
        segments: The segments of the path, percent-decoded.
        headers: The headers, names in lower case.
        body: The body's bytes.
        operation: The operation, such as `create_item` or `batch`.
    """

    method: str
    segments: tuple[str, ...]
    headers: Mapping[str, str]
    body: bytes
    operation: str

    @property
    def database(self) -> str | None:
        """Name or resource id of the database in the path, if any."""
        return self.segments[1] if self.segments[:1] == ("dbs",) and len(self.segments) > 1 else None

    @property
    def container(self) -> str | None:
        """Name or resource id of the container in the path, if any."""
        return self.segments[3] if self.segments[2:3] == ("colls",) and len(self.segments) > 3 else None

    @property
    def item(self) -> str | None:
        """Id of the item in the path, if any."""
        return self.segments[5] if self.segments[4:5] == ("docs",) and len(self.segments) > 5 else None

    @property
    def is_write(self) -> bool:
        """Whether the operation changes data."""
        return self.operation in WRITES

    @cached_property
    def json(self) -> Any:
        """JSON value of the body.

        Raises:
            CosmosError: 400 if it is not JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise CosmosError(400, f"The request body is not valid JSON: {error}") from error

    def header(self, name: str, default: str = "") -> str:
        """Return a header's value by its lower-case name."""
        return self.headers.get(name, default)

    def flag(self, name: str) -> bool:
        """Return whether a header is set to true, in any letter case."""
        return self.header(name).lower() == "true"


ITEM_WRITES = frozenset({"create_item", "upsert_item", "replace_item", "patch_item", "delete_item", "batch"})
WRITES = ITEM_WRITES | {
    "create_database",
    "delete_database",
    "create_container",
    "replace_container",
    "delete_container",
    "replace_offer",
}


@dataclass
class CosmosReply:
    """Reply: status, body (JSON value, encoded bytes or None) and headers."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encode_body(self) -> bytes:
        """Return the body as bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)


_OPERATIONS_BY_PATH = {
    ("GET", ""): "read_account",
    ("GET", "dbs"): "list_databases",
    ("POST", "dbs"): "create_database",
    ("GET", "dbs/*"): "read_database",
    ("DELETE", "dbs/*"): "delete_database",
    ("GET", "dbs/*/colls"): "list_containers",
    ("POST", "dbs/*/colls"): "create_container",
    ("GET", "dbs/*/colls/*"): "read_container",
    ("PUT", "dbs/*/colls/*"): "replace_container",
    ("DELETE", "dbs/*/colls/*"): "delete_container",
    ("GET", "dbs/*/colls/*/pkranges"): "read_ranges",
    ("GET", "dbs/*/colls/*/docs"): "read_feed",
    ("POST", "dbs/*/colls/*/docs"): "create_item",
    ("GET", "dbs/*/colls/*/docs/*"): "read_item",
    ("PUT", "dbs/*/colls/*/docs/*"): "replace_item",
    ("PATCH", "dbs/*/colls/*/docs/*"): "patch_item",
    ("DELETE", "dbs/*/colls/*/docs/*"): "delete_item",
    ("POST", "offers"): "query_offers",
    ("GET", "offers"): "list_offers",
    ("PUT", "offers/*"): "replace_offer",
}

_QUERIES = {"create_database": "query_databases", "create_container": "query_containers", "create_item": "query"}


def classify_request(method: str, segments: tuple[str, ...], headers: Mapping[str, str]) -> str:
    """Return the operation of a request.

    Args:
        method: The HTTP method.
        segments: The segments of the path.
        headers: The headers, names in lower case.

    Returns:
        The name of the operation, or `unknown`.
    """
    pattern = "/".join(part if index % 2 == 0 else "*" for index, part in enumerate(segments))
    operation = _OPERATIONS_BY_PATH.get((method, pattern), "unknown")
    if _is_true(headers, "x-ms-cosmos-is-query-plan-request"):
        return "query_plan"
    if _is_true(headers, "x-ms-documentdb-isquery"):
        return _QUERIES.get(operation, operation)
    if operation != "create_item":
        return operation
    if _is_true(headers, "x-ms-cosmos-is-batch-request"):
        return "batch"
    return "upsert_item" if _is_true(headers, "x-ms-documentdb-is-upsert") else "create_item"


def _is_true(headers: Mapping[str, str], name: str) -> bool:
    return headers.get(name, "").lower() == "true"
