"""Approval of warm queries (saved KQL queries): entity tags of definitions, and catalog changes that store a decision.

A decision approves or rejects a definition, with or without a signature. See RFC 9110 section 8.8.3 for entity tags.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind
from shared.catalog.models import WarmQuery
from shared.catalog.ports import CatalogItem, StoredCatalog
from shared.catalog.query_hash import compute_query_hash
from shared.catalog.signature_models import QuerySignature
from shared.catalog.snapshot import CatalogEntry
from shared.provenance.signatures import SIGNED_EVENT, DecisionSignature
from shared.timestamps import format_rfc3339


def compute_query_etag(stored: CatalogEntry[WarmQuery]) -> str:
    """Compute the strong ETag of a query's definition, with its quotes.

    The ETag changes with each edit and each decision. It depends only on the stored definition, so all processes
    compute the same ETag. Properties that the stored definition does not have are excluded, so defaults of a newer
    version of the service do not change the ETag.
    """
    definition = stored.value.model_dump(mode="json", by_alias=True, exclude_unset=True)
    state = json.dumps([definition, format_rfc3339(stored.updated_at), stored.edited_by], sort_keys=True)
    return f'"{hashlib.sha256(state.encode()).hexdigest()}"'


@dataclass(frozen=True, slots=True)
class SignedChange:
    """Signature of a decision about a query, and the unique id of the decision's audit event."""

    signature: DecisionSignature
    append_id: str


class BuildChanges(Protocol):
    """Function that checks a decision about a query and returns the catalog change to store."""

    def __call__(self, stored: StoredCatalog, signed: SignedChange | None = None) -> Sequence[ItemChange]:
        """Return the catalog change for a decision about a query; no change if the decision is already stored.

        Args:
            stored: the catalog as stored.
            signed: signature of the decision; None without a signature.

        Raises:
            WorkspaceError: the decision is not allowed.
        """
        ...


def build_stored_signature_if_signed(
    signed: SignedChange | None, item: CatalogItem, at: datetime
) -> QuerySignature | None:
    """Convert the signature of a decision to the form in which the catalog stores it; None without a signature.

    Args:
        signed: signature of the decision; None without a signature.
        item: catalog item of the query, whose definition the signature covers.
        at: time of the decision.
    """
    if signed is None:
        return None
    signature = signed.signature
    return QuerySignature(
        user_id=signature.user_id,
        printed_name=signature.printed_name,
        meaning=signature.meaning,
        statement=signature.statement,
        signed_at=at,
        auth_time=signature.auth_time,
        auth_methods=signature.auth_methods,
        record_hash=compute_query_hash(item.definition),
    )


def build_decision_change(
    item: CatalogItem, definition_after: dict[str, Any], event_verb: str, signed: SignedChange | None
) -> ItemChange:
    """Build the catalog change that stores a decision about a query.

    Args:
        item: catalog item of the query.
        definition_after: definition of the query, including the decision.
        event_verb: last part of the audit event's ActionType: ``Approved`` or ``Rejected``.
        signed: signature of the decision; None without a signature.
    """
    append_id = "" if signed is None else signed.append_id
    return ItemChange(
        ItemKind.WARM_QUERY, item.key, item.definition, definition_after, event_verb, is_edit=False, append_id=append_id
    )


def derive_decision_event_id(append_id: str, item: CatalogItem) -> str:
    """Return the id of the audit event of a signed decision about one version of a query.

    A retry has the same id, unless the query was edited or decided meanwhile. The decision then needs another event.

    Args:
        append_id: id of the request; the same in each retry.
        item: catalog item of the query.
    """
    state = json.dumps([append_id, item.definition, format_rfc3339(item.updated_at)], sort_keys=True)
    digest = hashlib.sha256(state.encode()).hexdigest()
    return f"{SIGNED_EVENT}{digest[:32]}"
