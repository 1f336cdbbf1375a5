"""The files of a download while they are written: counted, hashed, and rolled before they grow too large."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FILE_BYTES: Final = 256_000_000
"""No file is larger, as long as one slice of rows fits into it."""


@dataclass(frozen=True, slots=True)
class WrittenFile:
    """A finished file.

    Attributes:
        path: where it lies.
        rows: without the header.
        size: in bytes.
        sha256: lowercase hex, over all its bytes.
    """

    path: Path
    rows: int
    size: int
    sha256: str


class HashingFile:
    """A binary file being written."""

    def __init__(self, path: Path) -> None:
        self.rows = 0
        self.size = 0
        self._path = path
        self._digest = hashlib.sha256()
        self._file = path.open("wb")

    @property
    def closed(self) -> bool:
        """Whether the file is closed; pyarrow asks."""
        return self._file.closed

    def write(self, data: bytes | memoryview) -> int:
        """Append bytes."""
        self._digest.update(data)
        written = self._file.write(data)
        self.size += written
        return written

    def flush(self) -> None:
        """Hand what is buffered to the operating system; pyarrow calls it."""
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def written(self) -> WrittenFile:
        """Return what the closed file is."""
        return WrittenFile(self._path, self.rows, self.size, self._digest.hexdigest())


class RollingFiles:
    """One file after another in a folder; at least one, so that an empty download has its header.

    Args:
        folder: where the files go, named by their number.
        begin: called with each new file.
        end: called with each file before it is closed.
        limit: bytes that a file may hold.
    """

    def __init__(
        self,
        folder: Path,
        begin: Callable[[HashingFile], None],
        end: Callable[[HashingFile], None] = lambda _: None,
        limit: int = FILE_BYTES,
    ) -> None:
        self._folder = folder
        self._begin = begin
        self._end = end
        self._limit = limit
        self._current: HashingFile | None = None
        self._finished: list[WrittenFile] = []

    def room_for(self, size: int) -> HashingFile:
        """Return the file that takes this many bytes more: the current one, or the next."""
        if self._current is not None and self._current.rows and self._current.size + size > self._limit:
            self._finish(self._current)
        return self._current or self._next()

    def close(self) -> tuple[WrittenFile, ...]:
        """Return all files, finished."""
        self._finish(self._current or self._next())
        return tuple(self._finished)

    def abandon(self) -> None:
        """Close what is open, after a failure."""
        if self._current is not None:
            self._current.close()

    def _next(self) -> HashingFile:
        self._current = HashingFile(self._folder / f"{len(self._finished):05d}")
        self._begin(self._current)
        return self._current

    def _finish(self, file: HashingFile) -> None:
        self._end(file)
        file.close()
        self._finished.append(file.written())
        self._current = None
