"""Messages from the service to clients; a message to many clients is serialised only once for each subprotocol."""

import base64
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import orjson
from websockets.frames import Frame, Opcode


class DataType(StrEnum):
    """Type of a message's content: text, JSON or binary data."""

    TEXT = "text"
    JSON = "json"
    BINARY = "binary"


@dataclass(frozen=True)
class Payload:
    """Message that the service sends to clients.

    Attributes:
        data: content as bytes: UTF-8 for text, one JSON value for JSON.
        data_type: type of ``data``.
        group: name of the group to which the message is sent; None if it is not sent to a group.
        from_user: id of the user whose client sent the message; None for a message of a server.
    """

    data: bytes
    data_type: DataType
    group: str | None = None
    from_user: str | None = None

    @cached_property
    def plain_frame(self) -> bytes:
        """WebSocket frame with only the data, for a client without subprotocol."""
        return build_websocket_frame(self.data, binary=self.data_type is DataType.BINARY)

    @cached_property
    def json_frame(self) -> bytes:
        """WebSocket frame with a JSON object that contains the data, for a client of json.webpubsub.azure.v1."""
        document: dict[str, object] = {"type": "message", "from": "server" if self.group is None else "group"}
        if self.group is not None:
            document["group"] = self.group
        if self.from_user is not None:
            document["fromUserId"] = self.from_user
        document |= {"dataType": self.data_type.value, "data": self._data_to_json_value()}
        return build_websocket_frame(orjson.dumps(document))

    def _data_to_json_value(self) -> object:
        match self.data_type:
            case DataType.TEXT:
                return self.data.decode()
            case DataType.JSON:
                return orjson.Fragment(self.data)
            case DataType.BINARY:
                return base64.b64encode(self.data).decode("ascii")


def build_websocket_frame(data: bytes, *, binary: bool = False) -> bytes:
    """Return the bytes of one unfragmented, unmasked WebSocket frame of text or binary data (RFC 6455 section 5.2)."""
    return Frame(Opcode.BINARY if binary else Opcode.TEXT, data).serialize(mask=False)
