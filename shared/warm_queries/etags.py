"""Entity tags of warm query definitions (RFC 9110 section 8.8.3)."""

import hashlib
import json

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.timestamps import rfc3339


def compute_etag(stored: CatalogEntry[WarmQuery]) -> str:
    """Return the strong entity tag of a definition, with its quotes.

    It changes with each edit and each approval, and depends only on the stored state, so all processes compute the same
    tag. Members that the stored definition does not have are excluded, so that new members of a newer version do not
    change it.
    """
    definition = stored.value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    state = json.dumps([definition, rfc3339(stored.updated_at), stored.edited_by], sort_keys=True)
    return f'"{hashlib.sha256(state.encode()).hexdigest()}"'
