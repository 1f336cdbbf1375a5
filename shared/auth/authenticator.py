"""Authentication of the Authorization header, and the record of the times at which API keys were last used.

The last use of a key is recorded in the background, because a write must never delay or fail authentication.

This module is separate from ``issuer`` because every request authenticates, and few requests issue a token.
"""

import asyncio
import contextvars
import hashlib
from collections import OrderedDict
from contextlib import suppress
from datetime import datetime
from typing import Final

from shared.auth import api_keys, entra, jose
from shared.auth.entra import EntraTokens
from shared.auth.older_keys import OlderKeyCreators
from shared.auth.ports import ApiKey, Credentials, CredentialStore, Directory, Team, TeamMember
from shared.auth.principals import CredentialKind, Principal, build_unauthenticated_error
from shared.auth.sign_ins import sign_in_from_entra_claims
from shared.auth.tokens import Claims, TokenCodec
from shared.errors import WorkspaceError
from shared.observability import logs
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.versioned_cache import VersionedCache

ACCURACY_SECONDS: Final = 60
"""Minimum time between two writes of an API key's last use."""
WRITE_SECONDS: Final = 15.0
MAX_WAITING: Final = 1_000
"""Maximum number of API keys whose last use waits to be written; further uses are not recorded."""
CACHED_TOKENS = 10_000
RELOAD_SECONDS = 1.0
_NO_SALT, _NO_DIGEST = bytes(16), bytes(32)
_BAD_KEY = "The API key is not valid."
_NO_KEY_OR_TOKEN = f"The credential is neither an API key, which begins with {api_keys.PREFIX}, nor a token."
_ENDED = "The token ended because its owner was disabled or removed after its issue; request a new token."

_LOG = logs.get_logger("auth")


class KeyUsageRecorder:
    """Background writer of the times at which API keys were last used.

    A failed write is not repeated; of several failures in a row, only the first is logged.

    Args:
        store: storage of the keys.
        write_seconds: timeout of one write in seconds.
    """

    def __init__(self, store: CredentialStore, *, write_seconds: float = WRITE_SECONDS) -> None:
        self._store = store
        self._write_seconds = write_seconds
        self._recorded: dict[str, datetime] = {}
        self._waiting: dict[str, datetime] = {}
        self._writing: asyncio.Task[None] | None = None
        self._is_failing = False

    def record_use(self, key: ApiKey, at: datetime) -> None:
        """Store the time of an API key's use in the background, unless a recent use is stored.

        Return without waiting for the write, and never raise an error.
        """
        last = self._recorded.get(key.key_id, key.last_used_at)
        if last is not None and (at - last).total_seconds() < ACCURACY_SECONDS:
            return
        if len(self._waiting) >= MAX_WAITING:
            return
        self._recorded[key.key_id] = self._waiting[key.key_id] = at
        if self._writing is None:
            # A new context, because the write belongs to no request.
            write = asyncio.get_running_loop().create_task
            self._writing = write(self._write_waiting_uses(), context=contextvars.Context())

    async def close(self) -> None:
        """Wait until the writes of all recorded uses have succeeded or failed."""
        if self._writing is not None:
            await self._writing

    async def _write_waiting_uses(self) -> None:
        try:
            while self._waiting:
                key_id, at = self._waiting.popitem()
                await self._write_last_use(key_id, at)
        finally:
            self._writing = None

    async def _write_last_use(self, key_id: str, at: datetime) -> None:
        try:
            async with asyncio.timeout(self._write_seconds):
                await self._store.store_last_use(key_id, at)
        except Exception as error:  # noqa: BLE001  no request waits for this write
            if not self._is_failing:
                _LOG.warning(
                    "the time of an API key's last use could not be stored",
                    extra=logs.fields(error=type(error).__name__),
                )
            self._is_failing = True
        else:
            self._is_failing = False


