"""Tokens of OAuth grants: exchange of authorization codes and refresh tokens for tokens, and revocation."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Final, NamedTuple

from shared.auth.issuer import NewToken, TokenIssuer
from shared.auth.ports import Credentials, CredentialStore, Directory, Team
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.oauth.errors import OAuthError, build_invalid_grant_error
from shared.oauth.grant_ending import GrantEnder, has_enabled_member
from shared.oauth.grants import REFRESH_LIFETIME, EndReason, Grant, GrantStore, RefreshState, StoredGrant
from shared.oauth.parameters import Parameters
from shared.oauth.scopes import build_invalid_scope_error, parse_scope
from shared.oauth.secrets import (
    RefreshText,
    compute_secret_digest,
    generate_refresh_token,
    is_code_verifier_valid,
    is_secret_valid,
    parse_authorization_code,
    parse_refresh_token,
)
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.versioned_cache import VersionedCache

_BAD_CODE: Final = "The authorization code is not valid for this client, or was used or has expired."
_BAD_REFRESH: Final = "The refresh token is not valid for this client, or was used, revoked or has expired."


class IssuedTokens(NamedTuple):
    """Access token and refresh token that a client receives."""

    access_token: NewToken
    refresh_token: str


class GrantService:
    """Issues the access and refresh tokens of OAuth grants.

    Args:
        store: storage of the grants.
        ender: ends grants.
        issuer: issues access tokens.
        credential_store: storage of the access tokens.
        credentials: cached credentials of this process.
        directory: source of the team's members.
        runtime: clock and randomness.
    """

    def __init__(
        self,
        store: GrantStore,
        ender: GrantEnder,
        issuer: TokenIssuer,
        credential_store: CredentialStore,
        credentials: VersionedCache[Credentials],
        directory: Directory,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._store = store
        self._ender = ender
        self._issuer = issuer
        self._credential_store = credential_store
        self._credentials = credentials
        self._directory = directory
        self._runtime = runtime

    async def require_grant_by_code(self, client_id: str, parameters: Parameters) -> StoredGrant:
        """Return the grant of the authorization code in a token request, after a check of the PKCE code verifier.

        Raises:
            OAuthError: ``invalid_request`` if a parameter is missing; ``invalid_grant`` if the code is unknown, or
                belongs to another client, redirect URI or code challenge.
        """
        code = parse_authorization_code(parameters.require("code"))
        verifier, redirect_uri = parameters.require("code_verifier"), parameters.get("redirect_uri")
        stored = None if code is None else await self._store.find_grant(code.grant_id)
        if code is None or stored is None or not is_secret_valid(code.secret, stored.grant.code.digest):
            raise build_invalid_grant_error(_BAD_CODE)
        proof = stored.grant.code
        if stored.grant.client_id != client_id or redirect_uri not in (None, proof.redirect_uri):
            raise build_invalid_grant_error(_BAD_CODE)
        if not is_code_verifier_valid(verifier, proof.challenge):
            raise build_invalid_grant_error("The parameter code_verifier does not match the code challenge.")
        return stored

    async def redeem_code(self, stored: StoredGrant) -> IssuedTokens:
        """Exchange an authorization code for an access token and the first refresh token.

        Of several simultaneous calls, one succeeds. A later use of the code ends the grant and its tokens (RFC 6749
        section 4.1.2), because one of the two callers possibly stole the code.

        Raises:
            OAuthError: ``invalid_grant`` if the code was used or has expired, or the grant has ended; also for the
                reasons of :meth:`require_principal`.
            WorkspaceError: UNAVAILABLE.
        """
        grant, at = stored.grant, self._runtime.now()
        if grant.refresh is not None:
            await self._ender.end_grant(grant.grant_id, EndReason.REUSE)
        if grant.refresh is not None or grant.end is not None or grant.code.expires_at <= at:
            raise build_invalid_grant_error(_BAD_CODE)
        caller = await self.require_principal(grant, CredentialKind.AUTHORIZATION_CODE)
        # The token is issued first, so that a failure leaves the code usable.
        token = await self._issuer.issue_token(caller, None, None)
        text = generate_refresh_token(self._runtime, grant.grant_id)
        redeemed = replace(grant, refresh=self._build_refresh_state(grant, text, at, at))
        if not await self._store.try_replace_grant(stored, redeemed):
            await self._credential_store.revoke_token_and_find_pending_event(token.token_id, at)
            self._credentials.invalidate()
            raise build_invalid_grant_error(_BAD_CODE)
        return IssuedTokens(token, str(text))

    async def require_grant_by_refresh_token(self, client_id: str, refresh_token: str) -> StoredGrant:
        """Return the grant of a refresh token. A refresh token that was already used ends the grant.

        Raises:
            OAuthError: ``invalid_grant`` if the token is unknown, was already used, or belongs to another client.
        """
        parsed = parse_refresh_token(refresh_token)
        stored = None if parsed is None else await self._store.find_grant(parsed.grant_id)
        refresh = None if stored is None else stored.grant.refresh
        if parsed is None or stored is None or refresh is None or not is_secret_valid(parsed.family, refresh.family):
            raise build_invalid_grant_error(_BAD_REFRESH)
        if stored.grant.client_id != client_id:
            raise build_invalid_grant_error(_BAD_REFRESH)
        if not is_secret_valid(parsed.secret, refresh.digest):
            await self._ender.end_grant(stored.grant.grant_id, EndReason.REUSE)
            raise build_invalid_grant_error(_BAD_REFRESH)
        return stored

    async def refresh_tokens(self, stored: StoredGrant, refresh_token: str, scope: str | None) -> IssuedTokens:
        """Exchange the newest refresh token for an access token and the next refresh token.

        Args:
            stored: grant of the refresh token, from :meth:`require_grant_by_refresh_token`.
            refresh_token: the refresh token.
            scope: rights of the access token; None for all rights of the grant.

        Raises:
            OAuthError: ``invalid_grant``; ``invalid_scope`` if the grant lacks a right.
            WorkspaceError: UNAVAILABLE.
        """
        grant, at, before = stored.grant, self._runtime.now(), parse_refresh_token(refresh_token)
        if before is None or grant.refresh is None or not grant.is_active(at):
            if grant.end is not None:
                # If the end was interrupted, the access tokens are not revoked yet.
                await self._ender.end_grant(grant.grant_id, grant.end.reason, grant.end.actor)
            raise build_invalid_grant_error(_BAD_REFRESH)
        caller = await self.require_principal(grant, CredentialKind.REFRESH_TOKEN)
        rights = None if scope is None else _select_rights_in_scope(grant, caller, scope)
        token = await self._issuer.issue_token(caller, None, None if rights is None else sorted(rights))
        after = generate_refresh_token(self._runtime, grant.grant_id, before.family)
        renewed = replace(grant, refresh=self._build_refresh_state(grant, after, at, grant.refresh.started_at))
        if not await self._store.try_replace_grant(stored, renewed):
            # Another request used the same refresh token at the same time: one of the two is possibly a thief.
            await self._ender.end_grant(grant.grant_id, EndReason.REUSE)
            raise build_invalid_grant_error(_BAD_REFRESH)
        return IssuedTokens(token, str(after))

    async def require_principal(self, grant: Grant, via: CredentialKind) -> Principal:
        """Return the principal of a grant's tokens: the member who consented, with the delegated rights that are valid.

        The grant is ended if the member is disabled, the client is no longer declared, or the credential was revoked.

        Args:
            grant: the grant.
            via: kind of credential that the client exchanges: authorization code or refresh token.

        Raises:
            OAuthError: ``invalid_grant`` if the member is disabled or has none of the rights, if the client is no
                longer declared, or if the credential with which the member consented was revoked or has expired.
        """
        team, credentials = await self._directory.get_team(), await self._credentials.load_current_value()
        member = team.members.get(grant.member_id)
        if await self._ender.try_end_if_orphaned(grant) or member is None:
            raise build_invalid_grant_error("The member who consented is disabled, or the client was removed.")
        key = credentials.keys.get(grant.api_key_id)
        if not credentials.revoked_tokens.isdisjoint((grant.token_id, *grant.ancestor_ids)) or (
            key is not None and team.find_key_end_time(key) is not None
        ):
            await self._ender.end_grant(grant.grant_id, EndReason.CREDENTIAL)
            raise build_invalid_grant_error("The credential with which the member consented was revoked.")
        rights = grant.rights & member.access_rights
        ends_at = grant.credential_ends_at
        if not rights or (ends_at is not None and ends_at <= self._runtime.now()):
            raise build_invalid_grant_error(
                "The member no longer has the delegated access rights, or the API key of the consent has expired."
            )
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=rights,
            via=via,
            credential_id=grant.grant_id,
            expires_at=ends_at,
            client_id=grant.client_id,
            sign_in=grant.sign_in,
        )

    async def list_visible_grants(self, caller: Principal) -> Sequence[Grant]:
        """Return the active grants of the caller, or of all members if the caller may manage keys, oldest first.

        Raises:
            WorkspaceError: FORBIDDEN ``CREDENTIAL_BOUND`` if the caller's credential is restricted to certain
                connections.
        """
        caller.require_no_connection_binding()
        can_manage = AccessRight.KEYS_MANAGE in caller.rights
        team = await self._directory.get_team()
        found = await self._store.list_active_grants(None if can_manage else caller.member_id)
        # In a worker thread, because there can be thousands of grants.
        return await self._runtime.run_in_thread(_select_grants_of_enabled_members, found, team)

    async def end_grant(self, caller: Principal, grant_id: str) -> None:
        """End a grant; the grant of another member requires the right to manage keys.

        Raises:
            WorkspaceError: NOT_FOUND ``GRANT_NOT_FOUND``; FORBIDDEN if the caller lacks this right, or the caller's
                credential is restricted to certain connections.
        """
        caller.require_no_connection_binding()
        stored = await self._store.find_grant(grant_id)
        if stored is None or stored.grant.refresh is None:
            raise WorkspaceError(Kind.NOT_FOUND, "GRANT_NOT_FOUND", "No consent to an OAuth client has this id.")
        if stored.grant.member_id != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        await self._ender.end_grant(grant_id, EndReason.MEMBER, caller.member_id, caller.describe_credential())

    async def try_end_grant_by_client(self, client_id: str, refresh_token: str) -> bool:
        """End the grant of a refresh token because its client requests it.

        Return False if the refresh token is unknown.
        """
        try:
            stored = await self.require_grant_by_refresh_token(client_id, refresh_token)
        except OAuthError:
            return False
        await self._ender.end_grant(stored.grant.grant_id, EndReason.CLIENT, stored.grant.member_id)
        return True

    def _build_refresh_state(
        self, grant: Grant, refresh_token: RefreshText, at: datetime, started_at: datetime
    ) -> RefreshState:
        expires_at = at + REFRESH_LIFETIME
        if grant.credential_ends_at is not None:
            expires_at = min(expires_at, grant.credential_ends_at)
        return RefreshState(
            compute_secret_digest(refresh_token.family),
            compute_secret_digest(refresh_token.secret),
            expires_at,
            at,
            started_at,
        )


def _select_grants_of_enabled_members(grants: Sequence[Grant], team: Team) -> Sequence[Grant]:
    return [grant for grant in grants if has_enabled_member(team, grant)]


def _select_rights_in_scope(grant: Grant, caller: Principal, scope: str) -> frozenset[AccessRight]:
    """Select the rights of an access token: the requested scope, without rights that the member has lost."""
    rights = parse_scope(scope)
    if not rights <= grant.rights:
        raise build_invalid_scope_error(
            f"The grant lacks the access rights {', '.join(sorted(rights - grant.rights))}."
        )
    remaining = rights & caller.rights
    if not remaining:
        raise build_invalid_scope_error("The member no longer has the requested access rights.")
    return remaining
