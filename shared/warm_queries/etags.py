"""Entity tags of the definitions of warm queries (saved KQL queries); see RFC 9110 section 8.8.3."""

import hashlib
import json

from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.timestamps import rfc3339


def compute_etag(stored: CatalogEntry[WarmQuery]) -> str:
    """Compute the strong ETag of a query's definition, with its quotes.

    The ETag changes with each edit and each approval. It depends only on the stored definition, so all processes
    compute the same ETag. Properties that the stored definition does not have are excluded, so defaults of a newer
    version of the service do not change the ETag.
    """
    definition = stored.value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    state = json.dumps([definition, rfc3339(stored.updated_at), stored.edited_by], sort_keys=True)
    return f'"{hashlib.sha256(state.encode()).hexdigest()}"'
