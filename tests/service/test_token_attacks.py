"""Tests that every kind of route rejects forged tokens with the same 401 reply."""

import hashlib
import hmac
import json
import time
from collections.abc import Callable
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from shared.auth import jose
from tests.service.local_service import Service, check_problem
from tests.service.stream_client import build_stream_url, read_rejection
from tests.unit.shared.auth.targets import ORDER, encode_part, sign_pkcs1

ROUTES = [
    ("GET", "/workspace/api/keys/whoami"),
    ("GET", "/oi-api/warm-queries/per-minute"),
    ("POST", "/oi-api/provenance/events"),
    ("GET", "/oi-api/live-stream"),
    ("POST", "/oi-api/mcp"),
]
type Json = dict[str, Any]
type Sign = Callable[[bytes], bytes]


class Forger:
    """Helper that forges tokens from a valid token and the service's published keys."""

    def __init__(self, service: Service) -> None:
        self.good = service.create_client("viewer@t").headers["Authorization"].removeprefix("Bearer ")
        key = service.data_dir / "signing-key.pem"
        loaded = serialization.load_pem_private_key(key.read_bytes(), None)
        assert isinstance(loaded, ec.EllipticCurvePrivateKey)
        self.key = loaded
        self.header: Json = jwt.get_unverified_header(self.good)
        self.claims: Json = jwt.decode(self.good, options={"verify_signature": False})

    def sign(self, message: bytes) -> bytes:
        """Return the valid signature of a message with the service's key."""
        return jwt.utils.der_to_raw_signature(self.key.sign(message, ec.ECDSA(hashes.SHA256())), ec.SECP256R1())

    def create_token(
        self, header: Json | None = None, claims: Json | None = None, sign_message: Sign | None = None
    ) -> str:
        """Return the valid token with changed properties.

        The value ``...`` removes a property.
        """
        created = [
            encode_part({name: value for name, value in (members | (changes or {})).items() if value is not ...})
            for members, changes in ((self.header, header), (self.claims, claims))
        ]
        message = ".".join(created)
        return f"{message}.{encode_part((sign_message or self.sign)(message.encode()))}"

    def public_key(self) -> bytes:
        """Return the public key from the JWKS."""
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        return self.key.public_key().public_bytes(serialization.Encoding.PEM, form)


def _build_token_signed_with_mac(forger: Forger) -> str:
    return forger.create_token(
        {"alg": "HS256"}, sign_message=lambda message: hmac.digest(forger.public_key(), message, hashlib.sha256)
    )


def _build_token_with_embedded_key(forger: Forger) -> str:
    mine = ec.generate_private_key(ec.SECP256R1())
    jwk = json.loads(jwt.algorithms.ECAlgorithm.to_jwk(mine.public_key()))
    sign: Sign = lambda message: jwt.utils.der_to_raw_signature(  # noqa: E731  one of several signers
        mine.sign(message, ec.ECDSA(hashes.SHA256())), ec.SECP256R1()
    )
    return forger.create_token({"jwk": jwk, "jku": "http://127.0.0.1:9/keys"}, sign_message=sign)


def _build_token_like_one_of_entra_id(forger: Forger) -> str:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return forger.create_token({"alg": "RS256"}, sign_message=lambda message: sign_pkcs1(message, key))


def _build_token_with_duplicate_claim(forger: Forger) -> str:
    claims = json.dumps(forger.claims)[:-1] + ',"sub":"admin@t","Username":"admin@t"}'
    message = f"{encode_part(forger.header)}.{encode_part(claims)}"
    return f"{message}.{encode_part(forger.sign(message.encode()))}"


def _choose_malformed_encoding(encoding: str) -> Callable[[Forger], str]:
    def create(forger: Forger) -> str:
        message = f"{encode_part(forger.header)}.{jose.encode_base64url(json.dumps(forger.claims).encode(encoding))}"
        return f"{message}.{encode_part(forger.sign(message.encode()))}"

    return create


