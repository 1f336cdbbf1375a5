"""Tests of applying documents: the records of a change, results, audit events and failures."""

import asyncio
import logging
import math
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from shared.backends.embedded.provenance import SqliteAuditLog
from shared.catalog.diff import ItemChange
from shared.catalog.document import load_document
from shared.catalog.items import ItemKind
from shared.catalog.models import WorkspaceDocument
from shared.catalog.ports import CONTEXT, UNAUDITED, CatalogItem, ItemOrigin, PendingEvent, StoredCatalog
from shared.catalog.service import (
    ATTEMPTS,
    AuditContext,
    CatalogService,
    build_audit_event,
    build_commit,
    build_item_after_change,
)
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import Target
from shared.provenance.signatures import CONFIRMATION_SECONDS
from shared.runtime import Runtime
from tests.random_examples import scale_examples
from tests.unit.shared.catalog.documents import PLANT, draw_valid_document
from tests.unit.shared.catalog.stores import get_workspace_id, open_catalog_stores
from tests.virtual_time import START, VirtualTime

EARLIER = START - timedelta(days=1)
RIG = {"lookup": "rig", "name": "Rig"}
QUERY = ItemChange(ItemKind.WARM_QUERY, "q", None, {"lookup": "q"})
RUNTIME = VirtualTime().runtime


def build_stored_catalog(*, audited: bool) -> StoredCatalog:
    """Return a stored catalog that contains the settings of a workspace."""
    settings: dict[str, Any] = {"policies": {"provenance": {} if audited else None}}
    definitions: dict[str, dict[str, Any]] = {ItemKind.WORKSPACE: {"id": "plant-a"}, ItemKind.SETTINGS: settings}
    origin = ItemOrigin.DECLARED, EARLIER, EARLIER, "x"
    return StoredCatalog(1, tuple(CatalogItem(kind, "-", value, *origin) for kind, value in definitions.items()))


def test_a_changed_item_keeps_its_origin_and_creation_time() -> None:
    """A change keeps origin and creation time of an item; an edit also sets time and editor, an approval does not."""
    before = CatalogItem(ItemKind.CONNECTION, "rig", {}, ItemOrigin.DECLARED, EARLIER, EARLIER, "ann")
    edit = ItemChange(ItemKind.CONNECTION, "rig", {}, RIG)
    approval = ItemChange(ItemKind.CONNECTION, "rig", {}, RIG, is_edit=False)
    edited, approved = (
        build_item_after_change(each, before, "bob", ItemOrigin.API, START) for each in (edit, approval)
    )
    assert (edited.origin, edited.created_at, edited.updated_at, edited.edited_by) == (
        ItemOrigin.DECLARED,
        EARLIER,
        START,
        "bob",
    )
    assert (approved.definition, approved.updated_at, approved.edited_by) == (RIG, EARLIER, "ann")


def test_the_audit_event_of_the_settings_has_the_workspace_id() -> None:
    """The audit event about the settings has the workspace's id as its entity."""
    change = ItemChange(ItemKind.SETTINGS, "-", {"a": 1}, {"a": 2})
    event = build_audit_event(change, "ann", "plant-a", "e1")
    assert (event.target, event.event["EntityID"], event.event["ActionType"]) == (
        "PlatformConfig",
        "plant-a",
        "Catalog.Settings.Updated",
    )


def test_changes_of_members_are_recorded_in_access_control() -> None:
    """Changes of members are recorded in the AccessControl chain instead of the chain of all other changes."""
    event = build_audit_event(ItemChange(ItemKind.MEMBER, "ann", {"id": "ann"}, None), "bob", "plant-a", "e1")
    assert (event.target, event.event["ActionType"]) == ("AccessControl", "Catalog.Member.Removed")
    assert "AfterState" not in event.event


def test_a_commit_has_items_deletions_and_an_event_per_change() -> None:
    """One transaction stores all changed items, all deletions, and one event for each change."""
    changes = [
        ItemChange(ItemKind.CONNECTION, "rig", None, RIG),
        ItemChange(ItemKind.SURFACE, "s", {"lookup": "s"}, None),
    ]
    commit = build_commit(changes, build_stored_catalog(audited=True), "ann", ItemOrigin.API, RUNTIME)
    assert [(item.kind, item.key, item.origin) for item in commit.puts] == [("connection", "rig", ItemOrigin.API)]
    assert list(commit.deletes) == [("surface", "s")]
    assert [event.event["ActionType"] for event in commit.events] == [
        "Catalog.Connection.Created",
        "Catalog.Surface.Removed",
    ]


