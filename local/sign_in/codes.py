"""Sign-in codes of the web console: random, single-use, valid for 15 minutes, stored as hashes in files."""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from pathlib import Path

from shared.backends.embedded import durable_files

LIFETIME_SECONDS = 900
_FOLDER = "sign-in"


class SignInCodes:
    """Codes of one data directory, which any process with access creates and uses.

    Args:
        folder: folder of the codes, created on first use and readable by its owner only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def make(self, member: str = "") -> str:
        """Return a new code.

        Args:
            member: the member to sign in; empty for the workspace's first administrator.
        """
        code = secrets.token_urlsafe(32)
        await asyncio.to_thread(self._store, code, member)
        return code

    async def take(self, code: str) -> str | None:
        """Use a code and return its member; None if it is unknown, used or expired."""
        return await asyncio.to_thread(self._take, code)

    def _store(self, code: str, member: str) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if _content(path)[1] <= time.time():
                path.unlink(missing_ok=True)
        path = self._folder / _digest(code)
        content = json.dumps({"member": member, "expiresAt": time.time() + LIFETIME_SECONDS})
        durable_files.create(path, durable_files.write_draft(path, content.encode(), 0o600), self._folder)

    def _take(self, code: str) -> str | None:
        digest = _digest(code)
        found = None
        # All names are compared in constant time, so that timing reveals no code.
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if hmac.compare_digest(path.name, digest):
                found = path
        if found is None:
            return None
        member, expires_at = _content(found)
        try:
            found.unlink()
        except FileNotFoundError:
            # Another request used the code first.
            return None
        return member if time.time() < expires_at else None


def open_sign_in_codes(data_dir: Path) -> SignInCodes:
    """Return the sign-in codes of a data directory."""
    return SignInCodes(data_dir / _FOLDER)


def build_sign_in_link(address: str, code: str) -> str:
    """Return the link with a code in the fragment, which browsers do not send."""
    return f"{address}/console/#sign-in={code}"


def _digest(code: str) -> str:
    return hashlib.sha256(code.encode(errors="surrogatepass")).hexdigest()


def _content(path: Path) -> tuple[str, float]:
    """Return a code's member and expiry; a missing or invalid file has expired."""
    try:
        stored = json.loads(path.read_bytes())
        return str(stored["member"]), float(stored["expiresAt"])
    except (OSError, ValueError, KeyError, TypeError):
        return "", 0.0
