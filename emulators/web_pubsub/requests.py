"""Requests to the emulator: messages of WebSocket clients, and requests of servers to the REST API (data plane).

The clients use the subprotocol json.webpubsub.azure.v1.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NoReturn

import orjson
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from emulators.web_pubsub.asgi import Message, Receive
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.payloads import DataType, Payload
from emulators.web_pubsub.permissions import Permission
from shared.errors import Kind, WorkspaceError, build_invalid_field_error

MAX_NAME_LENGTH = 1024

type AckId = Annotated[int, Field(ge=0, lt=2**64)] | None
type GroupName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=r"\S")]


class _ClientRequest(BaseModel):
    model_config = ConfigDict(frozen=True)


class GroupRequest(_ClientRequest):
    """Request of a client to join or leave a group."""

    type: Literal["joinGroup", "leaveGroup"]
    group: GroupName
    ackId: AckId = None  # noqa: N815  name on the wire


class SendToGroup(_ClientRequest):
    """Request of a client to send a message to all clients in a group."""

    type: Literal["sendToGroup"]
    group: GroupName
    dataType: DataType  # noqa: N815  name on the wire
    data: Any
    noEcho: bool = False  # noqa: N815  name on the wire
    ackId: AckId = None  # noqa: N815  name on the wire


class EventRequest(_ClientRequest):
    """Request of a client to send an event to the hub's event handler."""

    type: Literal["event"]
    event: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    dataType: DataType  # noqa: N815  name on the wire
    data: Any
    ackId: AckId = None  # noqa: N815  name on the wire


class Ping(_ClientRequest):
    """Keep-alive request of a client, to which the service replies with a pong message."""

    type: Literal["ping"]


type ClientRequest = Annotated[GroupRequest | SendToGroup | EventRequest | Ping, Field(discriminator="type")]

REQUESTS: TypeAdapter[GroupRequest | SendToGroup | EventRequest | Ping] = TypeAdapter(ClientRequest)
"""Parser of one request of a client, in JSON."""

MAX_BODY_BYTES = 1024 * 1024
_MAX_READ_BYTES = 16 * MAX_BODY_BYTES
_TYPES = {
    "text/plain": DataType.TEXT,
    "application/json": DataType.JSON,
    "application/octet-stream": DataType.BINARY,
}
_MAX_TTL_SECONDS = 300


