"""Tests that every store of OAuth grants meets the same contract."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.auth.rights import AccessRight
from shared.auth.sign_ins import SignIn
from shared.backends.azure.cosmos_credentials import CosmosGrantStore
from shared.backends.embedded.grants import SCHEMA, SqliteGrantStore
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.oauth.grants import CodeProof, EndReason, Grant, GrantEnd, GrantStore, RefreshState
from shared.timestamps import now
from tests.adapters.cosmos import KINDS, open_accounts
from tests.thread_records import record_calls_in_event_loop

AT = now()
HOUR = timedelta(hours=1)
CODE = CodeProof("code-digest", "challenge", "http://127.0.0.1/ö", AT + HOUR)
REFRESH = RefreshState("family", "first", AT + 30 * HOUR, AT, AT)
END = GrantEnd(AT, EndReason.MEMBER, "viewer@x", {"via": "jwt", "credentialId": "jti"})
GRANT = Grant(
    grant_id="0001",
    member_id="viewer@x",
    client_id="https://app.example/client.json",
    client_name="Ä tool",
    rights=frozenset({AccessRight.CATALOG_READ, AccessRight.MCP_USE}),
    created_at=AT,
    code=CODE,
    sign_in=SignIn(datetime.fromtimestamp(1_700_000_000, UTC), ("key", "mfa"), "s1"),
    token_id="jti",
    api_key_id="AAAAAAAA",
)
type Opener = Callable[[], GrantStore]


@pytest.fixture(params=["sqlite", *KINDS])
async def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Yield a function that opens the same store at each call, as several processes do; tests run with each kind."""
    async with AsyncExitStack() as stack:
        if request.param == "sqlite":

            def open_another() -> GrantStore:
                database = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA)
                stack.push_async_callback(database.close)
                return SqliteGrantStore(database)

            yield open_another
        else:
            account = await stack.enter_async_context(open_accounts(request.param))
            yield lambda: CosmosGrantStore(account())


async def test_a_stored_grant_is_found_with_all_attributes(open_store: Opener) -> None:
    """Another process finds a grant with all attributes, also after the grant is replaced."""
    store, other = open_store(), open_store()
    await store.add_grant(GRANT)
    found = await other.find_grant("0001")
    assert found is not None
    assert found.grant == GRANT
    redeemed = replace(GRANT, refresh=REFRESH, ancestor_ids=("b", "a"), credential_ends_at=AT, end=END)
    assert await other.try_replace_grant(found, redeemed)
    again = await store.find_grant("0001")
    assert again is not None
    assert again.grant == redeemed
    assert await store.find_grant("unknown") is None


async def test_one_of_several_replacements_of_a_grant_succeeds(open_store: Opener) -> None:
    """If several processes replace a grant at the same time, exactly one succeeds."""
    stores = [open_store() for _ in range(4)]
    await stores[0].add_grant(GRANT)
    found = [await store.find_grant("0001") for store in stores]
    attempts = [replace(GRANT, refresh=replace(REFRESH, digest=f"d{number}")) for number in range(4)]
    won = await asyncio.gather(
        *(
            store.try_replace_grant(before, after)
            for store, before, after in zip(stores, found, attempts, strict=True)
            if before
        )
    )
    assert sorted(won) == [False, False, False, True]
    last = await stores[0].find_grant("0001")
    assert last is not None
    assert last.grant == attempts[won.index(True)]


async def test_active_grants_are_listed(open_store: Opener) -> None:
    """The list contains each grant that is redeemed and has neither ended nor expired."""
    store = open_store()
    active = replace(GRANT, grant_id="0002", refresh=REFRESH)
    foreign = replace(active, grant_id="0003", member_id="editor@x")
    ended = replace(active, grant_id="0004", end=END)
    expired = replace(active, grant_id="0005", refresh=replace(REFRESH, expires_at=AT - HOUR))
    for grant in (GRANT, foreign, active, ended, expired):
        await store.add_grant(grant)
    assert list(await open_store().list_active_grants("viewer@x")) == [active]
    assert list(await open_store().list_active_grants()) == [active, foreign]
    assert list(await store.list_active_grants("nobody")) == []


async def test_lists_of_grants_are_parsed_in_a_worker_thread(
    open_store: Opener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grants of a list are parsed in a worker thread, because thousands of grants would block the event loop."""
    store = open_store()
    await store.add_grant(replace(GRANT, refresh=REFRESH))
    calls = record_calls_in_event_loop(monkeypatch, Grant, "__init__")
    assert len(await store.list_active_grants()) == len(await store.list_grants_of_credential("jti")) == 1
    assert calls == [False, False]


async def test_grants_of_a_credential_are_listed(open_store: Opener) -> None:
    """Grants can be listed by the credential (token or API key) with which the person consented."""
    store = open_store()
    other = replace(GRANT, grant_id="0002", token_id="other", api_key_id="", refresh=REFRESH)
    for grant in (GRANT, other, replace(GRANT, grant_id="0003", end=END)):
        await store.add_grant(grant)
    assert list(await store.list_grants_of_credential("jti")) == [GRANT]
    assert list(await store.list_grants_of_credential("AAAAAAAA")) == [GRANT]
    assert list(await store.list_grants_of_credential("other")) == [other]
    assert list(await store.list_grants_of_credential("unknown")) == []


async def test_grants_of_an_ancestor_are_listed(open_store: Opener) -> None:
    """Grants can be listed by each token from which the token of the consent descends."""
    store = open_store()
    line = replace(GRANT, grant_id="0002", token_id="child", ancestor_ids=("parent", "root"))
    renewed = replace(line, grant_id="0003", ancestor_ids=("root",))
    for grant in (GRANT, line, renewed):
        await store.add_grant(grant)
    stored = await store.find_grant("0003")
    assert stored is not None
    assert await store.try_replace_grant(stored, replace(renewed, refresh=REFRESH))
    assert list(await store.list_grants_of_credential("parent")) == [line]
    assert list(await store.list_grants_of_credential("root")) == [line, replace(renewed, refresh=REFRESH)]
    assert list(await store.list_grants_of_credential("oo")) == []


async def test_ended_grants_without_an_audit_event_are_listed(open_store: Opener) -> None:
    """The list of ended grants without an audit event contains a grant until its audit event is stored."""
    store = open_store()
    await store.add_grant(GRANT)
    await store.add_grant(replace(GRANT, grant_id="0002", refresh=REFRESH, end=END))
    [found] = await open_store().list_grants_with_unrecorded_end()
    assert found.grant.grant_id == "0002"
    assert await store.try_replace_grant(found, replace(found.grant, end=replace(END, is_recorded=True)))
    assert list(await store.list_grants_with_unrecorded_end()) == []
