"""Tests of the lifetimes of authorization codes and refresh tokens, and of the events that end grants."""

from dataclasses import replace

import jwt
import pytest

from shared.auth.ports import CredentialCutoff
from shared.auth.rights import Role
from shared.errors import WorkspaceError
from shared.oauth import grant_service
from tests.thread_records import record_calls_in_event_loop
from tests.unit.shared.oauth.conftest import CLIENT, MEMBER, Server, check_invalid_grant

DAY = 86_400


async def test_an_authorization_code_is_valid_for_a_minute(oauth_server: Server) -> None:
    """An authorization code is valid for 60 seconds."""
    early, late = await oauth_server.consent_as_member(), await oauth_server.consent_as_member()
    oauth_server.time.advance(59)
    await oauth_server.redeem(early)
    oauth_server.time.advance(2)
    await check_invalid_grant(oauth_server.redeem(late))


@pytest.mark.parametrize("seconds", [0, 59, 600])
async def test_a_second_redemption_ends_the_grant(oauth_server: Server, seconds: float) -> None:
    """Redeeming a code a second time, even after its expiry, is rejected and ends the grant with its tokens."""
    parameters = await oauth_server.consent_as_member()
    access, refresh = await oauth_server.redeem(parameters)
    oauth_server.time.advance(seconds)
    await check_invalid_grant(oauth_server.redeem(parameters))
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(access)
    await check_invalid_grant(oauth_server.refresh(refresh))
    assert oauth_server.list_end_reasons() == ["tokenReused"]


async def test_one_of_simultaneous_redemptions_gets_tokens(oauth_server: Server) -> None:
    """If a code is redeemed twice at once, one redemption fails, and the tokens of the successful redemption work."""
    parameters = await oauth_server.consent_as_member()
    stored = await oauth_server.grants.require_grant_by_code("tool", parameters)
    won, _ = await oauth_server.grants.redeem_code(stored)
    await check_invalid_grant(oauth_server.grants.redeem_code(stored))
    assert (await oauth_server.authenticate(won.token)).member_id == MEMBER
    revoked = (await oauth_server.credential_store.load()).revoked_tokens
    assert len(revoked) == 1
    assert won.token_id not in revoked


async def test_simultaneous_refreshes_end_the_grant(oauth_server: Server) -> None:
    """If a refresh token is used twice at once, one use fails, and the tokens from the other use become invalid."""
    _, text = await oauth_server.redeem(await oauth_server.consent_as_member())
    stored = await oauth_server.grants.require_grant_by_refresh_token("tool", text)
    won, refresh = await oauth_server.grants.refresh_tokens(stored, text, None)
    await check_invalid_grant(oauth_server.grants.refresh_tokens(stored, text, None))
    with pytest.raises(WorkspaceError):
        await oauth_server.authenticate(won.token)
    await check_invalid_grant(oauth_server.refresh(refresh))
    assert oauth_server.list_end_reasons() == ["tokenReused"]


async def test_a_refresh_token_is_valid_for_thirty_days(oauth_server: Server) -> None:
    """A refresh token is valid for 30 days from its issue."""
    _, first = await oauth_server.redeem(await oauth_server.consent_as_member())
    oauth_server.time.advance(29 * DAY)
    _, second = await oauth_server.refresh(first)
    oauth_server.time.advance(29 * DAY)
    _, third = await oauth_server.refresh(second)
    oauth_server.time.advance(30 * DAY + 1)
    await check_invalid_grant(oauth_server.refresh(third))


async def test_an_invalid_refresh_token_does_not_end_the_grant(oauth_server: Server) -> None:
    """A refresh token with a wrong secret does not end the grant whose id it contains."""
    _, text = await oauth_server.redeem(await oauth_server.consent_as_member())
    prefix, grant_id, rest = text.split("_", 2)
    await check_invalid_grant(oauth_server.refresh(f"{prefix}_{grant_id}_{rest[:43].swapcase()}{rest[43:]}"))
    await oauth_server.refresh(text)


async def test_a_failed_audit_leaves_code_and_refresh_token_valid(oauth_server: Server) -> None:
    """If the issue of a token cannot be audited, no token is returned, and the client can try again."""
    parameters = await oauth_server.consent_as_member()
    oauth_server.failures = 1
    with pytest.raises(ConnectionError):
        await oauth_server.redeem(parameters)
    _, text = await oauth_server.redeem(parameters)
    oauth_server.failures = 1
    with pytest.raises(ConnectionError):
        await oauth_server.refresh(text)
    await oauth_server.refresh(text)
    assert oauth_server.list_end_reasons() == []


