"""Tests of how clients revoke their tokens (RFC 7009)."""

import pytest

from shared.auth.principals import CredentialKind
from shared.errors import WorkspaceError
from shared.oauth.client_credentials import ClientCredentialsGrant
from shared.oauth.errors import OAuthError
from shared.oauth.parameters import ClientIdentification
from shared.oauth.revocation import TokenRevocation
from tests.unit.shared.oauth.conftest import CLIENT, MEMBER, Server

TOOL = ClientIdentification(CLIENT.client_id, "")


def build_service(oauth_server: Server) -> TokenRevocation:
    """Return the service under test."""
    credentials = ClientCredentialsGrant(oauth_server.authenticator, oauth_server.issuer)
    return TokenRevocation(
        oauth_server.authenticator, oauth_server.issuer, oauth_server.credential_store, credentials, oauth_server.grants
    )


async def is_accepted(oauth_server: Server, token: str) -> bool:
    """Return whether an access token is accepted."""
    try:
        await oauth_server.authenticate(token)
    except WorkspaceError:
        return False
    return True


async def test_revoking_a_refresh_token_ends_the_grant(oauth_server: Server) -> None:
    """Revoking a refresh token ends its grant and all its access tokens."""
    access, refresh = await oauth_server.redeem(await oauth_server.consent_as_member())
    await build_service(oauth_server).revoke(TOOL, refresh)
    assert not await is_accepted(oauth_server, access)
    assert oauth_server.list_end_reasons() == ["endedByClient"]


async def test_revoking_an_access_token_does_not_end_the_grant(oauth_server: Server) -> None:
    """Revoking an access token ends only this token; the client can still refresh."""
    access, refresh = await oauth_server.redeem(await oauth_server.consent_as_member())
    await build_service(oauth_server).revoke(TOOL, access)
    assert not await is_accepted(oauth_server, access)
    assert await is_accepted(oauth_server, (await oauth_server.refresh(refresh))[0])


async def test_an_unknown_token_is_ignored(oauth_server: Server) -> None:
    """Revoking an unknown token succeeds without effect (RFC 7009 section 2.2)."""
    await build_service(oauth_server).revoke(TOOL, "unknown")
    assert oauth_server.trail == []


async def test_revoking_the_token_of_another_client_is_rejected(oauth_server: Server) -> None:
    """A token can be revoked only by the client or API key that it belongs to."""
    access, _ = await oauth_server.redeem(await oauth_server.consent_as_member())
    key = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    others = [ClientIdentification("other", ""), ClientIdentification(key.key.key_id, key.api_key)]
    for other in others:
        with pytest.raises(OAuthError) as raised:
            await build_service(oauth_server).revoke(other, access)
        assert raised.value.error == "invalid_grant"
    assert await is_accepted(oauth_server, access)


async def test_an_api_key_revokes_its_own_tokens(oauth_server: Server) -> None:
    """A service can revoke a token that it got with its API key."""
    key = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    service = ClientIdentification(key.key.key_id, key.api_key)
    caller = await oauth_server.authenticator(f"Bearer {key.api_key}", frozenset({CredentialKind.API_KEY}))
    token = (await oauth_server.issuer.issue_token(caller, None, None)).token
    await build_service(oauth_server).revoke(service, token)
    assert not await is_accepted(oauth_server, token)
