"""Tests of exporting the catalog as a document; applying an exported document changes nothing."""

import json
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.catalog.document import DocumentFormat, load_document_with_positions
from shared.catalog.document_plans import plan_document
from shared.catalog.export import export_document
from shared.catalog.items import ItemKind, definitions_from_document
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CatalogItem, ItemOrigin, StoredCatalog
from shared.catalog.yaml_writer import iterate_yaml_parts
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.documents import draw_valid_document

AT = datetime(2026, 12, 1, tzinfo=UTC)


def build_catalog(declared: WorkspaceDocument, edited: WorkspaceDocument | None = None) -> StoredCatalog:
    """Return a catalog with the items of a document and with items that were created or changed over the API."""
    items = {
        item: CatalogItem(*item, definition, ItemOrigin.DECLARED, AT, AT, "apply")
        for item, definition in definitions_from_document(declared).items()
    }
    for item, definition in definitions_from_document(edited).items() if edited else ():
        origin = items[item].origin if item in items else ItemOrigin.API
        items[item] = CatalogItem(*item, definition, origin, AT, AT, "editor@p")
    return StoredCatalog(1, tuple(items[item] for item in sorted(items)))


def plan_text(text: str, text_format: DocumentFormat, stored: StoredCatalog) -> list[tuple[str, str]]:
    """Return kind and key of each change that a document would make."""
    loaded = load_document_with_positions(text, "body", text_format, checks_new_items=False)
    return [(change.kind, change.key) for change in plan_document(loaded.document, stored).plan.changes]


@given(draw_valid_document(), st.none() | draw_valid_document())
def test_the_plan_of_an_exported_document_is_empty(
    declared: WorkspaceDocument, edited: WorkspaceDocument | None
) -> None:
    """A catalog equals its exported document: in JSON and in YAML, the plan for the document contains no changes."""
    stored = build_catalog(declared, edited)
    document = export_document(stored)
    assert plan_text(json.dumps(document), DocumentFormat.JSON, stored) == []
    assert plan_text("".join(iterate_yaml_parts(document)), DocumentFormat.YAML, stored) == []


def test_the_plan_is_empty_if_a_stored_member_repeats_a_right() -> None:
    """Earlier versions stored repeated rights as sent; the export has each right once, and its plan has no changes."""
    member = {"id": "admin@p", "name": "Admin", "role": "Admin", "rights": ["Workspace.Mcp.Use"]}
    document = WorkspaceDocument.model_validate({"workspace": {"id": "plant-a", "name": "A"}, "team": [member]})
    repeated = {**member, "enabled": True, "service": False, "oid": None, "rights": ["Workspace.Mcp.Use"] * 2}
    items = [
        replace(item, definition=repeated) if item.kind == ItemKind.MEMBER else item
        for item in build_catalog(document).items
    ]
    stored = StoredCatalog(1, tuple(items))
    exported = export_document(stored)
    assert exported["team"][0]["rights"] == ["Workspace.Mcp.Use"]
    assert plan_text(json.dumps(exported), DocumentFormat.JSON, stored) == []
    # A document of the earlier version, which repeats the right, describes the same catalog.
    earlier = {**exported, "team": [repeated]}
    assert plan_text(json.dumps(earlier), DocumentFormat.JSON, stored) == []


def test_an_approver_without_the_right_stays_in_the_export() -> None:
    """If a member lost the right after approving a query, the approval is exported, and the plan has no changes."""
    document = WorkspaceDocument.model_validate(
        {
            "workspace": {"id": "plant-a", "name": "A"},
            "team": [{"id": "admin@p", "name": "Admin", "role": "Admin"}, {"id": "x@p", "name": "X", "role": "Viewer"}],
            "surfaces": [{"lookup": "hall", "name": "Hall"}],
            "warmQueries": [
                {
                    "lookup": "q",
                    "name": "Q",
                    "surface": "hall",
                    "kql": "Telemetry",
                    "approval": {"approvedBy": "x@p", "approvedAt": AT},
                }
            ],
        }
    )
    stored = build_catalog(document)
    exported = export_document(stored)
    assert exported["warmQueries"][0]["approval"]["approvedBy"] == "x@p"
    assert plan_text(json.dumps(exported), DocumentFormat.JSON, stored) == []


def test_the_state_of_removed_members_is_not_exported() -> None:
    """An export has only current members, and tier limits only if they are declared."""
    document = WorkspaceDocument.model_validate({"workspace": {"id": "plant-a", "name": "A"}})
    state = CatalogItem(ItemKind.MEMBER_STATE, "gone@p", {"retiredAt": "x"}, ItemOrigin.API, AT, AT, "admin@p")
    exported = export_document(StoredCatalog(2, (*build_catalog(document).items, state)))
    assert exported["team"] == []
    assert "limits" not in exported
    assert "provenance" not in exported["policies"]


def test_an_empty_catalog_cannot_be_exported() -> None:
    """Exporting a workspace that has no document is rejected."""
    with pytest.raises(WorkspaceError) as caught:
        export_document(StoredCatalog(0, ()))
    assert caught.value.code == "WORKSPACE_NOT_DECLARED"
