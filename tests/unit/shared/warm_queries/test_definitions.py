"""Tests of changing warm queries with If-Match, with the real catalog and audit log."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
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
from shared.errors import Kind, WorkspaceError, build_invalid_field_error
from shared.provenance.ports import ChainKey, Target
from shared.provenance.signatures import SIGNED_EVENT, DecisionSignature, SigningSession, skip_confirmation
from shared.warm_queries.approvals import compute_query_etag
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.definitions import QueryDefinitions
from shared.warm_queries.ports import Column, EngineQuery, EngineResult
from tests.unit.shared.catalog.documents import PLANT
from tests.unit.shared.catalog.stores import CatalogStores, open_catalog_stores

ADMIN = "admin@plant-a.example"


class Engine:
    """Fake query engine that accepts every query or, if the test has set this, rejects every query."""

    def __init__(self) -> None:
        self.rejects = False

    async def execute(self, _: EngineQuery) -> EngineResult:
        """Return an empty result, or raise QUERY_INVALID if the test has set that queries are rejected."""
        if self.rejects:
            raise build_invalid_field_error(
                "query", "'fork' is not supported. The query runs on Data Explorer only.", code="QUERY_INVALID"
            )
        return EngineResult((Column("n", "long"),), [], 1.0)

    async def ping(self) -> None:
        """Report that the engine is reachable."""


@dataclass
class Processes:
    """Query services of two processes that use the stores of one workspace."""

    opened: list[CatalogStores]
    services: list[QueryDefinitions]

    async def list_actions(self, lookup: str) -> list[str]:
        """Return the actions of the audit events about a query."""
        chained = await self.opened[0].list_audited_changes()
        return [action.rsplit(".", 1)[1] for action, entity in chained if entity == lookup]


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[Processes]:
    """Provide the services of two processes, after a workspace document was applied."""
    async with AsyncExitStack() as stack:
        opened = [await stack.enter_async_context(open_catalog_stores(tmp_path)) for _ in range(2)]
        await opened[0].service.apply(load_document(PLANT, "w.yaml"), "apply")
        yield Processes(opened, [QueryDefinitions(each.service, QueryColumns(Engine())) for each in opened])


@pytest.fixture
def queries(processes: Processes) -> QueryDefinitions:
    """Return the query service of the first process."""
    return processes.services[0]


def build_member(name: str) -> Principal:
    """Return a member with the given name as the caller of the API."""
    return Principal(name, name, name, frozenset(), CredentialKind.JWT, "", None)


def build_query(kql: str = "Telemetry | count", lookup: str = "mine", **more: Any) -> WarmQuery:
    """Return the definition of a warm query."""
    definition = {"lookup": lookup, "name": lookup.title(), "surface": "cooling", "kql": kql, **more}
    return WarmQuery.model_validate(definition)


def build_condition(*stored: CatalogEntry[WarmQuery] | str) -> Condition:
    """Return an If-Match condition with the given ETags, or with the ETags of the given stored queries."""
    return condition_from_headers(
        ", ".join(each if isinstance(each, str) else compute_query_etag(each) for each in stored), None
    )


NEW = condition_from_headers(None, "*")


async def get_error_code(call: Any) -> str:
    """Return the error code that a call raises."""
    with pytest.raises(WorkspaceError) as refused:
        await call
    return refused.value.code


async def test_edit_with_outdated_etag_is_rejected(processes: Processes, queries: QueryDefinitions) -> None:
    """An edit with an old, weak or unknown ETag in If-Match is rejected and not audited."""
    first, _ = await queries.store_draft(build_member("a"), build_query())
    second, _ = await queries.store_draft(build_member("b"), build_query("Telemetry | take 2"), build_condition(first))
    version = await processes.opened[0].store.read_version()
    for refused in (
        build_condition(first),
        build_condition(f"W/{compute_query_etag(second)}"),
        build_condition('"x"'),
        NEW,
    ):
        assert (
            await get_error_code(queries.store_draft(build_member("a"), build_query("T"), refused))
            == "PRECONDITION_FAILED"
        )
        assert await get_error_code(queries.approve_query(ADMIN, "mine", refused)) == "PRECONDITION_FAILED"
        assert await get_error_code(queries.delete_query(build_member("a"), "mine", refused)) == "PRECONDITION_FAILED"
    assert await processes.opened[0].store.read_version() == version
    assert await processes.list_actions("mine") == ["Created", "Updated"]
    assert not await processes.opened[0].store.list_pending_events()
    third, created = await queries.store_draft(
        build_member("a"), build_query("Telemetry | take 3"), build_condition('"x"', second)
    )
    assert not created
    await queries.delete_query(build_member("a"), "mine", build_condition(third))
    assert await processes.list_actions("mine") == ["Created", "Updated", "Updated", "Removed"]


async def test_a_star_condition_cannot_create_or_replace_a_query(queries: QueryDefinitions) -> None:
    """``If-Match: *`` cannot create a missing query, and ``If-None-Match: *`` cannot replace an existing one."""
    assert (
        await get_error_code(queries.store_draft(build_member("a"), build_query(), build_condition("*")))
        == "PRECONDITION_FAILED"
    )
    assert (
        await get_error_code(queries.store_draft(build_member("a"), build_query(), build_condition('"x"')))
        == "PRECONDITION_FAILED"
    )
    assert (
        await get_error_code(queries.delete_query(build_member("a"), "mine", build_condition("*")))
        == "PRECONDITION_FAILED"
    )
    assert await get_error_code(queries.delete_query(build_member("a"), "mine", NEW)) == "WARM_QUERY_NOT_FOUND"
    assert await get_error_code(queries.approve_query(ADMIN, "mine", build_condition("*"))) == "WARM_QUERY_NOT_FOUND"
    first, created = await queries.store_draft(build_member("a"), build_query(), NEW)
    assert created
    assert await get_error_code(queries.store_draft(build_member("a"), build_query(), NEW)) == "PRECONDITION_FAILED"
    known = condition_from_headers(None, f"W/{compute_query_etag(first)}")
    assert await get_error_code(queries.store_draft(build_member("a"), build_query(), known)) == "PRECONDITION_FAILED"
    again, created = await queries.store_draft(build_member("a"), build_query(), build_condition("*"))
    assert not created
    assert again.created_at == first.created_at


async def test_the_error_about_an_unknown_lookup_quotes_it(queries: QueryDefinitions) -> None:
    """The error about an unknown lookup quotes the lookup, as the error about an unknown query to execute does."""
    with pytest.raises(WorkspaceError) as refused:
        await queries.delete_query(build_member("a"), "gone", NEW)
    assert refused.value.detail == "No warm query has the lookup (short name in URLs) 'gone'."


async def test_storing_a_query_again_changes_its_etag(queries: QueryDefinitions) -> None:
    """Storing a query with the same text gives a new ETag, because editor, time and approval can change."""
    first, _ = await queries.store_draft(build_member("a"), build_query())
    second, _ = await queries.store_draft(build_member("a"), build_query())
    assert second.value == first.value
    assert compute_query_etag(second) != compute_query_etag(first)
    assert await get_error_code(queries.approve_query(ADMIN, "mine", build_condition(first))) == "PRECONDITION_FAILED"


async def test_only_first_approval_changes_etag(processes: Processes, queries: QueryDefinitions) -> None:
    """The first approval of a query gives it a new ETag; a repeated approval changes nothing."""
    draft, _ = await queries.store_draft(build_member("a"), build_query())
    approved = await queries.approve_query(ADMIN, "mine", build_condition(draft))
    assert compute_query_etag(approved) != compute_query_etag(draft)
    assert await queries.approve_query(ADMIN, "mine", build_condition(approved)) == approved
    assert await queries.approve_query("other@x", "mine") == approved
    assert await get_error_code(queries.approve_query(ADMIN, "mine", build_condition(draft))) == "PRECONDITION_FAILED"
    assert await processes.list_actions("mine") == ["Created", "Approved"]


async def test_approval_can_be_retried_after_lost_reply(processes: Processes, queries: QueryDefinitions) -> None:
    """The approver can repeat an approval with the ETag from before it, until the query's text changes."""
    draft, _ = await queries.store_draft(build_member("a"), build_query())
    approved = await queries.approve_query(ADMIN, "mine", build_condition(draft), can_be_retry=True)
    assert await queries.approve_query(ADMIN, "mine", build_condition(draft), can_be_retry=True) == approved
    refused = queries.approve_query("other@x", "mine", build_condition(draft), can_be_retry=True)
    assert await get_error_code(refused) == "PRECONDITION_FAILED"
    await queries.store_draft(build_member("a"), build_query("Telemetry | take 2"), build_condition(approved))
    refused = queries.approve_query(ADMIN, "mine", build_condition(draft), can_be_retry=True)
    assert await get_error_code(refused) == "PRECONDITION_FAILED"
    assert await processes.list_actions("mine") == ["Created", "Approved", "Updated"]