class Authenticator:
    """Verifier of callers' credentials: API keys, the service's own tokens and, if configured, Entra ID tokens.

    Attributes:
        lacks_entra_time: True if the last Entra ID token of a person that this process verified did not contain the
            time of the sign-in.
    """

    def __init__(
        self,
        directory: Directory,
        credentials: VersionedCache[Credentials],
        store: CredentialStore,
        codec: TokenCodec,
        entra_tokens: EntraTokens | None,
        *,
        older_keys: OlderKeyCreators | None = None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._directory = directory
        self._credentials = credentials
        self._key_usage = KeyUsageRecorder(store)
        self._codec = codec
        self._entra = entra_tokens
        self._older_keys = older_keys
        self.lacks_entra_time = False
        self._claims_cache: OrderedDict[bytes, Claims] = OrderedDict()
        self._reloaded_at = float("-inf")
        self._runtime = runtime

    async def __call__(self, authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        """Authenticate the caller by an Authorization header.

        Args:
            authorization: value of the header; empty if missing.
            accepted: kinds of credential that the operation accepts.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the credential is missing, invalid or of a kind that is not accepted;
                UNAVAILABLE if keys or team cannot be loaded.
        """
        scheme, _, credential = authorization.partition(" ")
        # Only these characters are white space in a header (RFC 9110 section 5.6.3); Python strips more by default.
        credential = credential.strip(" \t")
        if scheme.lower() != "bearer" or not credential:
            raise build_unauthenticated_error("The header Authorization: Bearer <token> is required.")
        if credential.startswith(api_keys.PREFIX):
            if CredentialKind.API_KEY not in accepted:
                raise build_unauthenticated_error(
                    "API keys are not accepted here; exchange the key for a token with GET /workspace/api/keys/jwt."
                )
            return await self._authenticate_key(credential)
        if "." not in credential:
            # Most often a mistyped API key, which a message about a token would not explain.
            raise build_unauthenticated_error(_NO_KEY_OR_TOKEN)
        if CredentialKind.ENTRA in accepted and self._entra is not None and _is_entra_token(credential):
            return await self._authenticate_entra(self._entra, credential)
        if CredentialKind.JWT not in accepted:
            raise build_unauthenticated_error("Tokens of this service are not accepted here; send an API key.")
        return await self._authenticate_token(credential)

    async def close(self) -> None:
        """Wait until the pending writes of API keys' last uses have succeeded or failed."""
        await self._key_usage.close()

    async def recheck_token_access(
        self, member_id: str, token_id: str, expires_at: datetime, key_id: str = ""
    ) -> Principal:
        """Check that a caller who authenticated earlier with a token, such as a stream's listener, still has access.

        Return the caller with all current rights of the member, because the rights of the token are no longer known.

        Args:
            member_id: id of the member who owns the token.
            token_id: id of the token.
            expires_at: expiry of the token.
            key_id: ``kid`` of this service's key that signed the token; empty for a token of Entra ID.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the token has expired or was revoked, if its key was withdrawn, or if the
                member is disabled; UNAVAILABLE if keys or team cannot be loaded.
        """
        if expires_at <= self._runtime.now():
            raise build_unauthenticated_error("The token has expired; request a new one.")
        if token_id in (await self._credentials.load_current_value()).revoked_tokens:
            raise build_unauthenticated_error("The token was revoked; request a new one.")
        member = _require_member_of_valid_token(await self._directory.get_team(), member_id, token_id)
        # Last, because disabled members must lose their access also while no key can be read.
        if key_id and not await self._codec.is_key_published(key_id):
            raise build_unauthenticated_error("The key that signed the token was withdrawn; request a new token.")
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=member.access_rights,
            via=CredentialKind.JWT,
            credential_id=token_id,
            expires_at=expires_at,
            key_id=key_id,
        )

    async def _authenticate_token(self, token: str) -> Principal:
        claims = await self._verify_token_with_cache(token)
        credentials = await self._credentials.load_current_value()
        team = await self._directory.get_team()
        if claims.token_id in credentials.revoked_tokens:
            raise build_unauthenticated_error("The token was revoked; request a new one.")
        if claims.workspace != team.workspace or claims.subject not in (None, claims.username):
            raise build_unauthenticated_error("The token is not valid; request a new one.")
        member = _require_member_of_valid_token(team, claims.username, claims.token_id)
        return Principal(
            member_id=member.id,
            identity=None if member.service else claims.subject,
            name=member.name,
            rights=claims.rights & member.access_rights,
            via=CredentialKind.JWT,
            credential_id=claims.token_id,
            expires_at=claims.expires_at,
            binding=claims.binding,
            client_id=claims.client_id,
            sign_in=claims.sign_in,
            personal=claims.personal,
            has_listed_rights=claims.has_listed_rights,
            key_id=claims.key_id,
        )

    async def _verify_token_with_cache(self, token: str) -> Claims:
        # The cache stores a digest instead of the token, so that a memory dump contains no usable token.
        digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=32).digest()
        claims = self._claims_cache.get(digest)
        if claims is not None:
            if claims.expires_at <= self._runtime.now():
                del self._claims_cache[digest]
                raise build_unauthenticated_error("The token has expired; request a new one.")
            self._claims_cache.move_to_end(digest)
            if await self._codec.is_key_published(claims.key_id):
                return claims
            # The key was withdrawn, so the token must not be accepted; the verification rejects it.
            self._claims_cache.pop(digest, None)
        claims = await self._codec.verify(token)
        self._claims_cache[digest] = claims
        if len(self._claims_cache) > CACHED_TOKENS:
            self._claims_cache.popitem(last=False)
        return claims

    async def _authenticate_key(self, key_text: str) -> Principal:
        parts = api_keys.parse_key_id_and_secret(key_text)
        if parts is None:
            raise build_unauthenticated_error(_BAD_KEY)
        key = await self._find_key(*parts)
        at = self._runtime.now()
        team = await self._directory.get_team()
        if key is None or team.find_key_end_time(key) is not None or (key.expires_at and key.expires_at <= at):
            raise build_unauthenticated_error(_BAD_KEY)
        member = team.members.get(key.principal)
        if member is None or not member.enabled:
            raise build_unauthenticated_error(_BAD_KEY)
        self._key_usage.record_use(key, at)
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=member.access_rights if key.rights is None else key.rights & member.access_rights,
            via=CredentialKind.API_KEY,
            credential_id=key.key_id,
            expires_at=key.expires_at,
            binding=key.binding,
            personal=await self._is_created_by_owner_only(key),
            has_listed_rights=key.rights is not None,
        )

    async def _is_created_by_owner_only(self, key: ApiKey) -> bool:
        """Return whether no other member created an API key; False if its creators are unknown."""
        creators = key.creators
        if creators is None and self._older_keys is not None:
            # While the audit log does not respond, the key is accepted, but cannot sign.
            with suppress(WorkspaceError):
                creators = await self._older_keys.find_creator_ids(key)
        return creators == ()

    async def _find_key(self, key_id: str, secret: str) -> ApiKey | None:
        """Return the API key with this id and secret, else None. A wrong secret takes as long as an unknown id."""
        key = _find_matching_key(await self._credentials.load_current_value(), key_id, secret)
        started_at = self._runtime.monotonic()
        if key is None and started_at - self._reloaded_at > RELOAD_SECONDS:
            # Another process may just have created the key. Invalid keys cause the reload, too, so it is rate-limited.
            self._reloaded_at = started_at
            self._credentials.invalidate()
            key = _find_matching_key(await self._credentials.load_current_value(), key_id, secret)
        return key

    async def _authenticate_entra(self, tokens: EntraTokens, token: str) -> Principal:
        claims = await tokens.verify(token)
        team = await self._directory.get_team()
        member = entra.find_member_by_claims(team.members.values(), claims)
        if member is None or not member.enabled:
            raise build_unauthenticated_error("The account is not an enabled member of this workspace.")
        if team.is_token_issued_before_cutoff(member.id, entra.compute_latest_possible_issue_time(claims)):
            raise build_unauthenticated_error(_ENDED)
        sign_in = sign_in_from_entra_claims(claims)
        if not member.service:
            self.lacks_entra_time = sign_in.at is None
        return Principal(
            member_id=member.id,
            identity=None if member.service else member.id,
            name=member.name,
            rights=member.access_rights,
            via=CredentialKind.ENTRA,
            credential_id=entra.get_token_or_user_id(claims),
            expires_at=entra.get_token_expiry(claims),
            sign_in=sign_in,
        )


def _find_matching_key(credentials: Credentials, key_id: str, secret: str) -> ApiKey | None:
    key = credentials.keys.get(key_id)
    valid = api_keys.is_secret_valid(key.salt if key else _NO_SALT, key.digest if key else _NO_DIGEST, secret)
    return key if valid else None


def _is_entra_token(token: str) -> bool:
    try:
        return jose.parse_token_header(token).get("alg") == entra.ALGORITHM
    except ValueError:
        return False


def _require_member_of_valid_token(team: Team, member_id: str, token_id: str) -> TeamMember:
    member = team.members.get(member_id)
    if member is None or not member.enabled:
        raise build_unauthenticated_error("The member who owns this credential is unknown or disabled.")
    if team.has_token_ended(member_id, token_id):
        raise build_unauthenticated_error(_ENDED)
    return member
