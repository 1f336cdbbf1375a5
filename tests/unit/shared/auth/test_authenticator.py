"""From header to principal."""

import base64
import dataclasses
import hashlib
import hmac
import json
import sqlite3
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shared.auth import jose
from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import ROLE_RIGHTS, AccessRight, Role
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.auth.conftest import EDITOR, Workspace

JWT_ONLY = frozenset({CredentialKind.JWT})
KEYS = frozenset({CredentialKind.JWT, CredentialKind.API_KEY})


async def principal_by_key(workspace: Workspace, member: str) -> Principal:
    """Return the member, authenticated by a new key."""
    key = await workspace.api_keys.issue("test", member, "a key")
    return await workspace.authenticator(f"Bearer {key.api_key}", KEYS)


async def token_of(workspace: Workspace, member: str) -> str:
    """Return a token of a member."""
    return (await workspace.issuer.mint(await principal_by_key(workspace, member), None, None)).token


async def refusal(
    workspace: Workspace, authorization: str, accepted: frozenset[CredentialKind] = KEYS
) -> WorkspaceError:
    """Return the error that a header leads to."""
    with pytest.raises(WorkspaceError) as refused:
        await workspace.authenticator(authorization, accepted)
    assert refused.value.kind is Kind.UNAUTHENTICATED
    return refused.value


def forged(token: str, header: dict[str, Any], payload: dict[str, Any]) -> str:
    """Return the token with members of header and payload replaced and the signature kept."""
    head, body, signature = token.split(".")
    parts = [
        {**json.loads(base64.urlsafe_b64decode(part + "==")), **change}
        for part, change in ((head, header), (body, payload))
    ]
    return ".".join([*(jose.encode_base64url(json.dumps(part).encode()) for part in parts), signature])


async def test_a_token_names_its_principal(workspace: Workspace) -> None:
    """A good token gives the member with exactly the rights that it carries."""
    principal = await workspace.authenticator(f"Bearer {await token_of(workspace, EDITOR.id)}", JWT_ONLY)
    assert (principal.member_id, principal.identity, principal.via) == (EDITOR.id, EDITOR.id, CredentialKind.JWT)
    assert principal.rights == ROLE_RIGHTS[Role.EDITOR]


async def test_a_services_token_carries_no_identity(workspace: Workspace) -> None:
    """The token of a service has no sub and its principal no identity."""
    token = await token_of(workspace, "historian")
    assert "sub" not in jwt.decode(token, options={"verify_signature": False})
    assert (await workspace.authenticator(f"Bearer {token}", JWT_ONLY)).identity is None


