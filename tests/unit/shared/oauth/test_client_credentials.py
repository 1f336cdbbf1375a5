"""Tests of the client credentials grant, which exchanges an API key for a token."""

from dataclasses import replace
from decimal import Decimal

import pytest

from shared.auth.principals import CredentialKind
from shared.auth.rights import AccessRight
from shared.oauth.client_credentials import ClientCredentialsGrant
from shared.oauth.errors import OAuthError
from shared.oauth.parameters import ClientIdentification
from tests.unit.shared.oauth.conftest import MEMBER, Server


async def test_a_token_has_the_rights_of_its_api_key(oauth_server: Server) -> None:
    """The token of an API key has exactly the key's rights."""
    grant = ClientCredentialsGrant(oauth_server.authenticator, oauth_server.issuer)
    issued = await oauth_server.api_keys.issue_without_rights_check(
        "test", MEMBER, "k", frozenset({AccessRight.CATALOG_READ})
    )
    caller = await grant.authenticate_client(ClientIdentification(issued.key.key_id, issued.api_key))
    assert caller.via is CredentialKind.CLIENT_CREDENTIALS
    token = await grant.issue_token(caller, "Workspace.Catalog.Read", Decimal(5))
    assert (await oauth_server.authenticate(token.token)).rights == {AccessRight.CATALOG_READ}


@pytest.mark.parametrize("change", ["id", "secret", "form"])
async def test_a_wrong_api_key_gets_invalid_client(oauth_server: Server, change: str) -> None:
    """An unknown id and a wrong secret get the same error ``invalid_client``."""
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    sent = {
        "id": ClientIdentification("AAAAAAAA", issued.api_key),
        "secret": ClientIdentification(issued.key.key_id, issued.api_key[:-8] + "AAAAAAAA"),
        "form": ClientIdentification(issued.key.key_id, "password"),
    }[change]
    with pytest.raises(OAuthError) as raised:
        await ClientCredentialsGrant(oauth_server.authenticator, oauth_server.issuer).authenticate_client(sent)
    assert raised.value.error == "invalid_client"


@pytest.mark.parametrize(
    ("scope", "minutes", "error"),
    [
        ("Workspace.Keys.Manage", None, "invalid_scope"),
        ("Workspace.Unknown", None, "invalid_scope"),
        (None, Decimal(10**6), "invalid_request"),
    ],
)
async def test_a_token_cannot_exceed_its_api_key(
    oauth_server: Server, scope: str | None, minutes: Decimal | None, error: str
) -> None:
    """A right that the API key lacks, or too long a lifetime, is rejected with an OAuth error."""
    grant = ClientCredentialsGrant(oauth_server.authenticator, oauth_server.issuer)
    with pytest.raises(OAuthError) as raised:
        await grant.issue_token(
            replace(oauth_server.build_caller(), rights=frozenset(), expires_at=oauth_server.time.now), scope, minutes
        )
    assert raised.value.error == error


async def test_a_key_that_was_revoked_meanwhile_gets_invalid_client(oauth_server: Server) -> None:
    """If the key is revoked after its authentication, no token is issued, and the error is ``invalid_client``."""
    grant = ClientCredentialsGrant(oauth_server.authenticator, oauth_server.issuer)
    issued = await oauth_server.api_keys.issue_without_rights_check("test", MEMBER, "k")
    caller = await grant.authenticate_client(ClientIdentification(issued.key.key_id, issued.api_key))
    await oauth_server.credential_store.revoke_key_and_find_pending_event(issued.key.key_id, oauth_server.time.now)
    with pytest.raises(OAuthError) as raised:
        await grant.issue_token(caller, None, None)
    assert raised.value.error == "invalid_client"
