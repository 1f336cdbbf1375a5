"""Entity tags of warm queries' definitions (RFC 9110 section 8.8.3)."""

import hashlib
import json

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.timestamps import rfc3339


def compute_etag(stored: CatalogEntry[WarmQuery]) -> str:
    """Return the strong entity tag of a definition, with its quotes.

    Another one after each edit and each approval, and the same wherever the definition is read: it is worked out from
    what is stored. Members that the stored definition does not have count for nothing, so that those of a newer
    version leave it as it is.
    """
    definition = stored.value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    state = json.dumps([definition, rfc3339(stored.updated_at), stored.edited_by], sort_keys=True)
    return f'"{hashlib.sha256(state.encode()).hexdigest()}"'
