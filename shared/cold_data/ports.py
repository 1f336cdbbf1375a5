"""Port of blob containers for archived telemetry and for download files."""

import re
from collections.abc import AsyncIterator, Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Blob:
    """Name, size, time of the last write, and ETag of a stored blob.

    Attributes:
        name: slash-separated path within its container.
        size: size in bytes.
        written_at: time of the last write, UTC.
        etag: text that changes with each write of the blob.
    """

    name: str
    size: int
    written_at: datetime
    etag: str = ""


class BlobReplacedError(Exception):
    """Raised if a blob was written again since the caller read its ETag."""


UPLOAD_HEADERS: Final = {"x-ms-blob-type": "BlockBlob"}
"""Headers of a request that uploads a whole file to an upload link."""


class BlobStore(Protocol):
    """Container of blobs. Writes are atomic: a blob exists completely or not at all, also after a crash.

    Every method raises WorkspaceError UNAVAILABLE ``BLOB_STORE_UNAVAILABLE`` when the store does not respond. Methods
    that read a blob also raise it if the blob is replaced meanwhile.
    """

    async def create_if_missing(self, name: str, content: bytes) -> bool:
        """Store a blob unless a blob with this name exists; return whether the blob was stored."""
        ...

    async def upload(self, name: str, source: Path) -> None:
        """Store a file's bytes under a name, replacing an existing blob; streams files of any size."""
        ...

    async def read(self, name: str) -> bytes:
        """Return a blob's bytes.

        Raises:
            FileNotFoundError: the blob does not exist.
        """
        ...

    async def read_range(self, name: str, start: int, size: int, etag: str | None = None) -> bytes:
        """Return ``size`` bytes of a blob from a position on; fewer bytes, or none, if the blob ends before.

        Args:
            name: name of the blob.
            start: position of the first byte.
            size: number of bytes.
            etag: ETag that the blob must have; None for any.

        Raises:
            FileNotFoundError: the blob does not exist.
            BlobReplacedError: the blob has another ETag.
        """
        ...

    async def download_to_file(self, name: str, target: Path) -> None:
        """Write a blob's bytes to a file; streams blobs of any size.

        Raises:
            FileNotFoundError: the blob does not exist.
        """
        ...

    def list(self, name_prefix: str) -> AsyncIterator[Blob]:
        """Yield the blobs whose names begin with a prefix, in order of their names."""
        ...

    async def delete(self, names: Collection[str]) -> None:
        """Delete blobs; blobs that do not exist are ignored."""
        ...

    async def create_download_link(self, name: str, file_name: str, expires_at: datetime) -> str:
        """Return a URL from which anyone can download the blob until the URL expires.

        Args:
            name: name of the blob.
            file_name: name under which a browser saves the file.
            expires_at: end of the link's validity, UTC.
        """
        ...

    async def create_upload_link(self, name: str, expires_at: datetime) -> str:
        """Return a URL to which anyone can upload the blob until the URL expires.

        The URL accepts requests of Azure Blob Storage: Put Blob, or Put Block, Get Block List and Put Block List.
        A request that uploads a whole file has the headers :data:`UPLOAD_HEADERS`.

        Args:
            name: name of the blob.
            expires_at: end of the link's validity, UTC.
        """
        ...

    async def require_available(self) -> None:
        """Check that the blob store responds.

        Raises:
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        ...

    async def close(self) -> None:
        """Close the connections and files of the blob store."""
        ...


_PLAIN = re.compile(r"[^A-Za-z0-9._ -]")


def format_content_disposition(file_name: str) -> str:
    """Return the Content-Disposition header for a download under a file name (RFC 6266)."""
    plain = _PLAIN.sub("_", file_name)
    header = f'attachment; filename="{plain}"'
    return header if plain == file_name else f"{header}; filename*=UTF-8''{quote(file_name, safe='')}"
