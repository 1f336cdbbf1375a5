"""Tests of the authenticator, which turns an Authorization header into a principal, and of the recorded key usage."""

import asyncio
import base64
import dataclasses
import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.auth import jose, tokens
from shared.auth.authenticator import ACCURACY_SECONDS, MAX_WAITING, Authenticator, KeyUsageRecorder
from shared.auth.entra import EntraTokens
from shared.auth.ports import ApiKey, CredentialCutoff, Team
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.auth.tokens import TokenCodec
from shared.backends.embedded.credentials import SCHEMA, SqliteCredentialStore
from shared.backends.embedded.key_files import FileSigningKey
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.errors import Kind, WorkspaceError
from shared.timestamps import now
from tests.random_examples import scale_examples
from tests.unit.shared.auth.conftest import EDITOR, Workspace, catch_error
from tests.unit.shared.auth.targets import AUDIENCE, TENANT, OneKey, build_entra_target
from tests.virtual_time import VirtualTime

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
WRITE_SECONDS = 0.1


def build_api_key(number: int = 0) -> ApiKey:
    """Return an API key that was never used."""
    return ApiKey(f"AAAA{number:04}", bytes(16), bytes(32), "admin@x", "a key", None, AT, None)


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[SqliteDatabase]:
    """Return a database of API keys with a short write timeout."""
    made = SqliteDatabase(tmp_path / "workspace.sqlite", SCHEMA, write_seconds=WRITE_SECONDS)
    yield made
    await made.close()


@pytest.fixture
async def store(database: SqliteDatabase) -> SqliteCredentialStore:
    """Return a store that contains one API key."""
    made = SqliteCredentialStore(database)
    await made.add_or_get_key(build_api_key())
    return made


async def read_last_use(store: SqliteCredentialStore) -> datetime | None:
    """Return the stored time of the key's last use."""
    return (await store.load()).keys[build_api_key().key_id].last_used_at


async def test_the_last_use_of_a_key_is_stored_once_a_minute(store: SqliteCredentialStore) -> None:
    """The first use of an API key is stored at once, and later uses at most once a minute."""
    uses = KeyUsageRecorder(store)
    for seconds, written in ((0, 0), (ACCURACY_SECONDS - 1, 0), (ACCURACY_SECONDS, ACCURACY_SECONDS)):
        uses.record_use(build_api_key(), AT + timedelta(seconds=seconds))
        await uses.close()
        assert await read_last_use(store) == AT + timedelta(seconds=written)


async def test_a_locked_credential_store_is_logged_once(
    tmp_path: Path, store: SqliteCredentialStore, caplog: pytest.LogCaptureFixture
) -> None:
    """While another process locks the file, last uses are not stored and one warning is logged."""
    uses = KeyUsageRecorder(store)
    other = sqlite3.connect(tmp_path / "workspace.sqlite", autocommit=True)
    other.execute("BEGIN IMMEDIATE")
    for number in range(3):
        uses.record_use(build_api_key(number), AT)
    await uses.close()
    other.execute("ROLLBACK")
    other.close()
    assert [record.message for record in caplog.records] == ["the time of an API key's last use could not be stored"]
    later = AT + timedelta(seconds=ACCURACY_SECONDS)
    uses.record_use(build_api_key(), later)
    await uses.close()
    assert await read_last_use(store) == later


class UnresponsiveStore(SqliteCredentialStore):
    """Fake credential store whose writes wait until the test releases them."""

    def __init__(self, database: SqliteDatabase) -> None:
        super().__init__(database)
        self.write_count = 0
        self.answers = asyncio.Event()

    async def store_last_use(self, key_id: str, at: datetime) -> None:
        """Wait until the test releases the writes, then store the time of the last use."""
        self.write_count += 1
        await self.answers.wait()
        await super().store_last_use(key_id, at)


