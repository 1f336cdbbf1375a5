"""Tests that attacks on algorithms and keys are rejected, with attacks from Project Wycheproof."""

import base64
import hashlib
import hmac
import json
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from tests.unit.shared.auth.targets import (
    OTHER,
    OTHER_RSA,
    AttackTarget,
    OneKey,
    assert_rejected,
    encode_part,
    sign_pkcs1,
    sign_raw,
)


async def test_valid_token_is_accepted(target: AttackTarget) -> None:
    """The valid token on which the attacks are based is accepted, also with unknown properties."""
    await target.verify(target.build_token())
    await target.verify(target.build_token(target.build_header(typ=...)))
    await target.verify(target.build_token_with_claims(exp=target.claims["exp"] + 0.5, unknown={"any": ["thing"]}))


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "nOnE", "noNE", "", " none", "none ", None, 0, [], ["none"], {}]
)
async def test_unsigned_tokens_are_rejected(target: AttackTarget, alg: Any) -> None:
    """A token without a signature is rejected, for any spelling of ``none`` and any signature text."""
    for signature in ("", "AA", encode_part(target.sign(b"x"))):
        message = f"{encode_part(target.build_header(alg=alg))}.{encode_part(target.claims)}"
        await assert_rejected(target, f"{message}.{signature}")
        await assert_rejected(target, message)
    await assert_rejected(target, target.build_token(target.build_header(alg=alg)))
    await assert_rejected(target, target.build_token(target.build_header(alg=...)))


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512", "hs256"])
async def test_public_key_as_hmac_secret_is_rejected(target: AttackTarget, alg: str) -> None:
    """A MAC with the public key as secret is rejected, in each form of the key."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = target.public.public_bytes(serialization.Encoding.PEM, spki)
    der = target.public.public_bytes(serialization.Encoding.DER, spki)
    jwk = (await OneKey().load_public_keys())[0] if target.alg == "ES256" else await OneKey().find_public_key("mine")
    digest = {"384": hashlib.sha384, "512": hashlib.sha512}.get(alg[2:], hashlib.sha256)
    forms = [pem, pem.strip(), pem.replace(b"\n", b"\r\n"), der, base64.b64encode(der), json.dumps(jwk).encode(), b""]
    for secret in [*forms, json.dumps(jwk, separators=(",", ":"), sort_keys=True).encode()]:
        mac: Callable[[bytes], bytes] = lambda message, secret=secret: hmac.digest(secret, message, digest)  # type: ignore[misc]  # noqa: E731  bound now
        await assert_rejected(target, target.build_token(target.build_header(alg=alg), sign=mac))
        await assert_rejected(target, target.build_token(sign=mac))


async def test_algorithms_that_are_not_expected_are_rejected(target: AttackTarget) -> None:
    """A valid signature is rejected if it is of another algorithm or the header has a wrong algorithm name."""
    edwards = ed25519.Ed25519PrivateKey.generate()
    p384 = ec.generate_private_key(ec.SECP384R1())
    signers: dict[str, Callable[[bytes], bytes]] = {
        "RS256": sign_pkcs1 if target.alg == "ES256" else lambda message: sign_pkcs1(message, OTHER_RSA),
        "ES256": sign_raw if target.alg == "RS256" else lambda message: sign_raw(message, OTHER),
        "ES384": lambda message: p384.sign(message, ec.ECDSA(hashes.SHA384())),
        "EdDSA": edwards.sign,
        "Ed25519": edwards.sign,
    }
    names = {*signers, "ES512", "ES256K", "PS256", "RS384", "RS512", "es256", "rs256", "ES256 ", "dir", "A128GCM"}
    for alg in sorted(names - {target.alg}):
        for signer in [*signers.values(), target.sign]:
            await assert_rejected(target, target.build_token(target.build_header(alg=alg), sign=signer))
    for signer in signers.values():
        await assert_rejected(target, target.build_token(sign=signer))


async def test_keys_in_token_headers_are_rejected(target: AttackTarget) -> None:
    """A key, certificate or URL in a token's header is never used, whatever the key id is."""
    mine, key = (OTHER_RSA, "RSA") if target.alg == "RS256" else (OTHER, "EC")
    algorithm: Any = getattr(jwt.algorithms, f"{key}Algorithm")
    jwk = json.loads(algorithm.to_jwk(mine.public_key()))
    sign: Callable[[bytes], bytes] = (
        (lambda message: sign_pkcs1(message, OTHER_RSA)) if key == "RSA" else (lambda message: sign_raw(message, OTHER))
    )
    address = "https://127.0.0.1:9/keys"
    brought = [
        {"jwk": jwk},
        {"jku": address},
        {"x5u": address},
        {"x5c": ["MIIB"]},
        {"x5t": "AA"},
        {"jwk": jwk, "jku": address},
    ]
    for extra in brought:
        for kid in ("mine", "other", jwk.get("kid", ""), address):
            await assert_rejected(target, target.build_token(target.build_header(**extra, kid=kid), sign=sign))


@pytest.mark.parametrize(
    "kid",
    [
        "",
        "other",
        "../../../../dev/null",
        "/etc/passwd",
        "mine\x00",
        "mine' OR '1'='1",
        "x' UNION SELECT 'k",
        "|id",
        "MINE",
        " mine",
        None,
        0,
        True,
        [],
        ["mine"],
        {},
        {"kid": "mine"},
        "k" * 9_000,
        "\ud800",
    ],
    ids=lambda kid: repr(kid)[:20],
)
async def test_unknown_key_ids_are_rejected(target: AttackTarget, kid: Any) -> None:
    """A key id that is unknown is rejected, also if it is a path, a query or not a text."""
    await assert_rejected(target, target.build_token(target.build_header(kid=kid)))
    await assert_rejected(
        target,
        target.build_token(target.build_header(kid=kid), sign=lambda message: hmac.digest(b"", message, "sha256")),
    )
    await assert_rejected(target, target.build_token(target.build_header(kid=...)))


@pytest.mark.parametrize("crit", [["b64"], ["exp"], ["unknown"], [], None, "b64", ["b64", "b64"], {}])
async def test_critical_extensions_are_rejected(target: AttackTarget, crit: Any) -> None:
    """A token with critical extensions, such as unencoded payloads (RFC 7797), is rejected."""
    await assert_rejected(target, target.build_token(target.build_header(crit=crit)))
    header = encode_part(target.build_header(crit=crit, b64=False))
    for payload in (json.dumps(target.claims), encode_part(target.claims), ""):
        signature = encode_part(target.sign(f"{header}.{payload}".encode()))
        await assert_rejected(target, f"{header}.{payload}.{signature}")


async def test_unencoded_payload_without_crit_is_rejected(target: AttackTarget) -> None:
    """A token with the header parameter ``b64`` is rejected, even without ``crit``."""
    for value in (False, 0, None, "false"):
        header = encode_part(target.build_header(b64=value))
        payload = json.dumps(target.claims)
        await assert_rejected(target, f"{header}.{payload}.{encode_part(target.sign(f'{header}.{payload}'.encode()))}")
