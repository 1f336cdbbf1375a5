"""P-256 public keys as JSON Web Keys."""

import hashlib
import json
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec

from shared.auth import jws

_COORDINATE = 32


def to_jwk(key: ec.EllipticCurvePublicKey) -> dict[str, Any]:
    """Return a P-256 public key as a JWK (RFC 7517), its thumbprint (RFC 7638) as ``kid``."""
    return {**_required_members(key), "kid": compute_thumbprint(key), "use": "sig", "alg": "ES256"}


def compute_thumbprint(key: ec.EllipticCurvePublicKey) -> str:
    """Return the JWK thumbprint of a P-256 public key (RFC 7638), base64url."""
    canonical = json.dumps(_required_members(key), separators=(",", ":"), sort_keys=True)
    return jws.encode_base64url(hashlib.sha256(canonical.encode()).digest())


def _required_members(key: ec.EllipticCurvePublicKey) -> dict[str, str]:
    numbers = key.public_numbers()
    return {"crv": "P-256", "kty": "EC", "x": _coordinate(numbers.x), "y": _coordinate(numbers.y)}


def _coordinate(number: int) -> str:
    return jws.encode_base64url(number.to_bytes(_COORDINATE))
