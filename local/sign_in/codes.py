"""Sign-in codes of the web console: random, single-use, valid for 15 minutes, stored as hashes in files."""

import asyncio
import hashlib
import hmac
import json
import secrets
import time
from pathlib import Path
from typing import NamedTuple

from shared.backends.embedded import durable_files

LIFETIME_SECONDS = 900
_FOLDER = "sign-in"
_NAME_LENGTH = 64
"""Length of the name of a code's file, which is a SHA-256 hash; names of temporary files are longer."""


class SignInCodes:
    """Store of the sign-in codes of one data directory; processes with access to its files share the codes.

    Args:
        folder: folder with a file for each code, created on first use and readable by its owner only.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    async def create(self, member_id: str = "") -> str:
        """Create a sign-in code and return the code.

        Args:
            member_id: id of the team member whom the code signs in; empty for the workspace's first administrator.
        """
        code = secrets.token_urlsafe(32)
        await asyncio.to_thread(self._store_code, code, member_id)
        return code

    async def redeem_and_find_member_id(self, code: str) -> str | None:
        """Invalidate a sign-in code and return the id of the member whom it signs in.

        The id is empty for the workspace's first administrator, and None if the code is unknown, used or expired.
        """
        return await asyncio.to_thread(self._delete_code_and_find_member_id, code)

    def _store_code(self, code: str, member_id: str) -> None:
        """Delete expired codes, and store a new code as a file."""
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        for path in self._folder.iterdir():
            if _has_code_file_expired(path):
                path.unlink(missing_ok=True)
        path = self._folder / _hash_sign_in_code(code)
        content = json.dumps({"member": member_id, "expiresAt": time.time() + LIFETIME_SECONDS})
        durable_files.try_move_temporary_file_to_new_path(
            path, durable_files.write_temporary_file(path, content.encode(), 0o600), self._folder
        )

    def _delete_code_and_find_member_id(self, code: str) -> str | None:
        digest = _hash_sign_in_code(code)
        found = None
        # All names are compared in constant time, so that timing reveals no code.
        for path in self._folder.iterdir() if self._folder.is_dir() else ():
            if hmac.compare_digest(path.name, digest):
                found = path
        if found is None:
            return None
        member_id, expires_at = _read_stored_code(found)
        try:
            found.unlink()
        except FileNotFoundError:
            # Another request used the code first.
            return None
        return member_id if time.time() < expires_at else None


def open_sign_in_codes(data_dir: Path) -> SignInCodes:
    """Return the store of the sign-in codes of a data directory."""
    return SignInCodes(data_dir / _FOLDER)


def build_sign_in_link(address: str, code: str) -> str:
    """Return a sign-in link with the code in the URL's fragment, which browsers do not send to servers."""
    return f"{address}/console/#sign-in={code}"


def _hash_sign_in_code(code: str) -> str:
    return hashlib.sha256(code.encode(errors="surrogatepass")).hexdigest()


def _has_code_file_expired(path: Path) -> bool:
    """Return whether a file in the folder of codes can be deleted: its code is expired, or the file is damaged.

    A temporary file can be deleted once it is older than the lifetime of a code. Its content is not checked, because
    another process may still be writing it.
    """
    if len(path.name) == _NAME_LENGTH:
        return _read_stored_code(path).expires_at <= time.time()
    try:
        return path.stat().st_mtime + LIFETIME_SECONDS <= time.time()
    except FileNotFoundError:
        return False


class _StoredCode(NamedTuple):
    """Member id of a sign-in code, and the time of its expiry in seconds since 1970."""

    member_id: str
    expires_at: float


def _read_stored_code(path: Path) -> _StoredCode:
    """Read a code from its file; a missing or invalid file counts as an expired code."""
    try:
        stored = json.loads(path.read_bytes())
        return _StoredCode(str(stored["member"]), float(stored["expiresAt"]))
    except (OSError, ValueError, KeyError, TypeError):
        return _StoredCode("", 0.0)
