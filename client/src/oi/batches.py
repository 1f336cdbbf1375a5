"""Encoding of telemetry messages, and their grouping into batches for requests."""

import json
import uuid
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

MAX_MESSAGES = 5_000
"""Maximum number of messages in one request."""
MAX_BYTES = 4 * 1024 * 1024
"""Maximum size of a batch; a single larger message is a batch of its own."""


def add_message_id(message: Mapping[str, Any]) -> dict[str, Any]:
    """Return a message with a ``messageId``, by which the service recognises a message that is sent again."""
    return {**message, "messageId": message.get("messageId") or str(uuid.uuid4())}


def encode_message(message: Mapping[str, Any]) -> bytes:
    """Encode a message as one line of NDJSON.

    Raises:
        ValueError: a number is NaN or infinite.
        TypeError: a value cannot be converted to JSON.
    """
    return json.dumps(message, allow_nan=False, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def split_lines(lines: Iterable[bytes]) -> Iterator[list[bytes]]:
    """Group NDJSON lines into batches that do not exceed the size limits of one request."""
    batch: list[bytes] = []
    size = 0
    for line in lines:
        if batch and (len(batch) == MAX_MESSAGES or size + len(line) > MAX_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(line)
        size += len(line)
    if batch:
        yield batch
