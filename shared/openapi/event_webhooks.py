"""Section ``webhooks`` of the OpenAPI document: the requests that the service sends, one for each event type.

Separate from ``document`` because it describes requests that the service sends, not those that it receives.
"""

from typing import Any, Final

from shared.openapi.paths import to_camel_case
from shared.openapi.schemas import Schema, SchemaRegistry
from shared.webhooks.event_data import DESCRIPTIONS, EventDescription
from shared.webhooks.events import WebhookEventType

GROUP: Final = "webhooks"
_EXAMPLE_TIME: Final = "2026-01-05T08:00:00.000000Z"
_HEADERS: Final = (
    ("webhook-id", "Id of the message, the same in every attempt; ignore a message whose id was processed."),
    ("webhook-timestamp", "Time of the attempt in seconds since 1970; reject a message that is older than 5 minutes."),
    (
        "webhook-signature",
        "Signatures `v1,<base64>` separated by spaces: HMAC-SHA256 of id, timestamp and body, joined by dots.",
    ),
)
_EXAMPLES: Final = (
    "msg_b2nq5tcyvxk4wdz7g3mhpf6rsajue2lo",
    "1767600000",
    "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=",
)


def build_event_webhooks(schemas: SchemaRegistry) -> dict[str, Schema]:
    """Return a Path Item by event type, and register the schemas of the events' data."""
    return {kind.value: {"post": _build_request(kind, one, schemas)} for kind, one in DESCRIPTIONS.items()}


def _build_request(kind: WebhookEventType, described: EventDescription, schemas: SchemaRegistry) -> Schema:
    name = "receive_" + kind.value.replace(".", "_").replace("-", "_")
    event: dict[str, Any] = {
        "type": "object",
        "properties": {
            "type": {"type": "string", "const": kind.value},
            "timestamp": {"type": "string", "format": "date-time", "description": "Time of the change."},
            "data": schemas.register(described.data, "serialization"),
        },
        "required": ["type", "timestamp", "data"],
    }
    example = {"type": kind.value, "timestamp": _EXAMPLE_TIME, "data": described.example}
    return {
        "operationId": to_camel_case(name),
        "tags": [GROUP],
        "summary": described.text,
        "description": "Sent to webhooks of the format `standard`, signed by the Standard Webhooks specification.",
        "parameters": [
            {
                "name": header,
                "in": "header",
                "required": True,
                "description": description,
                "schema": {"type": "string"},
                "example": sample,
            }
            for (header, description), sample in zip(_HEADERS, _EXAMPLES, strict=True)
        ],
        "requestBody": {
            "required": True,
            "description": "The event.",
            "content": {"application/json": {"schema": event, "example": example}},
        },
        "responses": {
            "2XX": {"description": "The message was accepted."},
            "410": {"description": "The webhook is disabled; it receives no further messages."},
            "default": {"description": "The message is sent again later, under the same id."},
        },
        "security": [],
    }
