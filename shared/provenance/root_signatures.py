"""COSE signatures over the Merkle roots of checkpoints. Each is created once, and stored next to its checkpoint."""

from typing import Final

from shared.provenance.checkpoint_ports import CheckpointStore
from shared.provenance.cose import RootSignature
from shared.provenance.note_keys import NoteKeys
from shared.provenance.notes import CheckpointContent, NoteError

_SUFFIX: Final = ".cose"


class RootSignatures:
    """Creates and reads the signatures that receipts contain.

    Args:
        notes: store of the checkpoints, which also stores the signatures.
        keys: keys that sign the workspace's checkpoints.
        issuer: base URL of the service, which new signatures contain.
    """

    def __init__(self, notes: CheckpointStore, keys: NoteKeys, issuer: str) -> None:
        self._notes = notes
        self._keys = keys
        self._issuer = issuer

    async def load_or_create(self, name: str, checkpoint: CheckpointContent) -> RootSignature:
        """Return the stored signature over the root of a checkpoint; sign the root if there is no signature yet.

        The signature is missing if an earlier version of the service created the checkpoint, or if the process ended
        between the two writes.

        Args:
            name: name of the checkpoint in the store.
            checkpoint: verified content of the checkpoint.

        Raises:
            NoteError: if the stored signature is damaged, or its key is not trusted.
            WorkspaceError: UNAVAILABLE if the store or the key does not respond; CONFLICT ``CHECKPOINT_REFUSED`` if the
                key is missing.
        """
        stored = await self._notes.get(f"{name}{_SUFFIX}")
        if stored is None:
            made = await self._keys.sign_root(checkpoint, self._issuer)
            if await self._notes.create(f"{name}{_SUFFIX}", made.encode()):
                return made
            # Another process has stored its signature first, so that signature is used.
            stored = await self._notes.get(f"{name}{_SUFFIX}")
        if stored is None:
            raise NoteError("the signature of the checkpoint's root disappeared")
        found = RootSignature.parse(stored.note)
        await self._keys.verify_root(found, checkpoint)
        return found
