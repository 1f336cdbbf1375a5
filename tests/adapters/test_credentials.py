"""Tests that every credential store meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Protocol

import pytest

from shared.auth.access_events import AccessEvent
from shared.auth.ports import ApiKey, CredentialStore, IssuedToken
from shared.auth.rights import AccessRight
from shared.auth.telemetry_binding import TelemetryBinding
from shared.backends.azure.cosmos_credentials import CosmosCredentialStore
from shared.backends.embedded.credentials import SCHEMA, SqliteCredentialStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import Kind, WorkspaceError
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import now
from tests.adapters.cosmos import KINDS, open_accounts
from tests.thread_records import record_calls_in_event_loop

HOUR = timedelta(hours=1)
AT = now()
RIGHTS = frozenset({AccessRight.CATALOG_READ, AccessRight.KEYS_MANAGE})
KEY = ApiKey("AAAAAAAA", b"\x00salt\xff", b"digest", "admin@x", "Ö", RIGHTS, AT, AT + HOUR)


EVENT = AccessEvent(
    "key-revoked-AAAAAAAA", "ann", "ApiKey.Revoked", "ApiKey", KEY.key_id, {"principal": "ö"}, {"madeWith": None}
)


class Opener(Protocol):
    """Opens the same store at each call, as several processes do."""

    def __call__(self, runtime: Runtime = SYSTEM_RUNTIME) -> CredentialStore:
        """Open the store in a process with the given clock."""
        ...


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call; tests run with each kind."""
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":

            def open_another(runtime: Runtime = SYSTEM_RUNTIME) -> CredentialStore:
                database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA, runtime=runtime)
                stack.push_async_callback(database.close)
                return SqliteCredentialStore(database)

            yield open_another
        else:
            account = await stack.enter_async_context(open_accounts(request.param))
            yield lambda runtime=SYSTEM_RUNTIME: CosmosCredentialStore(account(runtime))


@pytest.fixture
def store(open_store: Opener) -> CredentialStore:
    """Provide an empty store; each test runs with each kind of store."""
    return open_store()


def build_token(token_id: str, parent: str = "", *, expires_at: datetime = AT + HOUR) -> IssuedToken:
    return IssuedToken(token_id, "admin@x", expires_at, parent)


async def list_revoked_tokens(store: CredentialStore) -> set[str]:
    return set((await store.load()).revoked_tokens)


async def test_a_new_key_is_loaded_with_all_attributes(open_store: Opener) -> None:
    """Another process loads a new key with all attributes; each new key increments the version."""
    store = open_store()
    before = await store.read_version()
    await store.add_or_get_key(KEY)
    unlimited = ApiKey("BBBBBBBB", b"s", b"d", "historian", "", None, AT, None, creators=("admin@x", "ö/x"))
    await store.add_or_get_key(unlimited)
    bound = replace(KEY, key_id="CCCCCCCC", binding=TelemetryBinding(("press",), ("rig-*",)))
    await store.add_or_get_key(bound)
    unknown = replace(KEY, key_id="DDDDDDDD", creators=None)
    await store.add_or_get_key(unknown)
    loaded = await open_store().load()
    assert loaded.keys == {"AAAAAAAA": KEY, "BBBBBBBB": unlimited, "CCCCCCCC": bound, "DDDDDDDD": unknown}
    assert loaded.version == await open_store().read_version() > before + 1


async def test_keys_are_parsed_in_a_worker_thread(store: CredentialStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """All keys are parsed in a worker thread, because thousands of keys would block the event loop."""
    await store.add_or_get_key(KEY)
    calls = record_calls_in_event_loop(monkeypatch, ApiKey, "__init__")
    await store.load()
    assert calls == [False]


async def test_a_key_is_found_by_its_id(open_store: Opener) -> None:
    """Another process finds a key by its id as soon as it is stored or revoked; an unknown id finds none."""
    store, other = open_store(), open_store()
    bound = replace(KEY, binding=TelemetryBinding(("press",), ("rig-*",)), creators=("ann",))
    assert await other.find_key(KEY.key_id) is None
    await store.add_or_get_key(bound)
    assert await other.find_key(KEY.key_id) == bound
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT)
    assert await other.find_key(KEY.key_id) == replace(bound, revoked_at=AT)
    assert await other.find_key("BBBBBBBB") is None


