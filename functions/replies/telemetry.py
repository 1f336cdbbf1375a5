"""Replies about telemetry on its way in."""

from typing import Any, Final, TypedDict

from functions.replies.warm_queries import LOOKUP
from shared.http.operation_docs import DocumentedReply, OperationDocs


class Accepted(TypedDict):
    """How many messages the hub now holds."""

    accepted: int


_MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One message. The members `timestamp`, `messageId` and `deviceId`, or those that the pointers of "
    "the connection name instead, are lifted out; the rest is the payload.",
    "properties": {
        "timestamp": {
            "description": "Time of the measurement: RFC 3339 text, or a number with the format `epochSeconds` or "
            "`epochMilliseconds` of the connection. Any value where a pointer of the connection names another member. "
            "Default: the time of receipt.",
        },
        "messageId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "Removes copies within 24 hours. Default: a new id.",
        },
        "deviceId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "Default: the lookup of the connection.",
        },
    },
}
_TAKES: Final[dict[str, Any]] = {
    "description": "One message or an array of them. An object whose only member is an array of objects is rejected, "
    "unless a pointer of the connection leads into it.",
    "oneOf": [_MESSAGE, {"type": "array", "items": _MESSAGE, "minItems": 1, "maxItems": 500}],
}
_EXAMPLE = {"timestamp": "2026-01-05T08:00:00Z", "deviceId": "rig-1", "messageId": "m-1", "Pressure": 4.2}

ACCEPTED = OperationDocs(
    (DocumentedReply(202, "The hub holds the messages durably.", Accepted, {"accepted": 1}),),
    refusals=(404, 409),
    example=_EXAMPLE,
    body_schema=_TAKES,
    path={"lookup": LOOKUP},
)
