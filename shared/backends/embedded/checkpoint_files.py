"""Signed checkpoints in files. A checkpoint's file gets its name after its content is on disk, and never changes."""

import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from shared.backends.embedded import durable_files
from shared.errors import Kind, WorkspaceError
from shared.provenance.checkpoint_ports import AFTER_ALL_SIZES, StoredCheckpoint
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.timestamps import format_rfc3339

_READ_ONLY: Final = 0o444
_SIZE_DIGITS: Final = 12
_MILLIONS, _THOUSANDS = 6, 9


class FileCheckpointStore:
    """Implementation of CheckpointStore: stores signed checkpoints as files in a folder.

    Args:
        folder: folder of the files, created on first use. Each chain has a folder in it, with subfolders for millions
            and thousands of records: ``000012/345/000012345678`` is the checkpoint of the first 12,345,678 records. The
            newest checkpoint is therefore found without a list of all checkpoints.
        runtime: clock, randomness and threads.
    """

    def __init__(self, folder: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._folder = folder

    async def create_if_missing(self, name: str, note: bytes) -> bool:
        return await self._run_in_thread(
            lambda: _try_create_file(self._build_checkpoint_path(name), note, self._folder)
        )

    async def find_newest(self, name_prefix: str, *, older_than_name: str = "") -> StoredCheckpoint | None:
        end = older_than_name.removeprefix(name_prefix) or AFTER_ALL_SIZES
        return await self._run_in_thread(lambda: self._find_newest_checkpoint(name_prefix, end))

    async def list_name_prefixes(self, parent: str) -> list[str]:
        return await self._run_in_thread(lambda: [f"{parent}/{name}/" for name in _list_names(self._folder / parent)])

    async def find_checkpoint(self, name: str) -> StoredCheckpoint | None:
        return await self._run_in_thread(lambda: self._find_checkpoint(name))

    async def save_working_state(self, name: str, state: bytes) -> None:
        await self._run_in_thread(lambda: _replace_file(self._folder / f"{name}.state", state))

    async def find_working_state(self, name: str) -> bytes | None:
        return await self._run_in_thread(lambda: _read_file_or_none(self._folder / f"{name}.state"))

    def _find_newest_checkpoint(self, name_prefix: str, below_size: str) -> StoredCheckpoint | None:
        """Return the newest checkpoint whose size, as text with leading zeros, sorts before ``below_size``.

        Return None if there is no such checkpoint.
        """
        chain = self._folder / name_prefix
        for millions in _list_numeric_names_descending(chain, _MILLIONS):
            for thousands in _list_numeric_names_descending(chain / millions, _THOUSANDS - _MILLIONS):
                if millions + thousands > below_size:
                    continue
                # A folder can be empty after a crash.
                # A file whose name does not match its folders is ignored; it could hide the newest checkpoint.
                for name in _list_numeric_names_descending(chain / millions / thousands, _SIZE_DIGITS):
                    if name.startswith(millions + thousands) and name < below_size:
                        full_name = f"{name_prefix}{name}"
                        # A symbolic link to a missing file is listed, too.
                        return self._find_checkpoint(full_name) or StoredCheckpoint.build_unreadable(full_name)
        return None

    async def _run_in_thread[T](self, function: Callable[[], T]) -> T:
        try:
            return await self._runtime.run_in_thread(function)
        except OSError as error:
            detail = "The checkpoints cannot be read or written; retry later."
            raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail) from error

    def _build_checkpoint_path(self, name: str) -> Path:
        prefix, _, size = name.rpartition("/")
        return self._folder / prefix / size[:_MILLIONS] / size[_MILLIONS:_THOUSANDS] / size

    def _find_checkpoint(self, name: str) -> StoredCheckpoint | None:
        path = self._build_checkpoint_path(name)
        note = _read_file_or_none(path)
        if note is None:
            return None
        return StoredCheckpoint(name, note, format_rfc3339(datetime.fromtimestamp(path.stat().st_mtime, UTC)))


def _list_numeric_names_descending(folder: Path, digit_count: int) -> list[str]:
    """Return the names in a folder that consist of exactly ``digit_count`` digits, highest number first."""
    return sorted((name for name in _list_names(folder) if len(name) == digit_count and name.isdigit()), reverse=True)


def _list_names(folder: Path) -> list[str]:
    try:
        return os.listdir(folder)  # noqa: PTH208  names alone
    except (FileNotFoundError, NotADirectoryError):
        return []


def _try_create_file(path: Path, content: bytes, top_folder: Path) -> bool:
    return durable_files.try_move_temporary_file_to_new_path(
        path, durable_files.write_temporary_file(path, content, _READ_ONLY), top_folder
    )


def _replace_file(path: Path, content: bytes) -> None:
    durable_files.write_temporary_file(path, content).replace(path)


def _read_file_or_none(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except IsADirectoryError:
        # A foreign folder is not a note, but must not cause an outage.
        return b""