async def test_the_if_match_condition_is_checked_last(queries: QueryDefinitions) -> None:
    """If the approver is the last editor, or a name is in use, this is reported before an unmet condition."""
    await queries.store_draft(build_member("a"), build_query())
    stale = build_condition('"x"')
    assert await get_error_code(queries.approve_query("A", "mine", stale)) == "MAKER_CHECKER_VIOLATION"
    assert (
        await get_error_code(queries.store_draft(build_member("a"), build_query(name="First"), stale))
        == "WARM_QUERY_NAME_TAKEN"
    )
    assert (
        await get_error_code(queries.store_draft(build_member("a"), build_query(surface="nowhere"), stale))
        == "INVALID_REQUEST"
    )


async def test_draft_that_violates_newer_rule_cannot_be_approved(processes: Processes) -> None:
    """A stored draft that reads data outside the workspace cannot be approved; the error has the line."""
    [queries, _] = processes.services
    definition = to_definition(build_query('Telemetry\n| union cluster("x").database("y").T'))
    change = ItemChange(ItemKind.WARM_QUERY, "mine", None, definition)
    await processes.opened[0].service.commit_api_changes(lambda _: [change], "a")
    with pytest.raises(WorkspaceError) as refused:
        await queries.approve_query(ADMIN, "mine")
    assert (refused.value.code, refused.value.members["line"]) == ("QUERY_INVALID", 2)
    assert refused.value.detail.startswith("kql: ")


