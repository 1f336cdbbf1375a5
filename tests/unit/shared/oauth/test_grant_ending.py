"""Tests of how grants end: by a removed client, by a revoked credential, and after an interruption."""

import asyncio
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from shared.auth.access_events import AccessEvent
from shared.auth.ports import IssuedToken
from shared.errors import WorkspaceError
from shared.oauth.grants import EndReason, Grant
from shared.oauth.parameters import Parameters
from tests.unit.shared.oauth.conftest import CLIENT, MEMBER, Server, check_invalid_grant


@pytest.mark.parametrize("is_declared_again", [False, True])
async def test_a_removed_client_ends_its_grants(oauth_server: Server, *, is_declared_again: bool) -> None:
    """If a client is removed from the workspace document, its grants and tokens end, even if it is declared again."""
    first, second = (
        await oauth_server.redeem(await oauth_server.consent_as_member()),
        await oauth_server.redeem(await oauth_server.consent_as_member()),
    )
    oauth_server.declared.clear()
    oauth_server.time.advance(1)
    if is_declared_again:
        oauth_server.declared[CLIENT.client_id] = oauth_server.time.now
    await check_invalid_grant(oauth_server.refresh(first[1]))
    await oauth_server.ender.complete_ends_and_end_orphaned_grants()
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(second[0])
    assert oauth_server.list_end_reasons() == ["clientRemoved", "clientRemoved"]


async def test_a_revoked_credential_ends_the_grant(oauth_server: Server) -> None:
    """If the token or API key of the consent is revoked, the grant ends."""
    minted = await oauth_server.issuer.issue_token(oauth_server.build_caller(""), None, None)
    issued = await oauth_server.api_keys.create(oauth_server.build_caller(), "tmp")
    from_token = await oauth_server.redeem(await oauth_server.consent_as_member(minted.token_id))
    from_key = await oauth_server.redeem(await oauth_server.consent_as_member(issued.key.key_id))
    await oauth_server.issuer.revoke(oauth_server.build_caller(), minted.token_id)
    await oauth_server.api_keys.revoke(oauth_server.build_caller(), issued.key.key_id)
    for access, refresh in (from_token, from_key):
        with pytest.raises(WorkspaceError):
            await oauth_server.authenticate(access)
        await check_invalid_grant(oauth_server.refresh(refresh))
    assert oauth_server.list_end_reasons() == ["credentialRevoked", "credentialRevoked"]


async def _interrupt_end_of_grant(oauth_server: Server) -> tuple[str, str]:
    """Store the end of a grant, and fail before its tokens are revoked; return its access and refresh token."""
    access, refresh = await oauth_server.redeem(await oauth_server.consent_as_member())
    oauth_server.failures = 1
    with pytest.raises(ConnectionError):
        await oauth_server.ender.end_grant(refresh.split("_")[1], EndReason.MEMBER, MEMBER)
    assert oauth_server.list_end_reasons() == []
    return access, refresh


async def test_an_interrupted_end_of_a_grant_is_completed(oauth_server: Server) -> None:
    """If a process stops after storing the end of a grant, a job revokes the tokens and records one event."""
    access, _ = await _interrupt_end_of_grant(oauth_server)
    await oauth_server.ender.complete_ends_and_end_orphaned_grants()
    await oauth_server.ender.complete_ends_and_end_orphaned_grants()
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(access)
    assert oauth_server.list_end_reasons() == ["endedByMember"]


async def test_a_refresh_completes_an_interrupted_end_of_its_grant(oauth_server: Server) -> None:
    """A rejected refresh token of an ended grant revokes the access tokens if this was interrupted."""
    access, refresh = await _interrupt_end_of_grant(oauth_server)
    await check_invalid_grant(oauth_server.refresh(refresh))
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(access)
    assert oauth_server.list_end_reasons() == ["endedByMember"]