def test_without_provenance_only_warm_queries_have_events() -> None:
    """Without an audit log, only changes of warm queries have events, which are for webhooks."""
    changes = [ItemChange(ItemKind.CONNECTION, "rig", None, RIG), QUERY]
    commit = build_commit(changes, build_stored_catalog(audited=False), "ann", ItemOrigin.API, RUNTIME)
    [event] = commit.events
    assert (commit.audited, event.target) == (False, UNAUDITED)
    assert event.event[CONTEXT] == {"editedBy": "ann", "changedAt": "2026-03-01T12:00:00.000000Z"}


def test_enabling_the_audit_log_is_audited() -> None:
    """The change that enables the audit log is recorded in it."""
    on = CatalogItem(ItemKind.SETTINGS, "-", {"policies": {"provenance": {}}}, ItemOrigin.API, EARLIER, EARLIER, "ann")
    context = AuditContext.from_catalog(build_stored_catalog(audited=False), [on])
    assert context == AuditContext("plant-a", audited=True)
    assert AuditContext.from_catalog(StoredCatalog(0, ()), []) == AuditContext("", audited=False)


def test_disabling_the_audit_log_is_audited() -> None:
    """The changes of the document that disables the audit log are recorded in it; later changes are not."""
    off = CatalogItem(ItemKind.SETTINGS, "-", {"policies": {"provenance": None}}, ItemOrigin.API, EARLIER, EARLIER, "x")
    enabled = build_stored_catalog(audited=True)
    assert AuditContext.from_catalog(enabled, [off]) == AuditContext("plant-a", audited=True)
    without = tuple(item for item in enabled.items if item.kind != ItemKind.SETTINGS)
    assert not AuditContext.from_catalog(StoredCatalog(1, (*without, off)), []).audited


DOCUMENT = load_document(PLANT, "w.yaml")
UNAUDITED_PLANT = load_document(PLANT.replace("policies: {provenance: {requireApproval: true}}\n", ""), "w.yaml")
EXTRA = {"lookup": "mine", "name": "Mine", "surface": "cooling", "kql": "T", "apiPath": None, "approval": None}
ITEMS = 13


def create_api_query(_: StoredCatalog) -> Sequence[ItemChange]:
    """Return the change that creates a query over the API."""
    return [ItemChange("warmQuery", "mine", None, EXTRA)]