async def test_one_of_concurrent_edits_succeeds(processes: Processes) -> None:
    """If several processes edit a query with the same ETag at once, exactly one edit is stored."""
    start, _ = await processes.services[0].store_draft(build_member("a"), build_query())
    edits = [
        processes.services[number % 2].store_draft(
            build_member(f"e{number}"), build_query(f"Telemetry | take {number}"), build_condition(start)
        )
        for number in range(8)
    ]
    replies = await asyncio.gather(*edits, return_exceptions=True)
    [winner] = [reply for reply in replies if not isinstance(reply, BaseException)]
    assert {reply.code for reply in replies if isinstance(reply, WorkspaceError)} == {"PRECONDITION_FAILED"}
    [item] = [each for each in (await processes.opened[1].store.load()).items if each.key == "mine"]
    assert (item.definition["kql"], item.edited_by) == (winner[0].value.kql, winner[0].edited_by)
    assert await processes.list_actions("mine") == ["Created", "Updated"]


async def test_a_draft_that_the_engine_cannot_run_is_not_approved(processes: Processes) -> None:
    """An approval validates the query with the engine, and fails if the engine rejects it."""
    await processes.services[0].store_draft(build_member("editor@plant-a.example"), build_query())
    engine = Engine()
    engine.rejects = True
    approving = QueryDefinitions(processes.opened[1].service, QueryColumns(engine))
    with pytest.raises(WorkspaceError, match="Data Explorer only") as raised:
        await approving.approve_query(ADMIN, "mine")
    assert raised.value.code == "QUERY_INVALID"
    assert "Approved" not in await processes.list_actions("mine")
    engine.rejects = False
    later = QueryDefinitions(processes.opened[1].service, QueryColumns(engine))
    assert (await later.approve_query(ADMIN, "mine")).value.approval is not None


