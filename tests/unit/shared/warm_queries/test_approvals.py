"""Tests of the ETags of stored warm queries, and of the catalog changes that a decision makes."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from shared.catalog.items import ItemKind, to_definition
from shared.catalog.models import WarmQuery
from shared.catalog.ports import CatalogItem, ItemOrigin
from shared.catalog.query_hash import compute_query_hash
from shared.catalog.snapshot import CatalogEntry
from shared.provenance.signatures import SIGNED_EVENT, DecisionSignature
from shared.warm_queries.approvals import (
    SignedChange,
    build_decision_change,
    build_stored_signature_if_signed,
    compute_query_etag,
    derive_decision_event_id,
)

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
APPROVAL = {"approvedBy": "admin@x", "approvedAt": "2026-01-05T09:00:00Z"}
DEFINITION: dict[str, Any] = {
    "lookup": "q",
    "apiPath": None,
    "name": "Q",
    "description": None,
    "surface": "s",
    "kql": "Telemetry | count",
    "parameters": [{"name": "d", "type": "dynamic", "default": {"b": 2**70, "a": ["\ud800", 1.5]}}],
    "cacheSeconds": 0,
    "approval": None,
}


def build_stored_query(**changes: Any) -> CatalogEntry[WarmQuery]:
    """Return a stored query whose definition is changed in the given fields."""
    return CatalogEntry(WarmQuery.model_validate({**DEFINITION, **changes}), AT, AT, "editor@x")


@pytest.mark.parametrize(
    "other",
    [
        build_stored_query(kql="Telemetry | take 1"),
        build_stored_query(description=""),
        build_stored_query(parameters=[{"name": "d", "type": "dynamic", "default": None}]),
        build_stored_query(parameters=[{"name": "d", "type": "dynamic"}]),
        build_stored_query(cacheSeconds=1),
        build_stored_query(approval=APPROVAL),
        build_stored_query(approval={**APPROVAL, "approvedAt": "2026-01-05T09:00:00.000001Z"}),
        replace(build_stored_query(), updated_at=AT + timedelta(microseconds=1)),
        replace(build_stored_query(), edited_by="other@x"),
    ],
)
def test_every_change_of_a_query_gives_a_new_etag(other: CatalogEntry[WarmQuery]) -> None:
    """A change of text, approval, time or last editor changes a query's ETag."""
    assert compute_query_etag(other) != compute_query_etag(build_stored_query())


def test_the_etag_depends_only_on_the_stored_state() -> None:
    """The order of properties and the time zone do not change a query's ETag."""
    turned = dict(reversed(DEFINITION.items()))
    elsewhere = AT.astimezone(timezone(timedelta(hours=2)))
    assert compute_query_etag(
        CatalogEntry(WarmQuery.model_validate(turned), AT, elsewhere, "editor@x")
    ) == compute_query_etag(build_stored_query())
    written = json.loads(json.dumps(to_definition(build_stored_query().value)))
    assert compute_query_etag(
        CatalogEntry(WarmQuery.model_validate(written), AT, AT, "editor@x")
    ) == compute_query_etag(build_stored_query())


class NewerQuery(WarmQuery):
    """Query model of a later release, which has a new field."""

    added: str = "something"


def test_new_model_fields_do_not_change_the_etag() -> None:
    """A new model field without a stored value is ignored, so that two releases compute the same ETag."""
    newer = NewerQuery.model_validate(DEFINITION)
    assert compute_query_etag(CatalogEntry(newer, AT, AT, "editor@x")) == compute_query_etag(build_stored_query())
    assert compute_query_etag(
        CatalogEntry(newer.model_copy(update={"added": "else"}), AT, AT, "editor@x")
    ) != compute_query_etag(build_stored_query())


def test_the_etag_of_a_query_is_the_same_in_each_process() -> None:
    """The ETag of a stored definition is the same in each process and release."""
    assert (
        compute_query_etag(build_stored_query()) == '"497262fc5f61bd525ea9e9273ab0247038e1b3c9c9a03cbda44050460c88c309"'
    )


STORED = {"lookup": "q1", "kql": "Telemetry", "parameters": []}
ITEM = CatalogItem(ItemKind.WARM_QUERY, "q1", STORED, ItemOrigin.API, AT, AT, "ann")
SIGNED = SignedChange(DecisionSignature("bob", "Bob", "approval", "seen", AT, ("pwd",)), "append-1")


def test_a_signature_contains_the_hash_of_the_text() -> None:
    """A signature contains the hash of the query's text, so that it is valid for this text only."""
    signature = build_stored_signature_if_signed(SIGNED, ITEM, AT + timedelta(seconds=1))
    assert signature is not None
    assert (signature.user_id, signature.printed_name, signature.meaning) == ("bob", "Bob", "approval")
    assert (signature.record_hash, signature.signed_at) == (compute_query_hash(STORED), AT + timedelta(seconds=1))
    assert build_stored_signature_if_signed(None, ITEM, AT) is None


def test_an_approval_is_not_an_edit_of_the_query() -> None:
    """Approving a query does not make the approver its last editor."""
    after = {**STORED, "approval": {}}
    change = build_decision_change(ITEM, after, "Approved", SIGNED)
    assert (change.kind, change.key, change.verb, change.is_edit) == (ItemKind.WARM_QUERY, "q1", "Approved", False)
    assert (change.before, change.after, change.append_id) == (STORED, after, "append-1")
    assert build_decision_change(ITEM, after, "Approved", None).append_id == ""


def test_a_retry_has_the_same_event_unless_the_query_changed() -> None:
    """A retry with the same Idempotency-Key has the same audit event, unless the query was edited or decided."""
    edited = replace(ITEM, updated_at=AT + timedelta(microseconds=1))
    decided = replace(ITEM, definition={**STORED, "rejection": {"comment": "Too slow"}})
    assert derive_decision_event_id("a", ITEM) == derive_decision_event_id("a", replace(ITEM))
    assert derive_decision_event_id("a", ITEM).startswith(SIGNED_EVENT)
    others = {derive_decision_event_id("b", ITEM), *(derive_decision_event_id("a", one) for one in (edited, decided))}
    assert len({derive_decision_event_id("a", ITEM), *others}) == 4