async def test_the_number_of_waiting_last_uses_is_limited(database: SqliteDatabase) -> None:
    """The last uses of API keys are stored one at a time; the number of keys that wait for this is limited."""
    unresponsive = UnresponsiveStore(database)
    uses = KeyUsageRecorder(unresponsive)
    for number in range(MAX_WAITING + 10):
        uses.record_use(build_api_key(number), AT)
    await asyncio.sleep(0)
    assert unresponsive.write_count == 1
    unresponsive.answers.set()
    await uses.close()
    assert unresponsive.write_count == MAX_WAITING


async def test_storing_the_last_use_of_a_key_times_out(database: SqliteDatabase) -> None:
    """If the store does not respond, storing the last use of a key ends with a timeout."""
    unresponsive = UnresponsiveStore(database)
    uses = KeyUsageRecorder(unresponsive, write_seconds=WRITE_SECONDS)
    uses.record_use(build_api_key(), AT)
    await uses.close()
    assert unresponsive.write_count == 1


JWT_ONLY = frozenset({CredentialKind.JWT})
KEYS = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})


async def authenticate_by_key(auth_workspace: Workspace, member: str) -> Principal:
    """Return the principal that a member's new API key authenticates."""
    key = await auth_workspace.api_keys.issue_without_rights_check("test", member, "a key")
    return await auth_workspace.authenticator(f"Bearer {key.api_key}", KEYS)


async def issue_token(auth_workspace: Workspace, member: str) -> str:
    """Return a token of a member."""
    return (
        await auth_workspace.issuer.issue_token(await authenticate_by_key(auth_workspace, member), None, None)
    ).token


async def get_authentication_error(
    auth_workspace: Workspace, authorization: str, accepted: frozenset[CredentialKind] = KEYS
) -> WorkspaceError:
    """Return the error with which the authenticator rejects an Authorization header."""
    with pytest.raises(WorkspaceError) as refused:
        await auth_workspace.authenticator(authorization, accepted)
    assert refused.value.kind is Kind.UNAUTHENTICATED
    return refused.value


def build_authenticator_with_entra(auth_workspace: Workspace) -> Authenticator:
    """Return an authenticator that also accepts Entra ID tokens."""
    return Authenticator(
        auth_workspace,
        auth_workspace.credentials,
        auth_workspace.store,
        auth_workspace.codec,
        EntraTokens(OneKey(), TENANT, AUDIENCE),
    )


def forge_token(token: str, header: dict[str, Any], payload: dict[str, Any]) -> str:
    """Return a token with changed header or payload properties and the original signature."""
    head, body, signature = token.split(".")
    parts = [
        {**json.loads(base64.urlsafe_b64decode(part + "==")), **change}
        for part, change in ((head, header), (body, payload))
    ]
    return ".".join([*(jose.encode_base64url(json.dumps(part).encode()) for part in parts), signature])


async def test_token_identifies_principal(auth_workspace: Workspace) -> None:
    """A valid token authenticates its member with exactly the token's rights."""
    principal = await auth_workspace.authenticator(f"Bearer {await issue_token(auth_workspace, EDITOR.id)}", JWT_ONLY)
    assert (principal.member_id, principal.identity, principal.via) == (EDITOR.id, EDITOR.id, CredentialKind.JWT)
    assert principal.rights == ROLE_RIGHTS[Role.EDITOR]


async def test_service_token_has_no_identity(auth_workspace: Workspace) -> None:
    """The token of a service has no ``sub``, and its principal has no user identity."""
    token = await issue_token(auth_workspace, "historian")
    assert "sub" not in jwt.decode(token, options={"verify_signature": False})
    assert (await auth_workspace.authenticator(f"Bearer {token}", JWT_ONLY)).identity is None


