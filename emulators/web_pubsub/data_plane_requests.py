"""Requests of the data plane and their parameters."""

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
    """Authenticated request of the data plane.

    Attributes:
        hub_name: the hub's name.
        hub: the hub.
        access_key: access key of the service.
        origin: requested scheme, host and port.
        path: path parameters by name; the empty name holds the whole path.
        query: query parameters with all their values.
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
        """Return a query parameter.

        Raises:
            WorkspaceError: INVALID_REQUEST if it is repeated.
        """
        values = self.query.get(name, ())
        if len(values) > 1:
            raise invalid(name, "must not be repeated")
        return values[0] if values else None

    def parse_number(self, name: str, default: int, minimum: int, maximum: int) -> int:
        """Return an integer query parameter.

        Raises:
            WorkspaceError: INVALID_REQUEST if it is not an integer or out of range.
        """
        text = self.query_value(name)
        if text is None:
            return default
        if not re.fullmatch(r"[0-9]{1,10}", text) or not minimum <= int(text) <= maximum:
            raise invalid(name, f"must be an integer between {minimum} and {maximum}")
        return int(text)

    def close_reason(self) -> str:
        """Return the reason for closing connections."""
        return self.query_value("reason") or ""

    def excluded_ids(self) -> frozenset[str]:
        """Return the ids of excluded connections."""
        return frozenset(self.query.get("excluded", ()))

    def parse_group(self) -> str:
        """Return the group in the path.

        Raises:
            WorkspaceError: INVALID_REQUEST if it is blank or longer than 1024 characters.
        """
        return _group(self.path["group"], "group")

    def parse_permission(self) -> tuple[Permission, str | None]:
        """Return the permission in the path and its group, None for all groups.

        Raises:
            WorkspaceError: INVALID_REQUEST if the permission is unknown.
        """
        target = self.query_value("targetName")
        try:
            permission = Permission(self.path["permission"])
        except ValueError:
            raise invalid("permission", f"must be one of {', '.join(Permission)}") from None
        return permission, target if target is None else _group(target, "targetName")

    def parse_payload(self) -> Payload:
        """Return the message in the body.

        Raises:
            WorkspaceError: INVALID_REQUEST if the content type is unknown, the body does not match it, or a
                parameter is unsupported.
        """
        self._reject_unsupported()
        data_type = _TYPES.get(self._header("content-type").partition(";")[0].strip().lower())
        if data_type is None:
            raise invalid("Content-Type", f"must be one of {', '.join(_TYPES)}")
        try:
            if data_type is DataType.TEXT:
                self.body.decode()
            elif data_type is DataType.JSON:
                orjson.loads(self.body)
        except ValueError:
            raise invalid("body", f"is not valid {data_type.value}") from None
        return Payload(self.body, data_type, self.parse_group() if "group" in self.path else None)

    def _reject_unsupported(self) -> None:
        """Reject unsupported parameters that select recipients, because ignoring them would reach the wrong clients."""
        if self.query_value("filter") is not None:
            _raise_unsupported("filter")
        if self.parse_number("messageTtlSeconds", 0, 0, _MAX_TTL_SECONDS):
            _raise_unsupported("messageTtlSeconds")
        if self._header("content-encoding") not in {"", "identity"}:
            _raise_unsupported("Content-Encoding")

    def _header(self, name: str) -> str:
        return ",".join(self.headers.get(name, ()))


async def read_body(headers: Mapping[str, Sequence[str]], receive: Receive) -> bytes:
    """Return the body of a request.

    Part of an oversized body is read and dropped, so that the caller finishes sending and receives the reply.

    Raises:
        WorkspaceError: BODY_TOO_LARGE if the body exceeds 1 MiB.
        ConnectionError: the caller disconnected.
    """
    parts: list[bytes] = []
    size, more = 0, int(next(iter(headers.get("content-length", ())), "0")) <= _MAX_READ_BYTES
    while more and size <= _MAX_READ_BYTES:
        message: Message = await receive()
        if message["type"] == "http.disconnect":
            raise ConnectionError("the caller disconnected")
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
        raise invalid(field, f"must have 1 to {MAX_NAME_LENGTH} characters and must not be blank")
    return name


def _raise_unsupported(field: str) -> NoReturn:
    raise invalid(field, "is not supported by this emulator")
