"""Tests of the catalog changes that approve or reject a query."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from shared.catalog.items import ItemKind
from shared.catalog.ports import CatalogItem, ItemOrigin
from shared.catalog.query_hash import compute_query_hash
from shared.provenance.signatures import SIGNED_EVENT, DecisionSignature
from shared.warm_queries.signed_changes import SignedChange, build_decision, build_signature, derive_event_id

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
DEFINITION = {"lookup": "q1", "kql": "Telemetry", "parameters": []}
ITEM = CatalogItem(ItemKind.WARM_QUERY, "q1", DEFINITION, ItemOrigin.API, AT, AT, "ann")
SIGNED = SignedChange(DecisionSignature("bob", "Bob", "approval", "seen", AT, ("pwd",)), "append-1")


def test_a_signature_contains_the_hash_of_the_text() -> None:
    """A signature contains the hash of the query's text, so that it stays linked to the decided text."""
    signature = build_signature(SIGNED, ITEM, AT + timedelta(seconds=1))
    assert signature is not None
    assert (signature.user_id, signature.printed_name, signature.meaning) == ("bob", "Bob", "approval")
    assert (signature.record_hash, signature.signed_at) == (compute_query_hash(DEFINITION), AT + timedelta(seconds=1))
    assert build_signature(None, ITEM, AT) is None


def test_a_decision_is_not_an_edit() -> None:
    """Approving a query does not make the approver its last editor."""
    after = {**DEFINITION, "approval": {}}
    change = build_decision(ITEM, after, "Approved", SIGNED)
    assert (change.kind, change.key, change.verb, change.is_edit) == (ItemKind.WARM_QUERY, "q1", "Approved", False)
    assert (change.before, change.after, change.append_id) == (DEFINITION, after, "append-1")
    assert build_decision(ITEM, after, "Approved", None).append_id == ""


def test_a_retry_has_the_same_event_unless_the_query_changed() -> None:
    """A retry with an Idempotency-Key gives the same event; after an edit of the query, another event."""
    edited = replace(ITEM, updated_at=AT + timedelta(microseconds=1))
    assert derive_event_id("a", ITEM) == derive_event_id("a", replace(ITEM))
    assert derive_event_id("a", ITEM).startswith(SIGNED_EVENT)
    assert len({derive_event_id("a", ITEM), derive_event_id("b", ITEM), derive_event_id("a", edited)}) == 3
