"""Algorithms and keys that an attacker would rather have, in the manner of Project Wycheproof; not one is let in."""

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

from tests.unit.shared.auth.targets import OTHER, OTHER_RSA, Attacked, OneKey, part, pkcs1, raw, refused


async def test_a_good_token_is_let_in(target: Attacked) -> None:
    """What the attacks start from is good, also with the members that bad ones carry too."""
    await target.verify(target.token())
    await target.verify(target.token(target.header(typ=...)))
    await target.verify(target.changed(exp=target.claims["exp"] + 0.5, unknown={"any": ["thing"]}))


@pytest.mark.parametrize(
    "alg", ["none", "None", "NONE", "nOnE", "noNE", "", " none", "none ", None, 0, [], ["none"], {}]
)
async def test_no_algorithm(target: Attacked, alg: Any) -> None:
    """Unsigned tokens, however the algorithm is spelled and whatever stands for a signature."""
    for signature in ("", "AA", part(target.sign(b"x"))):
        message = f"{part(target.header(alg=alg))}.{part(target.claims)}"
        await refused(target, f"{message}.{signature}")
        await refused(target, message)
    await refused(target, target.token(target.header(alg=alg)))
    await refused(target, target.token(target.header(alg=...)))


@pytest.mark.parametrize("alg", ["HS256", "HS384", "HS512", "hs256"])
async def test_the_public_key_as_a_secret(target: Attacked, alg: str) -> None:
    """A MAC over the public key, which everybody knows, in every form that the key is written in."""
    spki = serialization.PublicFormat.SubjectPublicKeyInfo
    pem = target.public.public_bytes(serialization.Encoding.PEM, spki)
    der = target.public.public_bytes(serialization.Encoding.DER, spki)
    jwk = (await OneKey().public_keys())[0] if target.alg == "ES256" else await OneKey().public_key("mine")
    digest = {"384": hashlib.sha384, "512": hashlib.sha512}.get(alg[2:], hashlib.sha256)
    forms = [pem, pem.strip(), pem.replace(b"\n", b"\r\n"), der, base64.b64encode(der), json.dumps(jwk).encode(), b""]
    for secret in [*forms, json.dumps(jwk, separators=(",", ":"), sort_keys=True).encode()]:
        mac: Callable[[bytes], bytes] = lambda message, secret=secret: hmac.digest(secret, message, digest)  # type: ignore[misc]  # noqa: E731  bound now
        await refused(target, target.token(target.header(alg=alg), sign=mac))
        await refused(target, target.token(sign=mac))


async def test_other_algorithms(target: Attacked) -> None:
    """A good signature of another algorithm, and our algorithm's name over one, by keys of ours or of others."""
    edwards = ed25519.Ed25519PrivateKey.generate()
    p384 = ec.generate_private_key(ec.SECP384R1())
    signers: dict[str, Callable[[bytes], bytes]] = {
        "RS256": pkcs1 if target.alg == "ES256" else lambda message: pkcs1(message, OTHER_RSA),
        "ES256": raw if target.alg == "RS256" else lambda message: raw(message, OTHER),
        "ES384": lambda message: p384.sign(message, ec.ECDSA(hashes.SHA384())),
        "EdDSA": edwards.sign,
        "Ed25519": edwards.sign,
    }
    names = {*signers, "ES512", "ES256K", "PS256", "RS384", "RS512", "es256", "rs256", "ES256 ", "dir", "A128GCM"}
    for alg in sorted(names - {target.alg}):
        for signer in [*signers.values(), target.sign]:
            await refused(target, target.token(target.header(alg=alg), sign=signer))
    for signer in signers.values():
        await refused(target, target.token(sign=signer))


async def test_keys_that_a_token_brings_along(target: Attacked) -> None:
    """A key, a certificate or an address in the header verifies nothing, whatever key id stands beside it."""
    mine, key = (OTHER_RSA, "RSA") if target.alg == "RS256" else (OTHER, "EC")
    algorithm: Any = getattr(jwt.algorithms, f"{key}Algorithm")
    jwk = json.loads(algorithm.to_jwk(mine.public_key()))
    sign: Callable[[bytes], bytes] = (
        (lambda message: pkcs1(message, OTHER_RSA)) if key == "RSA" else (lambda message: raw(message, OTHER))
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
            await refused(target, target.token(target.header(**extra, kid=kid), sign=sign))


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
async def test_key_ids(target: Attacked, kid: Any) -> None:
    """An id is looked up as it is among the known ones: never a path, a query, or another type."""
    await refused(target, target.token(target.header(kid=kid)))
    await refused(
        target, target.token(target.header(kid=kid), sign=lambda message: hmac.digest(b"", message, "sha256"))
    )
    await refused(target, target.token(target.header(kid=...)))


@pytest.mark.parametrize("crit", [["b64"], ["exp"], ["unknown"], [], None, "b64", ["b64", "b64"], {}])
async def test_critical_extensions(target: Attacked, crit: Any) -> None:
    """No extension is understood, so none may be critical; an unencoded payload least of all (RFC 7797)."""
    await refused(target, target.token(target.header(crit=crit)))
    header = part(target.header(crit=crit, b64=False))
    for payload in (json.dumps(target.claims), part(target.claims), ""):
        signature = part(target.sign(f"{header}.{payload}".encode()))
        await refused(target, f"{header}.{payload}.{signature}")


async def test_an_unencoded_payload_that_nothing_calls_critical(target: Attacked) -> None:
    """The member alone does not open the way either."""
    for value in (False, 0, None, "false"):
        header = part(target.header(b64=value))
        payload = json.dumps(target.claims)
        await refused(target, f"{header}.{payload}.{part(target.sign(f'{header}.{payload}'.encode()))}")