async def test_verified_token_is_cached(auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token that was verified once is accepted from the cache, without being parsed again."""
    token = await issue_token(auth_workspace, EDITOR.id)
    first = await auth_workspace.authenticator(f"Bearer {token}", JWT_ONLY)

    async def raise_unavailable(_: str) -> Any:
        raise AssertionError("verified again")

    monkeypatch.setattr(auth_workspace.codec, "verify", raise_unavailable)
    assert await auth_workspace.authenticator(f"Bearer {token}", JWT_ONLY) == first


async def test_a_cached_token_of_a_withdrawn_key_is_rejected(auth_workspace: Workspace, tmp_path: Path) -> None:
    """After a signing key is withdrawn, its tokens are rejected, also verified ones and those of open streams."""
    clock = VirtualTime(now())
    codec = TokenCodec(auth_workspace.key, "issuer", "audience", runtime=clock.runtime)
    credentials, store = auth_workspace.credentials, auth_workspace.store
    authenticator = Authenticator(auth_workspace, credentials, store, codec, None, runtime=clock.runtime)
    token = await issue_token(auth_workspace, EDITOR.id)
    await authenticator(f"Bearer {token}", JWT_ONLY)
    codec._key = FileSigningKey(tmp_path / "next.pem")
    clock.advance(tokens.FRESH_SECONDS - 1)
    caller = await authenticator(f"Bearer {token}", JWT_ONLY)
    resume = partial(
        authenticator.recheck_token_access, EDITOR.id, caller.credential_id, now() + timedelta(hours=1), caller.key_id
    )
    assert (await resume()).key_id == caller.key_id
    clock.advance(2)
    for _ in range(2):
        assert (await catch_error(authenticator(f"Bearer {token}", JWT_ONLY))).kind is Kind.UNAUTHENTICATED
        assert (await catch_error(resume())).kind is Kind.UNAUTHENTICATED


async def test_a_cached_token_is_rejected_while_no_key_is_enabled(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If no signing key is enabled, no token is accepted, and the check of an open stream reports the outage.

    A stream of a member who is disabled meanwhile is rejected.
    """
    token = await issue_token(auth_workspace, EDITOR.id)
    caller = await auth_workspace.authenticator(f"Bearer {token}", JWT_ONLY)
    resume = partial(
        auth_workspace.authenticator.recheck_token_access, EDITOR.id, caller.credential_id, now() + timedelta(hours=1)
    )

    async def raise_unavailable(*, reload: bool) -> Any:
        raise WorkspaceError(Kind.UNAVAILABLE, "SIGNING_KEY_UNAVAILABLE", "no enabled version")

    monkeypatch.setattr(auth_workspace.key, "load_public_keys", raise_unavailable)
    monkeypatch.setattr(tokens, "FRESH_SECONDS", -1.0)
    for _ in range(2):
        assert (await catch_error(auth_workspace.authenticator(f"Bearer {token}", JWT_ONLY))).kind is Kind.UNAVAILABLE
        assert (await catch_error(resume(caller.key_id))).kind is Kind.UNAVAILABLE
    auth_workspace.team_now = Team("plant-a", {}, audited=True)
    assert (await catch_error(resume(caller.key_id))).kind is Kind.UNAUTHENTICATED


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Basic abc", "Bearer garbage", "Bearer a.b.c", "Bearer ..", "x" * 99]
)
async def test_malformed_credential_is_rejected(auth_workspace: Workspace, authorization: str) -> None:
    """A missing or malformed credential is rejected with UNAUTHENTICATED and no internal error."""
    await get_authentication_error(auth_workspace, authorization)


async def test_a_text_that_is_no_token_is_not_called_a_token(auth_workspace: Workspace) -> None:
    """The error about a text that is neither an API key nor a token, such as a mistyped key, does not call it a token.

    The error about a malformed token does.
    """
    mistyped = await get_authentication_error(auth_workspace, "Bearer 0ik_abcdefgh_secret")
    assert mistyped.detail == "The credential is neither an API key, which begins with oik_, nor a token."
    malformed = await get_authentication_error(auth_workspace, "Bearer a.b.c", JWT_ONLY)
    assert malformed.detail == "The token is not valid; request a new one."


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=scale_examples(60), deadline=None)
async def test_any_text_is_rejected_as_unauthenticated(auth_workspace: Workspace, text: str) -> None:
    """Any text that is not a valid credential is rejected with the same error."""
    await get_authentication_error(auth_workspace, f"Bearer {text}")
    await get_authentication_error(auth_workspace, f"Bearer oik_{text}")


