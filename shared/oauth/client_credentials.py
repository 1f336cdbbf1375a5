"""OAuth grant type ``client_credentials``: a service exchanges its API key for a token (RFC 6749 section 4.4)."""

from dataclasses import replace
from decimal import Decimal

from shared.auth import api_keys
from shared.auth.authenticator import Authenticator
from shared.auth.issuer import NewToken, TokenIssuer
from shared.auth.principals import CredentialKind, Principal
from shared.errors import Kind, WorkspaceError
from shared.oauth.errors import build_invalid_client_error, build_invalid_request_error
from shared.oauth.parameters import ClientIdentification
from shared.oauth.scopes import build_invalid_scope_error, parse_scope

_INVALID = "The client id must be the id of an API key, and the client secret the API key."


class ClientCredentialsGrant:
    """Issuer of access tokens for API keys: the client id is the id of the key, the client secret is the key."""

    def __init__(self, authenticator: Authenticator, issuer: TokenIssuer) -> None:
        self._authenticator = authenticator
        self._issuer = issuer

    async def authenticate_client(self, client: ClientIdentification) -> Principal:
        """Authenticate a client by its API key; return the key's owner with the rights of the key.

        Raises:
            OAuthError: ``invalid_client``.
            WorkspaceError: UNAVAILABLE.
        """
        parts = api_keys.parse_key_id_and_secret(client.secret)
        if parts is None or parts[0] != client.client_id:
            raise build_invalid_client_error(_INVALID)
        try:
            caller = await self._authenticator(f"Bearer {client.secret}", frozenset({CredentialKind.API_KEY}))
        except WorkspaceError as error:
            if error.kind is Kind.UNAUTHENTICATED:
                raise build_invalid_client_error(_INVALID) from None
            raise
        return replace(caller, via=CredentialKind.CLIENT_CREDENTIALS)

    async def issue_token(self, caller: Principal, scope: str | None, lifetime_minutes: Decimal | None) -> NewToken:
        """Issue a token to an authenticated client.

        Args:
            caller: result of :meth:`authenticate_client`.
            scope: requested access rights, separated by spaces; None for all rights of the API key.
            lifetime_minutes: lifetime of the token; None for 60 minutes, or less if the key expires earlier.

        Raises:
            OAuthError: ``invalid_scope`` if the API key lacks a requested right, or if a right is unknown;
                ``invalid_request`` if the key would expire before the token, or is bound to so many connections or
                devices that the token would be too long; ``invalid_client`` if the key was revoked in the meantime.
            WorkspaceError: UNAVAILABLE.
        """
        rights = None if scope is None else parse_scope(scope)
        missing = sorted((rights or frozenset()) - caller.rights)
        if missing:
            raise build_invalid_scope_error(f"The API key does not have the access rights {', '.join(missing)}.")
        try:
            return await self._issuer.issue_token(caller, lifetime_minutes, None if rights is None else sorted(rights))
        except WorkspaceError as error:
            if error.kind is Kind.INVALID:
                raise build_invalid_request_error(error.detail) from None
            if error.kind is Kind.UNAUTHENTICATED:
                raise build_invalid_client_error(_INVALID) from None
            raise
