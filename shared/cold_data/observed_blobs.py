"""Tracing of blob store calls with OpenTelemetry spans."""

from collections.abc import AsyncIterator, Collection
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from shared.cold_data.ports import Blob, BlobStore
from shared.errors import WorkspaceError
from shared.observability.tracing import open_call_span


def open_blob_span(operation: str, container: str) -> AbstractContextManager[None]:
    """Return a context manager that traces a call to a blob container in a span.

    A missing blob does not mark the span as failed.
    """
    attributes = {"workspace.blobs.operation": operation, "workspace.blobs.container": container}
    return open_call_span(f"{operation} {container}", attributes, (WorkspaceError,))


class ObservedBlobs:
    """BlobStore that calls another BlobStore and records a span for each call.

    Spans name the container, never the blob.

    Args:
        store: the wrapped store.
        container: name of the container.
    """

    def __init__(self, store: BlobStore, container: str) -> None:
        self._store = store
        self._container = container

    async def create_if_missing(self, name: str, content: bytes) -> bool:
        """Store a blob, with a trace span."""
        with self._open_span("create"):
            return await self._store.create_if_missing(name, content)

    async def upload(self, name: str, source: Path) -> None:
        """Upload a file, with a trace span."""
        with self._open_span("upload"):
            await self._store.upload(name, source)

    async def read(self, name: str) -> bytes:
        """Read a blob, with a trace span."""
        with self._open_span("read"):
            return await self._store.read(name)

    async def read_range(self, name: str, start: int, size: int, etag: str | None = None) -> bytes:
        """Read a range of a blob, with a trace span."""
        with self._open_span("read"):
            return await self._store.read_range(name, start, size, etag)

    async def download_to_file(self, name: str, target: Path) -> None:
        """Download a blob to a file, with a trace span."""
        with self._open_span("fetch"):
            await self._store.download_to_file(name, target)

    def list(self, name_prefix: str) -> AsyncIterator[Blob]:
        """Yield blobs; the wrapped stores create a span per page."""
        return self._store.list(name_prefix)

    async def delete(self, names: Collection[str]) -> None:
        """Delete blobs, with a trace span."""
        with self._open_span("delete"):
            await self._store.delete(names)

    async def create_download_link(self, name: str, file_name: str, expires_at: datetime) -> str:
        """Create a link, with a trace span."""
        with self._open_span("link"):
            return await self._store.create_download_link(name, file_name, expires_at)

    async def create_upload_link(self, name: str, expires_at: datetime) -> str:
        """Create an upload link, with a trace span."""
        with self._open_span("link"):
            return await self._store.create_upload_link(name, expires_at)

    async def require_available(self) -> None:
        """Check the store, with a trace span."""
        with self._open_span("check"):
            await self._store.require_available()

    async def close(self) -> None:
        """Close the wrapped store."""
        await self._store.close()

    def _open_span(self, operation: str) -> AbstractContextManager[None]:
        return open_blob_span(operation, self._container)