async def test_unsigned_token_is_rejected(auth_workspace: Workspace) -> None:
    """A token with the algorithm ``none`` is rejected, with and without a signature."""
    token = forge_token(await issue_token(auth_workspace, EDITOR.id), {"alg": "none"}, {})
    await get_authentication_error(auth_workspace, f"Bearer {token}")
    await get_authentication_error(auth_workspace, f"Bearer {token.rsplit('.', 1)[0]}.")


async def test_token_signed_with_public_key_as_secret_is_rejected(auth_workspace: Workspace) -> None:
    """A token signed with HS256 and the public key as secret is rejected, in each published form of the key."""
    token = await issue_token(auth_workspace, EDITOR.id)
    jwk = dict((await auth_workspace.key.load_public_keys())[0])
    public = jwt.PyJWK(jwk).key
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), json.dumps(jwk).encode()):
        unsigned = forge_token(token, {"alg": "HS256"}, {}).rsplit(".", 1)[0]
        signature = jose.encode_base64url(hmac.new(secret, unsigned.encode(), hashlib.sha256).digest())
        await get_authentication_error(auth_workspace, f"Bearer {unsigned}.{signature}")


async def test_key_in_token_header_is_not_used(auth_workspace: Workspace) -> None:
    """A token is rejected if it is signed with a key from its own header (jwk, jku, x5u)."""
    mine = ec.generate_private_key(ec.SECP256R1())
    payload = jwt.decode(await issue_token(auth_workspace, EDITOR.id), options={"verify_signature": False})
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(mine.public_key()))
    for kid in (await auth_workspace.key.get_key_id(), "other", ""):
        for extra in ({"jwk": jwk}, {"jku": "https://127.0.0.1/keys"}, {"x5u": "https://127.0.0.1/c"}, {}):
            token = jwt.encode(payload, mine, "ES256", headers={"kid": kid, **extra})
            await get_authentication_error(auth_workspace, f"Bearer {token}")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(time.time()) - 1},
        {"nbf": int(time.time()) + 3600},
        {"iss": "another-issuer"},
        {"aud": "another-api"},
        {"aud": ["audience", "another-api"]},
        {"WorkspaceLookup": "plant-b"},
        {"Username": "stranger@x", "sub": "stranger@x"},
        {"sub": "admin@x"},
        {"exp": int(time.time()) + 31 * 86_400},
        {"exp": None},
        {"jti": None},
        {"AccessRights": None},
        {"AccessRights": "Workspace.Keys.Manage"},
    ],
)
async def test_validly_signed_token_with_wrong_claims_is_rejected(
    auth_workspace: Workspace, claims: dict[str, Any]
) -> None:
    """A token with a valid signature is rejected if its expiry, issuer, audience, workspace or principal is wrong."""
    payload = jwt.decode(await issue_token(auth_workspace, EDITOR.id), options={"verify_signature": False})
    changed = {name: value for name, value in {**payload, **claims}.items() if value is not None}
    token = await sign_payload(auth_workspace, changed)
    if claims == {"AccessRights": "Workspace.Keys.Manage"}:
        assert (await auth_workspace.authenticator(f"Bearer {token}", JWT_ONLY)).rights == frozenset()
        return
    await get_authentication_error(auth_workspace, f"Bearer {token}", JWT_ONLY)


async def sign_payload(auth_workspace: Workspace, payload: dict[str, Any]) -> str:
    """Return a token with the given payload, signed with the workspace's key."""
    header = {"alg": "ES256", "kid": await auth_workspace.key.get_key_id(), "typ": "JWT"}
    message = ".".join(jose.encode_base64url(json.dumps(part).encode()) for part in (header, payload))
    return f"{message}.{jose.encode_base64url(await auth_workspace.key.sign(message.encode()))}"


async def test_tampered_token_is_rejected(auth_workspace: Workspace) -> None:
    """A token with one changed character is rejected."""
    token = await issue_token(auth_workspace, EDITOR.id)
    for position in range(0, len(token), 7):
        other = "A" if token[position] != "A" else "B"
        await get_authentication_error(auth_workspace, f"Bearer {token[:position]}{other}{token[position + 1 :]}")


