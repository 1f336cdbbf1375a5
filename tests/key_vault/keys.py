"""Keys of the Key Vault emulator, with names and versions, on the curve P-256."""

import base64
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import Prehashed, decode_dss_signature


def to_base64url(data: bytes) -> str:
    """Return base64url without padding."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def decode_base64url(text: str) -> bytes:
    """Return the bytes of base64url text."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


@dataclass
class Version:
    """Version of a signing key in the emulator."""

    created: int
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    enabled: bool = True
    not_before: int | None = None
    expires: int | None = None
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    def attributes(self) -> dict[str, Any]:
        """Return the attributes in the form of the REST interface."""
        times = {"nbf": self.not_before, "exp": self.expires}
        common = {"enabled": self.enabled, "created": self.created, "updated": self.created}
        return {**common, "recoveryLevel": "Purgeable", **{name: time for name, time in times.items() if time}}

    def bundle(self, key_id: str) -> dict[str, Any]:
        """Return the key in the form of the REST interface, with the public key."""
        numbers = self.private.public_key().public_numbers()
        point = {"x": to_base64url(numbers.x.to_bytes(32)), "y": to_base64url(numbers.y.to_bytes(32))}
        key = {"kid": key_id, "kty": "EC", "crv": "P-256", "key_ops": ["sign", "verify"], **point}
        return {"key": key, "attributes": self.attributes()}

    def sign(self, digest: bytes) -> bytes:
        """Sign a digest; return r and s of the signature as 64 bytes."""
        parts = decode_dss_signature(self.private.sign(digest, ec.ECDSA(Prehashed(hashes.SHA256()))))
        return b"".join(part.to_bytes(32) for part in parts)


class Keys:
    """All keys of the emulator; each key has a list of versions."""

    def __init__(self) -> None:
        self.versions: dict[str, list[Version]] = {}

    def create_version(self, name: str, created: float | None = None) -> Version:
        """Create a key, or a new version of an existing key."""
        version = Version(int(time.time() if created is None else created))
        self.versions.setdefault(name, []).append(version)
        return version

    def find(self, name: str, version: str = "") -> Version | None:
        """Return a version of a key, by default the newest."""
        held = self.versions.get(name, [])
        return next((each for each in reversed(held) if version in ("", each.name)), None)
