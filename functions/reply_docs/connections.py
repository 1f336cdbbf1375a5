"""Documentation of the replies of the handler modules `connections` and `signals`."""

from datetime import datetime
from typing import Any, Final, Literal, NotRequired, TypedDict

from functions.conditions import CHANGE_CONDITIONS, WRITE_CONDITIONS
from functions.reply_docs.warm_queries import LOOKUP
from shared.catalog.models import ConnectionType, SignalType, TimestampFormat
from shared.http.operation_docs import DEFINITION, NO_CONTENT, DocumentedReply, OperationDocs


class ConnectionSource(TypedDict):
    """Settings that select the events of a connection, and JSON Pointers to their fields."""

    devices: list[str]
    timestampPointer: str
    deviceIdPointer: str
    messageIdPointer: str
    timestampFormat: TimestampFormat
    eventHub: str | None
    consumerGroup: str


class ConnectionSignal(TypedDict):
    """A field of a connection's payloads: position, type, unit and expected range."""

    name: str
    pointer: str
    type: SignalType
    unit: str | None
    description: str | None
    min: float | None
    max: float | None


class ConnectionSignals(TypedDict):
    """The declared signals (payload fields) of a connection."""

    signals: list[ConnectionSignal]


class InferredSignal(TypedDict):
    """A signal found in messages: its lowest and highest value, and the `share` of messages with it, from 0 to 1."""

    name: str
    pointer: str
    type: SignalType
    share: float
    min: float | None
    max: float | None


class InferredSignals(TypedDict):
    """Signals (payload fields) that recent messages contain, and the number of these messages."""

    messages: int
    signals: list[InferredSignal]


class ConnectionStatistics(TypedDict):
    """Statistics of a connection: number of messages, time of the newest, and number of messages with wrong types."""

    messagesReceived: int
    lastMessage: datetime | None
    typeMismatches: int


class ConnectionDefinition(TypedDict):
    """A data connection with its status and the surfaces that own it.

    `etag` is the value for If-Match, including the quotes.
    """

    etag: str
    lookup: str
    name: str
    type: ConnectionType
    enabled: bool
    source: ConnectionSource
    simulator: dict[str, Any] | None
    signals: list[ConnectionSignal]
    status: Literal["CONNECTED", "CONNECTING", "DISCONNECTED", "ERROR"]
    statusReason: str | None
    stats: ConnectionStatistics
    surfaces: list[str]
    createdAt: datetime
    updatedAt: datetime
    editedBy: str


class ConnectionDefinitionList(TypedDict):
    """A page of data connections; `cursor` is present if another page follows."""

    connections: list[ConnectionDefinition]
    cursor: NotRequired[str]


PATH: Final = {"lookup": LOOKUP}
SIGNAL: Final = {
    "name": "pressure",
    "pointer": "/Pressure",
    "type": "real",
    "unit": "bar",
    "description": None,
    "min": 2.0,
    "max": 6.0,
}
_SENT: Final = {
    "name": "Pump rig",
    "type": "CLOUD_EVENT_HUB",
    "enabled": True,
    "source": {"devices": ["rig-*"], "timestampPointer": "/ts"},
    "signals": [SIGNAL],
}
_CONNECTION: Final = {
    **_SENT,
    "source": {
        "devices": ["rig-*"],
        "timestampPointer": "/ts",
        "deviceIdPointer": "/deviceId",
        "messageIdPointer": "/messageId",
        "timestampFormat": "rfc3339",
        "eventHub": None,
        "consumerGroup": "$Default",
    },
    "etag": '"5d41402abc4b2a76b9719d911017c592ae1f7c3c8b6f5e2d9a0413aa77c1e0f2"',
    "lookup": "pump-rig",
    "simulator": None,
    "signals": [SIGNAL],
    "status": "CONNECTED",
    "statusReason": None,
    "stats": {"messagesReceived": 1042, "lastMessage": "2026-01-05T08:15:00.000000Z", "typeMismatches": 0},
    "surfaces": ["cooling"],
    "createdAt": "2026-01-05T08:00:00.000000Z",
    "updatedAt": "2026-01-05T08:00:00.000000Z",
    "editedBy": "admin@plant-a.example",
}

LISTED = OperationDocs(
    (DocumentedReply(200, "The connections.", ConnectionDefinitionList, {"connections": [_CONNECTION]}),)
)
READ = OperationDocs(
    (DocumentedReply(200, "The connection.", ConnectionDefinition, _CONNECTION, headers=DEFINITION),), path=PATH
)
PUT = OperationDocs(
    (
        DocumentedReply(200, "The changed connection.", ConnectionDefinition, _CONNECTION, headers=DEFINITION),
        DocumentedReply(201, "The new connection.", ConnectionDefinition, _CONNECTION, headers=DEFINITION),
    ),
    error_statuses=(409, 412),
    example=_SENT,
    path=PATH,
    headers=WRITE_CONDITIONS,
)
DELETED = OperationDocs((NO_CONTENT,), error_statuses=(409, 412), path=PATH, headers=CHANGE_CONDITIONS)

SIGNALS = OperationDocs((DocumentedReply(200, "The signals.", ConnectionSignals, {"signals": [SIGNAL]}),), path=PATH)
_INFERRED: Final = {"name": "Pressure", "pointer": "/Pressure", "type": "real", "share": 1.0, "min": 3.9, "max": 4.4}
INFERRED = OperationDocs(
    (
        DocumentedReply(
            200, "The signals of recent messages.", InferredSignals, {"messages": 500, "signals": [_INFERRED]}
        ),
    ),
    path=PATH,
)
