"""Extension of Schemathesis, which the subprocess of test_described.py loads: bodies of newline-delimited JSON."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def serialize_lines(_context: Any, value: Any) -> bytes:
    """Return a text unchanged. Put any other value into an array, which is not a valid line, because it is no body."""
    return (value if isinstance(value, str) else json.dumps([value])).encode()
