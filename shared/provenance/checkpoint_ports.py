"""Ports of checkpoints (signed states of audit chains): their store, and the key that signs them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

AFTER_ALL_SIZES: Final = "~"
"""Text that sorts after the size in the name of any checkpoint, because it is not a digit."""


@dataclass(frozen=True, slots=True)
class StoredCheckpoint:
    """Signed checkpoint of a chain, as it is stored.

    Attributes:
        name: blob name, unique in the store.
        note: signed note (C2SP format), UTF-8.
        created_at: time at which the checkpoint was stored, RFC 3339 in UTC with microseconds; empty if the checkpoint
            cannot be read.
    """

    name: str
    note: bytes
    created_at: str

    @classmethod
    def build_unreadable(cls, name: str) -> "StoredCheckpoint":
        """Build a checkpoint whose name is listed, but which cannot be read; no key verifies its empty note.

        If this checkpoint were omitted, its chain would seem to have no checkpoints, and verification would accept a
        rewritten chain.
        """
        return cls(name, b"", "")


class CheckpointStore(Protocol):
    """Store of signed checkpoints, which never change, and of working state (data for creating the next checkpoint).

    A checkpoint is stored as a signed note. Names consist of ``A-Za-z0-9._-/``, are at most 200 characters long, and
    sort by the number of records that the checkpoint covers. The signature for receipts is stored under the name of its
    checkpoint with ``.cose`` at the end; :meth:`find_newest` ignores such names. Methods raise ``WorkspaceError``
    UNAVAILABLE, code ``CHECKPOINTS_UNAVAILABLE``, if the store does not respond.
    """

    async def create_if_missing(self, name: str, note: bytes) -> bool:
        """Store a signed checkpoint durably under a new name; return False if the name exists."""
        ...

    async def find_newest(self, name_prefix: str, *, older_than_name: str = "") -> StoredCheckpoint | None:
        """Return the newest checkpoint of a chain: the one with the highest name; None if there is none.

        If this checkpoint cannot be read, for instance because it is deleted after it is listed, the result is
        :meth:`StoredCheckpoint.build_unreadable`.

        Args:
            name_prefix: prefix of the names of the chain's checkpoints, with a slash at its end.
            older_than_name: return the newest checkpoint that is older than the one with this name; empty to return the
                newest.
        """
        ...

    async def list_name_prefixes(self, parent: str) -> Sequence[str]:
        """Return the prefixes of checkpoint names directly below ``parent``, in any order.

        For the parent ``DomainEvents``, the name ``DomainEvents/1f0c/000000000042`` has the prefix
        ``DomainEvents/1f0c/``. A returned prefix possibly has no checkpoint.
        """
        ...

    async def find_checkpoint(self, name: str) -> StoredCheckpoint | None:
        """Return the checkpoint with a name; None if it does not exist."""
        ...

    async def save_working_state(self, name: str, state: bytes) -> None:
        """Store intermediate data of checkpoint creation (working state) under a name; lost data is computed again."""
        ...

    async def find_working_state(self, name: str) -> bytes | None:
        """Return the working state that is stored under a name; None if there is none."""
        ...


class NoteSigner(Protocol):
    """Port of the ECDSA P-256 key that signs checkpoints, and of retired keys that signed earlier checkpoints.

    Methods raise ``WorkspaceError`` UNAVAILABLE if the key cannot be reached, and CONFLICT ``CHECKPOINT_REFUSED`` if
    checkpoints exist but their key is missing.
    """

    async def sign(self, message: bytes) -> bytes:
        """Return the ECDSA signature over the SHA-256 of a message: r and s, 32 bytes each."""
        ...

    async def load_public_key_der(self) -> bytes:
        """Return the public key of the current signing key as DER SubjectPublicKeyInfo."""
        ...

    async def load_trusted_keys_der(self, *, reload: bool = False) -> Sequence[bytes]:
        """Return the public keys whose signatures are trusted, as DER: the current key first, then the retired keys.

        If the current key is missing, the retired keys are returned.

        Args:
            reload: read the keys again instead of using cached ones.
        """
        ...
