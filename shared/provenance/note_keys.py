"""Keys that sign the workspace's checkpoints: the current key, and retired keys whose signatures remain valid.

This module also contains the COSE signatures over the Merkle roots of checkpoints; each root is signed once.

This module is separate from ``notes``, which the offline verifier imports without the rest of the service.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final

from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature

from shared.errors import Kind, WorkspaceError
from shared.provenance.checkpoint_ports import CheckpointStore, NoteSigner
from shared.provenance.cose import RootSignature, build_protected_header, build_signed_bytes
from shared.provenance.notes import (
    CheckpointContent,
    NoteError,
    VerifierKey,
    build_key_name,
    find_signer_key,
    format_signature_line,
    verify_note_and_get_text,
)

_COORDINATE: Final = 32


class NoteKeys:
    """Signs checkpoints (signed notes of C2SP) with the workspace's current key, and finds the key for a signature.

    Retired keys verify older checkpoints.

    Args:
        signer: port of the signing keys.
        workspace: returns the workspace's id.
    """

    def __init__(self, signer: NoteSigner, workspace: Callable[[], Awaitable[str]]) -> None:
        self._signer = signer
        self._workspace = workspace

    async def load_current_key(self) -> VerifierKey:
        """Return the public key of the current signing key, which verifies new signatures.

        Raises:
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        return VerifierKey(build_key_name(await self._workspace()), await self._signer.load_public_key_der())

    async def load_trusted_keys(self, *, reload: bool = False) -> list[VerifierKey]:
        """Return the public keys whose signatures are trusted: the current key first, then the retired keys.

        Args:
            reload: read the keys again instead of using cached ones.

        Raises:
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        name = build_key_name(await self._workspace())
        return [VerifierKey(name, spki) for spki in await self._signer.load_trusted_keys_der(reload=reload)]

    async def require_signer_key(self, note: bytes) -> VerifierKey:
        """Return the public key (current or retired) whose signature line a note has; the signature is not verified.

        Raises:
            NoteError: if the note has no signature line of a workspace key, or the bytes are not a note.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        # Another process may have signed with a key that is newer than the cached keys.
        for reload in (False, True):
            key = find_signer_key(note, await self.load_trusted_keys(reload=reload))
            if key is not None:
                return key
        raise NoteError(f"the checkpoint is not signed by a trusted key of {build_key_name(await self._workspace())}")

    async def sign_note(self, text: str) -> bytes:
        """Sign a text, which ends in a newline, with the current key and return the signed note.

        The note is verified before it is returned, because an invalid note could never be removed from the store.

        Raises:
            WorkspaceError: UNAVAILABLE ``CHECKPOINTS_UNAVAILABLE`` if the key was replaced during signing; otherwise as
                the methods of :class:`NoteSigner`.
        """
        note = f"{text}\n".encode() + await self._build_signature_line(text, await self.load_current_key())
        key = await self.load_current_key()
        with _convert_note_error_to_unavailable():
            verify_note_and_get_text(note, key)
        return note

    async def sign_root(self, checkpoint: CheckpointContent, issuer: str) -> RootSignature:
        """Sign the Merkle root of a checkpoint with the current key; receipts contain this signature.

        Args:
            checkpoint: content of the checkpoint.
            issuer: base URL of the service, which the signature contains.

        Raises:
            WorkspaceError: UNAVAILABLE ``CHECKPOINTS_UNAVAILABLE`` if the key was replaced during signing; otherwise as
                the methods of :class:`NoteSigner`.
        """
        key = await self.load_current_key()
        protected = build_protected_header(key.key_id, issuer, checkpoint.origin)
        made = RootSignature(protected, await self._signer.sign(build_signed_bytes(protected, checkpoint.root)))
        with _convert_note_error_to_unavailable():
            made.verify(checkpoint.root, key)
        return made

    async def verify_root(self, signature: RootSignature, checkpoint: CheckpointContent) -> None:
        """Verify that a workspace key, current or retired, signed the root of a checkpoint.

        Raises:
            NoteError: if no trusted key has the id in the signature, or the signature is wrong.
            WorkspaceError: as the methods of :class:`NoteSigner`.
        """
        key_id = signature.read_key_id()
        for reload in (False, True):
            for key in await self.load_trusted_keys(reload=reload):
                if key.key_id == key_id:
                    signature.verify(checkpoint.root, key)
                    return
        raise NoteError("the root of the checkpoint is not signed by a trusted key")

    async def add_current_signature(self, note: bytes, *, is_required: bool = False) -> bytes:
        """Add a signature line of the current key to a note that a retired key signed, and return the note.

        Recipients can then verify the note with either key. The note is returned unchanged if the current key has
        signed it already, or cannot sign.

        Args:
            note: signed note.
            is_required: True to raise an error if the current key cannot be reached or is replaced during signing,
                because a retry can succeed.

        Raises:
            NoteError: if the note is not trusted.
            WorkspaceError: UNAVAILABLE if a signature is required and the current key cannot be reached or is replaced
                during signing; and as :meth:`require_signer_key`.
        """
        text = verify_note_and_get_text(note, await self.require_signer_key(note))
        try:
            key = await self.load_current_key()
            if find_signer_key(note, [key]) is not None:
                return note
            both = note + await self._build_signature_line(text, key)
            with _convert_note_error_to_unavailable():
                verify_note_and_get_text(both, key)
        except WorkspaceError as error:
            if is_required and error.kind is Kind.UNAVAILABLE:
                raise
            return note
        return both

    async def _build_signature_line(self, text: str, key: VerifierKey) -> bytes:
        raw = await self._signer.sign(text.encode())
        parts = int.from_bytes(raw[:_COORDINATE]), int.from_bytes(raw[_COORDINATE:])
        return format_signature_line(key, encode_dss_signature(*parts))