ATTACKS: dict[str, Callable[[Forger], str]] = {
    "none": lambda forger: forger.create_token({"alg": "none"}, sign_message=lambda _: b""),
    "nOnE": lambda forger: forger.create_token({"alg": "nOnE"}),
    "public key as secret": _build_token_signed_with_mac,
    "key of its own": _build_token_with_embedded_key,
    "another algorithm": _build_token_like_one_of_entra_id,
    "psychic signature": lambda forger: forger.create_token(sign_message=lambda _: bytes(64)),
    "r and s of the order": lambda forger: forger.create_token(sign_message=lambda _: ORDER.to_bytes(32) * 2),
    "ASN.1 signature": lambda forger: forger.create_token(
        sign_message=lambda text: forger.key.sign(text, ec.ECDSA(hashes.SHA256()))
    ),
    "cut signature": lambda forger: forger.good[:-4],
    "longer signature": lambda forger: forger.create_token(sign_message=lambda text: forger.sign(text) + b"\0"),
    "padding": lambda forger: forger.good + "==",
    "five parts": lambda forger: forger.good + "..",
    "key id as path": lambda forger: forger.create_token(
        {"kid": "../../../../dev/null"}, sign_message=lambda _: b"x" * 64
    ),
    "key id as list": lambda forger: forger.create_token({"kid": [forger.header["kid"]]}),
    "no key id": lambda forger: forger.create_token({"kid": ...}),
    "unencoded payload": lambda forger: forger.create_token({"b64": False, "crit": ["b64"]}),
    "critical": lambda forger: forger.create_token({"crit": ["exp"]}),
    "claims twice": _build_token_with_duplicate_claim,
    "claims in UTF-16": _choose_malformed_encoding("utf-16"),
    "claims in UTF-16 without a mark": _choose_malformed_encoding("utf-16-le"),
    "claims in UTF-32": _choose_malformed_encoding("utf-32"),
    "claims behind a byte order mark": _choose_malformed_encoding("utf-8-sig"),
    "time as text": lambda forger: forger.create_token(claims={"exp": "9999999999"}),
    "time as NaN": lambda forger: forger.create_token(claims={"exp": float("nan")}),
    "time without end": lambda forger: forger.create_token(claims={"exp": 10**400}),
    "no end": lambda forger: forger.create_token(claims={"exp": ...}),
    "over": lambda forger: forger.create_token(claims={"exp": int(time.time()) - 1}),
    "not yet": lambda forger: forger.create_token(claims={"nbf": int(time.time()) + 600}),
    "another issuer": lambda forger: forger.create_token(claims={"iss": "somebody"}),
    "audience in a list": lambda forger: forger.create_token(claims={"aud": [forger.claims["aud"]]}),
    "another workspace": lambda forger: forger.create_token(claims={"WorkspaceLookup": "plant-u"}),
    "another subject": lambda forger: forger.create_token(claims={"sub": "admin@t"}),
    "huge": lambda forger: forger.create_token(claims={"padding": "a" * 20_000}),
}


@pytest.fixture(scope="module")
def forger(service: Service) -> Forger:
    """Return a helper that forges tokens from a valid token and the published keys."""
    return Forger(service)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_forged_tokens_are_rejected_by_every_route(service: Service, forger: Forger, attack: str) -> None:
    """Each forged token gets the same 401 reply from REST, live stream and MCP, without a reason."""
    token = ATTACKS[attack](forger)
    client = service.create_anonymous_client(token)
    for method, path in ROUTES:
        reply = client.request(method, path, content=b"{}" if method == "POST" else b"")
        details = check_problem(reply, 401, "UNAUTHENTICATED")
        assert details["detail"] in {
            "The token is not valid; request a new one.",
            "The token has expired; request a new one.",
        }
    assert client.post("/v1/plant-t/graphql", json={"query": "{__typename}"}).status_code == 401
    if len(token) < 8_000:
        assert (await read_rejection(build_stream_url(service, token=token))).status_code == 401
    assert token not in service.read_log()


@pytest.mark.parametrize("space", ["\xa0", "\x85", "\u2003"])
async def test_only_spaces_and_tabs_can_surround_a_token(service: Service, forger: Forger, space: str) -> None:
    """White space around a token other than spaces and tabs makes the token invalid."""
    for token in (forger.good + space, space + forger.good):
        assert (await read_rejection(build_stream_url(service, token=token))).status_code == 401
        for method, path in ROUTES if ord(space) < 256 else []:
            header = f"Bearer {token}".encode("latin-1")
            check_problem(
                service.create_anonymous_client().request(method, path, headers={b"Authorization": header}),
                401,
                "UNAUTHENTICATED",
            )
    spaced = {"Authorization": f"Bearer  \t {forger.good}"}
    assert service.create_anonymous_client().get("/workspace/api/keys/whoami", headers=spaced).status_code == 200


def test_the_valid_token_still_works(service: Service, forger: Forger) -> None:
    """The valid token on which the forged tokens are based is accepted."""
    assert service.create_anonymous_client(forger.good).get("/oi-api/warm-queries/per-minute").status_code == 200
    assert service.create_anonymous_client(forger.create_token()).get("/workspace/api/keys/whoami").status_code == 200
