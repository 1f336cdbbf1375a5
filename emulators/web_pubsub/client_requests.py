"""The requests of the subprotocol json.webpubsub.azure.v1."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from emulators.web_pubsub.payloads import DataType

MAX_NAME_LENGTH = 1024

type AckId = Annotated[int, Field(ge=0, lt=2**64)] | None
type GroupName = Annotated[str, Field(min_length=1, max_length=MAX_NAME_LENGTH, pattern=r"\S")]


class _ClientRequest(BaseModel):
    model_config = ConfigDict(frozen=True)


class GroupRequest(_ClientRequest):
    """Join or leave a group."""

    type: Literal["joinGroup", "leaveGroup"]
    group: GroupName
    ackId: AckId = None  # noqa: N815  as it is called


class SendToGroup(_ClientRequest):
    """Send a message to everybody in a group."""

    type: Literal["sendToGroup"]
    group: GroupName
    dataType: DataType  # noqa: N815  as it is called
    data: Any
    noEcho: bool = False  # noqa: N815  as it is called
    ackId: AckId = None  # noqa: N815  as it is called


class EventRequest(_ClientRequest):
    """Send an event to the event handler."""

    type: Literal["event"]
    event: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.-]{1,128}$")]
    dataType: DataType  # noqa: N815  as it is called
    data: Any
    ackId: AckId = None  # noqa: N815  as it is called


class Ping(_ClientRequest):
    """Ask for a pong."""

    type: Literal["ping"]


type ClientRequest = Annotated[GroupRequest | SendToGroup | EventRequest | Ping, Field(discriminator="type")]

REQUESTS: TypeAdapter[GroupRequest | SendToGroup | EventRequest | Ping] = TypeAdapter(ClientRequest)
"""Reads one request from JSON."""
