"""Issue and revocation of tokens, each with an audit event.

Separate from ``authenticator`` because few requests issue a token, and every request authenticates.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from shared.auth.audit import AccessAudit
from shared.auth.credential_revocation import CredentialRevoker
from shared.auth.ports import CredentialStore, Directory, IssuedToken
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.auth.sign_ins import NO_SIGN_IN, SignIn, build_api_key_sign_in
from shared.auth.token_ids import build_token_id
from shared.auth.tokens import Claims, TokenCodec
from shared.errors import (
    FieldError,
    Kind,
    ValidationErrors,
    WorkspaceError,
    build_invalid_field_error,
    build_invalid_fields_error,
)
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

DEFAULT_MINUTES = Decimal(60)


@dataclass(frozen=True, slots=True)
class NewToken:
    """New access token, with its id, rights, and times of issue and expiry; the token itself is never stored."""

    token: str
    expires_at: datetime
    rights: tuple[AccessRight, ...]
    issued_at: datetime
    token_id: str


class TokenIssuer:
    """Issuer of the service's own tokens."""

    def __init__(
        self,
        directory: Directory,
        store: CredentialStore,
        codec: TokenCodec,
        audit: AccessAudit,
        revoker: CredentialRevoker,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._directory = directory
        self._store = store
        self._codec = codec
        self._audit = audit
        self._revoker = revoker
        self._runtime = runtime

    async def issue_token(
        self,
        caller: Principal,
        minutes: Decimal | None,
        scopes: Sequence[str] | None,
        *,
        has_sign_in: bool = True,
    ) -> NewToken:
        """Issue a new token for the caller, with an audit event.

        The token never has more rights than the caller's credential. It never expires later than the credential, unless
        the credential is an Entra ID token.

        Args:
            caller: owner of the new token.
            minutes: lifetime, more than 0; None for the longest allowed lifetime up to 60 minutes.
            scopes: rights of the token; None for all rights of the caller.
            has_sign_in: False for a token that proves no sign-in of a person, as for a program that stored the API key.

        Raises:
            WorkspaceError: INVALID naming ``minutes`` or ``scopes``, or naming ``Authorization`` if the caller's
                credential is bound to so many connections or devices that the token would be too long; FORBIDDEN
                ``DELEGATED_TOKEN`` if the caller is an OAuth client; UNAUTHENTICATED if the caller's credential was
                revoked in the meantime.
        """
        caller.require_not_delegated()
        issued_at = self._runtime.now()
        faults = ValidationErrors()
        self.add_token_request_errors(faults, caller, minutes, scopes)
        faults.raise_all()
        expires_at = _compute_expiry(caller, minutes, issued_at)
        rights = caller.rights if scopes is None else _convert_scopes_to_rights(caller, scopes)
        team = await self._directory.get_team()
        token_id = build_token_id(self._runtime, issued_at)
        claims = Claims(
            *(token_id, caller.identity, caller.member_id, team.workspace, rights, expires_at),
            binding=caller.binding,
            client_id=caller.client_id,
            sign_in=_build_sign_in(caller, token_id, issued_at) if has_sign_in else NO_SIGN_IN,
            personal=caller.personal,
            has_listed_rights=caller.has_listed_rights or scopes is not None,
        )
        token = await self._codec.sign(claims, issued_at)
        await self._store.add_token(
            IssuedToken(claims.token_id, caller.member_id, expires_at, caller.stored_credential_id)
        )
        details = {
            "expiresAt": format_rfc3339(expires_at),
            "accessRights": sorted(rights),
            "madeWith": caller.describe_credential(),
            **({"clientId": caller.client_id} if caller.client_id else {}),
            **(caller.binding.to_json() if caller.binding is not None else {}),
        }
        await self._audit.record_event_if_audited(
            caller.member_id,
            "Token.Issued",
            "Token",
            claims.token_id,
            append_id=f"token-issued-{claims.token_id}",
            after=details,
        )
        return NewToken(token, expires_at, tuple(sorted(rights)), issued_at, token_id)

    def add_token_request_errors(
        self, faults: ValidationErrors, caller: Principal, minutes: Decimal | None, scopes: Sequence[str] | None
    ) -> None:
        """Add to ``faults`` the errors with which :meth:`issue_token` would reject ``minutes`` and ``scopes``."""
        if faults.has_valid_fields("minutes"):
            with faults.collect_raised_error():
                _compute_expiry(caller, minutes, self._runtime.now())
        if faults.has_valid_fields("scopes") and scopes is not None:
            with faults.collect_raised_error():
                _convert_scopes_to_rights(caller, scopes)

    async def revoke(self, caller: Principal, token_id: str) -> None:
        """Revoke a token; the token of another member requires the right to manage keys.

        Raises:
            WorkspaceError: NOT_FOUND ``TOKEN_NOT_FOUND`` if no active token has the id; FORBIDDEN if the caller may not
                revoke it; UNAVAILABLE as for :meth:`CredentialRevoker.revoke_token`.
        """
        caller.require_no_connection_binding()
        token = await self._store.find_token(token_id)
        if token is None or token.expires_at < self._runtime.now():
            raise WorkspaceError(Kind.NOT_FOUND, "TOKEN_NOT_FOUND", "No active token has this id.")
        if token.principal != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        await self._revoker.revoke_token(caller, token_id, token.principal)

    async def revoke_own_token(self, caller: Principal) -> None:
        """Revoke the token with which the caller authenticated; this requires no access right."""
        await self._revoker.revoke_token(caller, caller.credential_id, caller.member_id)


def _build_sign_in(caller: Principal, token_id: str, issued_at: datetime) -> SignIn:
    return build_api_key_sign_in(token_id, issued_at) if caller.via is CredentialKind.API_KEY else caller.sign_in


def _compute_expiry(caller: Principal, minutes: Decimal | None, issued_at: datetime) -> datetime:
    expires_at = issued_at + timedelta(minutes=float(DEFAULT_MINUTES if minutes is None else minutes))
    # The claim `exp` has whole seconds, and the stored expiry must match it.
    expires_at = expires_at.replace(microsecond=0)
    if caller.via is CredentialKind.ENTRA or caller.expires_at is None or expires_at <= caller.expires_at:
        return expires_at
    if minutes is None:
        return caller.expires_at
    raise build_invalid_field_error(
        "minutes", "the new token would expire later than the caller's credential; request fewer minutes"
    )


def _convert_scopes_to_rights(caller: Principal, scopes: Sequence[str]) -> frozenset[AccessRight]:
    known = frozenset(str(right) for right in AccessRight)
    missing = [right for right in sorted(set(scopes)) if right not in caller.rights]
    if missing:
        raise build_invalid_fields_error(
            FieldError("scopes", _describe_rejected_right(right, known)) for right in missing
        )
    return frozenset(AccessRight(right) for right in scopes)


def _describe_rejected_right(right: str, known: frozenset[str]) -> str:
    return (
        f"{right} is not among the caller's access rights"
        if right in known
        else f"{right[:64]!r} is not an access right"
    )
