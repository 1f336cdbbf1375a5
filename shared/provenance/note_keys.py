"""The workspace's keys for signed notes: the one that signs, and retired ones whose signatures still count."""

from collections.abc import Awaitable, Callable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from shared.errors import WorkspaceError
from shared.provenance.notes import NoteError, VerifierKey, find_signer, key_name, signature_line, verify_note
from shared.provenance.ports import NoteSigner

_COORDINATE: Final = 32


class NoteKeys:
    """Signs notes, and says whose they are.

    Args:
        signer: holds the keys.
        workspace: gives the workspace's id.
    """

    def __init__(self, signer: NoteSigner, workspace: Callable[[], Awaitable[str]]) -> None:
        self._signer = signer
        self._workspace = workspace

    async def current(self) -> VerifierKey:
        """Return the key that verifies what is signed now.

        Raises:
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        return VerifierKey(key_name(await self._workspace()), await self._signer.public_key())

    async def find_key(self, note: bytes) -> VerifierKey:
        """Return which of the workspace's keys a note has a signature line of, the one that signs now or a retired one.

        Raises:
            NoteError: none of them, or it is no note.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        name = key_name(await self._workspace())
        # Another process may have begun to sign with a key that this one has not heard of.
        for reload in (False, True):
            keys = [VerifierKey(name, spki) for spki in await self._signer.trusted_keys(reload=reload)]
            key = find_signer(note, keys)
            if key is not None:
                return key
        raise NoteError(f"the checkpoint is not signed by a key of {name} that is trusted")

    async def sign(self, text: str) -> bytes:
        """Return a note with a text and the signature line of the key that signs now.

        Raises:
            NoteError: the key was replaced in between; what such a note is stored as could never be taken away.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        note = f"{text}\n".encode() + await self._line(text, await self.current())
        verify_note(note, await self.current())
        return note

    async def cosign(self, note: bytes) -> bytes:
        """Return a trusted note, one of a retired key with the line of the key that signs now behind its own.

        So whoever has one of both keys can verify it. It stays as it is while nothing can be signed.

        Raises:
            NoteError: it is not to be trusted.
        """
        text = verify_note(note, await self.find_key(note))
        try:
            key = await self.current()
            if find_signer(note, [key]) is not None:
                return note
            both = note + await self._line(text, key)
            verify_note(both, key)
        except (WorkspaceError, NoteError):
            return note
        return both

    async def _line(self, text: str, key: VerifierKey) -> bytes:
        raw = await self._signer.sign(text.encode())
        parts = int.from_bytes(raw[:_COORDINATE]), int.from_bytes(raw[_COORDINATE:])
        return signature_line(key, encode_dss_signature(*parts))
