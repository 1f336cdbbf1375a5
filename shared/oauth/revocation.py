"""Revocation of tokens by their clients (RFC 7009)."""

from shared.auth.authenticator import Authenticator
from shared.auth.issuer import TokenIssuer
from shared.auth.ports import CredentialStore
from shared.auth.principals import CredentialKind, Principal
from shared.errors import Kind, WorkspaceError
from shared.oauth.client_credentials import ClientCredentialsGrant
from shared.oauth.errors import build_invalid_grant_error
from shared.oauth.grant_service import GrantService
from shared.oauth.parameters import ClientIdentification

_OTHER_CLIENT = "The token was issued to another client."


class TokenRevocation:
    """Revokes access and refresh tokens for the client that received them."""

    def __init__(
        self,
        authenticator: Authenticator,
        issuer: TokenIssuer,
        store: CredentialStore,
        client_credentials: ClientCredentialsGrant,
        grants: GrantService,
    ) -> None:
        self._authenticator = authenticator
        self._issuer = issuer
        self._store = store
        self._client_credentials = client_credentials
        self._grants = grants

    async def revoke(self, client: ClientIdentification, token: str) -> None:
        """Revoke an access token, or end the grant of a refresh token. An unknown or invalid token is ignored.

        Raises:
            OAuthError: ``invalid_client``; ``invalid_grant`` if the token belongs to another client.
            WorkspaceError: UNAVAILABLE.
        """
        key = None if not client.secret else await self._client_credentials.authenticate_client(client)
        if await self._grants.try_end_grant_by_client(client.client_id, token):
            return
        try:
            owner = await self._authenticator(f"Bearer {token}", frozenset({CredentialKind.JWT}))
        except WorkspaceError as error:
            if error.kind is Kind.UNAUTHENTICATED:
                return
            raise
        if key is None and owner.client_id != client.client_id:
            raise build_invalid_grant_error(_OTHER_CLIENT)
        if key is not None and not await self._is_credential_issued_by_key(owner, key):
            raise build_invalid_grant_error(_OTHER_CLIENT)
        await self._issuer.revoke_own_token(owner)

    async def _is_credential_issued_by_key(self, owner: Principal, key: Principal) -> bool:
        """Return whether the token with which ``owner`` was authenticated was issued for the API key of ``key``."""
        issued = await self._store.find_token(owner.credential_id)
        return issued is not None and issued.parent == key.credential_id
