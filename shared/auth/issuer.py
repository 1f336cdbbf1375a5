"""Issue and revocation of tokens, each with an audit event.

Separate from ``authenticator`` because few requests issue a token, and every request authenticates.
"""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from decimal import Decimal

from shared.auth.audit import AccessAudit
from shared.auth.ports import Credentials, CredentialStore, Directory, IssuedToken
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.auth.tokens import Claims, TokenCodec
from shared.errors import FieldError, Kind, ValidationErrors, WorkspaceError, invalid, invalid_fields
from shared.timestamps import now, rfc3339
from shared.versioned_cache import VersionedCache

DEFAULT_MINUTES = Decimal(60)


@dataclass(frozen=True, slots=True)
class NewToken:
    """New token; it is shown once."""

    token: str
    expires_at: datetime
    rights: tuple[AccessRight, ...]


class TokenIssuer:
    """Issuer of the service's own tokens."""

    def __init__(
        self,
        directory: Directory,
        store: CredentialStore,
        credentials: VersionedCache[Credentials],
        codec: TokenCodec,
        audit: AccessAudit,
    ) -> None:
        self._directory = directory
        self._store = store
        self._credentials = credentials
        self._codec = codec
        self._audit = audit

    async def mint(self, caller: Principal, minutes: Decimal | None, scopes: Sequence[str] | None) -> NewToken:
        """Return a new token of the caller.

        Args:
            caller: owner of the new token, whose expiry and rights cannot exceed those of the caller's credential.
            minutes: lifetime, more than 0. None means 60, or less if the caller's token expires earlier.
            scopes: rights of the token; None for all rights of the caller.

        Raises:
            WorkspaceError: INVALID naming ``minutes`` or ``scopes``.
        """
        issued_at = now()
        faults = ValidationErrors()
        self.check(faults, caller, minutes, scopes)
        faults.raise_all()
        expires_at = _compute_expiry(caller, minutes, issued_at)
        rights = caller.rights if scopes is None else _select_rights(caller, scopes)
        team = await self._directory.team()
        claims = Claims(uuid.uuid4().hex, caller.identity, caller.member_id, team.workspace, rights, expires_at)
        token = await self._codec.sign(claims, issued_at)
        await self._store.add_token(IssuedToken(claims.token_id, caller.member_id, expires_at, _get_parent_id(caller)))
        details = {
            "expiresAt": rfc3339(expires_at),
            "accessRights": sorted(rights),
            "madeWith": caller.describe_credential(),
        }
        await self._audit.record(
            caller.member_id,
            "Token.Issued",
            "Token",
            claims.token_id,
            append_id=f"token-issued-{claims.token_id}",
            after=details,
        )
        return NewToken(token, expires_at, tuple(sorted(rights)))

    def check(
        self, faults: ValidationErrors, caller: Principal, minutes: Decimal | None, scopes: Sequence[str] | None
    ) -> None:
        """Add the violations that prevent :meth:`mint`."""
        if faults.has_valid("minutes"):
            with faults.collect():
                _compute_expiry(caller, minutes, now())
        if faults.has_valid("scopes") and scopes is not None:
            with faults.collect():
                _select_rights(caller, scopes)

    async def revoke(self, caller: Principal, token_id: str) -> None:
        """Revoke a token; the token of another member requires the right to manage keys.

        Raises:
            WorkspaceError: NOT_FOUND ``TOKEN_NOT_FOUND``; FORBIDDEN.
        """
        token = await self._store.find_token(token_id)
        if token is None:
            raise WorkspaceError(Kind.NOT_FOUND, "TOKEN_NOT_FOUND", "No active token has this id.")
        if token.principal != caller.member_id:
            caller.require_right(AccessRight.KEYS_MANAGE)
        await self._store.revoke_token(token_id, now())
        self._credentials.invalidate()
        # The append id contains the token id, so that a retry after a failure completes the record without a duplicate.
        await self._audit.record(
            caller.member_id,
            "Token.Revoked",
            "Token",
            token_id,
            append_id=f"token-revoked-{token_id}",
            before={"principal": token.principal},
            after={"madeWith": caller.describe_credential()},
        )


def _compute_expiry(caller: Principal, minutes: Decimal | None, issued_at: datetime) -> datetime:
    expires_at = issued_at + timedelta(minutes=float(DEFAULT_MINUTES if minutes is None else minutes))
    # The claim `exp` has whole seconds, and the stored expiry must match it.
    expires_at = expires_at.replace(microsecond=0)
    if caller.via is CredentialKind.ENTRA or caller.expires_at is None or expires_at <= caller.expires_at:
        return expires_at
    if minutes is None:
        return caller.expires_at
    raise invalid("minutes", "the new token would expire later than the caller's token")


def _get_parent_id(caller: Principal) -> str:
    return "" if caller.via is CredentialKind.ENTRA else caller.credential_id


def _select_rights(caller: Principal, scopes: Sequence[str]) -> frozenset[AccessRight]:
    known = frozenset(str(right) for right in AccessRight)
    errors = [
        FieldError("scopes", _describe_missing_right(right, known))
        for right in sorted(set(scopes))
        if right not in caller.rights
    ]
    if errors:
        raise invalid_fields(errors)
    return frozenset(AccessRight(right) for right in scopes)


def _describe_missing_right(right: str, known: frozenset[str]) -> str:
    return (
        f"{right} is not among the caller's access rights"
        if right in known
        else f"{right[:64]!r} is not an access right"
    )
