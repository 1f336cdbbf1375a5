"""Extension of Schemathesis for bodies of newline-delimited JSON; test_described.py runs Schemathesis with it."""

import json
from typing import Any

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def serialize_lines(_context: Any, value: Any) -> bytes:
    """Return a text body unchanged and any other value as a JSON array, which is not a valid line."""
    return (value if isinstance(value, str) else json.dumps([value])).encode()