async def test_a_query_of_a_newer_version_is_neither_decided_nor_overwritten_by_mistake(
    processes: Processes, queries: QueryDefinitions
) -> None:
    """A query that this version cannot parse is not found for a decision; only writes without an ETag replace it."""
    change = ItemChange(ItemKind.WARM_QUERY, "mine", None, to_definition(build_query()) | {"newMember": 1})
    await processes.opened[0].service.commit_api_changes(lambda _: [change], "a")
    assert await queries.find_query("mine") is None
    assert await get_error_code(queries.approve_query(ADMIN, "mine")) == "WARM_QUERY_NOT_FOUND"
    assert await get_error_code(queries.reject_query(ADMIN, "mine", "Too slow")) == "WARM_QUERY_NOT_FOUND"
    for condition in (NEW, build_condition('"x"')):
        edit = queries.store_draft(build_member("a"), build_query(), condition)
        assert await get_error_code(edit) == "PRECONDITION_FAILED"
    deletion = queries.delete_query(build_member("a"), "mine", build_condition('"x"'))
    assert await get_error_code(deletion) == "PRECONDITION_FAILED"
    await queries.store_draft(build_member("a"), build_query(), build_condition("*"))
    assert await processes.list_actions("mine") == ["Created", "Updated"]


SIGNED_PLANT = PLANT.replace("{requireApproval: true}}", "{requireApproval: true}, signatures: {queries: required}}")


async def test_a_decision_is_unsigned_only_if_the_policy_allows_it_when_it_is_stored(processes: Processes) -> None:
    """A decision without a signature is rejected if the policy began to require one during the request."""

    class PolicyChangingEngine(Engine):
        async def execute(self, query: EngineQuery) -> EngineResult:
            await processes.opened[0].service.apply(load_document(SIGNED_PLANT, "w.yaml"), "apply")
            return await super().execute(query)

    approving = QueryDefinitions(processes.opened[1].service, QueryColumns(PolicyChangingEngine()))
    assert await get_error_code(approving.approve_query(ADMIN, "q2")) == "SIGNATURE_REQUIRED"
    assert await get_error_code(approving.reject_query(ADMIN, "q2", "Too slow")) == "SIGNATURE_REQUIRED"
    assert await processes.list_actions("q2") == ["Created"]
    approved = await approving.approve_query("other@x", "q1")
    assert approved.value.approval is not None
    assert approved.value.approval.approved_by == ADMIN


@dataclass
class FakeSigner:
    """Fake signer: ``meanwhile`` runs between the checks of the signature and the decision.

    ``sessions`` are the sessions that ended without an error.
    """

    user_id: str
    sent_signature: Any
    meanwhile: Callable[[], Awaitable[Any]] = skip_confirmation
    refusal: WorkspaceError | None = None
    confirm: Callable[[], Awaitable[None]] = skip_confirmation
    auth_time: datetime = datetime(2026, 1, 5, 8, tzinfo=UTC)
    sessions: list[SigningSession] = field(default_factory=list)

    @asynccontextmanager
    async def sign(self, append_id: str, chain: ChainKey) -> AsyncIterator[SigningSession]:
        """Yield a session with the sent signature, or raise the error that the test has set."""
        assert (append_id.startswith(SIGNED_EVENT), chain) == (True, ChainKey(Target.PLATFORM_CONFIG))
        if self.refusal is not None:
            raise self.refusal
        await self.meanwhile()
        meaning, statement = self.sent_signature["meaning"], self.sent_signature.get("statement")
        signature = DecisionSignature(self.user_id, self.user_id, meaning, statement, self.auth_time, ("key",))
        session = SigningSession(signature, self.confirm)
        yield session
        self.sessions.append(session)


@pytest.mark.parametrize("verb", ["approve", "reject"])
@pytest.mark.parametrize("is_same_sign_in", [True, False])
async def test_a_late_decision_uses_the_sign_in_with_which_it_was_signed(
    queries: QueryDefinitions, verb: str, *, is_same_sign_in: bool
) -> None:
    """If a repeat finds the late decision of the first attempt, its sign-in is used only if it signed this decision."""

    async def decide(signer: FakeSigner) -> None:
        if verb == "approve":
            await queries.approve_query(ADMIN, "q2", append_id="a", signer=signer)
        else:
            await queries.reject_query(ADMIN, "q2", "Too slow", append_id="a", signer=signer)

    sent = {"meaning": "approval" if verb == "approve" else "rejection"}
    first = FakeSigner(ADMIN, sent)
    repeat = FakeSigner(ADMIN, sent, meanwhile=partial(decide, first))
    if not is_same_sign_in:
        repeat.auth_time += timedelta(seconds=1)
    await decide(repeat)
    assert [session.is_decided for session in (*first.sessions, *repeat.sessions)] == [True, is_same_sign_in]


