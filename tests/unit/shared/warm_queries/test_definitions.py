"""Writing, releasing and removing queries on condition, over the real catalog and audit log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.catalog.diff import ItemChange
from shared.catalog.document import load_document
from shared.catalog.items import ItemKind, to_definition
from shared.catalog.models import WarmQuery
from shared.catalog.snapshot import CatalogEntry
from shared.conditional_requests import Condition, condition_from_headers
from shared.errors import WorkspaceError
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.definitions import QueryDefinitions
from shared.warm_queries.etags import compute_etag
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import Plant, plant

ADMIN = "admin@plant-a.example"


class Engine:
    """Binds every query; the real one is tested over its socket."""

    async def execute(self, _: EngineQuery) -> EngineResult:
        """Answer."""
        return EngineResult((Column("n", "long"),), [], 1.0)

    async def ping(self) -> None:
        """Be there."""


@dataclass
class Desk:
    """Two processes' services over one workspace."""

    plants: list[Plant]
    services: list[QueryDefinitions]

    async def events(self, lookup: str) -> list[str]:
        """Return the verbs of a query's audit events."""
        chained = await self.plants[0].chained()
        return [action.rsplit(".", 1)[1] for action, entity in chained if entity == lookup]


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """Return the services, with the plant applied."""
    async with AsyncExitStack() as stack:
        plants = [await stack.enter_async_context(plant(tmp_path)) for _ in range(2)]
        await plants[0].service.apply(load_document(PLANT, "w.yaml"), "apply")
        yield Desk(plants, [QueryDefinitions(each.service, QueryColumns(Engine())) for each in plants])


@pytest.fixture
def queries(desk: Desk) -> QueryDefinitions:
    """Return the first process's service."""
    return desk.services[0]


def member(name: str) -> Principal:
    """Return a caller."""
    return Principal(name, name, name, frozenset(), CredentialKind.JWT, "", None)


def text(kql: str = "Telemetry | count", lookup: str = "mine", **more: Any) -> WarmQuery:
    """Return a query as its author writes it."""
    given = {"lookup": lookup, "name": lookup.title(), "surface": "cooling", "kql": kql, **more}
    return WarmQuery.model_validate(given)


def if_match(*stored: CatalogEntry[WarmQuery] | str) -> Condition:
    """Return the condition of who has seen these."""
    return condition_from_headers(
        ", ".join(each if isinstance(each, str) else compute_etag(each) for each in stored), None
    )


NEW = condition_from_headers(None, "*")


async def code_of(call: Any) -> str:
    """Return the code that a call is refused with."""
    with pytest.raises(WorkspaceError) as refused:
        await call
    return refused.value.code


async def test_an_edit_of_another_state_than_named_is_refused(desk: Desk, queries: QueryDefinitions) -> None:
    """If-Match with an older tag, a weak one or none that fits changes nothing and is no audit event."""
    first, _ = await queries.put(member("a"), text())
    second, _ = await queries.put(member("b"), text("Telemetry | take 2"), if_match(first))
    version = await desk.plants[0].store.version()
    for refused in (if_match(first), if_match(f"W/{compute_etag(second)}"), if_match('"x"'), NEW):
        assert await code_of(queries.put(member("a"), text("T"), refused)) == "PRECONDITION_FAILED"
        assert await code_of(queries.approve(ADMIN, "mine", refused)) == "PRECONDITION_FAILED"
        assert await code_of(queries.delete(member("a"), "mine", refused)) == "PRECONDITION_FAILED"
    assert await desk.plants[0].store.version() == version
    assert await desk.events("mine") == ["Created", "Updated"]
    assert not await desk.plants[0].store.pending_events()
    third, created = await queries.put(member("a"), text("Telemetry | take 3"), if_match('"x"', second))
    assert not created
    await queries.delete(member("a"), "mine", if_match(third))
    assert await desk.events("mine") == ["Created", "Updated", "Updated", "Removed"]


