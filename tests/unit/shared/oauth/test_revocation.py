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


def build_service(server: Server) -> TokenRevocation:
    """Return the service under test."""
    credentials = ClientCredentialsGrant(server.authenticator, server.issuer)
    return TokenRevocation(server.authenticator, server.issuer, server.credential_store, credentials, server.grants)


async def is_accepted(server: Server, token: str) -> bool:
    """Return whether an access token is accepted."""
    try:
        await server.authenticate(token)
    except WorkspaceError:
        return False
    return True


async def test_a_refresh_token_ends_the_grant(server: Server) -> None:
    """Revoking a refresh token ends its grant and all its access tokens."""
    access, refresh = await server.redeem(await server.consent())
    await build_service(server).revoke(TOOL, refresh)
    assert not await is_accepted(server, access)
    assert server.list_reasons() == ["endedByClient"]


async def test_revoking_an_access_token_does_not_end_the_grant(server: Server) -> None:
    """Revoking an access token ends only this token; the client can still refresh."""
    access, refresh = await server.redeem(await server.consent())
    await build_service(server).revoke(TOOL, access)
    assert not await is_accepted(server, access)
    assert await is_accepted(server, (await server.refresh(refresh))[0])


async def test_an_unknown_token_is_ignored(server: Server) -> None:
    """Revoking an unknown token succeeds without effect (RFC 7009 section 2.2)."""
    await build_service(server).revoke(TOOL, "unknown")
    assert server.trail == []


async def test_the_token_of_another_client_is_refused(server: Server) -> None:
    """A token can be revoked only by the client or API key that it belongs to."""
    access, _ = await server.redeem(await server.consent())
    key = await server.api_keys.issue("test", MEMBER, "k")
    others = [ClientIdentification("other", ""), ClientIdentification(key.key.key_id, key.api_key)]
    for other in others:
        with pytest.raises(OAuthError) as raised:
            await build_service(server).revoke(other, access)
        assert raised.value.error == "invalid_grant"
    assert await is_accepted(server, access)


async def test_an_api_key_revokes_its_own_tokens(server: Server) -> None:
    """A service can revoke a token that it got with its API key."""
    key = await server.api_keys.issue("test", MEMBER, "k")
    service = ClientIdentification(key.key.key_id, key.api_key)
    caller = await server.authenticator(f"Bearer {key.api_key}", frozenset({CredentialKind.API_KEY}))
    token = (await server.issuer.mint(caller, None, None)).token
    await build_service(server).revoke(service, token)
    assert not await is_accepted(server, token)
