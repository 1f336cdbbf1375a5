"""Kinds of tokens that the tests attack: the service's tokens and Entra ID tokens, with test keys."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa

from shared.auth import jose
from shared.auth.entra import EntraTokens
from shared.auth.tokens import TokenCodec
from shared.errors import Kind, WorkspaceError

ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
"""Order of the group of P-256."""

HALF = 32
ISSUER, AUDIENCE, TENANT = "https://login.example/t/v2.0", "api://workspace", "t"
MEMBERS = {"Username": "editor@x", "WorkspaceLookup": "plant-a", "AccessRights": ["Workspace.Catalog.Read"]}
type Json = dict[str, Any]
"""Values of headers and payloads."""

KEY = ec.generate_private_key(ec.SECP256R1())
RSA_KEY = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER = ec.generate_private_key(ec.SECP256R1())
OTHER_RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)


def encode_part(value: Any) -> str:
    """Return a token segment that encodes JSON, a text or bytes."""
    if isinstance(value, bytes):
        return jose.encode_base64url(value)
    return jose.encode_base64url((value if isinstance(value, str) else json.dumps(value)).encode())


def sign_ecdsa(message: bytes, key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    """Return an ECDSA signature of a message in ASN.1 form."""
    return key.sign(message, ec.ECDSA(hashes.SHA256()))


def sign_raw(message: bytes, key: ec.EllipticCurvePrivateKey = KEY) -> bytes:
    """Return an ECDSA signature of a message in JWS form: the numbers r and s."""
    return bytes(jwt.utils.der_to_raw_signature(sign_ecdsa(message, key), ec.SECP256R1()))


def sign_pkcs1(message: bytes, key: rsa.RSAPrivateKey = RSA_KEY) -> bytes:
    """Return the RS256 (RSA) signature of a message."""
    return key.sign(message, padding.PKCS1v15(), hashes.SHA256())


@dataclass(frozen=True)
class AttackTarget:
    """Kind of token that a test attacks.

    Attributes:
        alg: the accepted algorithm.
        kid: id of the verification key.
        claims: claims of a valid token.
        sign: returns valid signatures.
        public: public key of the signatures.
        verify: returns if a token is accepted, else raises.
    """

    alg: str
    kid: str
    claims: Json
    sign: Callable[[bytes], bytes]
    public: Any
    verify: Callable[[str], Any]

    def build_header(self, **changes: Any) -> Json:
        """Return a valid token header with changed properties; the value ``...`` removes a property."""
        members = {"alg": self.alg, "kid": self.kid, "typ": "JWT"} | changes
        return {name: value for name, value in members.items() if value is not ...}

    def build_token(self, header: Any = None, payload: Any = None, sign: Callable[[bytes], bytes] | None = None) -> str:
        """Return a token, by default with a valid signature."""
        message = (
            f"{encode_part(self.build_header() if header is None else header)}.{encode_part(payload or self.claims)}"
        )
        return f"{message}.{encode_part((sign or self.sign)(message.encode()))}"

    def build_token_with_claims(self, **claims: Any) -> str:
        """Return a token with changed claims and a valid signature; the value ``...`` removes a claim."""
        return self.build_token(
            payload={name: value for name, value in (self.claims | claims).items() if value is not ...}
        )


class OneKey:
    """Fake key store and fake OpenID provider with one key."""

    async def get_key_id(self) -> str:
        """Return the id of the key."""
        return "mine"

    async def sign(self, message: bytes) -> bytes:
        """Return the signature of a message."""
        return sign_raw(message)

    async def load_public_keys(self, *, reload: bool = False) -> list[Mapping[str, Any]]:
        """Return the public key."""
        del reload
        return [json.loads(jwt.algorithms.ECAlgorithm.to_jwk(KEY.public_key())) | {"kid": "mine"}]

    async def load_issuer(self) -> str:
        """Return the issuer of the provider."""
        return ISSUER

    async def find_public_key(self, key_id: str) -> Mapping[str, Any] | None:
        """Return the public key of the provider."""
        jwk: Json = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(RSA_KEY.public_key()))
        return jwk if key_id == "mine" else None


def build_service_token_target() -> AttackTarget:
    """Return the attack target for tokens of the service."""
    at = int(time.time())
    claims = {"iss": "issuer", "aud": "audience", "sub": "editor@x", "jti": "j", "iat": at, "nbf": at, "exp": at + 600}
    codec = TokenCodec(OneKey(), "issuer", "audience")
    return AttackTarget("ES256", "mine", claims | MEMBERS, sign_raw, KEY.public_key(), codec.verify)


def build_entra_target() -> AttackTarget:
    """Return the attack target for Entra ID tokens."""
    at = int(time.time())
    claims = {"iss": ISSUER, "aud": AUDIENCE, "tid": TENANT, "oid": "o", "iat": at, "nbf": at, "exp": at + 600}
    tokens = EntraTokens(OneKey(), TENANT, AUDIENCE)
    return AttackTarget("RS256", "mine", claims, sign_pkcs1, RSA_KEY.public_key(), tokens.verify)


async def assert_rejected(target: AttackTarget, token: str) -> None:
    """Check that a token is rejected with the same error as a missing token."""
    with pytest.raises(WorkspaceError) as caught:
        await target.verify(token)
    assert caught.value.kind is Kind.UNAUTHENTICATED, caught.value
    assert caught.value.detail in {
        "The token is not valid; request a new one.",
        "The token has expired; request a new one.",
    }