async def test_a_repeated_approval_signs_no_version_that_was_stored_meanwhile(processes: Processes) -> None:
    """If the late approval of the first attempt is stored, and then a new draft, the repeat does not approve this."""
    queries, _ = processes.services
    await queries.store_draft(build_member("a"), build_query())
    sent = {"meaning": "approval"}

    async def approve_and_edit() -> None:
        await queries.approve_query(ADMIN, "mine", append_id="a", signer=FakeSigner(ADMIN, sent))
        await queries.store_draft(build_member("a"), build_query("Telemetry | take 2"))

    repeat = queries.approve_query(ADMIN, "mine", append_id="a", signer=FakeSigner(ADMIN, sent, approve_and_edit))
    assert await get_error_code(repeat) == "CATALOG_CHANGED"
    assert await processes.list_actions("mine") == ["Created", "Approved", "Updated"]


async def test_each_stored_signed_decision_has_its_own_event(processes: Processes, queries: QueryDefinitions) -> None:
    """If another person has rejected a draft again meanwhile, a repeated rejection is audited once more."""
    for member, append_id in ((ADMIN, "a"), ("qa@x", "b"), (ADMIN, "a")):
        signer = FakeSigner(member, {"meaning": "rejection"})
        await queries.reject_query(member, "q2", f"Rejected by {member}", append_id=append_id, signer=signer)
    assert await processes.list_actions("q2") == ["Created", "Rejected", "Rejected", "Rejected"]


async def test_only_the_stored_signature_of_an_approved_query_is_accepted(
    processes: Processes, queries: QueryDefinitions
) -> None:
    """If a query is approved, another signature is rejected before it is checked; a retry gets the stored approval."""
    signature = {"meaning": "approval", "statement": "Seen."}
    approved = await queries.approve_query(ADMIN, "q2", signer=FakeSigner(ADMIN, signature))
    locked = WorkspaceError(Kind.THROTTLED, "SIGNATURE_LOCKED", "Too many signatures were refused.")
    for user_id, sent in (("qa@x", signature), (ADMIN, {**signature, "statement": "Read."}), (ADMIN, "yes")):
        refused = queries.approve_query(user_id, "q2", signer=FakeSigner(user_id, sent, refusal=locked))
        assert await get_error_code(refused) == "WARM_QUERY_APPROVED"
    retry = FakeSigner(ADMIN, signature, refusal=locked)
    assert await queries.approve_query(ADMIN, "q2", signer=retry) == approved
    assert await queries.approve_query("qa@x", "q2", signer=FakeSigner("qa@x", None)) == approved
    assert await processes.list_actions("q2") == ["Created", "Approved"]


async def test_one_of_two_simultaneous_signatures_of_an_approval_is_rejected(processes: Processes) -> None:
    """If another person approves a query while a signature is checked, the decision with this signature is rejected."""
    first, second = processes.services

    async def approve_first() -> None:
        await first.approve_query(ADMIN, "q2", signer=FakeSigner(ADMIN, {"meaning": "approval"}))

    late = second.approve_query("qa@x", "q2", signer=FakeSigner("qa@x", {"meaning": "approval"}, approve_first))
    assert await get_error_code(late) == "WARM_QUERY_APPROVED"


async def test_a_signature_is_confirmed_again_after_a_concurrent_change(processes: Processes) -> None:
    """If the catalog changes before a signed decision is stored, its signature is confirmed again, or refused."""
    first, second = processes.services

    async def confirm() -> None:
        if "mine" in {item.key for item in (await processes.opened[0].store.load()).items}:
            raise WorkspaceError(Kind.CONFLICT, "SIGNATURE_TOKEN_USED", "used")
        await first.store_draft(build_member("a"), build_query())

    signer = FakeSigner(ADMIN, {"meaning": "approval"}, confirm=confirm)
    assert await get_error_code(second.approve_query(ADMIN, "q2", signer=signer)) == "SIGNATURE_TOKEN_USED"
    assert await processes.list_actions("q2") == ["Created"]


