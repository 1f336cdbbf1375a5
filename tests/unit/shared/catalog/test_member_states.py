"""Tests of the stored states of members, which stay after the members are removed."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from shared.auth.ports import ApiKey
from shared.catalog.document import load_document
from shared.catalog.member_states import find_retired_member_ids
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import StoredCatalog
from shared.catalog.reader import CatalogDirectory, CatalogReader
from shared.timestamps import parse_rfc3339
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import open_catalog_stores

VIEWER = "  - {id: viewer@plant-a.example, name: Viewer, role: Viewer}\n"
VIEWER_ID = "viewer@plant-a.example"
DOCUMENT = load_document(PLANT, "w.yaml")
DISABLED = load_document(PLANT.replace("Viewer, role: Viewer", "Viewer, role: Viewer, enabled: false"), "w.yaml")
REMOVED = load_document(PLANT.replace(VIEWER, ""), "w.yaml")
SERVICE = "  - {id: historian, name: Historian, role: Admin, service: true}\n"


def read_state(stored: StoredCatalog, member_id: str = VIEWER_ID) -> dict[str, str | None] | None:
    """Return the stored state of a member, by default of the member with the role viewer."""
    return next((item.definition for item in stored.items if (item.kind, item.key) == ("memberState", member_id)), None)


async def test_the_state_of_a_disabled_member_is_stored_with_the_change(tmp_path: Path) -> None:
    """Disabling or removing a member stores a state in the same catalog version; later changes do not alter it.

    The state contains only times that are set, so that instances of earlier versions can read it.
    """
    async with open_catalog_stores(tmp_path) as opened:

        async def apply_document(document: WorkspaceDocument) -> StoredCatalog:
            await opened.service.apply(document, "apply")
            return await opened.store.load()

        assert read_state(await apply_document(DOCUMENT)) is None
        disabled = read_state(await apply_document(DISABLED))
        assert disabled is not None
        assert list(disabled) == ["tokensValidFrom"]
        enabled = read_state(await apply_document(DOCUMENT))
        assert enabled is not None
        assert parse_rfc3339(enabled["tokensValidFrom"] or "") > parse_rfc3339(disabled["tokensValidFrom"] or "")
        stored = await apply_document(REMOVED)
        removed = read_state(stored)
        assert removed is not None
        assert removed["tokensValidFrom"] == enabled["tokensValidFrom"]
        assert parse_rfc3339(removed["retiredAt"] or "") > parse_rfc3339(removed["tokensValidFrom"] or "")
        assert find_retired_member_ids(stored) == {VIEWER_ID}


@pytest.mark.parametrize("after", [SERVICE.replace(", service: true", ""), ""], ids=["person", "removed"])
async def test_the_end_of_a_service_is_stored(tmp_path: Path, after: str) -> None:
    """If a service becomes a person or is removed, the time is stored, and only earlier API keys count as its keys."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await opened.service.apply(load_document(PLANT.replace(SERVICE, after), "w.yaml"), "apply")
        # The command `apply` can add a removed member again.
        await opened.service.apply(load_document(PLANT.replace(", service: true", ""), "w.yaml"), "apply")
        state = read_state(await opened.store.load(), "historian")
        assert state is not None
        ended_at = parse_rfc3339(state["serviceUntil"] or "")
        team = await CatalogDirectory(CatalogReader(opened.store, refresh_seconds=0)).get_team()
        assert not team.members["historian"].service
        keys = [
            ApiKey("AAAAAAAA", b"", b"", principal, "key", None, ended_at + timedelta(seconds=seconds), None)
            for principal, seconds in (("historian", -1), ("historian", 1), ("admin@plant-a.example", -1))
        ]
        assert [team.is_possibly_service_key(key) for key in keys] == [True, False, False]


async def test_unknown_properties_of_a_state_are_ignored_and_preserved(tmp_path: Path) -> None:
    """A state with a property of a newer version can be read, and keeps this property when it is changed."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await opened.service.apply(DISABLED, "apply")
        stored = await opened.store.load()
        [state] = [item for item in stored.items if item.kind == "memberState"]
        newer = replace(state, definition={**state.definition, "newer": "x"})
        directory = CatalogDirectory(CatalogReader(opened.store, refresh_seconds=0))
        await opened.store.save([newer], [], [], stored.version)
        assert VIEWER_ID in (await directory.get_team()).cutoffs
        await opened.service.apply(REMOVED, "apply")
        removed = read_state(await opened.store.load())
        assert removed is not None
        assert (removed["newer"], list(removed)) == ("x", ["tokensValidFrom", "retiredAt", "newer"])
        assert VIEWER_ID in (await directory.get_team()).cutoffs


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
