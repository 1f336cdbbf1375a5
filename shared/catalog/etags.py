"""Entity tags of the stored definitions of catalog items (RFC 9110 section 8.8.3)."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any


def compute_definition_etag(*definitions: Mapping[str, Any]) -> str:
    """Return the strong entity tag of stored definitions, with its quotes.

    The tag depends only on the stored definitions. It does not depend on times, editors and live state, nor on the
    defaults that a newer version of the service adds.
    """
    state = json.dumps(definitions, sort_keys=True)
    return f'"{hashlib.sha256(state.encode()).hexdigest()}"'