@contextmanager
def _convert_note_error_to_unavailable() -> Iterator[None]:
    """Context manager: raise UNAVAILABLE if a new signature does not match the public key that was read before.

    This happens if the key is replaced during signing; a retry reads the new public key and succeeds.
    """
    try:
        yield
    except NoteError as error:
        detail = "The key that signs checkpoints was replaced during signing; try again."
        raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail) from error


_SUFFIX: Final = ".cose"


class RootSignatures:
    """Creates and reads the COSE signatures over Merkle roots, which receipts contain.

    Args:
        notes: store of the checkpoints, which also stores the signatures.
        keys: keys that sign the workspace's checkpoints.
        issuer: base URL of the service, which new signatures contain.
    """

    def __init__(self, notes: CheckpointStore, keys: NoteKeys, issuer: str) -> None:
        self._notes = notes
        self._keys = keys
        self._issuer = issuer

    async def load_or_create(self, checkpoint_name: str, checkpoint: CheckpointContent) -> RootSignature:
        """Return the stored signature over the root of a checkpoint; sign the root if there is no signature yet.

        There is no signature if an earlier version of the service created the checkpoint, or if the process ended after
        storing the checkpoint.

        Args:
            checkpoint_name: name of the checkpoint in the store.
            checkpoint: verified content of the checkpoint.

        Raises:
            NoteError: if the stored signature is damaged, or its key is not trusted.
            WorkspaceError: UNAVAILABLE if the store or the key does not respond; CONFLICT ``CHECKPOINT_REFUSED`` if the
                key is missing.
        """
        stored = await self._notes.find_checkpoint(f"{checkpoint_name}{_SUFFIX}")
        if stored is None:
            made = await self._keys.sign_root(checkpoint, self._issuer)
            if await self._notes.create_if_missing(f"{checkpoint_name}{_SUFFIX}", made.encode()):
                return made
            # Another process has stored its signature first, so that signature is used.
            stored = await self._notes.find_checkpoint(f"{checkpoint_name}{_SUFFIX}")
        if stored is None:
            raise NoteError("the stored signature over the Merkle root of the checkpoint has disappeared; try again")
        found = RootSignature.parse(stored.note)
        await self._keys.verify_root(found, checkpoint)
        return found
