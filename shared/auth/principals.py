"""Authenticated callers (principals) and checks of their rights."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from shared.auth.rights import AccessRight
from shared.auth.sign_ins import NO_SIGN_IN, SignIn
from shared.auth.telemetry_binding import TelemetryBinding
from shared.errors import Kind, WorkspaceError


class CredentialKind(StrEnum):
    """Kind of the caller's credential."""

    API_KEY = "apiKey"
    JWT = "jwt"
    ENTRA = "entra"
    LINK = "signInLink"
    CLIENT_CREDENTIALS = "clientCredentials"
    AUTHORIZATION_CODE = "authorizationCode"
    REFRESH_TOKEN = "refreshToken"  # noqa: S105  a kind of credential
    NOTHING = "nothing"


class CredentialRestriction(StrEnum):
    """Restriction of a credential: some operations reject restricted credentials, even if these have all rights."""

    BOUND = "bound"
    """The credential is bound to connections."""
    DELEGATED = "delegated"
    """An OAuth client acts with a token that it received by a member's consent."""


@dataclass(frozen=True, slots=True)
class Principal:
    """Authenticated caller of the service, with the rights of the credential.

    Attributes:
        member_id: id of the team member that owns the credential; used in logs and metrics.
        identity: user identity that audit records state as UserID; None for the token of a service.
        name: display name.
        rights: access rights of the caller: the rights of the member, limited to those of the credential.
        via: kind of the credential.
        credential_id: id of the API key, ``jti`` of the token, or Entra ID's id of the token or user; empty for a
            sign-in link.
        expires_at: expiry of the credential; None if it does not expire.
        binding: the only connections and devices whose telemetry the caller may send; None without this limit.
        client_id: OAuth client that acts for the member with the member's consent; empty if the member acts.
        sign_in: sign-in of the person from which the token descends; it has no time if the time is unknown or the
            credential is not a token.
        personal: False if another person created the API key from which the credential descends; such a credential
            does not prove that its owner acts.
        has_listed_rights: True if the rights of the credential, or of one from which it descends, were listed at its
            creation; keys that are created with it do not get rights that the member gets later.
        key_id: ``kid`` of this service's key that signed the token; empty for other credentials.
    """

    member_id: str
    identity: str | None
    name: str
    rights: frozenset[AccessRight]
    via: CredentialKind
    credential_id: str
    expires_at: datetime | None
    binding: TelemetryBinding | None = None
    client_id: str = ""
    sign_in: SignIn = NO_SIGN_IN
    personal: bool = True
    has_listed_rights: bool = False
    key_id: str = ""

    @property
    def is_delegated(self) -> bool:
        """True if an OAuth client acts with a token that it received by the member's consent."""
        return bool(self.client_id) and self.via is CredentialKind.JWT

    @property
    def stored_credential_id(self) -> str:
        """Id of the caller's API key or token of this service; empty for other credentials, such as Entra ID tokens."""
        return "" if self.via is CredentialKind.ENTRA else self.credential_id

    @property
    def restrictions(self) -> frozenset[CredentialRestriction]:
        """Restrictions of the credential, which some operations do not accept."""
        bound = {CredentialRestriction.BOUND} if self.binding is not None else set()
        return frozenset(bound | ({CredentialRestriction.DELEGATED} if self.is_delegated else set()))

    def describe_credential(self) -> dict[str, str | None]:
        """Return the kind and id of the caller's credential for audit events, without its secret."""
        return {"via": self.via, "credentialId": self.credential_id or None}

    def require_no_connection_binding(self) -> None:
        """Check that the credential is not restricted to certain connections; a device key must not manage credentials.

        Raises:
            WorkspaceError: FORBIDDEN ``CREDENTIAL_BOUND``.
        """
        if self.binding is not None:
            raise WorkspaceError(
                Kind.FORBIDDEN,
                "CREDENTIAL_BOUND",
                "A credential that is bound to connections cannot manage keys and tokens.",
            )

    def require_not_delegated(self) -> None:
        """Check that the caller is not an OAuth client, because a client must not create further credentials.

        Raises:
            WorkspaceError: FORBIDDEN ``DELEGATED_TOKEN``.
        """
        if self.is_delegated:
            raise WorkspaceError(
                Kind.FORBIDDEN,
                "DELEGATED_TOKEN",
                "A token that an OAuth client received by consent cannot sign, create credentials or approve clients.",
            )

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


def build_revoked_credential_error() -> WorkspaceError:
    """Build the error for a request whose credential was revoked while the request was processed."""
    return build_unauthenticated_error("The credential of the request was revoked.")


def build_unauthenticated_error(detail: str) -> WorkspaceError:
    """Build the error for a missing or invalid credential; ``detail`` must not help to guess a credential."""
    return WorkspaceError(Kind.UNAUTHENTICATED, "UNAUTHENTICATED", detail)
