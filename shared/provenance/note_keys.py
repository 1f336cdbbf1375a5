"""Keys of the workspace for signed notes: the current one, and retired ones whose signatures remain valid.

This module is separate from ``notes``, which the offline verifier imports without the rest of the service.
"""

from collections.abc import Awaitable, Callable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from shared.errors import WorkspaceError
from shared.provenance.checkpoint_ports import NoteSigner
from shared.provenance.notes import NoteError, VerifierKey, find_signer, key_name, signature_line, verify_note

_COORDINATE: Final = 32


class NoteKeys:
    """Signs notes with the current key, and finds the key that signed a note.

    Args:
        signer: port of the keys.
        workspace: returns the workspace's id.
    """

    def __init__(self, signer: NoteSigner, workspace: Callable[[], Awaitable[str]]) -> None:
        self._signer = signer
        self._workspace = workspace

    async def current(self) -> VerifierKey:
        """Return the key that verifies new signatures.

        Raises:
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        return VerifierKey(key_name(await self._workspace()), await self._signer.public_key())

    async def find_key(self, note: bytes) -> VerifierKey:
        """Return the workspace key, current or retired, whose signature line a note contains.

        Raises:
            NoteError: if the note has no signature line of a workspace key, or the bytes are not a note.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        name = key_name(await self._workspace())
        # Another process may have signed with a key that is newer than the cached keys.
        for reload in (False, True):
            keys = [VerifierKey(name, spki) for spki in await self._signer.trusted_keys(reload=reload)]
            key = find_signer(note, keys)
            if key is not None:
                return key
        raise NoteError(f"the checkpoint is not signed by a trusted key of {name}")

    async def sign(self, text: str) -> bytes:
        """Sign a text with the current key and return the note.

        Raises:
            NoteError: if the key was replaced during signing. An invalid note could never be removed from the store.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        note = f"{text}\n".encode() + await self._build_line(text, await self.current())
        verify_note(note, await self.current())
        return note

    async def cosign(self, note: bytes) -> bytes:
        """Add the signature line of the current key to a note that a retired key signed.

        Recipients with either key can verify the result. The note is returned unchanged if the current key signed it,
        or cannot sign.

        Raises:
            NoteError: if the note is not trusted.
        """
        text = verify_note(note, await self.find_key(note))
        try:
            key = await self.current()
            if find_signer(note, [key]) is not None:
                return note
            both = note + await self._build_line(text, key)
            verify_note(both, key)
        except (WorkspaceError, NoteError):
            return note
        return both

    async def _build_line(self, text: str, key: VerifierKey) -> bytes:
        raw = await self._signer.sign(text.encode())
        parts = int.from_bytes(raw[:_COORDINATE]), int.from_bytes(raw[_COORDINATE:])
        return signature_line(key, encode_dss_signature(*parts))