async def test_rights_that_the_member_lost_are_not_in_the_next_token(oauth_server: Server) -> None:
    """A refreshed token does not have rights that the member has lost since the consent."""
    _, text = await oauth_server.redeem(await oauth_server.consent_as_member())
    oauth_server.role = Role.VIEWER
    access, _ = await oauth_server.refresh(text)
    assert {str(right) for right in (await oauth_server.authenticate(access)).rights} == {
        "Workspace.Catalog.Read",
        "Workspace.Mcp.Use",
    }


async def test_a_disabled_member_ends_the_grant(oauth_server: Server) -> None:
    """If a member is disabled, its codes and grants end permanently, and the background job records the end of each."""
    code, used = (
        await oauth_server.consent_as_member(),
        await oauth_server.redeem(await oauth_server.consent_as_member()),
    )
    oauth_server.time.advance(1)
    oauth_server.enabled = False
    oauth_server.cutoffs[MEMBER] = CredentialCutoff(tokens=oauth_server.time.now)
    await check_invalid_grant(oauth_server.redeem(code))
    await oauth_server.ender.complete_ends_and_end_orphaned_grants()
    oauth_server.time.advance(1)
    oauth_server.enabled = True
    await check_invalid_grant(oauth_server.refresh(used[1]))
    assert oauth_server.list_end_reasons() == ["memberDisabled", "memberDisabled"]
    assert await oauth_server.grants.list_visible_grants(oauth_server.build_caller()) == []


async def test_a_grant_does_not_outlive_its_api_key(oauth_server: Server) -> None:
    """If a member consented with an API key, access and refresh tokens expire no later than the key."""
    issued = await oauth_server.api_keys.create(oauth_server.build_caller(), "day", expires_in_days=1)
    _, text = await oauth_server.redeem(await oauth_server.consent_as_member(issued.key.key_id))
    oauth_server.time.advance(DAY - 600)
    access, last = await oauth_server.refresh(text)
    assert issued.key.expires_at is not None
    # The library of tokens reads the real clock, so the token is not yet valid for it.
    expiry = jwt.decode(access, options={"verify_signature": False})["exp"]
    assert 0 <= issued.key.expires_at.timestamp() - expiry < 1
    oauth_server.time.advance(601)
    await check_invalid_grant(oauth_server.refresh(last))


async def test_the_creators_of_the_consenting_key_are_found(oauth_server: Server) -> None:
    """A token from a consent by API key still leads to the members who created the key."""
    issued = await oauth_server.api_keys.issue_without_rights_check("admin@x", MEMBER, "key", creators=("admin@x",))
    access, _ = await oauth_server.redeem(await oauth_server.consent_as_member(issued.key.key_id))
    caller = await oauth_server.authenticate(access)
    assert await oauth_server.lineage.find_key_creator_ids(caller) == frozenset({"admin@x"})


async def test_a_grant_outlives_the_record_of_the_consenting_token(oauth_server: Server) -> None:
    """A client's token without an API key has no creators, also after the record of the member's token was deleted."""
    token = await oauth_server.issuer.issue_token(oauth_server.build_caller(""), None, None)
    _, refresh = await oauth_server.redeem(await oauth_server.consent_as_member(token.token_id))
    oauth_server.time.advance(DAY)
    await oauth_server.refresh(refresh)
    assert await oauth_server.credential_store.find_token(token.token_id) is None
    [grant] = await oauth_server.store.list_active_grants()
    caller = replace(oauth_server.build_caller(grant.grant_id), client_id=CLIENT.client_id)
    assert await oauth_server.lineage.find_key_creator_ids(caller) == frozenset()


async def test_the_list_of_grants_is_built_in_a_worker_thread(
    oauth_server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The grants of enabled members are selected in a worker thread, because there can be thousands of grants."""
    await oauth_server.redeem(await oauth_server.consent_as_member())
    calls = record_calls_in_event_loop(monkeypatch, grant_service, "has_enabled_member")
    assert len(await oauth_server.grants.list_visible_grants(oauth_server.build_caller())) == 1
    assert calls == [False]
