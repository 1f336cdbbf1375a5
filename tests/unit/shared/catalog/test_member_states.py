"""Tests of the stored states of members, which stay after the members are removed."""

from datetime import datetime
from pathlib import Path

from shared.catalog.document import load_document
from shared.catalog.member_states import PROPAGATION, find_retired_ids
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import StoredCatalog
from shared.timestamps import now, parse_rfc3339
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import open_catalog_stores

VIEWER = "  - {id: viewer@plant-a.example, name: Viewer, role: Viewer}\n"
VIEWER_ID = "viewer@plant-a.example"
DOCUMENT = load_document(PLANT, "w.yaml")
DISABLED = load_document(PLANT.replace("Viewer, role: Viewer", "Viewer, role: Viewer, enabled: false"), "w.yaml")
REMOVED = load_document(PLANT.replace(VIEWER, ""), "w.yaml")


def read_viewer_state(stored: StoredCatalog) -> dict[str, str | None] | None:
    """Return the stored state of the member with the role viewer."""
    return next((item.definition for item in stored.items if (item.kind, item.key) == ("memberState", VIEWER_ID)), None)


async def test_the_state_of_a_disabled_member_is_stored_with_the_change(tmp_path: Path) -> None:
    """Disabling or removing a member stores a state in the same catalog version; later changes do not alter it."""
    async with open_catalog_stores(tmp_path) as opened:

        async def apply_document(document: WorkspaceDocument) -> StoredCatalog:
            await opened.service.apply(document, "apply")
            return await opened.store.load()

        assert read_viewer_state(await apply_document(DOCUMENT)) is None
        disabled = read_viewer_state(await apply_document(DISABLED))
        assert disabled is not None
        assert disabled["retiredAt"] is None
        enabled = read_viewer_state(await apply_document(DOCUMENT))
        assert enabled is not None
        assert parse_rfc3339(enabled["tokensValidFrom"] or "") > parse_rfc3339(disabled["tokensValidFrom"] or "")
        stored = await apply_document(REMOVED)
        removed = read_viewer_state(stored)
        assert removed is not None
        assert removed["tokensValidFrom"] == enabled["tokensValidFrom"]
        assert parse_rfc3339(removed["retiredAt"] or "") > parse_rfc3339(removed["tokensValidFrom"] or "")
        assert find_retired_ids(stored) == {VIEWER_ID}


async def test_stored_member_states_are_neither_planned_nor_audited(tmp_path: Path) -> None:
    """The stored states of members are neither in plans nor in the audit log."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await opened.service.apply(DISABLED, "apply")
        await opened.service.apply(REMOVED, "apply")
        plan = await opened.service.plan(REMOVED)
        assert (plan.changes, plan.retained) == ((), ())
        actions = [action for action, entity in await opened.list_audited_changes() if entity == VIEWER_ID]
        assert actions == ["Catalog.Member.Created", "Catalog.Member.Updated", "Catalog.Member.Removed"]


def link_viewer(oid: str, *, enabled: bool = True) -> WorkspaceDocument:
    """Return the document with an object id, if it is not empty, of the member with the role viewer."""
    linked = "Viewer, role: Viewer" + (f", oid: {oid}" if oid else "") + ("" if enabled else ", enabled: false")
    return load_document(PLANT.replace("Viewer, role: Viewer", linked), "w.yaml")


async def test_a_changed_account_ends_the_tokens_of_the_former_account(tmp_path: Path) -> None:
    """If the object id of a member is set, changed or removed, earlier tokens of the service end, but no others."""
    async with open_catalog_stores(tmp_path) as opened:

        async def read_cutoff(oid: str) -> datetime | None:
            await opened.service.apply(link_viewer(oid), "apply")
            state = read_viewer_state(await opened.store.load())
            assert state is None or state["tokensValidFrom"] is None
            return None if state is None else parse_rfc3339(state["serviceTokensValidFrom"] or "")

        assert await read_cutoff("") is None
        started_at = now()
        first = await read_cutoff("first")
        assert first is not None
        assert first >= started_at + PROPAGATION
        assert await read_cutoff("FIRST") == first
        changed, removed = await read_cutoff("second"), await read_cutoff("")
        assert changed is not None
        assert removed is not None
        assert first < changed < removed


async def test_object_ids_that_only_case_folding_makes_equal_are_different_accounts(tmp_path: Path) -> None:
    """Only the case of ASCII letters is ignored, as when the member of an Entra ID token is searched."""
    async with open_catalog_stores(tmp_path) as opened:
        states = []
        for oid in ("strauß", "STRAUß", "strauss"):
            await opened.service.apply(link_viewer(oid), "apply")
            states.append(read_viewer_state(await opened.store.load()))
        assert states[0] is None
        assert states[1] is None
        assert states[2] is not None


async def test_a_change_of_account_and_a_disabled_member_are_both_stored(tmp_path: Path) -> None:
    """One change that disables a member and changes its object id stores both times; enabling reduces neither."""
    async with open_catalog_stores(tmp_path) as opened:
        states = []
        for document in (DOCUMENT, link_viewer("first", enabled=False), link_viewer("first")):
            await opened.service.apply(document, "apply")
            states.append(read_viewer_state(await opened.store.load()) or {})
        _, disabled, enabled = states
        linked_until = disabled["serviceTokensValidFrom"]
        assert parse_rfc3339(linked_until or "") > parse_rfc3339(disabled["tokensValidFrom"] or "")
        assert enabled["serviceTokensValidFrom"] == linked_until
        assert parse_rfc3339(enabled["tokensValidFrom"] or "") > parse_rfc3339(disabled["tokensValidFrom"] or "")
