"""The workspace's keys for signed notes: the one that signs, and retired ones whose signatures still count."""

from collections.abc import Awaitable, Callable
from typing import Final

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from shared.errors import WorkspaceError
from shared.provenance.notes import NoteError, VerifierKey, key_name, signature_line, signer_of, verified
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

    async def of(self, note: bytes) -> VerifierKey:
        """Return which of the workspace's keys a note has a signature line of, the one that signs now or a retired one.

        Raises:
            NoteError: none of them, or it is no note.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        name = key_name(await self._workspace())
        # Another process may have begun to sign with a key that this one has not heard of.
        for anew in (False, True):
            keys = [VerifierKey(name, spki) for spki in await self._signer.trusted(anew=anew)]
            key = signer_of(note, keys)
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
        verified(note, await self.current())
        return note

    async def cosigned(self, note: bytes) -> bytes:
        """Return a trusted note, one of a retired key with the line of the key that signs now behind its own.

        So whoever has one of both keys can verify it. It stays as it is while nothing can be signed.

        Raises:
            NoteError: it is not to be trusted.
        """
        text = verified(note, await self.of(note))
        try:
            key = await self.current()
            if signer_of(note, [key]) is not None:
                return note
            both = note + await self._line(text, key)
            verified(both, key)
        except (WorkspaceError, NoteError):
            return note
        return both

    async def _line(self, text: str, key: VerifierKey) -> bytes:
        raw = await self._signer.sign(text.encode())
        parts = int.from_bytes(raw[:_COORDINATE]), int.from_bytes(raw[_COORDINATE:])
        return signature_line(key, encode_dss_signature(*parts))