async def test_a_star_wants_what_exists_or_what_does_not(queries: QueryDefinitions) -> None:
    """If-Match: * never makes a query, If-None-Match: * never changes one; one that is not there is still not found."""
    assert await code_of(queries.put(member("a"), text(), if_match("*"))) == "PRECONDITION_FAILED"
    assert await code_of(queries.put(member("a"), text(), if_match('"x"'))) == "PRECONDITION_FAILED"
    assert await code_of(queries.delete(member("a"), "mine", if_match("*"))) == "WARM_QUERY_NOT_FOUND"
    assert await code_of(queries.approve(ADMIN, "mine", if_match("*"))) == "WARM_QUERY_NOT_FOUND"
    made, created = await queries.put(member("a"), text(), NEW)
    assert created
    assert await code_of(queries.put(member("a"), text(), NEW)) == "PRECONDITION_FAILED"
    known = condition_from_headers(None, f"W/{compute_etag(made)}")
    assert await code_of(queries.put(member("a"), text(), known)) == "PRECONDITION_FAILED"
    again, created = await queries.put(member("a"), text(), if_match("*"))
    assert not created
    assert again.created_at == made.created_at


async def test_the_same_text_put_again_is_a_new_state(queries: QueryDefinitions) -> None:
    """Whoever looked at the text before must look again: its editor, its time and its approval may be others."""
    first, _ = await queries.put(member("a"), text())
    second, _ = await queries.put(member("a"), text())
    assert second.value == first.value
    assert compute_etag(second) != compute_etag(first)
    assert await code_of(queries.approve(ADMIN, "mine", if_match(first))) == "PRECONDITION_FAILED"


async def test_an_approval_is_a_new_state_and_a_second_one_is_none(desk: Desk, queries: QueryDefinitions) -> None:
    """Approving changes the tag; approving what is approved changes nothing, for who names the state that there is."""
    draft, _ = await queries.put(member("a"), text())
    approved = await queries.approve(ADMIN, "mine", if_match(draft))
    assert compute_etag(approved) != compute_etag(draft)
    assert await queries.approve(ADMIN, "mine", if_match(approved)) == approved
    assert await queries.approve("other@x", "mine") == approved
    assert await code_of(queries.approve(ADMIN, "mine", if_match(draft))) == "PRECONDITION_FAILED"
    assert await desk.events("mine") == ["Created", "Approved"]


async def test_an_approval_done_again_after_a_crash_finds_its_own(desk: Desk, queries: QueryDefinitions) -> None:
    """What its approver released from the very draft that is named counts; a later text, or another's approval, not."""
    draft, _ = await queries.put(member("a"), text())
    approved = await queries.approve(ADMIN, "mine", if_match(draft), repeatable=True)
    assert await queries.approve(ADMIN, "mine", if_match(draft), repeatable=True) == approved
    refused = queries.approve("other@x", "mine", if_match(draft), repeatable=True)
    assert await code_of(refused) == "PRECONDITION_FAILED"
    await queries.put(member("a"), text("Telemetry | take 2"), if_match(approved))
    refused = queries.approve(ADMIN, "mine", if_match(draft), repeatable=True)
    assert await code_of(refused) == "PRECONDITION_FAILED"
    assert await desk.events("mine") == ["Created", "Approved", "Updated"]


async def test_other_refusals_come_first(queries: QueryDefinitions) -> None:
    """A condition is checked last: the last editor and a taken name are reported first."""
    await queries.put(member("a"), text())
    stale = if_match('"x"')
    assert await code_of(queries.approve("A", "mine", stale)) == "MAKER_CHECKER_VIOLATION"
    assert await code_of(queries.put(member("a"), text(name="First"), stale)) == "WARM_QUERY_NAME_TAKEN"
    assert await code_of(queries.put(member("a"), text(surface="nowhere"), stale)) == "INVALID_REQUEST"


