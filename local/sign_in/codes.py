"""Sign-in codes of the web console: random, for one use, good for a quarter of an hour, kept as hashes in files."""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from pathlib import Path

from shared.backends.embedded import durable_files

LIFETIME_SECONDS = 900


class SignInCodes:
    """The codes of one data directory; any process that may read it makes them, and exactly one takes each.

    Args:
        folder: of the codes, made on first use and readable by its owner alone.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def make(self, member: str = "") -> str:
        """Return a new code.

        Args:
            member: who it signs in; empty for the workspace's first administrator.
        """
        code = secrets.token_urlsafe(32)
        await asyncio.to_thread(self._keep, code, member)
        return code

    async def take(self, code: str) -> str | None:
        """Use a code up, and return whom it signs in; None for one that is unknown, used or expired."""
        return await asyncio.to_thread(self._take, code)

    def _keep(self, code: str, member: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if _content(path)[1] <= time.time():
                path.unlink(missing_ok=True)
        path = self._folder / _digest(code)
        content = json.dumps({"member": member, "expiresAt": time.time() + LIFETIME_SECONDS})
        durable_files.create(path, durable_files.write_draft(path, content.encode(), 0o600), self._folder)

    def _take(self, code: str) -> str | None:
        wanted = _digest(code)
        found = None
        # Every name is compared, in constant time: how long it takes tells nothing of any code.
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if hmac.compare_digest(path.name, wanted):
                found = path
        if found is None:
            return None
        member, expires_at = _content(found)
        try:
            found.unlink()
        except FileNotFoundError:
            # Another request was quicker.
            return None
        return member if time.time() < expires_at else None


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="surrogatepass")).hexdigest()


def _content(path: Path) -> tuple[str, float]:
    """Return a code's member and its end; the past for a file that is gone or of another form."""
    try:
        kept = json.loads(path.read_bytes())
        return str(kept["member"]), float(kept["expiresAt"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0.0
