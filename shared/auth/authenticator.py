"""From an Authorization header to a principal."""

import hashlib
import time
from collections import OrderedDict
from datetime import datetime

from shared.auth import api_keys, entra, jose
from shared.auth.entra import EntraTokens
from shared.auth.key_usage import KeyUsageRecorder
from shared.auth.ports import ApiKey, Credentials, CredentialStore, Directory, Team, TeamMember
from shared.auth.principals import CredentialKind, Principal, unauthenticated
from shared.auth.tokens import Claims, TokenCodec
from shared.timestamps import now
from shared.versioned_cache import VersionedCache

CACHED_TOKENS = 10_000
LOOK_AGAIN_SECONDS = 1.0
_NO_SALT, _NO_DIGEST = bytes(16), bytes(32)
_BAD_KEY = "The API key is not valid."


class Authenticator:
    """Authenticates API keys, the service's own tokens and, where configured, Entra ID tokens."""

    def __init__(
        self,
        directory: Directory,
        credentials: VersionedCache[Credentials],
        store: CredentialStore,
        codec: TokenCodec,
        entra_tokens: EntraTokens | None,
    ) -> None:
        self._directory = directory
        self._credentials = credentials
        self._key_usage = KeyUsageRecorder(store)
        self._codec = codec
        self._entra = entra_tokens
        self._seen: OrderedDict[bytes, Claims] = OrderedDict()
        self._looked_again_at = float("-inf")

    async def __call__(self, authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        """Return the caller that an Authorization header names.

        Args:
            authorization: the header's value, empty where there is none.
            accepted: the kinds of credential that the operation takes.

        Raises:
            WorkspaceError: UNAUTHENTICATED; UNAVAILABLE when keys or team cannot be read.
        """
        scheme, _, credential = authorization.partition(" ")
        # Nothing else is white space here (RFC 9110 section 5.6.3), though Python takes more for it.
        credential = credential.strip(" \t")
        if scheme.lower() != "bearer" or not credential:
            raise unauthenticated("The header Authorization: Bearer <token> is required.")
        if credential.startswith(api_keys.PREFIX):
            if CredentialKind.API_KEY not in accepted:
                raise unauthenticated("API keys are not taken here; GET /workspace/api/keys/jwt gives a token for one.")
            return await self._by_key(credential)
        if CredentialKind.ENTRA in accepted and self._entra is not None and _is_entra(credential):
            return await self._by_entra(self._entra, credential)
        if CredentialKind.JWT not in accepted:
            raise unauthenticated("A token is not taken here.")
        return await self._by_token(credential)

    async def close(self) -> None:
        """Return when the last uses of keys are noted, or given up."""
        await self._key_usage.close()

    async def resume(self, member_id: str, token_id: str, expires_at: datetime) -> Principal:
        """Return a caller who proved who they are before, with a token of this service, if they still may act.

        Args:
            member_id: the team member.
            token_id: of the token; its rights are not known any more, the principal has the member's.
            expires_at: when that token ends.

        Raises:
            WorkspaceError: UNAUTHENTICATED: the token has expired or was revoked, or the member is disabled.
        """
        if expires_at <= now():
            raise unauthenticated("The token has expired.")
        if token_id in (await self._credentials.current()).revoked_tokens:
            raise unauthenticated("The token was revoked.")
        member = _enabled(await self._directory.team(), member_id)
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=member.access_rights,
            via=CredentialKind.JWT,
            credential_id=token_id,
            expires_at=expires_at,
        )

    async def _by_token(self, token: str) -> Principal:
        claims = await self._claims(token)
        credentials = await self._credentials.current()
        team = await self._directory.team()
        if claims.token_id in credentials.revoked_tokens:
            raise unauthenticated("The token was revoked.")
        if claims.workspace != team.workspace or claims.subject not in (None, claims.username):
            raise unauthenticated("The token is not valid.")
        member = _enabled(team, claims.username)
        return Principal(
            member_id=member.id,
            identity=None if member.service else claims.subject,
            name=member.name,
            rights=claims.rights & member.access_rights,
            via=CredentialKind.JWT,
            credential_id=claims.token_id,
            expires_at=claims.expires_at,
        )

    async def _claims(self, token: str) -> Claims:
        # A digest is kept instead of the token, so that a dump of the cache holds nothing that can be used.
        digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        claims = self._seen.get(digest)
        if claims is not None:
            if claims.expires_at.timestamp() <= time.time():
                del self._seen[digest]
                raise unauthenticated("The token has expired.")
            self._seen.move_to_end(digest)
            return claims
        claims = await self._codec.verify(token)
        self._seen[digest] = claims
        if len(self._seen) > CACHED_TOKENS:
            self._seen.popitem(last=False)
        return claims

    async def _by_key(self, text: str) -> Principal:
        parts = api_keys.parse_key(text)
        if parts is None:
            raise unauthenticated(_BAD_KEY)
        key = await self._matching_key(*parts)
        at = now()
        if key is None or key.revoked_at is not None or (key.expires_at and key.expires_at <= at):
            raise unauthenticated(_BAD_KEY)
        member = (await self._directory.team()).members.get(key.principal)
        if member is None or not member.enabled:
            raise unauthenticated(_BAD_KEY)
        self._key_usage.record(key, at)
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=member.access_rights if key.rights is None else key.rights & member.access_rights,
            via=CredentialKind.API_KEY,
            credential_id=key.key_id,
            expires_at=key.expires_at,
        )

    async def _matching_key(self, key_id: str, secret: str) -> ApiKey | None:
        """Return the key of an id and a secret; a wrong secret costs what an unknown id does."""
        key = _matching(await self._credentials.current(), key_id, secret)
        asked_at = time.monotonic()
        if key is None and asked_at - self._looked_again_at > LOOK_AGAIN_SECONDS:
            # Another process, the apply command for one, may have made it a moment ago. Not for every made-up key.
            self._looked_again_at = asked_at
            self._credentials.invalidate()
            key = _matching(await self._credentials.current(), key_id, secret)
        return key

    async def _by_entra(self, tokens: EntraTokens, token: str) -> Principal:
        claims = await tokens.verify(token)
        team = await self._directory.team()
        member = entra.find_member(team.members.values(), claims)
        if member is None or not member.enabled:
            raise unauthenticated("The account is no enabled member of this workspace.")
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=member.access_rights,
            via=CredentialKind.ENTRA,
            credential_id=entra.get_credential_id(claims),
            expires_at=entra.get_expiry(claims),
        )


def _matching(credentials: Credentials, key_id: str, secret: str) -> ApiKey | None:
    key = credentials.keys.get(key_id)
    good = api_keys.is_secret_valid(key.salt if key else _NO_SALT, key.digest if key else _NO_DIGEST, secret)
    return key if good else None


def _is_entra(token: str) -> bool:
    try:
        return jose.parse_header(token).get("alg") == entra.ALGORITHM
    except ValueError:
        return False


def _enabled(team: Team, member_id: str) -> TeamMember:
    member = team.members.get(member_id)
    if member is None or not member.enabled:
        raise unauthenticated("The credential's principal is unknown or disabled.")
    return member
