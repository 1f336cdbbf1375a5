"""Parses trusted public keys in one of three formats: verifier key lines, a COSE_KeySet, or a JWK set."""

import base64
import json
import re
from collections.abc import Mapping
from typing import Any, Final

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from oi.verification.notes import VerifierKey

_ARRAY: Final = range(0x80, 0xA0)
"""First byte of an array in CBOR; no text in UTF-8 begins with it."""
_COORDINATE: Final = 32
_BASE64URL: Final = re.compile(r"[A-Za-z0-9_-]{43}")
_KEY_TYPE, _KEY_ID, _ALGORITHM, _CURVE, _X, _Y = 1, 2, 3, -1, -2, -3
_EC2, _ES256, _P256 = 2, -7, 1


def parse_verifier_keys(content: bytes) -> list[VerifierKey]:
    """Parse a workspace's trusted public keys, current and retired. Keys of a COSE or JWK set have no name.

    Raises:
        ValueError: the content is empty or in none of the three formats, or a key is not on the curve P-256 or does not
            match its id.
    """
    if content[:1] and content[0] in _ARRAY:
        return parse_cose_key_set(content)
    try:
        text = content.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise ValueError("the key file must have lines with verifier keys, or be a COSE_KeySet or a JWK set") from None
    if text.startswith("{"):
        return _parse_jwk_set(text)
    return [VerifierKey.parse(line) for line in text.splitlines() or [""]]


def parse_cose_key_set(content: bytes) -> list[VerifierKey]:
    """Parse the trusted public keys of a COSE_KeySet (RFC 9052 section 7).

    Raises:
        ValueError: as :func:`parse_verifier_keys`.
    """
    # Only receipts and COSE_KeySets need cbor2, so the other commands work without it.
    from oi.verification.receipts import decode_preferred_cbor  # noqa: PLC0415

    keys = decode_preferred_cbor(content, "the COSE_KeySet")
    if not isinstance(keys, list | tuple) or not keys:
        raise ValueError("the COSE_KeySet must be an array of at least one key")
    return [_parse_cose_key(key) for key in keys]


def _parse_cose_key(key: Any) -> VerifierKey:
    if not isinstance(key, Mapping) or (key.get(_KEY_TYPE), key.get(_CURVE)) != (_EC2, _P256):
        raise ValueError("a key of the COSE_KeySet is not on the curve P-256")
    if key.get(_ALGORITHM, _ES256) != _ES256:
        raise ValueError("a key of the COSE_KeySet is not for ES256")
    return _build_p256_key(key.get(_X), key.get(_Y), key.get(_KEY_ID))


def _parse_jwk_set(text: str) -> list[VerifierKey]:
    try:
        keys = json.loads(text)["keys"]
    except (ValueError, LookupError, TypeError, RecursionError):
        raise ValueError("the JWK set must be a JSON object with the property `keys`") from None
    if not isinstance(keys, list) or not keys:
        raise ValueError("the JWK set must have at least one key")
    return [_parse_jwk(key) for key in keys]


def _parse_jwk(key: Any) -> VerifierKey:
    if not isinstance(key, dict) or (key.get("kty"), key.get("crv")) != ("EC", "P-256"):
        raise ValueError("a key of the JWK set is not on the curve P-256")
    try:
        key_id = bytes.fromhex(str(key.get("kid")))
        x, y = (_decode_coordinate(str(key.get(name))) for name in ("x", "y"))
    except ValueError:
        raise ValueError("a key of the JWK set has an invalid coordinate or id") from None
    return _build_p256_key(x, y, key_id)


def _decode_coordinate(text: str) -> bytes:
    if not _BASE64URL.fullmatch(text):
        raise ValueError("a coordinate of a key in the JWK set is not base64url without padding")
    return base64.urlsafe_b64decode(text + "=")


def _build_p256_key(x_coordinate: Any, y_coordinate: Any, stated_key_id: Any) -> VerifierKey:
    if not all(isinstance(part, bytes) and len(part) == _COORDINATE for part in (x_coordinate, y_coordinate)):
        raise ValueError("a coordinate of a key must have 32 bytes")
    numbers = ec.EllipticCurvePublicNumbers(
        int.from_bytes(x_coordinate, "big"), int.from_bytes(y_coordinate, "big"), ec.SECP256R1()
    )
    try:
        public = numbers.public_key()
    except ValueError:
        raise ValueError("a key is not a point of the curve P-256") from None
    key = VerifierKey("", public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo))
    if key.key_id != stated_key_id:
        raise ValueError("the stated id of a key does not match the id that is computed from the key")
    return key