async def test_a_right_of_a_newer_version_is_left_out(store: CredentialStore) -> None:
    """A key with an access right that this version does not know is loaded without it, and hides no other key."""
    names: list[str] = ["Workspace.Future.Right", AccessRight.CATALOG_READ]
    newer = replace(KEY, key_id="BBBBBBBB", rights=frozenset(names))  # type: ignore[arg-type]  # as a newer version
    only_newer = replace(KEY, key_id="CCCCCCCC", rights=frozenset(names[:1]))  # type: ignore[arg-type]  # as above
    for key in (KEY, newer, only_newer):
        await store.add_or_get_key(key)
    known = replace(newer, rights=frozenset({AccessRight.CATALOG_READ}))
    assert (await store.load()).keys == {
        KEY.key_id: KEY,
        newer.key_id: known,
        only_newer.key_id: replace(only_newer, rights=frozenset()),
    }
    assert await store.add_or_get_key(newer) == known


@pytest.mark.parametrize("shift", [-HOUR, HOUR])
async def test_storing_an_api_key_again_changes_nothing(store: CredentialStore, shift: timedelta) -> None:
    """Storing a key again with the same id and secret succeeds and changes nothing."""
    for key in (KEY, replace(KEY, key_id="BBBBBBBB", creators=None, binding=TelemetryBinding(("press",), ()))):
        assert await store.add_or_get_key(key) == key
        version = await store.read_version()
        assert await store.add_or_get_key(replace(key, created_at=AT + shift, creators=("admin@x",))) == key
        assert (await store.read_version(), (await store.load()).keys[key.key_id]) == (version, key)


async def test_a_key_id_cannot_get_a_second_secret(store: CredentialStore) -> None:
    """Storing another secret under an existing id is rejected and changes nothing."""
    await store.add_or_get_key(KEY)
    with pytest.raises(WorkspaceError) as caught:
        await store.add_or_get_key(replace(KEY, digest=b"other", created_at=AT + HOUR))
    assert caught.value.code == "CREDENTIALS_UNAVAILABLE"
    assert (await store.load()).keys == {KEY.key_id: KEY}


async def test_storing_a_revoked_api_key_again_does_not_restore_it(store: CredentialStore) -> None:
    """Storing a key again does not change its last use or its revocation."""
    await store.add_or_get_key(KEY)
    await store.store_last_use(KEY.key_id, AT)
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT + HOUR)
    stored = await store.add_or_get_key(KEY)
    assert (stored.last_used_at, stored.revoked_at) == (AT, AT + HOUR)
    assert (await store.load()).keys == {KEY.key_id: stored}


async def test_a_principal_cannot_have_more_unrevoked_keys_than_the_limit(open_store: Opener) -> None:
    """Concurrent processes store no more keys than the limit; a repetition succeeds, and a revocation frees a place."""
    stores = [open_store(), open_store()]
    keys = [replace(KEY, key_id=f"AAAAAAA{letter}") for letter in "ABCDEF"]
    results = await asyncio.gather(
        *(stores[number % 2].add_or_get_key(key, max_unrevoked_keys=2) for number, key in enumerate(keys)),
        return_exceptions=True,
    )
    codes = [result.code for result in results if isinstance(result, WorkspaceError)]
    assert codes == ["TOO_MANY_API_KEYS"] * 4
    stored, other = (await stores[0].load()).keys.values()
    assert await stores[0].add_or_get_key(stored, max_unrevoked_keys=2) == stored
    await stores[0].add_or_get_key(replace(KEY, key_id="BBBBBBBB", principal="ann"), max_unrevoked_keys=2)
    await stores[0].revoke_key_and_find_pending_event(other.key_id, AT)
    await stores[0].add_or_get_key(replace(KEY, key_id="CCCCCCCC"), max_unrevoked_keys=2)
    with pytest.raises(WorkspaceError, match="2 API keys"):
        await stores[0].add_or_get_key(replace(KEY, key_id="DDDDDDDD"), max_unrevoked_keys=2)