@settings(max_examples=scale_examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(draw_valid_document(), draw_valid_document())
def test_applying_any_document_makes_its_plan_empty(first: WorkspaceDocument, second: WorkspaceDocument) -> None:
    """After a document is applied over any other document, its plan is empty; each change has one audit event."""

    async def run(folder: Path) -> None:
        async with open_catalog_stores(folder) as opened:
            service = opened.service
            applied = list((await service.apply(first, "apply")).changes) if first.policies.provenance else []
            if not first.policies.provenance:
                await service.apply(first, "apply")
            created = (await service.commit_api_changes(create_api_query, "editor@p")).plan.changes
            applied += created if first.policies.provenance else ()
            planned = await service.apply(second, "apply")
            applied += planned.changes if first.policies.provenance or second.policies.provenance else ()
            assert (await service.plan(second)).is_empty
            queries = (item for item in (await opened.store.load()).items if item.kind == "warmQuery")
            assert {item.key for item in queries if item.origin is ItemOrigin.API} == {"mine"}
            assert len(await opened.list_audited_changes()) == len(applied)
            assert not await opened.store.list_pending_events()

    with TemporaryDirectory() as folder:
        asyncio.run(run(Path(folder)))


async def test_large_integers_are_text_in_audit_events(tmp_path: Path) -> None:
    """Integers beyond 2^53-1 are text with all digits in audit events."""
    parameters = [{"name": "p", "type": "dynamic", "default": [2**53 - 1, 2**53, -(10**30), 1e300, True]}]
    after = {**EXTRA, "parameters": parameters}
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await opened.service.commit_api_changes(lambda _: [ItemChange("warmQuery", "mine", None, after)], "editor@p")
        assert not await opened.store.list_pending_events()
        [*_, created] = await opened.read_chain()
    default = created["AfterState"]["parameters"][0]["default"]
    assert default == [2**53 - 1, str(2**53), f"-1{'0' * 30}", 1e300, True]


async def test_each_change_is_an_audit_event(tmp_path: Path) -> None:
    """Each added, changed or removed item has an audit event with both states; members have their own chain."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        changed = load_document(
            PLANT.replace("name: Rig,", "name: New rig,").replace("role: Viewer", "role: Editor"), "w.yaml"
        )
        await opened.service.apply(changed, "admin@plant-a.example")
        await opened.service.apply(changed.model_copy(update={"warm_queries": ()}), "admin@plant-a.example")
        platform, access = await opened.read_chain(), await opened.read_chain(Target.ACCESS_CONTROL)
    assert len(platform) + len(access) == ITEMS + 2 + 2
    assert platform[0]["EntityID"] == "plant-a"
    assert [record["ActionType"] for record in platform[-3:]] == [
        "Catalog.Connection.Updated",
        "Catalog.WarmQuery.Removed",
        "Catalog.WarmQuery.Removed",
    ]
    rig = platform[-3]
    assert (rig["UserID"], rig["EntityType"], rig["EntityID"]) == ("admin@plant-a.example", "Connection", "rig")
    assert (rig["BeforeState"]["name"], rig["AfterState"]["name"]) == ("Rig", "New rig")
    assert "AfterState" not in platform[-1]
    assert access[-1]["ActionType"] == "Catalog.Member.Updated"
    assert access[-1]["AfterState"]["role"] == "Editor"


async def test_edits_set_time_and_editor_of_an_item(tmp_path: Path) -> None:
    """The creation time never changes; an edit sets time and editor of an item, an approval does not."""
    at = datetime(2026, 1, 1, tzinfo=UTC)
    async with open_catalog_stores(tmp_path) as opened:
        service = CatalogService(opened.store, opened.log, runtime=Runtime(now=lambda: at))
        await service.apply(DOCUMENT, "apply")
        at += timedelta(days=1)
        await service.apply(load_document(PLANT.replace("name: Second", "name: Other"), "w.yaml"), "editor")
        at += timedelta(days=1)

        def approve(stored: StoredCatalog) -> Sequence[ItemChange]:
            (item,) = [item for item in stored.items if item.key == "q2"]
            approved = {**item.definition, "approval": {"approvedBy": "admin", "approvedAt": "2026-01-03T00:00:00Z"}}
            return [ItemChange("warmQuery", "q2", item.definition, approved, action="Approved", is_edit=False)]

        await service.commit_api_changes(approve, "admin")
        (query,) = [item for item in (await opened.store.load()).items if item.key == "q2"]
        assert (query.created_at, query.updated_at, query.edited_by) == (
            datetime(2026, 1, 1, tzinfo=UTC),
            datetime(2026, 1, 2, tzinfo=UTC),
            "editor",
        )
        assert query.origin is ItemOrigin.DECLARED
        last = (await opened.read_chain())[-1]
        assert (last["ActionType"], last["UserID"]) == ("Catalog.WarmQuery.Approved", "admin")


async def test_concurrent_changes_of_different_items_all_succeed(tmp_path: Path) -> None:
    """Many changes of different items at the same time are all stored, because they retry one after another."""

    def build_changes(number: int) -> list[ItemChange]:
        return [ItemChange("warmQuery", f"q{number}", None, {**EXTRA, "lookup": f"q{number}"})]

    async with open_catalog_stores(tmp_path) as opened:
        service = CatalogService(opened.store, opened.log, runtime=Runtime(uniform=min))
        commits = [service.commit_api_changes(partial(lambda n, _: build_changes(n), n), "ann") for n in range(40)]
        await asyncio.gather(*commits)
        assert (await service.load()).version == 40


async def test_a_change_that_waits_for_its_retry_stops_no_other_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a change waits for its next attempt, others retry and are stored; after its last attempt it fails at once.

    Each change has a conflict in its first attempt, and the unlucky one in all attempts.
    """
    waits: list[str] = []
    saved: list[str] = []

    async def store_another_change(_: float) -> None:
        waits.append(f"q{len(waits)}")
        async with asyncio.timeout(20):
            await service.commit_api_changes(partial(build_changes, waits[-1]), "ann")

    def build_changes(lookup: str, _: StoredCatalog) -> list[ItemChange]:
        return [ItemChange("warmQuery", lookup, None, {**EXTRA, "lookup": lookup})]

    async with open_catalog_stores(tmp_path) as opened:
        save = opened.store.save

        async def save_unless_in_conflict(puts: Sequence[CatalogItem], deletes: Any, events: Any, version: int) -> int:
            [item] = puts
            saved.append(item.key)
            is_in_conflict = item.key == "unlucky" or saved.count(item.key) == 1
            return await save(puts, deletes, events, -1 if is_in_conflict else version)

        monkeypatch.setattr(opened.store, "save", save_unless_in_conflict)
        runtime = Runtime(sleep=store_another_change)
        service = CatalogService(opened.store, opened.log, runtime=runtime)
        with pytest.raises(WorkspaceError, match="changed repeatedly"):
            await service.commit_api_changes(partial(build_changes, "unlucky"), "ann")
        assert {item.key for item in (await service.load()).items} == set(waits)
        assert (saved.count("unlucky"), saved[-1], len(waits)) == (ATTEMPTS, "unlucky", ATTEMPTS - 2)


async def test_changes_are_confirmed_before_each_attempt_to_store_them(tmp_path: Path) -> None:
    """Changes are confirmed after each load of the catalog; an error, or a slow confirmation, stores nothing."""
    seconds, confirmed_versions = [0.0], list[int]()
    async with open_catalog_stores(tmp_path) as opened:
        runtime = Runtime(uniform=min, monotonic=lambda: seconds[0])
        service = CatalogService(opened.store, opened.log, runtime=runtime)

        async def confirm() -> None:
            confirmed_versions.append(await opened.store.read_version())
            match len(confirmed_versions):
                case 1:
                    await opened.service.apply(DOCUMENT, "apply")
                case 2:
                    seconds[0] += CONFIRMATION_SECONDS + 1
                case 4:
                    raise WorkspaceError(Kind.CONFLICT, "SIGNATURE_TOKEN_USED", "used")

        await service.commit_api_changes(create_api_query, "ann", confirm=confirm)
        with pytest.raises(WorkspaceError, match="used"):
            await service.commit_api_changes(lambda _: [QUERY], "ann", confirm=confirm)
        assert (confirmed_versions, await opened.store.read_version()) == ([0, 1, 1, 2], 2)


async def test_a_slow_store_of_sign_ins_is_the_error_of_an_unconfirmed_change(tmp_path: Path) -> None:
    """If each confirmation takes too long, the error names the store of sign-ins, and not a change of the catalog."""
    seconds = [0.0]

    async def confirm() -> None:
        seconds[0] += CONFIRMATION_SECONDS + 1

    async with open_catalog_stores(tmp_path) as opened:
        runtime = Runtime(uniform=min, monotonic=lambda: seconds[0])
        service = CatalogService(opened.store, opened.log, runtime=runtime)
        with pytest.raises(WorkspaceError, match="sign-ins") as caught:
            await service.commit_api_changes(create_api_query, "ann", confirm=confirm)
        assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "SIGNATURES_UNAVAILABLE")
        assert seconds[0] == ATTEMPTS * (CONFIRMATION_SECONDS + 1)