@dataclass(frozen=True, slots=True)
class DataPlaneRequest:
    """Authenticated request that a server sends to the REST API (data plane).

    Attributes:
        hub_name: name of the hub.
        hub: hub that the request addresses.
        access_key: access key of the service, which signs access tokens.
        origin: scheme, host and port of the requested URL.
        path: path parameters by name; ``path[""]`` is the whole path.
        query: all values of each query parameter, by name.
        headers: all values of each header, by name in lower case.
        body: body of the request, at most 1 MiB.
    """

    hub_name: str
    hub: Hub
    access_key: str
    origin: str
    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, Sequence[str]]
    body: bytes

    def find_query_value(self, parameter_name: str) -> str | None:
        """Return the value of a query parameter; None if it is missing.

        Raises:
            WorkspaceError: INVALID_REQUEST if the parameter is repeated.
        """
        values = self.query.get(parameter_name, ())
        if len(values) > 1:
            raise build_invalid_field_error(parameter_name, "must not be repeated")
        return values[0] if values else None

    def parse_integer_parameter(self, parameter_name: str, default: int, minimum: int, maximum: int) -> int:
        """Parse an integer query parameter; return ``default`` if it is missing.

        Raises:
            WorkspaceError: INVALID_REQUEST if the parameter is not an integer or out of range.
        """
        text = self.find_query_value(parameter_name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,10}", text) or not minimum <= int(text) <= maximum:
            raise build_invalid_field_error(parameter_name, f"must be an integer between {minimum} and {maximum}")
        return int(text)

    def read_close_reason(self) -> str:
        """Return the query parameter ``reason``, which clients receive as the reason for closing their connections."""
        return self.find_query_value("reason") or ""

    def read_excluded_connection_ids(self) -> frozenset[str]:
        """Return the connection ids in the query parameter ``excluded``, to which the operation does not apply."""
        return frozenset(self.query.get("excluded", ()))

    def read_group_name(self) -> str:
        """Return the group name in the path.

        Raises:
            WorkspaceError: INVALID_REQUEST if the group name is blank or longer than 1024 characters.
        """
        return _require_group_name(self.path["group"], "group")

    def parse_permission_and_group(self) -> tuple[Permission, str | None]:
        """Return the permission in the path, and the group to which the permission applies (None for all groups).

        Raises:
            WorkspaceError: INVALID_REQUEST if the permission is unknown, or the group name is blank or too long.
        """
        target = self.find_query_value("targetName")
        try:
            permission = Permission(self.path["permission"])
        except ValueError:
            raise build_invalid_field_error("permission", f"must be one of {', '.join(Permission)}") from None
        return permission, target if target is None else _require_group_name(target, "targetName")

    def parse_payload(self) -> Payload:
        """Return the message for clients from the body of the request.

        Raises:
            WorkspaceError: INVALID_REQUEST if the content type is unknown, the body does not match the content type, or
                a parameter is unsupported.
        """
        self._reject_unsupported_fields()
        data_type = _TYPES.get(self._read_header("content-type").partition(";")[0].strip().lower())
        if data_type is None:
            raise build_invalid_field_error("Content-Type", f"must be one of {', '.join(_TYPES)}")
        try:
            if data_type is DataType.TEXT:
                self.body.decode()
            elif data_type is DataType.JSON:
                orjson.loads(self.body)
        except ValueError:
            raise build_invalid_field_error("body", f"is not valid {data_type.value}") from None
        return Payload(self.body, data_type, self.read_group_name() if "group" in self.path else None)

    def _reject_unsupported_fields(self) -> None:
        """Reject unsupported parameters; if the emulator ignored ``filter``, messages would reach the wrong clients."""
        if self.find_query_value("filter") is not None:
            _raise_unsupported_field("filter")
        if self.parse_integer_parameter("messageTtlSeconds", 0, 0, _MAX_TTL_SECONDS):
            _raise_unsupported_field("messageTtlSeconds")
        if self._read_header("content-encoding") not in {"", "identity"}:
            _raise_unsupported_field("Content-Encoding")

    def _read_header(self, name: str) -> str:
        return ",".join(self.headers.get(name, ()))


async def read_body(headers: Mapping[str, Sequence[str]], receive: Receive) -> bytes:
    """Read the body of a request to the REST API, at most 1 MiB.

    Up to 16 MiB of a larger body are read and dropped, so that the caller can finish sending and read the reply.

    Raises:
        WorkspaceError: BODY_TOO_LARGE if the body exceeds 1 MiB.
        ConnectionError: the caller disconnected.
    """
    parts: list[bytes] = []
    size, more = 0, int(next(iter(headers.get("content-length", ())), "0")) <= _MAX_READ_BYTES
    while more and size <= _MAX_READ_BYTES:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the caller disconnected before the body of the request was complete")
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
    if more or size > MAX_BODY_BYTES or not parts:
        raise WorkspaceError(Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body is larger than {MAX_BODY_BYTES} bytes.")
    return b"".join(parts)


def _require_group_name(group_name: str, field_name: str) -> str:
    """Return a valid group name; otherwise raise an error that names the parameter ``field_name``."""
    if not group_name.strip() or len(group_name) > MAX_NAME_LENGTH:
        raise build_invalid_field_error(
            field_name, f"must have 1 to {MAX_NAME_LENGTH} characters and must not be blank"
        )
    return group_name


def _raise_unsupported_field(field_name: str) -> NoReturn:
    raise build_invalid_field_error(field_name, "is not supported by this emulator")
