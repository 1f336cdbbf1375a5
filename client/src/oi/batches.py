"""Encoding of telemetry messages, and their grouping into batches for requests."""

import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from oi.json_text import encode_json, split_json_pointer

MAX_MESSAGES = 5_000
"""Maximum number of messages in one request."""
MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of a batch in bytes; a single larger message is a batch of its own."""


MESSAGE_ID_POINTER = "/messageId"
"""JSON pointer at which the service finds the id of a message, unless the connection states another one."""


def add_message_id(message: Mapping[str, Any], message_id_pointer: str = MESSAGE_ID_POINTER) -> dict[str, Any]:
    """Return a copy of a message with an id, by which the service recognises a message that is sent again.

    A batch of Telegraf, the object ``{"metrics": [...]}``, gets no id, because it is not a message but a list of
    messages; the service rejects it with an explanation.

    Args:
        message: the message; if it has an id already, even an invalid one, the id is not changed.
        message_id_pointer: JSON pointer to the id (``messageIdPointer`` of the connection); missing objects on its path
            are created.
    """
    changed = dict(message)
    if is_telegraf_batch(message):
        return changed
    *parents, name = split_json_pointer(message_id_pointer)
    place = changed
    for part in parents:
        inner = place.get(part, {})
        if not isinstance(inner, Mapping):
            return dict(message)
        place[part] = place = dict(inner)
    if place.get(name) is None:
        place[name] = str(uuid.uuid4())
    return changed


def is_telegraf_batch(message: Mapping[str, Any]) -> bool:
    """Return whether an object is what Telegraf's serialiser ``json`` writes for several metrics."""
    metrics = message.get("metrics")
    if len(message) != 1 or not isinstance(metrics, list) or not metrics:
        return False
    return all(isinstance(each, Mapping) and {"fields", "name", "tags", "timestamp"} <= each.keys() for each in metrics)


def encode_ndjson_line(message: Mapping[str, Any]) -> bytes:
    """Encode a message as one line of NDJSON.

    Raises:
        JsonTextError: a number is NaN or infinite, or a text has an unpaired surrogate.
        TypeError: a value cannot be converted to JSON.
    """
    return encode_json(message) + b"\n"


def split_into_batches(lines: Iterable[bytes], max_bytes: int = MAX_BYTES) -> Iterator[list[bytes]]:
    """Group NDJSON lines into batches that do not exceed the size limits of one request.

    A line that is larger than ``max_bytes`` is a batch of its own.
    """
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == MAX_MESSAGES or size + len(line) > max_bytes):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch
