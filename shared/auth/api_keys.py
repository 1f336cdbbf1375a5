"""API keys: ``oik_<id of 8 base32 characters>_<secret of 43 base64url characters>``; only a salted hash is stored."""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass

from shared.runtime import Runtime

PREFIX = "oik_"
_ID_BYTES = 5
_FORM = re.compile(r"oik_([A-Z2-7]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """New API key: its text, which is shown only once, and the id and hash that are stored."""

    text: str
    key_id: str
    salt: bytes
    digest: bytes


def generate_key(runtime: Runtime, id_seed: str = "") -> NewApiKey:
    """Generate an API key with a secret of 256 random bits; its id is random, or derived from ``id_seed`` if given."""
    identity = hashlib.sha256(id_seed.encode()).digest()[:_ID_BYTES] if id_seed else runtime.random_bytes(_ID_BYTES)
    key_id = base64.b32encode(identity).decode("ascii")
    secret = runtime.new_token(32)
    salt = runtime.random_bytes(16)
    return NewApiKey(f"{PREFIX}{key_id}_{secret}", key_id, salt, hash_secret(salt, secret))


def parse_key(text: str) -> tuple[str, str] | None:
    """Parse the text of an API key; return its id and secret, or None if the text does not have the form of a key."""
    match = _FORM.fullmatch(text)
    return (match[1], match[2]) if match else None


def hash_secret(salt: bytes, secret: str) -> bytes:
    """Compute the stored digest of a key's secret. A fast hash is sufficient for a secret of 256 random bits."""
    return hashlib.sha256(salt + secret.encode("ascii")).digest()


def is_secret_valid(salt: bytes, expected: bytes, secret: str) -> bool:
    """Return whether the secret of an API key matches its stored digest; the comparison takes constant time."""
    return hmac.compare_digest(hash_secret(salt, secret), expected)
