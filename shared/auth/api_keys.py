"""API keys: ``oik_<8 base32 id>_<43 base64url secret>``, of which only a salted hash is stored."""

import base64
import hashlib
import hmac
import re
import secrets
from dataclasses import dataclass

PREFIX = "oik_"
_ID_BYTES = 5
_FORM = re.compile(r"oik_([A-Z2-7]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """New key: the text, which is shown once, and the stored parts."""

    text: str
    key_id: str
    salt: bytes
    digest: bytes


def generate_key(id_seed: str = "") -> NewApiKey:
    """Return a new key with 256 random bits; its id is random, or derived from ``id_seed`` if given."""
    identity = hashlib.sha256(id_seed.encode()).digest()[:_ID_BYTES] if id_seed else secrets.token_bytes(_ID_BYTES)
    key_id = base64.b32encode(identity).decode("ascii")
    secret = secrets.token_urlsafe(32)
    salt = secrets.token_bytes(16)
    return NewApiKey(f"{PREFIX}{key_id}_{secret}", key_id, salt, hash_secret(salt, secret))


def parse_key(text: str) -> tuple[str, str] | None:
    """Return the id and the secret of a key; None if the text does not have the form of a key."""
    match = _FORM.fullmatch(text)
    return (match[1], match[2]) if match else None


def hash_secret(salt: bytes, secret: str) -> bytes:
    """Return the stored digest of a secret. A fast hash is sufficient, because the secret has 256 random bits."""
    return hashlib.sha256(salt + secret.encode("ascii")).digest()


def is_secret_valid(salt: bytes, expected: bytes, secret: str) -> bool:
    """Return whether a secret matches a digest, in constant time."""
    return hmac.compare_digest(hash_secret(salt, secret), expected)