async def test_the_last_use_of_a_key_does_not_change_the_version(store: CredentialStore) -> None:
    """Recording the last use of a key does not change the version; a missing key is ignored."""
    await store.add_or_get_key(KEY)
    version = await store.read_version()
    await store.store_last_use(KEY.key_id, AT + HOUR)
    await store.store_last_use("ZZZZZZZZ", AT)
    assert (await store.load()).keys == {KEY.key_id: replace(KEY, last_used_at=AT + HOUR)}
    assert await store.read_version() == version


async def test_revoking_a_key_revokes_the_tokens_that_descend_from_it(store: CredentialStore) -> None:
    """Revoking a key also revokes all tokens that descend from it, and no other tokens."""
    await store.add_or_get_key(KEY)
    for each in (
        build_token("a", KEY.key_id),
        build_token("b", "a"),
        build_token("c", "b"),
        build_token("x"),
        build_token("y", "BBBBBBBB"),
    ):
        await store.add_token(each)
    version = await store.read_version()
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT)
    assert await list_revoked_tokens(store) == {"a", "b", "c"}
    assert await store.read_version() > version
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT + HOUR)
    assert (await store.load()).keys[KEY.key_id].revoked_at == AT


async def test_revoking_a_token_revokes_the_tokens_issued_with_it(store: CredentialStore) -> None:
    """Revoking a token also revokes tokens that were issued with it, but not its own issuing token."""
    for each in (build_token("a"), build_token("b", "a"), build_token("c", "b"), build_token("d", "a")):
        await store.add_token(each)
    version = await store.read_version()
    await store.revoke_token_and_find_pending_event("b", AT)
    assert await list_revoked_tokens(store) == {"b", "c"}
    assert await store.read_version() > version
    await store.revoke_token_and_find_pending_event("unknown", AT)
    await store.revoke_token_and_find_pending_event("a", AT)
    assert await list_revoked_tokens(store) == {"a", "b", "c", "d"}


async def catch_error(awaitable: Awaitable[object]) -> WorkspaceError:
    with pytest.raises(WorkspaceError) as caught:
        await awaitable
    return caught.value


async def test_a_revoked_credential_gets_no_new_token_or_key(open_store: Opener) -> None:
    """A process that does not know a revocation yet cannot add a token or key for the revoked key or token."""
    store, other = open_store(), open_store()
    await store.add_or_get_key(KEY)
    for each in (build_token("a", KEY.key_id), build_token("b", "a"), build_token("x"), build_token("y", "x")):
        await store.add_token(each)
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT)
    await store.revoke_token_and_find_pending_event("x", AT)
    for number, parent in enumerate((KEY.key_id, "a", "b", "x", "y")):
        assert (await catch_error(other.add_token(build_token(f"new{number}", parent)))).kind is Kind.UNAUTHENTICATED
        assert await other.find_token(f"new{number}") is None
        made = replace(KEY, key_id=f"KEY0000{number}")
        assert (await catch_error(other.add_or_get_key(made, parent))).kind is Kind.UNAUTHENTICATED
        assert await other.is_revoked(parent)
    assert set((await store.load()).keys) == {KEY.key_id}
    assert not await other.is_revoked("unknown")


async def test_an_active_credential_gets_new_tokens_and_keys(store: CredentialStore) -> None:
    """Tokens and keys can be added for a key, token or OAuth grant that is not revoked."""
    await store.add_or_get_key(KEY)
    await store.add_token(build_token("a", KEY.key_id))
    await store.add_token(build_token("b", "a"))
    await store.add_token(build_token("c", "grant"))
    for number, parent in enumerate((KEY.key_id, "a", "grant")):
        assert not await store.is_revoked(parent)
        await store.add_or_get_key(replace(KEY, key_id=f"KEY0000{number}"), parent)


