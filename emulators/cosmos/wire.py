"""Requests, replies and errors of the Cosmos DB REST protocol, independent of the web framework."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import orjson

MAX_BYTES = 2 * 1024 * 1024
"""Maximum size in bytes of a document and of a request body."""

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
    """Error with which the test server replies to a request.

    Args:
        status: The HTTP status of the reply.
        message: The message in the body of the reply.
        substatus: The sub-status of the reply (header `x-ms-substatus`); 0 for none.
        retry_after_ms: The time in milliseconds after which the client should retry; None for none.
    """

    def __init__(self, status: int, message: str, substatus: int = 0, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.substatus = substatus
        self.retry_after_ms = retry_after_ms

    def build_reply(self) -> "CosmosReply":
        """Build the HTTP reply that reports this error."""
        body = {"code": CODES.get(self.status, "Error"), "message": f"Message: {self.message}"}
        headers = {"x-ms-substatus": str(self.substatus), "x-ms-request-charge": "1.0"}
        if self.retry_after_ms is not None:
            headers["x-ms-retry-after-ms"] = str(self.retry_after_ms)
        return CosmosReply(self.status, body, headers)


def build_unsupported_error(feature: str) -> CosmosError:
    """Build the error for a feature that this test server does not implement."""
    return CosmosError(400, f"the Cosmos test server does not implement {feature}")


@dataclass(frozen=True)
class CosmosRequest:
    """Parsed request of a client.

    Attributes:
        method: The HTTP method.
        segments: The percent-decoded segments of the path.
        headers: The headers by name in lower case.
        body: The body as bytes.
        operation: The name of the requested operation, such as `create_item` or `batch`.
    """

    method: str
    segments: tuple[str, ...]
    headers: Mapping[str, str]
    body: bytes
    operation: str

    @property
    def database_name_or_rid(self) -> str | None:
        """Name or resource id of the database in the path; None if the path names no database."""
        return self.segments[1] if self.segments[:1] == ("dbs",) and len(self.segments) > 1 else None

    @property
    def container_name_or_rid(self) -> str | None:
        """Name or resource id of the container in the path; None if the path names no container."""
        return self.segments[3] if self.segments[2:3] == ("colls",) and len(self.segments) > 3 else None

    @property
    def item_id(self) -> str | None:
        """Id of the item in the path; None if the path names no item."""
        return self.segments[5] if self.segments[4:5] == ("docs",) and len(self.segments) > 5 else None

    @property
    def is_write(self) -> bool:
        """True if the operation changes data."""
        return self.operation in WRITES

    @cached_property
    def json_body(self) -> Any:
        """Body of the request, parsed as JSON.

        Raises:
            CosmosError: 400 if the body is not JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise CosmosError(400, f"The request body is not valid JSON: {error}") from error

    def read_header(self, name: str, default: str = "") -> str:
        """Return the value of the header `name` (in lower case); `default` if the request has no such header."""
        return self.headers.get(name, default)

    def has_true_header(self, name: str) -> bool:
        """Return whether the header `name` has the value `true`, in any letter case."""
        return self.read_header(name).lower() == "true"


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
    """HTTP reply: status, body (JSON value, encoded bytes, or None for no body) and headers."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encode_body(self) -> bytes:
        """Return the body of the reply as bytes."""
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
    ("GET", "dbs/*/colls/*/pkranges"): "read_partition_ranges",
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


def get_operation_name(method: str, segments: tuple[str, ...], headers: Mapping[str, str]) -> str:
    """Return the name of the operation that a client requests, from the method, path and headers of the request.

    Args:
        method: The HTTP method.
        segments: The percent-decoded segments of the path.
        headers: The headers by name in lower case.

    Returns:
        The name of the operation, or `unknown`.
    """
    pattern = "/".join(part if index % 2 == 0 else "*" for index, part in enumerate(segments))
    operation = _OPERATIONS_BY_PATH.get((method, pattern), "unknown")
    if _has_true_header(headers, "x-ms-cosmos-is-query-plan-request"):
        return "query_plan"
    if _has_true_header(headers, "x-ms-documentdb-isquery"):
        return _QUERIES.get(operation, operation)
    if operation != "create_item":
        return operation
    if _has_true_header(headers, "x-ms-cosmos-is-batch-request"):
        return "batch"
    return "upsert_item" if _has_true_header(headers, "x-ms-documentdb-is-upsert") else "create_item"


def _has_true_header(headers: Mapping[str, str], name: str) -> bool:
    return headers.get(name, "").lower() == "true"
