"""Message ids for messages that bring none, derived from what they say."""

import hashlib
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from shared.timestamps import rfc3339

_CHARACTERS = 32
"""128 bits, which do not collide by chance."""


def derive_message_id(connection: str, device: str, timestamp: datetime, payload: Mapping[str, Any]) -> str:
    """Return an id that is the same for the same content, and another one otherwise.

    Args:
        connection: the lookup of the connection.
        device: the device id.
        timestamp: when the source measured.
        payload: a JSON object; the order of its members does not matter.
    """
    text = json.dumps(
        [connection, device, rfc3339(timestamp), payload], sort_keys=True, ensure_ascii=False, separators=(",", ":")
    )
    return hashlib.sha256(text.encode()).hexdigest()[:_CHARACTERS]
