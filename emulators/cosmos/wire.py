"""What crosses the wire: requests as the handlers see them, replies, and refusals in Cosmos' error form."""

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
    """A request answered with an error status.

    Args:
        status: The HTTP status.
        message: What the error body says.
        substatus: Cosmos' sub-status; 0 for none.
        retry_after_ms: The wait that the reply asks for, in milliseconds.
    """

    def __init__(self, status: int, message: str, substatus: int = 0, retry_after_ms: int | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.substatus = substatus
        self.retry_after_ms = retry_after_ms

    def reply(self) -> "CosmosReply":
        """Gives the reply with Cosmos' error body and headers."""
        body = {"code": CODES.get(self.status, "Error"), "message": f"Message: {self.message}"}
        headers = {"x-ms-substatus": str(self.substatus), "x-ms-request-charge": "1.0"}
        if self.retry_after_ms is not None:
            headers["x-ms-retry-after-ms"] = str(self.retry_after_ms)
        return CosmosReply(self.status, body, headers)


def unsupported(what: str) -> CosmosError:
    """Gives the refusal of something that Cosmos has and this test server has not."""
    return CosmosError(400, f"the Cosmos test server does not implement {what}")


@dataclass(frozen=True)
class CosmosRequest:
    """One request, its path taken apart.

    Attributes:
        method: The HTTP method.
        segments: The parts of the path, percent-decoded.
        headers: The headers, names in lower case.
        body: The body's bytes.
        operation: What it asks for, such as `create_item` or `batch`.
    """

    method: str
    segments: tuple[str, ...]
    headers: Mapping[str, str]
    body: bytes
    operation: str

    @property
    def database(self) -> str | None:
        """The database's name or resource id, if the path names one."""
        return self.segments[1] if self.segments[:1] == ("dbs",) and len(self.segments) > 1 else None

    @property
    def container(self) -> str | None:
        """The container's name or resource id, if the path names one."""
        return self.segments[3] if self.segments[2:3] == ("colls",) and len(self.segments) > 3 else None

    @property
    def item(self) -> str | None:
        """The item's id, if the path names one."""
        return self.segments[5] if self.segments[4:5] == ("docs",) and len(self.segments) > 5 else None

    @property
    def is_write(self) -> bool:
        """Whether it can change something."""
        return self.operation in WRITES

    @cached_property
    def json(self) -> Any:
        """The body's JSON value.

        Raises:
            Refusal: 400, it is no JSON.
        """
        try:
            return orjson.loads(self.body)
        except orjson.JSONDecodeError as error:
            raise CosmosError(400, f"The request body is no valid JSON: {error}") from error

    def header(self, name: str, default: str = "") -> str:
        """Gives a header's value by its lower-case name."""
        return self.headers.get(name, default)

    def flag(self, name: str) -> bool:
        """Says whether a header is set to true, in any letter case."""
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
    """One reply: a status, a body (JSON value, encoded bytes or nothing) and headers of its own."""

    status: int
    body: Any = None
    headers: dict[str, str] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """Gives the body's bytes."""
        if self.body is None:
            return b""
        return self.body if isinstance(self.body, bytes) else orjson.dumps(self.body)