async def test_tokens_with_padding_or_unused_bits_are_rejected(auth_workspace: Workspace) -> None:
    """A token with padding or changed unused bits is rejected, so that each token has one spelling."""
    token = await issue_token(auth_workspace, EDITOR.id)
    last = jose._ALPHABET.index(token[-1])
    for spelling in (f"{token}=", f"{token}==", token[:-1] + jose._ALPHABET[last ^ 1], f" {token} ".replace(" ", "\t")):
        if spelling.strip() != token:
            await get_authentication_error(auth_workspace, f"Bearer {spelling}")


async def test_token_with_duplicate_claim_is_rejected(auth_workspace: Workspace) -> None:
    """A signed token with duplicate properties is rejected, because parsers read them differently."""
    payload = jwt.decode(await issue_token(auth_workspace, EDITOR.id), options={"verify_signature": False})
    header = {"alg": "ES256", "kid": await auth_workspace.key.get_key_id(), "typ": "JWT"}
    twice = json.dumps(payload)[:-1] + ',"sub":"editor@x"}'
    message = f"{jose.encode_base64url(json.dumps(header).encode())}.{jose.encode_base64url(twice.encode())}"
    await get_authentication_error(
        auth_workspace, f"Bearer {message}.{jose.encode_base64url(await auth_workspace.key.sign(message.encode()))}"
    )


async def test_oversized_token_is_rejected_unparsed(auth_workspace: Workspace) -> None:
    """A token over the maximum length is rejected without parsing it."""
    await get_authentication_error(auth_workspace, f"Bearer {'a' * 5_000_000}.b.c")


async def test_disabled_member_is_rejected_immediately(auth_workspace: Workspace) -> None:
    """If a member is disabled or removed, its API keys and cached tokens are rejected at once."""
    key = (await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "a key")).api_key
    token = await issue_token(auth_workspace, EDITOR.id)
    await auth_workspace.authenticator(f"Bearer {token}", KEYS)
    disabled = EDITOR.model_copy(update={"enabled": False})
    for members in ({EDITOR.id: disabled}, {}):
        auth_workspace.team_now = dataclasses.replace(auth_workspace.team_now, members=members)
        await get_authentication_error(auth_workspace, f"Bearer {token}")
        await get_authentication_error(auth_workspace, f"Bearer {key}")


async def test_token_never_exceeds_current_rights_of_member(auth_workspace: Workspace) -> None:
    """A token never gives a right that its member does not have at the time."""
    token = await issue_token(auth_workspace, EDITOR.id)
    demoted = EDITOR.model_copy(update={"role": Role.VIEWER})
    auth_workspace.team_now = dataclasses.replace(auth_workspace.team_now, members={EDITOR.id: demoted})
    principal = await auth_workspace.authenticator(f"Bearer {token}", KEYS)
    assert principal.rights == ROLE_RIGHTS[Role.VIEWER]
    assert AccessRight.WARM_QUERY_AD_HOC not in principal.rights


async def test_api_key_is_rejected_for_token_operations(auth_workspace: Workspace) -> None:
    """Operations that accept only tokens reject a valid API key."""
    key = (await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "a key")).api_key
    assert "API keys" in (await get_authentication_error(auth_workspace, f"Bearer {key}", JWT_ONLY)).detail


async def test_wrong_secret_and_unknown_key_give_same_error(auth_workspace: Workspace) -> None:
    """A wrong secret and an unknown key id get the same error, so that existing ids are not revealed."""
    key = (await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "a key")).api_key
    wrong = await get_authentication_error(auth_workspace, f"Bearer {key[:-1]}{'A' if key[-1] != 'A' else 'B'}")
    unknown = await get_authentication_error(auth_workspace, f"Bearer oik_AAAAAAAA_{key[-43:]}")
    assert (wrong.code, wrong.detail, wrong.members) == (unknown.code, unknown.detail, unknown.members)


