"""Messages that clients of the subprotocol json.webpubsub.azure.v1 send to the service."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from emulators.web_pubsub.payloads import DataType

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