async def test_a_confirmed_change_is_stored_in_time_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store does not respond in time, a confirmed change ends with an error, because its outcome is unknown.

    The cached catalog is read again, because the change is possibly stored.
    """
    changes = list[str]()

    async def wait_forever(*_: Any) -> int:
        await asyncio.Event().wait()
        return 0

    async def confirm() -> None:
        """Accept the change."""

    monkeypatch.setattr("shared.catalog.service.DECISION_WRITE_SECONDS", 0.0)
    async with open_catalog_stores(tmp_path) as opened:
        monkeypatch.setattr(opened.store, "save", wait_forever)
        service = CatalogService(opened.store, opened.log, on_change=lambda: changes.append("changed"))
        with pytest.raises(WorkspaceError, match="without one, read the query first") as caught:
            await service.commit_api_changes(create_api_query, "ann", confirm=confirm)
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, "CATALOG_UNAVAILABLE")
    assert changes == ["changed"]


async def test_without_provenance_nothing_is_audited(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Without the provenance policy, changes are not audited, and one warning is logged."""
    with caplog.at_level(logging.WARNING, "workspace"):
        async with open_catalog_stores(tmp_path) as opened:
            await opened.service.apply(UNAUDITED_PLANT, "apply")
            await opened.service.commit_api_changes(create_api_query, "editor")
            assert await opened.list_audited_changes() == []
            assert not await opened.store.list_pending_events()
    assert [record.message for record in caplog.records] == [
        "provenance is not configured; changes to the catalog are not audited"
    ]


