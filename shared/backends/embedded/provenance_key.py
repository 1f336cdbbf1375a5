"""The key that signs checkpoints, as a PEM file that only its owner can read."""

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from shared.backends.embedded.signing_key import FileSigningKey


class FileNoteSigner(FileSigningKey):
    """The NoteSigner port over a file; made on first use, by whichever process comes first."""

    async def public_key(self) -> bytes:
        """Return the public key as DER SubjectPublicKeyInfo."""
        key = (await self._private_key()).public_key()
        return key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
