"""Hash of a warm query's text; a signature contains it to identify the text that was approved or rejected."""

import hashlib
from collections.abc import Mapping
from typing import Any

from shared.catalog.outbox import convert_large_integers_to_text
from shared.provenance.canonical import encode_canonical_object


def compute_query_hash(definition: Mapping[str, Any]) -> str:
    """Return the SHA-256 (hex) of the RFC 8785 form of a query's ``kql`` and ``parameters``.

    Args:
        definition: stored definition of the query. Integers beyond ±(2^53-1) are hashed as texts, because the
            audit event contains them as texts.

    Raises:
        WorkspaceError: INVALID if the text has no canonical form.
    """
    content = {name: convert_large_integers_to_text(definition[name]) for name in ("kql", "parameters")}
    return hashlib.sha256(encode_canonical_object(content)).hexdigest()
