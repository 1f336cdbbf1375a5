"""HTTP operation that accepts telemetry."""

import json
from typing import Any, Final, TypedDict

from functions.idempotency import hash_idempotency_key
from functions.reply_docs.warm_queries import LOOKUP
from shared.auth.rights import AccessRight
from shared.errors import build_invalid_field_error
from shared.http.messages import Reply, build_json_reply
from shared.http.operation_docs import IDEMPOTENCY_KEY, IDEMPOTENT, DocumentedReply, OperationDocs
from shared.http.operations import MIB, Call, Group, RawBody
from shared.http.unknown_names import UnknownNames
from shared.telemetry.message_parser import MAX_MESSAGES
from shared.text_formats.strict_json import find_invalid_element_index, parse_json_body
from shared.wiring import services

GROUP = Group("telemetry")


class Accepted(TypedDict):
    """Number of messages that were accepted."""

    accepted: int


_MESSAGE: Final[dict[str, Any]] = {
    "type": "object",
    "description": "One message. The members `timestamp`, `messageId` and `deviceId`, or the members that the pointers "
    "of the connection select instead, are metadata. All other members are the payload.",
    "properties": {
        "timestamp": {
            "description": "Time of the measurement: RFC 3339 text, or a number with the format `epochSeconds` or "
            "`epochMilliseconds` of the connection. Any value if a pointer of the connection selects another member. "
            "Default: the time of receipt.",
        },
        "messageId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "Messages with the same id within 24 hours are stored once. Default: a new id.",
        },
        "deviceId": {
            "type": "string",
            "minLength": 1,
            "maxLength": 256,
            "description": "Default: the lookup of the connection.",
        },
    },
}
_BODY_SCHEMA: Final[dict[str, Any]] = {
    "description": 'One message or an array of messages. A batch of Telegraf, the object `{"metrics": [...]}`, is '
    "rejected, unless a pointer of the connection selects a value in it.",
    "oneOf": [_MESSAGE, {"type": "array", "items": _MESSAGE, "minItems": 1, "maxItems": 500}],
}
NDJSON: Final = "application/x-ndjson"
_NDJSON_TYPES: Final = frozenset({NDJSON, "application/ndjson"})
_NDJSON_SCHEMA: Final[dict[str, Any]] = {
    "type": "string",
    "description": "1 to 5,000 lines with one message each, at most 16 MiB. An invalid line rejects all of them; the "
    "error names it as `line N`.",
}
_REPEATABLE: Final[dict[str, Any]] = {
    IDEMPOTENCY_KEY: {
        **IDEMPOTENT[IDEMPOTENCY_KEY],
        "description": "Key of 1 to 255 printable characters for safe retries of messages without an id: within 24 "
        "hours, a repeated request with the same key and the same messages stores each of them once. Messages that "
        "differ are stored, also with the same key. Use a new UUID for each request.",
    }
}
_EXAMPLE = {"timestamp": "2026-01-05T08:00:00Z", "deviceId": "rig-1", "messageId": "m-1", "Pressure": 4.2}

ACCEPTED_DOCS = OperationDocs(
    (DocumentedReply(202, "The messages are stored durably in the hub.", Accepted, {"accepted": 1}),),
    error_statuses=(403, 404, 409, 507),
    example=_EXAMPLE,
    body_schema=_BODY_SCHEMA,
    body_forms={NDJSON: _NDJSON_SCHEMA},
    form_examples={NDJSON: f"{json.dumps(_EXAMPLE)}\n"},
    headers=_REPEATABLE,
    stores_idempotency_key=False,
    path={"lookup": LOOKUP},
)


@GROUP.endpoint(
    "POST",
    "oi-api/telemetry/{lookup}",
    right=AccessRight.TELEMETRY_WRITE,
    body=RawBody,
    form_limits=tuple((form, 16 * MIB) for form in sorted(_NDJSON_TYPES)),
    content_encodings=("gzip", "zstd"),
    unknown=UnknownNames.IGNORE,
    docs=ACCEPTED_DOCS,
)
async def accept_telemetry(call: Call[Any, RawBody]) -> Reply:
    """Accept telemetry messages for a data connection: one, an array of up to 500, or up to 5,000 NDJSON lines."""
    service, lookup, text = services().telemetry.service, call.path["lookup"], call.request.body
    binding = call.principal.binding
    await service.check_may_send_to_connection(lookup, binding)
    retry_key = hash_idempotency_key(call)
    if call.request.media_type in _NDJSON_TYPES:
        count = await service.accept_and_count_lines(lookup, text, binding=binding, retry_key=retry_key)
        return build_json_reply({"accepted": count}, 202)
    try:
        body = await parse_json_body(text, services().runtime, keeps_long_integers=True)
    except ValueError as error:
        index = await services().runtime.run_in_thread_if_large(
            len(text), find_invalid_element_index, text, MAX_MESSAGES
        )
        field = "body" if index is None else f"[{index}]"
        raise build_invalid_field_error(field, _describe_json_error(error), code="BODY_NOT_JSON") from None
    count = await service.accept_and_count_messages(
        lookup, body, body_bytes=len(text), binding=binding, retry_key=retry_key
    )
    return build_json_reply({"accepted": count}, 202)


def _describe_json_error(error: ValueError) -> str:
    """Return the error message for a body that is not JSON, with a hint if it is possibly NDJSON."""
    hint = f"; messages on lines of their own need Content-Type: {NDJSON}"
    return f"{error}{hint if 'Extra data at line ' in str(error) else ''}"
