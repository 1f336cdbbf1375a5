"""Files of an audit bundle (zip file), which are read one at a time and within limits."""

import errno
import hashlib
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import IO, Final

from oi.verification.export import BrokenError

MAX_FILE_BYTES: Final = 16 * 1024 * 1024
"""Maximum size of a file that is read as a whole: every file except the records, their proofs, README and report."""
_PART_BYTES: Final = 65_536
_METHODS: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""Methods of a bundle's files: the service compresses by Deflate; a repacked bundle may store files uncompressed."""
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


class BundleFiles(Mapping[str, bytes]):
    """Contents of a bundle's files by name; each access reads the file, and compares it with its checksum.

    Args:
        archive: the opened zip file.

    Raises:
        BrokenError: a file occurs twice, or is compressed by another method than Deflate.
    """

    def __init__(self, archive: zipfile.ZipFile) -> None:
        self._archive = archive
        self._entries: dict[str, zipfile.ZipInfo] = {}
        for entry in archive.infolist():
            if entry.filename in self._entries:
                raise BrokenError(entry.filename, "the bundle contains this file twice")
            if entry.compress_type not in _METHODS:
                raise BrokenError(entry.filename, "the file is compressed by another method than Deflate")
            self._entries[entry.filename] = entry

    def __len__(self) -> int:
        """Return the number of files."""
        return len(self._entries)

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the names of the files."""
        return iter(self._entries)

    def __contains__(self, name: object) -> bool:
        """Return whether the bundle contains a file with this name, without reading the file."""
        return name in self._entries

    def __getitem__(self, name: str) -> bytes:
        """Read a whole file.

        Raises:
            KeyError: the bundle does not contain the file.
            BrokenError: the file is damaged, or has more than :data:`MAX_FILE_BYTES`.
            OSError: the zip file cannot be read.
        """
        self._check_size(name, MAX_FILE_BYTES)
        return b"".join(self.iterate_parts(name))

    def iterate_parts(self, name: str) -> Iterator[bytes]:
        """Read a file of any size in parts.

        Raises:
            KeyError: the bundle does not contain the file.
            BrokenError: the file is damaged.
            OSError: the zip file cannot be read.
        """
        return self._read_file(name, lambda file: file.read(_PART_BYTES))

    def iterate_lines(self, name: str, max_bytes: int) -> Iterator[bytes]:
        """Read a file in lines; a very long line is divided.

        Args:
            name: name of the file.
            max_bytes: maximum size of the file.

        Raises:
            KeyError: the bundle does not contain the file.
            BrokenError: the file is damaged, or has more than ``max_bytes``.
            OSError: the zip file cannot be read.
        """
        self._check_size(name, max_bytes)
        return self._read_file(name, lambda file: file.readline(_PART_BYTES))

    def compute_sha256(self, name: str) -> str:
        """Return the SHA-256 of a file as lowercase hex digits.

        Raises:
            KeyError: the bundle does not contain the file.
            BrokenError: the file is damaged.
            OSError: the zip file cannot be read.
        """
        digest = hashlib.sha256()
        for part in self.iterate_parts(name):
            digest.update(part)
        return digest.hexdigest()

    def _check_size(self, name: str, max_bytes: int) -> None:
        if self._entries[name].file_size > max_bytes:
            raise BrokenError(name, f"the file has more than {max_bytes:,} bytes")

    def _read_file(self, name: str, read_part: Callable[[IO[bytes]], bytes]) -> Iterator[bytes]:
        try:
            # The zip file returns no more bytes than the size in its directory, also if the compressed data has more.
            with self._archive.open(self._entries[name]) as file:
                while part := read_part(file):
                    yield part
        except (*_DAMAGED, OSError) as error:
            # A position in the zip file that does not exist is EINVAL; other errors are failures of the disk.
            if isinstance(error, OSError) and error.errno != errno.EINVAL:
                raise
            raise BrokenError(name, f"the file is damaged: {error}") from None