async def test_a_token_seen_before_is_not_verified_again(workspace: Workspace, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second use of a token does not reach the codec."""
    token = await token_of(workspace, EDITOR.id)
    first = await workspace.authenticator(f"Bearer {token}", JWT_ONLY)

    async def unreachable(_: str) -> Any:
        raise AssertionError("verified again")

    monkeypatch.setattr(workspace.codec, "verify", unreachable)
    assert await workspace.authenticator(f"Bearer {token}", JWT_ONLY) == first


@pytest.mark.parametrize(
    "authorization", ["", "Bearer", "Bearer ", "Basic abc", "Bearer garbage", "Bearer a.b.c", "Bearer ..", "x" * 99]
)
async def test_what_is_no_credential_is_refused(workspace: Workspace, authorization: str) -> None:
    """A missing or malformed credential is unauthenticated, never an internal error."""
    await refusal(workspace, authorization)


@given(st.text(max_size=60))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
async def test_no_text_breaks_the_authenticator(workspace: Workspace, text: str) -> None:
    """Any text at all is refused in the same way."""
    await refusal(workspace, f"Bearer {text}")
    await refusal(workspace, f"Bearer oik_{text}")


async def test_an_unsigned_token_is_refused(workspace: Workspace) -> None:
    """Algorithm none is refused with and without a signature part."""
    token = forged(await token_of(workspace, EDITOR.id), {"alg": "none"}, {})
    await refusal(workspace, f"Bearer {token}")
    await refusal(workspace, f"Bearer {token.rsplit('.', 1)[0]}.")


async def test_a_token_signed_with_the_public_key_as_secret_is_refused(workspace: Workspace) -> None:
    """HS256 over the public key, in every form that it is published in, is refused."""
    token = await token_of(workspace, EDITOR.id)
    jwk = dict((await workspace.key.public_keys())[0])
    public = jwt.PyJWK(jwk).key
    pem = public.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    for secret in (pem, pem.strip(), json.dumps(jwk).encode()):
        unsigned = forged(token, {"alg": "HS256"}, {}).rsplit(".", 1)[0]
        signature = jose.encode_base64url(hmac.new(secret, unsigned.encode(), hashlib.sha256).digest())
        await refusal(workspace, f"Bearer {unsigned}.{signature}")


async def test_a_key_that_a_token_brings_along_is_not_used(workspace: Workspace) -> None:
    """A token signed by a key in its own header (jwk, jku, x5u) is refused, with our kid or another."""
    mine = ec.generate_private_key(ec.SECP256R1())
    payload = jwt.decode(await token_of(workspace, EDITOR.id), options={"verify_signature": False})
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(mine.public_key()))
    for kid in (await workspace.key.key_id(), "other", ""):
        for extra in ({"jwk": jwk}, {"jku": "https://127.0.0.1/keys"}, {"x5u": "https://127.0.0.1/c"}, {}):
            token = jwt.encode(payload, mine, "ES256", headers={"kid": kid, **extra})
            await refusal(workspace, f"Bearer {token}")


@pytest.mark.parametrize(
    "claims",
    [
        {"exp": int(time.time()) - 1},
        {"nbf": int(time.time()) + 3600},
        {"iss": "somebody-else"},
        {"aud": "another-api"},
        {"aud": ["audience", "another-api"]},
        {"WorkspaceLookup": "plant-b"},
        {"Username": "stranger@x", "sub": "stranger@x"},
        {"sub": "admin@x"},
        {"exp": None},
        {"jti": None},
        {"AccessRights": None},
        {"AccessRights": "Workspace.Keys.Manage"},
    ],
)
async def test_a_well_signed_token_with_wrong_claims_is_refused(workspace: Workspace, claims: dict[str, Any]) -> None:
    """Expiry, issuer, audience, workspace and principal are pinned, even for a token that our key signed."""
    payload = jwt.decode(await token_of(workspace, EDITOR.id), options={"verify_signature": False})
    changed = {name: value for name, value in {**payload, **claims}.items() if value is not None}
    token = await signed(workspace, changed)
    if claims == {"AccessRights": "Workspace.Keys.Manage"}:
        assert (await workspace.authenticator(f"Bearer {token}", JWT_ONLY)).rights == frozenset()
        return
    await refusal(workspace, f"Bearer {token}", JWT_ONLY)


async def signed(workspace: Workspace, payload: dict[str, Any]) -> str:
    """Return a payload signed with the workspace's key."""
    header = {"alg": "ES256", "kid": await workspace.key.key_id(), "typ": "JWT"}
    message = ".".join(jose.encode_base64url(json.dumps(part).encode()) for part in (header, payload))
    return f"{message}.{jose.encode_base64url(await workspace.key.sign(message.encode()))}"


async def test_a_tampered_token_is_refused(workspace: Workspace) -> None:
    """Changing any one character of a token makes it useless."""
    token = await token_of(workspace, EDITOR.id)
    for position in range(0, len(token), 7):
        other = "A" if token[position] != "A" else "B"
        await refusal(workspace, f"Bearer {token[:position]}{other}{token[position + 1 :]}")


async def test_padding_and_stray_bits_are_refused(workspace: Workspace) -> None:
    """A token has one spelling: padded, or with other unused bits in its last character, it is refused."""
    token = await token_of(workspace, EDITOR.id)
    last = jose._ALPHABET.index(token[-1])
    for spelling in (f"{token}=", f"{token}==", token[:-1] + jose._ALPHABET[last ^ 1], f" {token} ".replace(" ", "\t")):
        if spelling.strip() != token:
            await refusal(workspace, f"Bearer {spelling}")


async def test_a_token_with_a_claim_twice_is_refused(workspace: Workspace) -> None:
    """Duplicate members, which parsers read differently, are refused even when well signed."""
    payload = jwt.decode(await token_of(workspace, EDITOR.id), options={"verify_signature": False})
    header = {"alg": "ES256", "kid": await workspace.key.key_id(), "typ": "JWT"}
    twice = json.dumps(payload)[:-1] + ',"sub":"editor@x"}'
    message = f"{jose.encode_base64url(json.dumps(header).encode())}.{jose.encode_base64url(twice.encode())}"
    await refusal(workspace, f"Bearer {message}.{jose.encode_base64url(await workspace.key.sign(message.encode()))}")


async def test_a_huge_token_is_refused_unread(workspace: Workspace) -> None:
    """Length is checked before anything else."""
    await refusal(workspace, f"Bearer {'a' * 5_000_000}.b.c")


async def test_a_disabled_member_is_out_at_once(workspace: Workspace) -> None:
    """Disabling or removing a member ends its keys and the tokens seen before."""
    key = (await workspace.api_keys.issue("test", EDITOR.id, "a key")).api_key
    token = await token_of(workspace, EDITOR.id)
    await workspace.authenticator(f"Bearer {token}", KEYS)
    disabled = EDITOR.model_copy(update={"enabled": False})
    for members in ({EDITOR.id: disabled}, {}):
        workspace.team_now = dataclasses.replace(workspace.team_now, members=members)
        await refusal(workspace, f"Bearer {token}")
        await refusal(workspace, f"Bearer {key}")


async def test_rights_taken_from_a_member_are_gone_from_its_tokens(workspace: Workspace) -> None:
    """A token never carries more than its member holds today."""
    token = await token_of(workspace, EDITOR.id)
    demoted = EDITOR.model_copy(update={"role": Role.VIEWER})
    workspace.team_now = dataclasses.replace(workspace.team_now, members={EDITOR.id: demoted})
    principal = await workspace.authenticator(f"Bearer {token}", KEYS)
    assert principal.rights == ROLE_RIGHTS[Role.VIEWER]
    assert AccessRight.WARM_QUERY_AD_HOC not in principal.rights


async def test_an_api_key_is_refused_where_only_tokens_are_taken(workspace: Workspace) -> None:
    """A good API key opens no data route."""
    key = (await workspace.api_keys.issue("test", EDITOR.id, "a key")).api_key
    assert "API keys" in (await refusal(workspace, f"Bearer {key}", JWT_ONLY)).detail


async def test_a_key_with_a_wrong_secret_reads_like_an_unknown_key(workspace: Workspace) -> None:
    """Nobody learns from the answer which key ids exist."""
    key = (await workspace.api_keys.issue("test", EDITOR.id, "a key")).api_key
    wrong = await refusal(workspace, f"Bearer {key[:-1]}{'A' if key[-1] != 'A' else 'B'}")
    unknown = await refusal(workspace, f"Bearer oik_AAAAAAAA_{key[-43:]}")
    assert (wrong.code, wrong.detail, wrong.members) == (unknown.code, unknown.detail, unknown.members)


async def test_a_wrong_secret_is_looked_up_like_an_unknown_key(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both ask the store once more, at most once a second together, so that time tells nobody which ids exist."""
    key = (await workspace.api_keys.issue("test", EDITOR.id, "a key")).api_key
    await workspace.authenticator(f"Bearer {key}", KEYS)
    asked = 0
    version = workspace.store.version

    async def counted() -> int:
        nonlocal asked
        asked += 1
        return await version()

    monkeypatch.setattr(workspace.authenticator._credentials, "_version", counted)
    for bad in (f"oik_AAAAAAAA_{key[-43:]}", f"{key[:-43]}{'A' * 43}"):
        monkeypatch.setattr(workspace.authenticator, "_reloaded_at", float("-inf"))
        before = asked
        for _ in range(3):
            await refusal(workspace, f"Bearer {bad}")
        assert asked == before + 1


async def test_a_locked_store_holds_up_no_request_with_a_key(workspace: Workspace, tmp_path: Path) -> None:
    """Who calls with a key is let in while its last use cannot be written; it is written afterwards."""
    made = await workspace.api_keys.issue("test", EDITOR.id, "a key")
    await workspace.store.load()  # opens the file
    other = sqlite3.connect(tmp_path / "workspace.sqlite", autocommit=True)
    other.execute("BEGIN IMMEDIATE")
    assert (await workspace.authenticator(f"Bearer {made.api_key}", KEYS)).member_id == EDITOR.id
    other.execute("ROLLBACK")
    other.close()
    await workspace.authenticator.close()
    assert (await workspace.store.load()).keys[made.api_key.split("_")[1]].last_used_at is not None


async def test_an_expired_key_is_refused(workspace: Workspace) -> None:
    """A key past its expiry is like none."""
    key = (await workspace.api_keys.issue("test", EDITOR.id, "a key", expires_in_days=0)).api_key
    await refusal(workspace, f"Bearer {key}")
