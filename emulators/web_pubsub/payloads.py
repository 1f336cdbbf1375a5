"""Message to clients, serialized once for each kind of client."""

import base64
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property

import orjson
from websockets.frames import Frame, Opcode


class DataType(StrEnum):
    """Data type of a message."""

    TEXT = "text"
    JSON = "json"
    BINARY = "binary"


@dataclass(frozen=True)
class Payload:
    """Message to clients.

    Attributes:
        data: its bytes; UTF-8 for text, one JSON value for JSON.
        data_type: type of the data.
        group: the group that receives it, None for all clients, a user or a connection.
        from_user: the user whose client sent it, None for a server.
    """

    data: bytes
    data_type: DataType
    group: str | None = None
    from_user: str | None = None

    @cached_property
    def plain_frame(self) -> bytes:
        """Frame for a client without subprotocol, with the data only."""
        return build_frame(self.data, binary=self.data_type is DataType.BINARY)

    @cached_property
    def json_frame(self) -> bytes:
        """Frame for a client of json.webpubsub.azure.v1."""
        document: dict[str, object] = {"type": "message", "from": "server" if self.group is None else "group"}
        if self.group is not None:
            document["group"] = self.group
        if self.from_user is not None:
            document["fromUserId"] = self.from_user
        document |= {"dataType": self.data_type.value, "data": self._embedded()}
        return build_frame(orjson.dumps(document))

    def _embedded(self) -> object:
        match self.data_type:
            case DataType.TEXT:
                return self.data.decode()
            case DataType.JSON:
                return orjson.Fragment(self.data)
            case DataType.BINARY:
                return base64.b64encode(self.data).decode("ascii")


def build_frame(data: bytes, *, binary: bool = False) -> bytes:
    """Return one unfragmented, unmasked frame of text or binary data (RFC 6455 section 5.2)."""
    return Frame(Opcode.BINARY if binary else Opcode.TEXT, data).serialize(mask=False)
