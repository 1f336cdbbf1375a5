"""A secret of random bytes in a file that only its owner can read."""

import asyncio
import secrets
from pathlib import Path

from shared.backends.embedded import durable_files

_KEY_BYTES = 32


class FileSecret:
    """Gives the secret; made on first use, by whichever process comes first.

    Args:
        path: the file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._key = b""

    async def __call__(self) -> bytes:
        """Return the secret."""
        if not self._key:
            self._key = await asyncio.to_thread(self._load_or_create)
        return self._key

    def _load_or_create(self) -> bytes:
        if not self._path.exists():
            draft = durable_files.written(self._path, secrets.token_bytes(_KEY_BYTES), 0o600)
            durable_files.create(self._path, draft, self._path.parent)
        return self._path.read_bytes()
