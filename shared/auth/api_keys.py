"""API keys: ``oik_<id of 8 base32 characters>_<secret of 43 base64url characters>``; only a salted hash is stored."""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.runtime import Runtime

PREFIX = "oik_"
MAX_UNREVOKED_KEYS: Final = 1_000
"""Maximum number of API keys of a principal that are not revoked; expired keys count, too."""

_ID_BYTES, _SALT_BYTES, _SEED_BYTES = 5, 16, 32
_KEY_ID = re.compile(r"[A-Z2-7]{8}")
_FORM = re.compile(r"oik_([A-Z2-7]{8})_([A-Za-z0-9_-]{43})")


@dataclass(frozen=True, slots=True)
class NewApiKey:
    """New API key: its text, which is shown only once, and the id and hash that are stored."""

    text: str
    key_id: str
    salt: bytes
    digest: bytes


def generate_api_key(runtime: Runtime, seed: bytes = b"") -> NewApiKey:
    """Generate an API key with a secret of 256 bits.

    Args:
        runtime: randomness.
        seed: 32 secret bytes from which the whole key is derived, so that a repeated request creates the same key;
            empty for a random key.
    """
    seed = seed or runtime.random_bytes(_SEED_BYTES)
    key_id = base64.b32encode(_derive_bytes(seed, b"id")[:_ID_BYTES]).decode("ascii")
    secret = base64.urlsafe_b64encode(_derive_bytes(seed, b"secret")).rstrip(b"=").decode("ascii")
    salt = _derive_bytes(seed, b"salt")[:_SALT_BYTES]
    return NewApiKey(f"{PREFIX}{key_id}_{secret}", key_id, salt, hash_secret(salt, secret))


def _derive_bytes(seed: bytes, purpose: bytes) -> bytes:
    return hmac.digest(seed, purpose, "sha256")


def is_key_id(text: str) -> bool:
    """Return whether a text has the form of an API key's id."""
    return _KEY_ID.fullmatch(text) is not None


def parse_key_id_and_secret(key_text: str) -> tuple[str, str] | None:
    """Parse the text of an API key; return its id and secret, or None if the text does not have the form of a key."""
    match = _FORM.fullmatch(key_text)
    return (match[1], match[2]) if match else None


def hash_secret(salt: bytes, secret: str) -> bytes:
    """Compute the salted digest of an API key's secret for storage.

    A fast hash is safe, because the secret has 256 random bits.
    """
    return hashlib.sha256(salt + secret.encode("ascii")).digest()


def is_secret_valid(salt: bytes, stored_digest: bytes, secret: str) -> bool:
    """Return whether the secret of an API key matches its stored digest; the comparison takes constant time."""
    return hmac.compare_digest(hash_secret(salt, secret), stored_digest)


def build_too_many_keys_error(max_unrevoked_keys: int) -> WorkspaceError:
    """Build the error for a new API key of a principal that has the maximum number of unrevoked keys."""
    detail = (
        f"The principal has {max_unrevoked_keys} API keys that are not revoked; revoke keys that are not used any "
        "more. Expired keys count, too."
    )
    return WorkspaceError(Kind.CONFLICT, "TOO_MANY_API_KEYS", detail, limit=max_unrevoked_keys)
