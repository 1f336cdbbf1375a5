"""Zip file of an audit bundle.

Its entries contain no creation time, so two bundles with the same content are identical.
"""

import hashlib
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from shared.runtime import Runtime

MANIFEST: Final = "manifest.json"
VERIFIER_KEY: Final = "verifier-key.txt"
KEY_SET: Final = "verifier-key.cbor"
REPORT: Final = "report.html"
README: Final = "README.txt"
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
_MODE: Final = 0o644 << 16
_LEVEL: Final = 6
_UNIX: Final = 3


class BundleFile:
    """Zip file of an audit bundle, which is written entry by entry.

    Args:
        path: path of the file.
        runtime: source of worker threads.

    Attributes:
        digests: SHA-256 of each written entry by its name, lowercase hex.
    """

    def __init__(self, path: Path, runtime: Runtime) -> None:
        self._zip = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=_LEVEL)
        self._runtime = runtime
        self.digests: dict[str, str] = {}

    async def __aenter__(self) -> Self:
        """Return this zip file."""
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Write the directory of all entries, in a worker thread, and close the zip file."""
        await self._runtime.run_in_thread(self._zip.close)

    async def write_entry(self, entry_name: str, content: bytes) -> None:
        """Add an entry with this name and content to the zip file."""

        async def yield_content() -> AsyncIterator[bytes]:
            yield content

        await self.write_entry_in_parts(entry_name, yield_content())

    async def write_entry_in_parts(self, entry_name: str, parts: AsyncIterator[bytes]) -> None:
        """Add an entry with the concatenated ``parts`` as its content to the zip file; worker threads compress them."""
        entry = zipfile.ZipInfo(entry_name, _EPOCH)
        entry.compress_type, entry.external_attr, entry.create_system = zipfile.ZIP_DEFLATED, _MODE, _UNIX
        digest = hashlib.sha256()
        with self._zip.open(entry, "w", force_zip64=True) as file:

            def write_part(part: bytes) -> None:
                digest.update(part)
                file.write(part)

            async for part in parts:
                await self._runtime.run_in_thread(write_part, part)
        self.digests[entry_name] = digest.hexdigest()