@pytest.mark.parametrize("kind", ["key", "token"])
async def test_a_consent_that_is_stored_during_the_revocation_ends(
    oauth_server: Server, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A consent that is stored just before the revocation ends, too."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    expires_at = oauth_server.time.now + timedelta(hours=1)
    await oauth_server.credential_store.add_token(IssuedToken("token", MEMBER, expires_at, issued.key.key_id))
    codes: list[Parameters] = []
    revoke_key_and_find_pending_event, revoke_token_and_find_pending_event = (
        oauth_server.credential_store.revoke_key_and_find_pending_event,
        oauth_server.credential_store.revoke_token_and_find_pending_event,
    )

    async def consent_and_revoke(credential_id: str, at: datetime, event: AccessEvent | None = None) -> object:
        if credential_id in (issued.key.key_id, "token"):
            codes.append(await oauth_server.consent_as_member("token"))
        return await (
            revoke_key_and_find_pending_event
            if credential_id == issued.key.key_id
            else revoke_token_and_find_pending_event
        )(credential_id, at, event)

    monkeypatch.setattr(oauth_server.credential_store, "revoke_key_and_find_pending_event", consent_and_revoke)
    monkeypatch.setattr(oauth_server.credential_store, "revoke_token_and_find_pending_event", consent_and_revoke)
    if kind == "key":
        await oauth_server.api_keys.revoke(oauth_server.build_caller(), issued.key.key_id)
    else:
        await oauth_server.issuer.revoke(oauth_server.build_caller(), "token")
    assert oauth_server.list_end_reasons() == ["credentialRevoked"]
    await check_invalid_grant(oauth_server.redeem(codes[0]))


@pytest.mark.parametrize("kind", ["key", "token"])
async def test_a_revocation_is_recorded_although_the_search_for_consents_fails(
    oauth_server: Server, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """The event of a revocation is recorded also if the search for consents fails."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    minted = await oauth_server.issuer.issue_token(oauth_server.build_caller(issued.key.key_id), None, None)
    search = oauth_server.store.list_grants_of_credential

    async def fail_after_revocation(credential_id: str) -> Sequence[Grant]:
        if await oauth_server.credential_store.is_revoked(credential_id):
            raise ConnectionError(credential_id)
        return await search(credential_id)

    monkeypatch.setattr(oauth_server.store, "list_grants_of_credential", fail_after_revocation)
    revoke, revoked_id, expected = (
        (oauth_server.api_keys.revoke, issued.key.key_id, "ApiKey.Revoked")
        if kind == "key"
        else (oauth_server.issuer.revoke, minted.token_id, "Token.Revoked")
    )
    with pytest.raises(ConnectionError):
        await revoke(oauth_server.build_caller(), revoked_id)
    assert oauth_server.trail[-1]["ActionType"] == expected


async def test_an_interrupted_revocation_ends_the_grant_later(
    oauth_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the process stops after a revocation, a job ends a consent that was stored before the revocation."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    revoke_key_and_find_pending_event = oauth_server.credential_store.revoke_key_and_find_pending_event

    async def consent_and_revoke(key_id: str, at: datetime, event: AccessEvent | None = None) -> AccessEvent | None:
        await oauth_server.consent_as_member(key_id)
        await revoke_key_and_find_pending_event(key_id, at, event)
        raise ConnectionError(key_id)

    with monkeypatch.context() as patched:
        patched.setattr(oauth_server.credential_store, "revoke_key_and_find_pending_event", consent_and_revoke)
        with pytest.raises(ConnectionError):
            await oauth_server.api_keys.revoke(oauth_server.build_caller(), issued.key.key_id)
    assert oauth_server.list_end_reasons() == []
    await oauth_server.revoker.complete_pending_revocations()
    assert oauth_server.list_end_reasons() == ["credentialRevoked"]
    assert [event["ActionType"] for event in oauth_server.trail].count("ApiKey.Revoked") == 1
    assert await oauth_server.credential_store.list_pending_events() == []


async def test_a_revocation_ends_grants_before_its_event_is_appended(
    oauth_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the event of a revocation waits for the audit chain, the tokens of the consents are already rejected."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    access, _ = await oauth_server.redeem(await oauth_server.consent_as_member(issued.key.key_id))
    is_appending = asyncio.Event()

    async def wait_for_chain(*_: object, **__: object) -> None:
        is_appending.set()
        await asyncio.Event().wait()

    with monkeypatch.context() as patched:
        patched.setattr(oauth_server, "append", wait_for_chain)
        revocation = asyncio.create_task(oauth_server.api_keys.revoke(oauth_server.build_caller(), issued.key.key_id))
        await is_appending.wait()
        with pytest.raises(WorkspaceError):
            await oauth_server.authenticate(access)
        revocation.cancel()
        await asyncio.gather(revocation, return_exceptions=True)
    oauth_server.trail.clear()
    await oauth_server.revoker.complete_pending_revocations()
    await oauth_server.ender.complete_ends_and_end_orphaned_grants()
    assert [event["ActionType"] for event in oauth_server.trail] == ["ApiKey.Revoked", "Grant.Ended"]


@pytest.mark.parametrize("kind", ["key", "token"])
async def test_a_revocation_is_in_force_while_the_audit_chain_is_unavailable(oauth_server: Server, kind: str) -> None:
    """During an outage of the chain, one request revokes a credential and ends all its consents with their tokens."""
    key = (await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")).key
    token = await oauth_server.issuer.issue_token(oauth_server.build_caller(key.key_id), None, None)
    grants = [await oauth_server.redeem(await oauth_server.consent_as_member(token.token_id)) for _ in range(3)]
    revoke, revoked_id, action = (
        (oauth_server.api_keys.revoke, key.key_id, "ApiKey.Revoked")
        if kind == "key"
        else (oauth_server.issuer.revoke, token.token_id, "Token.Revoked")
    )
    oauth_server.trail.clear()
    oauth_server.failures = 100
    with pytest.raises(ConnectionError):
        await revoke(oauth_server.build_caller(), revoked_id)
    assert await oauth_server.credential_store.is_revoked(revoked_id)
    for access, _ in [(token.token, ""), *grants]:
        with pytest.raises(WorkspaceError):
            await oauth_server.authenticate(access)
    oauth_server.failures = 0
    await oauth_server.revoker.complete_pending_revocations()
    await oauth_server.ender.complete_ends_and_end_orphaned_grants()
    assert sorted(event["ActionType"] for event in oauth_server.trail) == sorted([action, *["Grant.Ended"] * 3])
    assert await oauth_server.credential_store.list_pending_events() == []


async def test_without_provenance_consents_end_before_the_revocation(
    oauth_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no job could complete a revocation, a failure to end its consents leaves the credential to the caller."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    access, _ = await oauth_server.redeem(await oauth_server.consent_as_member(issued.key.key_id))
    oauth_server.audited = False

    async def fail(credential_id: str) -> Sequence[Grant]:
        raise ConnectionError(credential_id)

    with monkeypatch.context() as patched:
        patched.setattr(oauth_server.store, "list_grants_of_credential", fail)
        with pytest.raises(ConnectionError):
            await oauth_server.api_keys.revoke(oauth_server.build_caller(), issued.key.key_id)
    assert not await oauth_server.credential_store.is_revoked(issued.key.key_id)
    await oauth_server.api_keys.revoke(oauth_server.build_caller(), issued.key.key_id)
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(access)


async def test_the_revocation_of_an_ancestor_ends_the_grant(oauth_server: Server) -> None:
    """If a token from which the token of the consent descends is revoked, the grant and its tokens end at once."""
    root = await oauth_server.issuer.issue_token(oauth_server.build_caller(""), None, None)
    child = await oauth_server.issuer.issue_token(oauth_server.build_caller(root.token_id), None, None)
    last = await oauth_server.issuer.issue_token(oauth_server.build_caller(child.token_id), None, None)
    access, refresh = await oauth_server.redeem(await oauth_server.consent_as_member(last.token_id))
    await oauth_server.issuer.revoke(oauth_server.build_caller(), root.token_id)
    assert oauth_server.list_end_reasons() == ["credentialRevoked"]
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(access)
    await check_invalid_grant(oauth_server.refresh(refresh))


async def test_the_revocation_of_an_ancestor_ends_the_grant_after_the_token_expired(oauth_server: Server) -> None:
    """The grant also ends if the store has already deleted the expired token with which the member consented."""
    root = await oauth_server.issuer.issue_token(oauth_server.build_caller(""), Decimal(600), None)
    child = await oauth_server.issuer.issue_token(oauth_server.build_caller(root.token_id), Decimal(1), None)
    _, refresh = await oauth_server.redeem(await oauth_server.consent_as_member(child.token_id))
    oauth_server.time.advance(3 * 3600)
    _, refresh = await oauth_server.refresh(refresh)
    await oauth_server.issuer.revoke(oauth_server.build_caller(), root.token_id)
    assert oauth_server.list_end_reasons() == ["credentialRevoked"]
    await check_invalid_grant(oauth_server.refresh(refresh))


async def test_only_ends_by_members_and_clients_name_the_member(oauth_server: Server) -> None:
    """The event of a grant's end names the member if the client ended the grant, and the service if the service did."""
    by_client, reused, of_removed_client = [
        (await oauth_server.redeem(await oauth_server.consent_as_member()))[1] for _ in range(3)
    ]
    await oauth_server.grants.try_end_grant_by_client(CLIENT.client_id, by_client)
    await oauth_server.refresh(reused)
    await check_invalid_grant(oauth_server.refresh(reused))
    oauth_server.declared.clear()
    await check_invalid_grant(oauth_server.refresh(of_removed_client))
    ends = [event for event in oauth_server.trail if event["ActionType"] == "Grant.Ended"]
    assert [(end["AfterState"]["reason"], end["user"]) for end in ends] == [
        ("endedByClient", MEMBER),
        ("tokenReused", "oauth"),
        ("clientRemoved", "oauth"),
    ]
