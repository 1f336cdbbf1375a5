"""A call of the data plane, read from its request."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import orjson

from emulators.web_pubsub.asgi import Message, Receive
from emulators.web_pubsub.client_requests import MAX_NAME_LENGTH
from emulators.web_pubsub.hub import Hub
from emulators.web_pubsub.payloads import DataType, Payload
from emulators.web_pubsub.permissions import Permission
from shared.errors import Kind, WorkspaceError, invalid

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
    """An authenticated call.

    Attributes:
        hub_name: the hub's name.
        hub: the hub.
        access_key: of the service.
        origin: scheme, host and port that the caller used.
        path: the parts of the path that vary, by name.
        query: parameters with all their values.
        headers: with names in lower case and all their values.
        body: at most 1 MiB.
    """

    hub_name: str
    hub: Hub
    access_key: str
    origin: str
    path: Mapping[str, str]
    query: Mapping[str, Sequence[str]]
    headers: Mapping[str, Sequence[str]]
    body: bytes

    def query_value(self, name: str) -> str | None:
        """Return a query parameter that may be given once.

        Raises:
            WorkspaceError: INVALID_REQUEST: it is given more than once.
        """
        values = self.query.get(name, ())
        if len(values) > 1:
            raise invalid(name, "may be given once")
        return values[0] if values else None

    def parse_number(self, name: str, default: int, least: int, most: int) -> int:
        """Return a query parameter that is a whole number.

        Raises:
            WorkspaceError: INVALID_REQUEST: it is none, or out of bounds.
        """
        text = self.query_value(name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,10}", text) or not least <= int(text) <= most:
            raise invalid(name, f"must be a whole number from {least} to {most}")
        return int(text)

    def close_reason(self) -> str:
        """Return why connections are closed."""
        return self.query_value("reason") or ""

    def excluded_ids(self) -> frozenset[str]:
        """Return the ids of connections that the call leaves out."""
        return frozenset(self.query.get("excluded", ()))

    def parse_group(self) -> str:
        """Return the group of the path.

        Raises:
            WorkspaceError: INVALID_REQUEST: blank, or over 1024 characters.
        """
        return _group(self.path["group"], "group")

    def parse_permission(self) -> tuple[Permission, str | None]:
        """Return the permission of the path and the group that it is for, None for every group.

        Raises:
            WorkspaceError: INVALID_REQUEST: there is no such permission.
        """
        target = self.query_value("targetName")
        try:
            permission = Permission(self.path["permission"])
        except ValueError:
            raise invalid("permission", f"must be one of {', '.join(Permission)}") from None
        return permission, target if target is None else _group(target, "targetName")

    def parse_payload(self) -> Payload:
        """Return the message that the body is.

        Raises:
            WorkspaceError: INVALID_REQUEST: no known type, not of its type, or asking for what is not supported here.
        """
        self._refuse_unsupported()
        data_type = _TYPES.get(self._header("content-type").partition(";")[0].strip().lower())
        if data_type is None:
            raise invalid("Content-Type", f"must be one of {', '.join(_TYPES)}")
        try:
            if data_type is DataType.TEXT:
                self.body.decode()
            elif data_type is DataType.JSON:
                orjson.loads(self.body)
        except ValueError:
            raise invalid("body", f"is not {data_type.value}") from None
        return Payload(self.body, data_type, self.parse_group() if "group" in self.path else None)

    def _refuse_unsupported(self) -> None:
        """Refuse what would change who receives the message: ignoring it would deliver to the wrong clients."""
        if self.query_value("filter") is not None:
            _unsupported("filter")
        if self.parse_number("messageTtlSeconds", 0, 0, _MAX_TTL_SECONDS):
            _unsupported("messageTtlSeconds")
        if self._header("content-encoding") not in {"", "identity"}:
            _unsupported("Content-Encoding")

    def _header(self, name: str) -> str:
        return ",".join(self.headers.get(name, ()))


async def read_body(headers: Mapping[str, Sequence[str]], receive: Receive) -> bytes:
    """Return the body of a request.

    Of a body that is too large some more is read and forgotten, so that the caller is done sending and sees the reply.

    Raises:
        WorkspaceError: BODY_TOO_LARGE: over 1 MiB.
        ConnectionError: the caller is gone.
    """
    parts: list[bytes] = []
    size, more = 0, int(next(iter(headers.get("content-length", ())), "0")) <= _MAX_READ_BYTES
    while more and size <= _MAX_READ_BYTES:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the caller is gone")
        part = message.get("body", b"")
        more = message.get("more_body", False)
        size += len(part)
        if size <= MAX_BODY_BYTES:
            parts.append(part)
    if more or size > MAX_BODY_BYTES or not parts:
        raise WorkspaceError(Kind.TOO_LARGE, "BODY_TOO_LARGE", f"The body is larger than {MAX_BODY_BYTES} bytes.")
    return b"".join(parts)


def _group(name: str, field: str) -> str:
    if not name.strip() or len(name) > MAX_NAME_LENGTH:
        raise invalid(field, f"must hold 1 to {MAX_NAME_LENGTH} characters, not all blank")
    return name


def _unsupported(field: str) -> NoReturn:
    raise invalid(field, "is not supported by this stand-in")
