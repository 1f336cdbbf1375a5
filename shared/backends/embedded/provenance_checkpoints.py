"""Checkpoints as files that are created once, on disk before their name is."""

import asyncio
import os
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import StoredCheckpoint
from shared.timestamps import rfc3339

_READ_ONLY: Final = 0o444
_SIZE_DIGITS: Final = 12


class FileCheckpointStore:
    """The CheckpointStore port over a folder.

    Args:
        folder: made on first use; each chain has a folder of its own in it.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def create(self, name: str, note: bytes) -> bool:
        """Store a note under a new name."""
        return await _answering(lambda: _create(self._folder / name, note))

    async def newest(self, prefix: str) -> StoredCheckpoint | None:
        """Return the note with the last name in the prefix's folder."""
        return await _answering(lambda: self._newest(prefix))

    async def get(self, name: str) -> StoredCheckpoint | None:
        """Return the note of a name."""
        return await _answering(lambda: self._get(name))

    async def save_state(self, name: str, state: bytes) -> None:
        """Replace the working state of a name."""
        await _answering(lambda: _replace(self._folder / f"{name}.state", state))

    async def state(self, name: str) -> bytes | None:
        """Return the working state of a name."""
        return await _answering(lambda: _bytes(self._folder / f"{name}.state"))

    def _newest(self, prefix: str) -> StoredCheckpoint | None:
        folder = self._folder / prefix
        try:
            names = [name for name in os.listdir(folder) if len(name) == _SIZE_DIGITS and name.isdigit()]  # noqa: PTH208  names alone, of many
        except FileNotFoundError:
            return None
        return self._get(f"{prefix}{max(names)}") if names else None

    def _get(self, name: str) -> StoredCheckpoint | None:
        path = self._folder / name
        note = _bytes(path)
        if note is None:
            return None
        return StoredCheckpoint(name, note, rfc3339(datetime.fromtimestamp(path.stat().st_mtime, UTC)))


async def _answering[T](work: Callable[[], T]) -> T:
    try:
        return await asyncio.to_thread(work)
    except OSError as error:
        detail = "the checkpoints cannot be reached at the moment; try again"
        raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail) from error


def _create(path: Path, content: bytes) -> bool:
    draft = _draft(path, content, _READ_ONLY)
    try:
        # A link is created or refused as one step; what is linked is on disk already.
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    _sync_folder(path.parent)
    return True


def _replace(path: Path, content: bytes) -> None:
    _draft(path, content, 0o644).replace(path)


def _draft(path: Path, content: bytes, mode: int) -> Path:
    """Write a file of its own beside a path, and wait until the disk has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _bytes(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
