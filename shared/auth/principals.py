"""The caller, as every interface sees it."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError


class CredentialKind(StrEnum):
    """How a caller proved who it is."""

    API_KEY = "apiKey"
    JWT = "jwt"
    ENTRA = "entra"
    LINK = "signInLink"
    NOTHING = "nothing"


@dataclass(frozen=True, slots=True)
class Principal:
    """An authenticated caller.

    Attributes:
        member_id: the team member that the credential belongs to; counted and logged under this name.
        identity: who acts, becomes UserID of audit records; None for the token of a service, which carries no identity.
        name: for people to read.
        rights: what this credential may do: the member's rights, cut to what the credential carries.
        via: the kind of credential.
        credential_id: the API key's id, the token's ``jti``, or what Entra ID calls its token or its user; empty for a
            sign-in link.
        expires_at: when the credential ends, None for never.
    """

    member_id: str
    identity: str | None
    name: str
    rights: frozenset[AccessRight]
    via: CredentialKind
    credential_id: str
    expires_at: datetime | None

    def made_with(self) -> dict[str, str | None]:
        """Return the credential as audit events name it: its kind and its id, never its text."""
        return {"via": self.via, "credentialId": self.credential_id or None}

    def require_right(self, right: AccessRight) -> None:
        """Return when the caller holds a right.

        Raises:
            WorkspaceError: FORBIDDEN ``ACCESS_RIGHT_MISSING`` naming the right.
        """
        if right not in self.rights:
            raise WorkspaceError(
                Kind.FORBIDDEN, "ACCESS_RIGHT_MISSING", f"This needs the access right {right}.", accessRight=right
            )


ANONYMOUS = Principal("", None, "", frozenset(), CredentialKind.NOTHING, "", None)
"""The caller of a public operation."""


def unauthenticated(detail: str) -> WorkspaceError:
    """Return the refusal of a missing or bad credential; the detail says nothing of what would have been right."""
    return WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", detail)
