"""Replies about telemetry on its way in."""

from typing import Any, Final, TypedDict

from functions.replies.warm_queries import LOOKUP
from shared.http.answers import Answer, Docs


class Accepted(TypedDict):
    """How many messages the hub now holds."""

    accepted: int


_MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One message; what is not lifted out is its payload.",
    "properties": {
        "timestamp": {"type": "string", "format": "date-time", "description": "When the source measured."},
        "messageId": {"type": "string", "minLength": 1, "description": "Removes copies within 24 hours."},
        "deviceId": {"type": "string", "minLength": 1},
    },
}
_TAKES: Final[dict[str, Any]] = {
    "oneOf": [_MESSAGE, {"type": "array", "items": _MESSAGE, "minItems": 1, "maxItems": 500}]
}
_EXAMPLE = {"timestamp": "2026-01-05T08:00:00Z", "deviceId": "rig-1", "messageId": "m-1", "Pressure": 4.2}

ACCEPTED = Docs(
    (Answer(202, "The hub holds the messages durably.", Accepted, {"accepted": 1}),),
    refusals=(404, 409),
    example=_EXAMPLE,
    takes=_TAKES,
    path={"lookup": LOOKUP},
)
