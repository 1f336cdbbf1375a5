"""Where cold data and the files made of it are kept."""

import re
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Protocol
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored blob.

    Attributes:
        name: slash-separated path within its container.
        size: in bytes.
        written_at: when it was written last, UTC.
    """

    name: str
    size: int
    written_at: datetime


class BlobStore(Protocol):
    """One container of blobs. A blob is there whole or not at all, also after a crash.

    Every method raises WorkspaceError UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` when the store does not answer.
    """

    async def create(self, name: str, content: bytes) -> bool:
        """Store a blob unless one of that name is there; return whether it was stored."""
        ...

    async def upload(self, name: str, source: Path) -> None:
        """Store a file's bytes under a name, in place of what was there; streams, whatever the size."""
        ...

    async def read(self, name: str) -> bytes:
        """Return a blob's bytes.

        Raises:
            FileNotFoundError: there is no such blob.
        """
        ...

    async def read_end(self, name: str, size: int) -> bytes:
        """Return the last ``size`` bytes of a blob, or all of a shorter one.

        Raises:
            FileNotFoundError: there is no such blob.
        """
        ...

    async def fetch(self, name: str, target: Path) -> None:
        """Write a blob's bytes to a file; streams, whatever the size.

        Raises:
            FileNotFoundError: there is no such blob.
        """
        ...

    def list(self, prefix: str) -> AsyncIterator[Blob]:
        """Yield the blobs whose names begin with a prefix, in order of their names."""
        ...

    async def delete(self, names: Collection[str]) -> None:
        """Remove blobs; one that is not there counts as removed."""
        ...

    async def link(self, name: str, file_name: str, expires_at: datetime) -> str:
        """Return an https (embedded: http) address that gives the blob to anyone until a time, without a token.

        Args:
            name: the blob's.
            file_name: what a browser saves it as.
            expires_at: the end of the link, UTC.
        """
        ...

    async def check(self) -> None:
        """Return when the store answers."""
        ...

    async def close(self) -> None:
        """Release what was open_engine."""
        ...


_PLAIN = re.compile(r"[^A-Za-z0-9._ -]")


def content_disposition(file_name: str) -> str:
    """Return the header value that has a browser save a file under a name; any characters are fine in it."""
    plain = _PLAIN.sub("_", file_name)
    named = f'attachment; filename="{plain}"'
    return named if plain == file_name else f"{named}; filename*=UTF-8''{quote(file_name, safe='')}"
