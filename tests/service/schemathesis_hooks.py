"""Extension of Schemathesis, which the subprocess of test_described.py loads: bodies of newline-delimited JSON."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def serialize_lines(_context: Any, value: Any) -> bytes:
    """Return a text as it is. Another value is invalid as a body, so return it in an array, which is no valid line."""
    return (value if isinstance(value, str) else json.dumps([value])).encode()
