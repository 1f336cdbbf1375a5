"""Tests of how grants end: by a removed client, by a revoked credential, and after an interruption."""

import pytest

from shared.errors import WorkspaceError
from shared.oauth.grants import EndReason
from tests.unit.shared.oauth.conftest import MEMBER, Server, check_refused


async def test_a_removed_client_ends_its_grants(server: Server) -> None:
    """If a client is removed from the workspace document, the grants and access tokens of this client end."""
    first, second = await server.redeem(await server.consent()), await server.redeem(await server.consent())
    server.declared.clear()
    await check_refused(server.refresh(first[1]))
    await server.ender.run()
    with pytest.raises(WorkspaceError):
        await server.authenticate(second[0])
    assert server.list_reasons() == ["clientRemoved", "clientRemoved"]


async def test_a_revoked_credential_ends_the_grant(server: Server) -> None:
    """If the token or API key of the consent is revoked, the grant ends."""
    minted = await server.issuer.mint(server.build_caller(""), None, None)
    issued = await server.api_keys.create(server.build_caller(), "tmp")
    from_token = await server.redeem(await server.consent(minted.token_id))
    from_key = await server.redeem(await server.consent(issued.key.key_id))
    await server.issuer.revoke(server.build_caller(), minted.token_id)
    await server.api_keys.revoke(server.build_caller(), issued.key.key_id)
    for access, refresh in (from_token, from_key):
        with pytest.raises(WorkspaceError):
            await server.authenticate(access)
        await check_refused(server.refresh(refresh))
    assert server.list_reasons() == ["credentialRevoked", "credentialRevoked"]


async def test_an_interrupted_end_is_completed(server: Server) -> None:
    """If a process stops after storing the end of a grant, a job revokes the tokens and records one event."""
    access, refresh = await server.redeem(await server.consent())
    grant_id = refresh.split("_")[1]
    server.failures = 1
    with pytest.raises(ConnectionError):
        await server.ender.end(grant_id, EndReason.MEMBER, MEMBER)
    await check_refused(server.refresh(refresh))
    assert server.list_reasons() == []
    await server.ender.run()
    await server.ender.run()
    with pytest.raises(WorkspaceError):
        await server.authenticate(access)
    assert server.list_reasons() == ["endedByMember"]