async def test_events_stay_pending_while_audit_log_is_unavailable(tmp_path: Path) -> None:
    """If the audit log is unavailable, changes succeed, and their events are appended once when it is available."""
    async with open_catalog_stores(tmp_path) as opened:
        closed = CatalogService(opened.store, SqliteAuditLog(tmp_path, get_workspace_id))  # a folder cannot be opened
        assert len((await closed.apply(DOCUMENT, "apply")).changes) == ITEMS
        with pytest.raises(WorkspaceError):
            await closed.flush_and_count_pending_events()
        assert len(await opened.store.list_pending_events()) == ITEMS
        assert (await opened.service.apply(DOCUMENT, "apply")).is_empty
        assert len(await opened.list_audited_changes()) == ITEMS
        assert await opened.service.flush_and_count_pending_events() == 0
        assert len(await opened.list_audited_changes()) == ITEMS


async def test_an_unexpected_error_of_an_announcement_does_not_fail_a_stored_change(tmp_path: Path) -> None:
    """If the announcement of a stored change fails unexpectedly, the change succeeds, and its events stay pending."""

    async def fail(_: Sequence[PendingEvent]) -> None:
        raise RuntimeError

    async with open_catalog_stores(tmp_path) as opened:
        service = CatalogService(opened.store, opened.log, announce=fail)
        assert len((await service.apply(DOCUMENT, "apply")).changes) == ITEMS
        assert len(await opened.store.list_pending_events()) == ITEMS
        with pytest.raises(RuntimeError):
            await service.flush_and_count_pending_events()


async def test_rejected_event_does_not_block_others(tmp_path: Path) -> None:
    """If a chain rejects an event, it stays pending and is reported, and later events are appended."""
    content = {"ActionType": "A", "EntityType": "WarmQuery", "EntityID": "mine", "AfterState": {"limit": math.nan}}
    event = PendingEvent("1", Target.PLATFORM_CONFIG, "editor", content)
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await opened.store.save([], [], [event], await opened.store.read_version())
        await opened.service.apply(load_document(PLANT.replace("name: Rig,", "name: New rig,"), "w.yaml"), "apply")
        with pytest.raises(WorkspaceError) as caught:
            await opened.service.flush_and_count_pending_events()
        assert caught.value.kind is Kind.INVALID
        assert [event.event["EntityID"] for event in await opened.store.list_pending_events()] == ["mine"]
        assert (await opened.list_audited_changes()).count(("Catalog.Connection.Updated", "rig")) == 1


