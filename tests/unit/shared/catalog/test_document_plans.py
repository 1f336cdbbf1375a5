"""Tests of plans for documents with signed approvals, over HTTPS and with the command."""

from datetime import UTC, datetime
from typing import Any

import pytest

from shared.auth.rights import Role
from shared.catalog.document_plans import plan_document, plan_document_for_command_line
from shared.catalog.items import ItemKind, to_definition
from shared.catalog.models import Member, WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.documents import apply_to_catalog

AT = datetime(2026, 12, 1, tzinfo=UTC)
APPROVAL = {"approvedBy": "admin@p", "approvedAt": AT}
SIGNATURE = {
    "userId": "admin@p",
    "printedName": "Admin",
    "meaning": "approval",
    "signedAt": AT,
    "authTime": AT,
    "authMethods": ["key"],
    "recordHash": "ab" * 32,
}
SIGNED = {**APPROVAL, "signature": SIGNATURE}


def build_document(
    approval: dict[str, Any] | None, *, queries: str = "off", kql: str = "Telemetry", default: object = None
) -> WorkspaceDocument:
    """Return a document with one query, which has a dynamic parameter if there is a default."""
    parameters = [] if default is None else [{"name": "p", "type": "dynamic", "default": default}]
    query = {"lookup": "q", "name": "Q", "surface": "hall", "kql": kql, "parameters": parameters, "approval": approval}
    return WorkspaceDocument.model_validate(
        {
            "workspace": {"id": "plant-a", "name": "A"},
            "policies": {"provenance": {}, "signatures": {"queries": queries}},
            "team": [{"id": "admin@p", "name": "Admin", "role": "Admin"}],
            "surfaces": [{"lookup": "hall", "name": "Hall"}],
            "warmQueries": [query],
        }
    )


def list_changed_queries(document: WorkspaceDocument, stored: StoredCatalog) -> list[list[str]]:
    """Return the keys of the queries that a document would change, over HTTPS and with the command."""
    plans = (plan_document(document, stored).plan, plan_document_for_command_line(document, stored))
    return [[change.key for change in plan.changes if change.kind == "warmQuery"] for plan in plans]


@pytest.mark.parametrize("queries", ["off", "required"])
@pytest.mark.parametrize("declared", [APPROVAL, SIGNED])
def test_a_document_does_not_remove_a_stored_signature(declared: dict[str, Any], queries: str) -> None:
    """If a document repeats a query's approval, with or without its signature, the stored signature stays."""
    stored = apply_to_catalog(build_document(SIGNED, queries=queries))
    assert list_changed_queries(build_document(declared, queries=queries), stored) == [[], []]


@pytest.mark.parametrize("declared", [SIGNED, {**SIGNED, "signature": {**SIGNATURE, "printedName": "Other"}}])
def test_a_document_cannot_add_a_signature(declared: dict[str, Any]) -> None:
    """If a document contains a signed approval that is not stored, the query becomes a draft."""
    stored = apply_to_catalog(build_document(None))
    plan = plan_document_for_command_line(build_document(declared), stored)
    assert [note.key for note in plan.retained] == ["q"]
    assert "signature cannot be given in a document" in plan.retained[0].reason
    assert list_changed_queries(build_document(declared), stored) == [[], []]


def test_a_changed_text_does_not_keep_the_signature() -> None:
    """If a query's text changes, its stored signature is removed."""
    stored = apply_to_catalog(build_document(SIGNED))
    changed = build_document(APPROVAL, kql="Telemetry | take 1")
    [change] = [
        change for change in plan_document_for_command_line(changed, stored).changes if change.kind == "warmQuery"
    ]
    assert change.after is not None
    assert "signature" not in (change.after["approval"] or {})


@pytest.mark.parametrize(("before", "after"), [(1, True), ({"a": 0}, {"a": False})])
def test_a_default_that_becomes_a_boolean_does_not_keep_the_approval(before: object, after: object) -> None:
    """If a parameter's default changes from a number to the boolean that Python calls equal, the approval ends."""
    stored = apply_to_catalog(build_document(SIGNED, default=before))
    changed = build_document(APPROVAL, default=after)
    assert [note.key for note in plan_document(changed, stored).plan.retained] == ["q"]
    [change] = plan_document_for_command_line(changed, stored).changes
    assert change.after is not None
    assert "signature" not in (change.after["approval"] or {})


def test_a_renamed_query_keeps_the_approval_that_the_document_repeats() -> None:
    """If a document renames a query and repeats its approval, the query stays approved."""
    document = build_document(APPROVAL)
    [query] = document.warm_queries
    renamed = document.model_copy(update={"warm_queries": (query.model_copy(update={"name": "New"}),)})
    for plan in (
        plan_document(renamed, apply_to_catalog(document)).plan,
        plan_document_for_command_line(renamed, apply_to_catalog(document)),
    ):
        [change] = plan.changes
        assert change.before is not None
        assert change.before["approval"] is not None
        assert change.after == {**change.before, "name": "New"}


@pytest.mark.parametrize(
    ("member_id", "oid", "code"), [("BOB@p", None, "MEMBER_ID_TAKEN"), ("carol@p", "ABC", "MEMBER_OID_TAKEN")]
)
def test_a_document_cannot_take_the_identity_of_a_member_of_the_api(member_id: str, oid: str | None, code: str) -> None:
    """The command rejects a member that has the id or the object id of a member that the API created."""
    document = build_document(None)
    bob = to_definition(Member(id="bob@p", name="Bob", role=Role.VIEWER, oid="abc"))
    item = CatalogItem(ItemKind.MEMBER, "bob@p", bob, ItemOrigin.API, AT, AT, "admin@p")
    stored = apply_to_catalog(document)
    stored = StoredCatalog(stored.version, (*stored.items, item))
    added = Member(id=member_id, name="New", role=Role.ADMIN, oid=oid)
    with pytest.raises(WorkspaceError) as caught:
        plan_document_for_command_line(document.model_copy(update={"team": (*document.team, added)}), stored)
    assert caught.value.code == code