async def test_wrong_secrets_and_unknown_keys_both_reload_the_keys(
    auth_workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a wrong secret and for an unknown key id, the keys are reloaded, so that timing reveals nothing."""
    key = (await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "a key")).api_key
    await auth_workspace.authenticator(f"Bearer {key}", KEYS)
    version_calls = 0
    version = auth_workspace.store.read_version

    async def count_loads() -> int:
        nonlocal version_calls
        version_calls += 1
        return await version()

    monkeypatch.setattr(auth_workspace.authenticator._credentials, "_version", count_loads)
    for bad in (f"oik_AAAAAAAA_{key[-43:]}", f"{key[:-43]}{'A' * 43}"):
        monkeypatch.setattr(auth_workspace.authenticator, "_reloaded_at", float("-inf"))
        before = version_calls
        for _ in range(3):
            await get_authentication_error(auth_workspace, f"Bearer {bad}")
        assert version_calls == before + 1


async def test_locked_store_does_not_delay_requests_with_a_key(auth_workspace: Workspace, tmp_path: Path) -> None:
    """While the store is locked, an API key is accepted at once, and its last use is stored later."""
    issued = await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "a key")
    await auth_workspace.store.load()  # opens the file
    other = sqlite3.connect(tmp_path / "workspace.sqlite", autocommit=True)
    other.execute("BEGIN IMMEDIATE")
    assert (await auth_workspace.authenticator(f"Bearer {issued.api_key}", KEYS)).member_id == EDITOR.id
    other.execute("ROLLBACK")
    other.close()
    await auth_workspace.authenticator.close()
    assert (await auth_workspace.store.load()).keys[issued.api_key.split("_")[1]].last_used_at is not None


async def test_expired_key_is_rejected(auth_workspace: Workspace) -> None:
    """An API key is rejected after its expiry."""
    key = (
        await auth_workspace.api_keys.issue_without_rights_check("test", EDITOR.id, "a key", expires_in_days=0)
    ).api_key
    await get_authentication_error(auth_workspace, f"Bearer {key}")


async def test_a_deeply_nested_token_is_rejected(auth_workspace: Workspace) -> None:
    """If Entra ID is configured, a token that is nested too deeply is rejected as unauthenticated."""
    token = f"{jose.encode_base64url(b'{}')}.{jose.encode_base64url(b'[' * 12_000)}.AAAA"
    authenticate = build_authenticator_with_entra(auth_workspace)
    error = await catch_error(authenticate(f"Bearer {token}", frozenset(CredentialKind)))
    assert error.kind is Kind.UNAUTHENTICATED


@pytest.mark.parametrize(
    ("minutes_before_cutoff", "is_accepted"), [(-1, True), (0, True), (5, True), (6, True), (8, False), (60, False)]
)
async def test_entra_tokens_from_before_the_cutoff_have_ended(
    auth_workspace: Workspace, minutes_before_cutoff: int, *, is_accepted: bool
) -> None:
    """An Entra ID token from before its member was disabled stays invalid; a token that is issued later is accepted.

    Entra ID sets `iat` five minutes before the issue, and the clocks differ by up to two minutes.
    """
    cutoff = datetime.now(UTC) - timedelta(minutes=2)
    auth_workspace.team_now = dataclasses.replace(
        auth_workspace.team_now, cutoffs={EDITOR.id: CredentialCutoff(tokens=cutoff)}
    )
    issued_at = int(cutoff.timestamp()) - 60 * minutes_before_cutoff
    token = build_entra_target().build_token_with_claims(
        email=EDITOR.id, email_verified=True, iat=issued_at, nbf=issued_at
    )
    authenticate = build_authenticator_with_entra(auth_workspace)
    if is_accepted:
        assert (await authenticate(f"Bearer {token}", frozenset({CredentialKind.ENTRA}))).member_id == EDITOR.id
    else:
        error = await catch_error(authenticate(f"Bearer {token}", frozenset({CredentialKind.ENTRA})))
        assert (error.kind, error.detail) == (
            Kind.UNAUTHENTICATED,
            "The token ended because its owner was disabled or removed after its issue; request a new token.",
        )
