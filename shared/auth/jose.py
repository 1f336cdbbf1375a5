"""JOSE: strict parsing of compact JWS (RFC 7515), and P-256 public keys as JSON Web Keys (RFC 7517).

Parsing is strict because a lenient library could accept several spellings of one token.
"""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any, NoReturn

from cryptography.hazmat.primitives.asymmetric import ec

from shared.text_formats.strict_json import build_object_of_unique_keys

MAX_LENGTH = 16_384
_TIMES = frozenset({"exp", "nbf", "iat"})
_END_OF_TIME = 253_402_300_800
_SEGMENT = re.compile(r"[A-Za-z0-9_-]+")
# Number of unused bits of the last character, by length modulo 4; they must be zero (RFC 4648 section 3.5).
_UNUSED_BITS = {0: 0, 2: 4, 3: 2}
_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
_COORDINATE_BYTES = 32


def parse_token_header(token: str) -> Mapping[str, Any]:
    """Parse the JOSE header of a token; reject other spellings of the same token and ambiguous JSON.

    The signature is not verified, and the payload is checked only for its form.

    Raises:
        ValueError: the token is too long, does not have three segments, has padding or unused bits, or has a header or
            payload that is not a JSON object, is nested too deeply, has duplicate properties, or has a time that is
            not a NumericDate (RFC 7519 section 2) before the year 10000.
    """
    if len(token) > MAX_LENGTH:
        raise ValueError(f"the token is longer than {MAX_LENGTH} characters")
    segments = token.split(".")
    if len(segments) != 3:  # noqa: PLR2004  header, payload, signature
        raise ValueError("the token must have three segments (header, payload, signature) separated by dots")
    header, payload, _ = (_decode_segment(segment) for segment in segments)
    _check_time_claims(_parse_json_object(payload))
    return _parse_json_object(header)


def encode_base64url(data: bytes) -> str:
    """Encode bytes as base64url text without padding, as JOSE requires."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def to_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    """Convert a P-256 public key to a JWK (RFC 7517) with its thumbprint (RFC 7638) as ``kid``."""
    return {**_to_required_jwk_members(key), "kid": compute_thumbprint(key), "use": "sig", "alg": "ES256"}


def compute_thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """Compute the JWK thumbprint of a P-256 public key (RFC 7638) as base64url."""
    canonical = json.dumps(_to_required_jwk_members(key), separators=(",", ":"), sort_keys=True)
    return encode_base64url(hashlib.sha256(canonical.encode()).digest())


def _decode_segment(segment: str) -> bytes:
    unused_bits = _UNUSED_BITS.get(len(segment) % 4)
    if unused_bits is None or not _SEGMENT.fullmatch(segment):
        raise ValueError("a segment of the token is not valid base64url text")
    if _ALPHABET.index(segment[-1]) & ((1 << unused_bits) - 1):
        raise ValueError(
            "a segment of the token is not canonical base64url: the unused bits of its last character must be zero"
        )
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))


def _parse_json_object(data: bytes) -> Mapping[str, Any]:
    # Decode first, because the JSON parser also accepts UTF-16 and UTF-32 bytes (RFC 7519 section 3 requires UTF-8).
    text = data.decode("utf-8")
    try:
        value = json.loads(
            text, object_pairs_hook=build_object_of_unique_keys, parse_constant=_reject_non_json_constant
        )
    except RecursionError:
        raise ValueError("the header or payload of the token is nested too deeply") from None
    if not isinstance(value, dict):
        raise ValueError("header and payload of the token must be JSON objects")  # noqa: TRY004  callers catch one error
    return value


def _check_time_claims(payload: Mapping[str, Any]) -> None:
    for name in _TIMES & payload.keys():
        value = payload[name]
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < _END_OF_TIME:
            raise ValueError(f"claim {name} of the token is not a valid time")


def _reject_non_json_constant(name: str) -> NoReturn:
    raise ValueError(f"the token contains {name}, which is not JSON")


def _to_required_jwk_members(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    numbers = key.public_numbers()
    return {"crv": "P-256", "kty": "EC", "x": _encode_coordinate(numbers.x), "y": _encode_coordinate(numbers.y)}


def _encode_coordinate(number: int) -> str:
    return encode_base64url(number.to_bytes(_COORDINATE_BYTES))