@pytest.mark.parametrize("kind", ["key", "token"])
async def test_no_token_survives_a_simultaneous_revocation_of_its_parent(open_store: Opener, kind: str) -> None:
    """Each token that is added while an ancestor is being revoked is either rejected or revoked."""
    stores = [open_store() for _ in range(3)]
    await stores[0].add_or_get_key(KEY)
    await stores[0].add_token(build_token("root", KEY.key_id))
    added = {"root"}

    async def add_line(store: CredentialStore, line: int) -> None:
        parent = "root"
        for number in range(8):
            token = build_token(f"{line}-{number}", parent)
            try:
                await store.add_token(token)
            except WorkspaceError as error:
                assert error.kind is Kind.UNAUTHENTICATED  # noqa: PT017  any number of tokens can be added before
                return
            added.add(token.token_id)
            parent = token.token_id if number % 2 else parent

    async def revoke() -> None:
        await (
            stores[2].revoke_key_and_find_pending_event(KEY.key_id, AT)
            if kind == "key"
            else stores[2].revoke_token_and_find_pending_event("root", AT)
        )

    await asyncio.gather(*(add_line(stores[line % 2], line) for line in range(6)), revoke())
    assert added <= await list_revoked_tokens(stores[0])


async def test_no_key_is_added_after_a_simultaneous_revocation(open_store: Opener) -> None:
    """Keys that a key requests while it is being revoked are stored only before the revocation."""
    stores = [open_store() for _ in range(2)]
    await stores[0].add_or_get_key(KEY)
    keys = [replace(KEY, key_id=f"KEY0000{number}") for number in range(6)]
    outcomes = asyncio.gather(*(stores[0].add_or_get_key(key, KEY.key_id) for key in keys), return_exceptions=True)
    await stores[1].revoke_key_and_find_pending_event(KEY.key_id, AT)
    stored = (await stores[1].load()).keys
    for key, outcome in zip(keys, await outcomes, strict=True):
        assert isinstance(outcome, ApiKey) == (key.key_id in stored)
        assert isinstance(outcome, ApiKey) or (
            isinstance(outcome, WorkspaceError) and outcome.kind is Kind.UNAUTHENTICATED
        )
    assert set((await stores[1].load()).keys) == set(stored)


async def test_more_tokens_than_a_batch_can_hold_are_all_revoked(store: CredentialStore) -> None:
    """If a key has more tokens than one batch can hold, all of them are revoked, and one event is pending."""
    await store.add_or_get_key(KEY)
    for first in range(0, 120, 20):
        await asyncio.gather(
            *(store.add_token(build_token(f"t{number}", KEY.key_id)) for number in range(first, first + 20))
        )
    assert await store.revoke_key_and_find_pending_event(KEY.key_id, AT, EVENT) == EVENT
    assert len(await list_revoked_tokens(store)) == 120
    assert await store.list_pending_events() == [EVENT]


async def test_the_store_returns_expired_tokens_for_some_time(open_store: Opener) -> None:
    """A token is found for a time after its expiry; the list of revoked tokens has no tokens that expired long ago."""
    store = open_store()
    living, dead = build_token("living", "p"), build_token("dead", expires_at=AT - 2 * HOUR)
    expired = build_token("expired", "p", expires_at=AT - HOUR / 2)
    await store.add_token(dead)
    await store.add_token(expired)
    await store.add_token(living)
    assert await open_store().find_token("living") == living
    assert await open_store().find_token("expired") == expired
    assert await store.find_token("unknown") is None
    await store.revoke_token_and_find_pending_event("living", AT)
    await store.revoke_token_and_find_pending_event("dead", AT)
    assert await store.find_token("living") == living
    assert await list_revoked_tokens(store) == {"living"}


@pytest.mark.parametrize("revoked", ["token", "consent"])
async def test_a_revocation_stays_in_force_after_a_clock_was_set_back(open_store: Opener, revoked: str) -> None:
    """A token stays revoked if the clock was ahead during the revocation, so that the token seemed expired."""
    ahead = Runtime(now=lambda: now() + timedelta(minutes=100))
    correct, store = open_store(), open_store(ahead)
    await correct.add_token(build_token("token", "consent"))
    await store.add_token(build_token("newer", expires_at=ahead.now() + HOUR))
    await store.revoke_token_and_find_pending_event(revoked, ahead.now())
    assert await list_revoked_tokens(store) == {"token"}
    assert await list_revoked_tokens(correct) == {"token"}


