"""Calls to a container of blobs, told to traces."""

from collections.abc import AsyncIterator, Collection
from contextlib import AbstractContextManager
from datetime import datetime
from pathlib import Path

from shared.cold_data.ports import Blob, BlobStore
from shared.errors import WorkspaceError
from shared.observability.tracing import call_span


def blob_span(operation: str, container: str) -> AbstractContextManager[None]:
    """Return the span of a call to a container; that there is no such blob is an answer."""
    told = {"workspace.blobs.operation": operation, "workspace.blobs.container": container}
    return call_span(f"{operation} {container}", told, (WorkspaceError,))


class ObservedBlobs:
    """The BlobStore port over another store; each call is a span by the container's name, never the blob's.

    Args:
        store: does the work.
        container: its name.
    """

    def __init__(self, store: BlobStore, container: str) -> None:
        self._store = store
        self._container = container

    async def create(self, name: str, content: bytes) -> bool:
        """Store a blob unless one of that name is there; see the port."""
        with self._span("create"):
            return await self._store.create(name, content)

    async def upload(self, name: str, source: Path) -> None:
        """Store a file's bytes; see the port."""
        with self._span("upload"):
            await self._store.upload(name, source)

    async def read(self, name: str) -> bytes:
        """Return a blob's bytes; see the port."""
        with self._span("read"):
            return await self._store.read(name)

    async def read_end(self, name: str, size: int) -> bytes:
        """Return the end of a blob; see the port."""
        with self._span("read"):
            return await self._store.read_end(name, size)

    async def fetch(self, name: str, target: Path) -> None:
        """Write a blob's bytes to a file; see the port."""
        with self._span("fetch"):
            await self._store.fetch(name, target)

    def list(self, prefix: str) -> AsyncIterator[Blob]:
        """Yield blobs; see the port. The stores themselves make a span of each page."""
        return self._store.list(prefix)

    async def delete(self, names: Collection[str]) -> None:
        """Remove blobs; see the port."""
        with self._span("delete"):
            await self._store.delete(names)

    async def link(self, name: str, file_name: str, expires_at: datetime) -> str:
        """Return an address of a blob; see the port."""
        with self._span("link"):
            return await self._store.link(name, file_name, expires_at)

    async def check(self) -> None:
        """Return when the store answers."""
        with self._span("check"):
            await self._store.check()

    async def close(self) -> None:
        """Release what was open_engine."""
        await self._store.close()

    def _span(self, operation: str) -> AbstractContextManager[None]:
        return blob_span(operation, self._container)
