"""Requests of clients in the subprotocol json.webpubsub.azure.v1."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from emulators.web_pubsub.payloads import DataType

MAX_NAME_LENGTH = 1024

type AckId = Annotated[int, Field(ge=0, lt=2**64)] | None
type GroupName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=r"\S")]


class _ClientRequest(BaseModel):
    model_config = ConfigDict(frozen=True)


class GroupRequest(_ClientRequest):
    """Request to join or leave a group."""

    type: Literal["joinGroup", "leaveGroup"]
    group: GroupName
    ackId: AckId = None  # noqa: N815  name on the wire


class SendToGroup(_ClientRequest):
    """Request to send a message to a group."""

    type: Literal["sendToGroup"]
    group: GroupName
    dataType: DataType  # noqa: N815  name on the wire
    data: Any
    noEcho: bool = False  # noqa: N815  name on the wire
    ackId: AckId = None  # noqa: N815  name on the wire


class EventRequest(_ClientRequest):
    """Request to send an event to the event handler."""

    type: Literal["event"]
    event: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    dataType: DataType  # noqa: N815  name on the wire
    data: Any
    ackId: AckId = None  # noqa: N815  name on the wire


class Ping(_ClientRequest):
    """Request for a pong."""

    type: Literal["ping"]


type ClientRequest = Annotated[GroupRequest | SendToGroup | EventRequest | Ping, Field(discriminator="type")]

REQUESTS: TypeAdapter[GroupRequest | SendToGroup | EventRequest | Ping] = TypeAdapter(ClientRequest)
"""Parser of one request in JSON."""