async def test_concurrent_changes_of_credentials_are_all_stored(open_store: Opener) -> None:
    """If several processes change credentials at the same time, all changes are stored."""
    stores = [open_store() for _ in range(3)]
    keys = [replace(KEY, key_id=f"KEY0000{number}") for number in range(9)]
    before = await stores[0].read_version()
    await asyncio.gather(*(stores[number % 3].add_or_get_key(key) for number, key in enumerate(keys)))
    assert await stores[0].read_version() >= before + 9
    await asyncio.gather(
        *(stores[number % 3].revoke_key_and_find_pending_event(key.key_id, AT) for number, key in enumerate(keys))
    )
    loaded = await stores[0].load()
    assert [key.revoked_at for key in loaded.keys.values()] == [AT] * 9
    assert loaded.version >= before + 18


@pytest.mark.parametrize("kind", ["key", "token", "unknown"])
async def test_a_revocation_stores_its_pending_event(open_store: Opener, kind: str) -> None:
    """The event of a revocation is pending in all processes until it is deleted; a second deletion changes nothing."""
    store = open_store()
    await store.add_or_get_key(KEY)
    await store.add_token(build_token("token"))
    revoke = store.revoke_key_and_find_pending_event if kind == "key" else store.revoke_token_and_find_pending_event
    revoked = {"key": KEY.key_id, "token": "token", "unknown": "?"}[kind]
    assert await revoke(revoked, AT, EVENT) == EVENT
    assert await open_store().list_pending_events() == [EVENT]
    for _ in range(2):
        await store.delete_pending_event(EVENT.append_id)
    assert await open_store().list_pending_events() == []


async def test_a_revocation_without_an_event_leaves_none_pending(store: CredentialStore) -> None:
    """Without an event, a revocation stores no pending event and returns None."""
    await store.add_or_get_key(KEY)
    assert await store.revoke_key_and_find_pending_event(KEY.key_id, AT) is None
    assert await store.revoke_token_and_find_pending_event("unknown", AT) is None
    assert await store.list_pending_events() == []


async def test_a_repeated_revocation_does_not_change_the_pending_event(open_store: Opener) -> None:
    """A second revocation, also in another process, returns the pending event of the first."""
    store = open_store()
    await store.add_or_get_key(KEY)
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT, EVENT)
    assert (
        await open_store().revoke_key_and_find_pending_event(KEY.key_id, AT + HOUR, replace(EVENT, actor="bob"))
        == EVENT
    )
    assert await store.list_pending_events() == [EVENT]


async def test_simultaneous_revocations_store_one_pending_event(open_store: Opener) -> None:
    """If several processes revoke a key at the same time, all get the one event that is stored."""
    stores = [open_store() for _ in range(3)]
    await stores[0].add_or_get_key(KEY)
    revocations = (
        each.revoke_key_and_find_pending_event(KEY.key_id, AT, replace(EVENT, actor=f"member{number}"))
        for number, each in enumerate(stores)
    )
    returned = await asyncio.gather(*revocations)
    assert [returned[0]] * 3 == returned == [*await stores[0].list_pending_events()] * 3


async def test_pending_events_are_listed_oldest_first(store: CredentialStore) -> None:
    """Pending events are listed in the order of their revocations; a deleted event leaves the others."""
    events = [replace(EVENT, append_id=f"token-revoked-{name}", entity_id=name) for name in ("c", "a", "b")]
    for number, event in enumerate(events):
        await store.revoke_token_and_find_pending_event(event.entity_id, AT + number * HOUR, event)
    assert await store.list_pending_events() == events
    await store.delete_pending_event(events[1].append_id)
    assert await store.list_pending_events() == [events[0], events[2]]


class DamagedEvent(AccessEvent):
    """Event whose stored form is damaged."""

    def to_json_text(self) -> str:
        """Return a text that is not an event."""
        return "{"


async def test_a_damaged_pending_event_does_not_hide_others(store: CredentialStore) -> None:
    """A damaged pending event is omitted, and a repeated revocation returns its own event instead."""
    damaged = DamagedEvent("token-revoked-x", "ann", "Token.Revoked", "Token", "x")
    await store.revoke_token_and_find_pending_event("x", AT, damaged)
    await store.revoke_key_and_find_pending_event(KEY.key_id, AT, EVENT)
    assert await store.list_pending_events() == [EVENT]
    repeated = replace(EVENT, append_id=damaged.append_id)
    assert await store.revoke_token_and_find_pending_event("x", AT, repeated) == repeated
    await store.delete_pending_event(damaged.append_id)
    assert await store.list_pending_events() == [EVENT]