@pytest.mark.parametrize(
    ("changed", "kind"),
    [({"limit": math.nan}, Kind.INVALID), ({"description": "a" * 1_500_000}, Kind.TOO_LARGE)],
)
async def test_a_change_that_cannot_be_recorded_is_refused(tmp_path: Path, changed: Any, kind: Kind) -> None:
    """A change whose audit event its chain would reject is refused, and nothing is stored."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        before = await opened.service.load()
        with pytest.raises(WorkspaceError, match="WarmQuery 'mine'") as caught:
            await opened.service.commit_api_changes(
                lambda _: [ItemChange("warmQuery", "mine", None, {**EXTRA, **changed})], "ann"
            )
        assert caught.value.kind is kind
        assert await opened.service.load() == before
        assert not await opened.store.list_pending_events()


async def test_a_document_that_cannot_be_recorded_is_refused(tmp_path: Path) -> None:
    """A document with an item that is too large for its audit event is refused; the plan has the same error."""
    text = PLANT.replace("name: Second,", f"name: Second, description: {'a' * 1_500_000},")
    document = load_document(text, "w.yaml")
    async with open_catalog_stores(tmp_path) as opened:
        for call in (opened.service.plan(document), opened.service.apply(document, "apply")):
            with pytest.raises(WorkspaceError, match="WarmQuery 'q2'") as caught:
                await call
            assert caught.value.code == "RECORD_TOO_LARGE"
        assert (await opened.service.load()).version == 0


async def test_a_large_item_of_an_earlier_version_can_be_removed(tmp_path: Path) -> None:
    """An item that is too large for a record can be removed; the record has the digest of its state."""
    definition = {**EXTRA, "description": "a" * 2_000_000}
    item = CatalogItem("warmQuery", "mine", definition, ItemOrigin.API, EARLIER, EARLIER, "ann")
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        await opened.store.save([item], [], [], await opened.store.read_version())
        await opened.service.commit_api_changes(lambda _: [ItemChange("warmQuery", "mine", definition, None)], "ann")
        [record] = [each for each in await opened.read_chain() if each["EntityID"] == "mine"]
        assert record["ActionType"] == "Catalog.WarmQuery.Removed"
        assert record["BeforeState"].keys() == {"sha256", "bytes"}
        assert "mine" not in {each.key for each in (await opened.service.load()).items}


async def test_concurrent_changes_are_not_lost(tmp_path: Path) -> None:
    """If many changes run at once, none is lost: each is computed again if the catalog has changed."""

    def increment_number(stored: StoredCatalog) -> Sequence[ItemChange]:
        (rig,) = [item for item in stored.items if item.key == "rig"]
        return [
            ItemChange("connection", "rig", rig.definition, {**rig.definition, "name": rig.definition["name"] + "+"})
        ]

    async with open_catalog_stores(tmp_path) as first, open_catalog_stores(tmp_path) as second:
        await first.service.apply(DOCUMENT, "apply")
        await asyncio.gather(
            *(each.service.commit_api_changes(increment_number, "editor") for each in (first, second) for _ in range(4))
        )
        (rig,) = [item for item in (await first.store.load()).items if item.key == "rig"]
        assert rig.definition["name"] == "Rig" + "+" * 8
        assert (await first.list_audited_changes()).count(("Catalog.Connection.Updated", "rig")) == 8


async def test_an_error_of_the_change_function_is_raised(tmp_path: Path) -> None:
    """If the function that computes a change raises an error, the caller gets it and nothing is stored."""

    def raise_error(_: StoredCatalog) -> Sequence[ItemChange]:
        raise WorkspaceError(Kind.FORBIDDEN, "MAKER_CHECKER_VIOLATION", "no")

    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(DOCUMENT, "apply")
        version = await opened.store.read_version()
        with pytest.raises(WorkspaceError, match="no"):
            await opened.service.commit_api_changes(raise_error, "editor")
        assert await opened.store.read_version() == version


async def test_applying_an_unchanged_document_creates_no_version(tmp_path: Path) -> None:
    """Applying an unchanged document creates no version and causes no reload."""
    calls: list[None] = []
    async with open_catalog_stores(tmp_path) as opened:
        service = CatalogService(opened.store, opened.log, on_change=lambda: calls.append(None))
        await service.apply(DOCUMENT, "apply")
        await service.apply(DOCUMENT, "apply")
        assert await opened.store.read_version() == 1
    assert len(calls) == 1


async def test_enabled_connections_are_reported_before_the_change_is_stored(tmp_path: Path) -> None:
    """The lookups of connections that a change enables or creates are reported before the change is stored."""
    reported: list[tuple[list[str], int]] = []
    async with open_catalog_stores(tmp_path) as opened:

        async def report(connections: Collection[str]) -> None:
            reported.append((sorted(connections), await opened.store.read_version()))

        service = CatalogService(opened.store, opened.log, before_enabling=report)
        lookups = sorted(connection.lookup for connection in DOCUMENT.connections)
        disabled = DOCUMENT.model_copy(
            update={"connections": [each.model_copy(update={"enabled": False}) for each in DOCUMENT.connections]}
        )
        for document in (DOCUMENT, disabled, disabled, DOCUMENT, DOCUMENT):
            await service.apply(document, "apply")
    assert lookups
    assert reported == [(lookups, 0), (lookups, 2)]