async def test_a_query_stored_before_a_rule_is_not_released(desk: Desk) -> None:
    """A stored draft that reaches outside the workspace cannot be approved, and its place in the text is named."""
    [queries, _] = desk.services
    definition = to_definition(text('Telemetry\n| union cluster("x").database("y").T'))
    change = ItemChange(ItemKind.WARM_QUERY, "mine", None, definition)
    await desk.plants[0].service.change(lambda _: [change], "a")
    with pytest.raises(WorkspaceError) as refused:
        await queries.approve(ADMIN, "mine")
    assert (refused.value.code, refused.value.members["line"]) == ("QUERY_INVALID", 2)
    assert refused.value.detail.startswith("kql: ")


async def test_of_simultaneous_edits_of_one_state_one_wins(desk: Desk) -> None:
    """In two processes at once, exactly one of many edits under the same tag is stored, and it is told so."""
    start, _ = await desk.services[0].put(member("a"), text())
    edits = [
        desk.services[number % 2].put(member(f"e{number}"), text(f"Telemetry | take {number}"), if_match(start))
        for number in range(8)
    ]
    replies = await asyncio.gather(*edits, return_exceptions=True)
    [winner] = [reply for reply in replies if not isinstance(reply, BaseException)]
    assert {reply.code for reply in replies if isinstance(reply, WorkspaceError)} == {"PRECONDITION_FAILED"}
    [held] = [item for item in (await desk.plants[1].store.load()).items if item.key == "mine"]
    assert (held.definition["kql"], held.edited_by) == (winner[0].value.kql, winner[0].edited_by)
    assert await desk.events("mine") == ["Created", "Updated"]


async def test_an_edit_and_an_approval_at_once_release_no_unseen_text(desk: Desk) -> None:
    """Whichever comes first, the other is refused: never is a text released that the approver did not name."""
    editor, approver = desk.services
    for number in range(10):
        seen, _ = await editor.put(member("a"), text())
        edit = editor.put(member("b"), text(f"Telemetry | take {number}"), if_match(seen))
        replies = await asyncio.gather(edit, approver.approve(ADMIN, "mine", if_match(seen)), return_exceptions=True)
        refused = [reply.code for reply in replies if isinstance(reply, WorkspaceError)]
        assert refused == ["PRECONDITION_FAILED"]
        [held] = [item for item in (await desk.plants[0].store.load()).items if item.key == "mine"]
        assert (held.definition["approval"] is None) == (held.definition["kql"] != seen.value.kql)


async def test_a_writer_is_answered_with_their_own_state(desk: Desk) -> None:
    """The tag that an edit is answered with is of that edit, so that the next one does not overwrite another's."""
    services = desk.services
    edits = [services[number % 2].put(member(f"e{number}"), text(f"Telemetry | take {number}")) for number in range(8)]
    answered = await asyncio.gather(*edits)
    assert [(stored.value.kql, stored.edited_by) for stored, _ in answered] == [
        (f"Telemetry | take {number}", f"e{number}") for number in range(8)
    ]
    tags = {compute_etag(stored) for stored, _ in answered}
    [held] = [item for item in (await desk.plants[0].store.load()).items if item.key == "mine"]
    read = CatalogEntry(WarmQuery.model_validate(held.definition), held.created_at, held.updated_at, held.edited_by)
    assert len(tags) == 8
    assert compute_etag(read) in tags


async def test_a_declared_query_has_a_tag_too(desk: Desk, queries: QueryDefinitions) -> None:
    """Applying a document that changes a query is an edit, and one that does not is none."""
    draft = await queries.approve(ADMIN, "q2")
    await desk.plants[1].service.apply(load_document(PLANT, "w.yaml"), "apply")
    assert await queries.approve("other@x", "q2", if_match(draft)) == draft
    await desk.plants[1].service.apply(load_document(PLANT.replace("take 1", "take 2"), "w.yaml"), "apply")
    assert await code_of(queries.delete(member("a"), "q2", if_match(draft))) == "PRECONDITION_FAILED"
