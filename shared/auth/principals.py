"""Authenticated callers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError


class CredentialKind(StrEnum):
    """Kind of the caller's credential."""

    API_KEY = "apiKey"
    JWT = "jwt"
    ENTRA = "entra"
    LINK = "signInLink"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Principal:
    """Authenticated caller.

    Attributes:
        member_id: team member that owns the credential; used in logs and metrics.
        identity: user identity for the UserID of audit records; None for the token of a service.
        name: display name.
        rights: rights of the credential: those of the member, restricted by the credential.
        via: kind of the credential.
        credential_id: id of the API key, ``jti`` of the token, or Entra ID's id of the token or user; empty for a
            sign-in link.
        expires_at: expiry of the credential; None if it does not expire.
    """

    member_id: str
    identity: str | None
    name: str
    rights: frozenset[AccessRight]
    via: CredentialKind
    credential_id: str
    expires_at: datetime | None

    def describe_credential(self) -> dict[str, str | None]:
        """Return the kind and id of the credential for audit events, without its secret."""
        return {"via": self.via, "credentialId": self.credential_id or None}

    def require_right(self, right: AccessRight) -> None:
        """Check that the caller has a right.

        Raises:
            WorkspaceError: FORBIDDEN ``ACCESS_RIGHT_MISSING`` naming the right.
        """
        if right not in self.rights:
            raise WorkspaceError(
                Kind.FORBIDDEN,
                "ACCESS_RIGHT_MISSING",
                f"This operation requires the access right {right}.",
                accessRight=right,
            )


ANONYMOUS = Principal("", None, "", frozenset(), CredentialKind.NOTHING, "", None)
"""Caller of a public operation."""


def unauthenticated(detail: str) -> WorkspaceError:
    """Return the error for a missing or invalid credential; the detail must not help to guess a valid one."""
    return WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", detail)
