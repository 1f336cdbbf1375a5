"""OAuth grants: the rights that a team member delegated to a client, with the authorization code and refresh tokens.

A grant begins with an authorization code. When the client exchanges the code, it gets a refresh token; each use of a
refresh token replaces it by a new one. Code and refresh tokens are in one record, so that of several simultaneous
requests, one conditional write succeeds.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final, Protocol

from shared.auth.rights import AccessRight, select_known_rights
from shared.auth.sign_ins import NO_SIGN_IN, SignIn, parse_epoch_seconds, to_epoch_seconds
from shared.timestamps import format_rfc3339, parse_rfc3339

CODE_LIFETIME: Final = timedelta(seconds=60)
REFRESH_LIFETIME: Final = timedelta(days=30)


@dataclass(frozen=True, slots=True)
class CodeProof:
    """Digest and expiry of an authorization code; PKCE challenge and redirect URI that the token request must match."""

    digest: str
    challenge: str
    redirect_uri: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class RefreshState:
    """State of a grant's refresh tokens, of which only the newest is valid.

    Attributes:
        family: SHA-256 of the secret that all refresh tokens of the grant contain; it distinguishes an old token from
            a guessed one.
        digest: SHA-256 of the newest refresh token's own secret.
        expires_at: expiry of the newest refresh token.
        used_at: time at which the code or a refresh token was last exchanged.
        started_at: time at which the code was exchanged.
    """

    family: str
    digest: str
    expires_at: datetime
    used_at: datetime
    started_at: datetime


class EndReason(StrEnum):
    """Reason why an OAuth grant ended."""

    MEMBER = "endedByMember"
    CLIENT = "endedByClient"
    REUSE = "tokenReused"
    CREDENTIAL = "credentialRevoked"
    DISABLED = "memberDisabled"
    UNDECLARED = "clientRemoved"


@dataclass(frozen=True, slots=True)
class GrantEnd:
    """Time, reason and author of a grant's end.

    Attributes:
        at: time of the end.
        reason: reason for which the grant ended.
        actor: id of the member who ended the grant, or who consented to it if the client ended it; the service's own id
            if the service ended it. Ends of earlier versions name the member instead of the service.
        made_with: credential of the actor for the audit event; None if the client or the service ended the grant.
        is_recorded: whether the audit event of the end is stored.
    """

    at: datetime
    reason: EndReason
    actor: str
    made_with: Mapping[str, Any] | None = None
    is_recorded: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """Rights that a team member delegated to an OAuth client.

    Attributes:
        grant_id: id in the form of a token id, which contains the time of the consent.
        member_id: id of the member who consented.
        client_id: id of the OAuth client.
        client_name: display name of the client at the time of the consent.
        rights: the delegated access rights.
        created_at: time of the consent.
        code: values with which the client must prove that it requested the authorization code.
        sign_in: sign-in with which the member consented.
        token_id: id of the token with which the member consented; if this token is revoked, the grant ends.
        ancestor_ids: ids of the tokens from which that token descends; if one of them is revoked, the grant ends. The
            store of tokens deletes expired tokens, so these ids are stored here. Empty in grants of earlier versions.
        api_key_id: id of the API key for which that token was issued; if this key is revoked, the grant ends. Empty if
            the token was not issued for an API key.
        refresh: state of the refresh tokens; None until the client exchanges the code.
        credential_ends_at: expiry of the API key ``api_key_id``, and so of all tokens of the grant; None if there is no
            such key, or it does not expire.
        end: time and reason of the grant's end; None while the grant is active.
    """

    grant_id: str
    member_id: str
    client_id: str
    client_name: str
    rights: frozenset[AccessRight]
    created_at: datetime
    code: CodeProof
    sign_in: SignIn = NO_SIGN_IN
    token_id: str = ""
    ancestor_ids: tuple[str, ...] = ()
    api_key_id: str = ""
    refresh: RefreshState | None = None
    credential_ends_at: datetime | None = None
    end: GrantEnd | None = None

    @property
    def expires_at(self) -> datetime:
        """Expiry of the newest refresh token, or of the authorization code if it was not exchanged yet."""
        return self.code.expires_at if self.refresh is None else self.refresh.expires_at

    def is_active(self, at: datetime) -> bool:
        """Return whether the client has exchanged the code and can still get new tokens."""
        return self.end is None and self.refresh is not None and self.refresh.expires_at > at


@dataclass(frozen=True, slots=True)
class StoredGrant:
    """Grant as it is stored, with the version of its record.

    Attributes:
        grant: content of the record.
        version: version of the record, with which :meth:`GrantStore.try_replace_grant` detects concurrent changes.
    """

    grant: Grant
    version: str


class GrantStore(Protocol):
    """Storage of OAuth grants. A grant is deleted some time after its expiry."""

    async def add_grant(self, grant: Grant) -> None:
        """Store a new OAuth grant."""
        ...

    async def find_grant(self, grant_id: str) -> StoredGrant | None:
        """Return the OAuth grant with this id; None if it does not exist."""
        ...

    async def try_replace_grant(self, before: StoredGrant, after: Grant) -> bool:
        """Replace a grant unless it has changed since it was read; of several concurrent calls, only one succeeds.

        Returns:
            True if this call replaced the grant.
        """
        ...

    async def list_active_grants(self, member_id: str | None = None) -> Sequence[Grant]:
        """Return the active grants of a member, or of all members for None, oldest first."""
        ...

    async def list_grants_of_credential(self, credential_id: str) -> Sequence[Grant]:
        """Return the active, unexpired grants whose consent was given with a token or API key, oldest first.

        The result also contains the grants whose consent was given with a token that descends from this credential.
        """
        ...

    async def list_grants_with_unrecorded_end(self) -> Sequence[StoredGrant]:
        """Return the ended grants whose audit event is not yet marked as stored, oldest first."""
        ...


def grant_to_json(grant: Grant) -> dict[str, Any]:
    """Convert an OAuth grant to its stored JSON form."""
    code, refresh = grant.code, grant.refresh
    return {
        "grantId": grant.grant_id,
        "memberId": grant.member_id,
        "clientId": grant.client_id,
        "clientName": grant.client_name,
        "rights": sorted(grant.rights),
        "createdAt": format_rfc3339(grant.created_at),
        "code": {
            "digest": code.digest,
            "challenge": code.challenge,
            "redirectUri": code.redirect_uri,
            "expiresAt": format_rfc3339(code.expires_at),
        },
        "signIn": _sign_in_to_json(grant.sign_in),
        "tokenId": grant.token_id,
        "ancestorIds": list(grant.ancestor_ids),
        "apiKeyId": grant.api_key_id,
        "refresh": None
        if refresh is None
        else {
            "family": refresh.family,
            "digest": refresh.digest,
            "expiresAt": format_rfc3339(refresh.expires_at),
            "usedAt": format_rfc3339(refresh.used_at),
            "startedAt": format_rfc3339(refresh.started_at),
        },
        "credentialEndsAt": None if grant.credential_ends_at is None else format_rfc3339(grant.credential_ends_at),
        "end": None if grant.end is None else _grant_end_to_json(grant.end),
    }


def _sign_in_to_json(sign_in: SignIn) -> dict[str, Any]:
    return {
        "authTime": None if sign_in.at is None else to_epoch_seconds(sign_in.at),
        "amr": list(sign_in.methods),
        "sid": sign_in.sign_in_id,
    }


def _sign_in_from_json(stored: Mapping[str, Any]) -> SignIn:
    return SignIn(parse_epoch_seconds(stored["authTime"]), tuple(stored["amr"]), stored["sid"])


def _grant_end_to_json(end: GrantEnd) -> dict[str, Any]:
    return {
        "at": format_rfc3339(end.at),
        "reason": end.reason,
        "actor": end.actor,
        "madeWith": None if end.made_with is None else dict(end.made_with),
        "isRecorded": end.is_recorded,
    }


def grant_from_json(stored: Mapping[str, Any]) -> Grant:
    """Parse a grant from its stored JSON form; access rights that this version does not know are left out."""
    refresh = stored["refresh"]
    return Grant(
        grant_id=stored["grantId"],
        member_id=stored["memberId"],
        client_id=stored["clientId"],
        client_name=stored["clientName"],
        rights=select_known_rights(stored["rights"]),
        created_at=parse_rfc3339(stored["createdAt"]),
        code=CodeProof(
            stored["code"]["digest"],
            stored["code"]["challenge"],
            stored["code"]["redirectUri"],
            parse_rfc3339(stored["code"]["expiresAt"]),
        ),
        sign_in=_sign_in_from_json(stored["signIn"]),
        token_id=stored["tokenId"],
        ancestor_ids=tuple(stored.get("ancestorIds", ())),
        api_key_id=stored["apiKeyId"],
        refresh=None
        if refresh is None
        else RefreshState(
            refresh["family"],
            refresh["digest"],
            parse_rfc3339(refresh["expiresAt"]),
            parse_rfc3339(refresh["usedAt"]),
            parse_rfc3339(refresh["startedAt"]),
        ),
        credential_ends_at=_parse_optional_time(stored["credentialEndsAt"]),
        end=None if stored["end"] is None else _grant_end_from_json(stored["end"]),
    )


def _grant_end_from_json(stored: Mapping[str, Any]) -> GrantEnd:
    reason = EndReason(stored["reason"])
    return GrantEnd(parse_rfc3339(stored["at"]), reason, stored["actor"], stored["madeWith"], stored["isRecorded"])


def _parse_optional_time(text: str | None) -> datetime | None:
    return None if text is None else parse_rfc3339(text)