async def test_a_signature_of_an_approved_query_approves_no_later_draft(queries: QueryDefinitions) -> None:
    """A signature of an approved query is rejected before another person can store a draft in its place."""
    await queries.store_draft(build_member("a"), build_query())
    await queries.approve_query(ADMIN, "mine")

    async def store_draft() -> None:
        await queries.store_draft(build_member("a"), build_query("Telemetry | take 2"))

    late = queries.approve_query("qa@x", "mine", signer=FakeSigner("qa@x", {"meaning": "approval"}, store_draft))
    assert await get_error_code(late) == "WARM_QUERY_APPROVED"


async def test_a_rejection_with_another_signature_is_stored(processes: Processes, queries: QueryDefinitions) -> None:
    """A repeated rejection of a draft is stored again only if its signature differs from the stored signature."""
    first, second = {"meaning": "rejection"}, {"meaning": "rejection", "statement": "Still too slow."}
    statements = list[str | None]()
    for sent in (first, {**first, "statement": None}, second, None):
        rejected = await queries.reject_query(ADMIN, "q2", "Too slow", signer=FakeSigner(ADMIN, sent))
        assert rejected.value.rejection is not None
        assert rejected.value.rejection.signature is not None
        statements.append(rejected.value.rejection.signature.statement)
    assert statements == [None, None, "Still too slow.", "Still too slow."]
    assert await processes.list_actions("q2") == ["Created", "Rejected", "Rejected"]


async def test_concurrent_edit_and_approval_exclude_each_other(processes: Processes) -> None:
    """If an edit and an approval arrive at once, one of them fails, so that no unread text is approved."""
    editor, approver = processes.services
    for number in range(10):
        seen, _ = await editor.store_draft(build_member("a"), build_query())
        edit = editor.store_draft(build_member("b"), build_query(f"Telemetry | take {number}"), build_condition(seen))
        replies = await asyncio.gather(
            edit, approver.approve_query(ADMIN, "mine", build_condition(seen)), return_exceptions=True
        )
        refused = [reply.code for reply in replies if isinstance(reply, WorkspaceError)]
        assert refused == ["PRECONDITION_FAILED"]
        [item] = [each for each in (await processes.opened[0].store.load()).items if each.key == "mine"]
        assert (item.definition["approval"] is None) == (item.definition["kql"] != seen.value.kql)


async def test_put_returns_etag_of_own_edit(processes: Processes) -> None:
    """A PUT returns the ETag of its own edit, so that a later edit with this ETag overwrites no other edit."""
    services = processes.services
    edits = [
        services[number % 2].store_draft(build_member(f"e{number}"), build_query(f"Telemetry | take {number}"))
        for number in range(8)
    ]
    answered = await asyncio.gather(*edits)
    assert [(stored.value.kql, stored.edited_by) for stored, _ in answered] == [
        (f"Telemetry | take {number}", f"e{number}") for number in range(8)
    ]
    tags = {compute_query_etag(stored) for stored, _ in answered}
    [item] = [each for each in (await processes.opened[0].store.load()).items if each.key == "mine"]
    read = CatalogEntry(WarmQuery.model_validate(item.definition), item.created_at, item.updated_at, item.edited_by)
    assert len(tags) == 8
    assert compute_query_etag(read) in tags


async def test_apply_changes_etag_of_changed_query(processes: Processes, queries: QueryDefinitions) -> None:
    """Applying a workspace document changes the ETags of only those queries that it changes."""
    draft = await queries.approve_query(ADMIN, "q2")
    await processes.opened[1].service.apply(load_document(PLANT, "w.yaml"), "apply")
    assert await queries.approve_query("other@x", "q2", build_condition(draft)) == draft
    await processes.opened[1].service.apply(load_document(PLANT.replace("take 1", "take 2"), "w.yaml"), "apply")
    assert (
        await get_error_code(queries.delete_query(build_member("a"), "q2", build_condition(draft)))
        == "PRECONDITION_FAILED"
    )
