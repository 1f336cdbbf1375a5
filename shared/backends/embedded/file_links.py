"""Addresses that give one stored file to anyone until a time: signed with a key that only this machine has."""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from shared.backends.embedded import durable_files

PATH = "/files/"
_KEY_BYTES = 32
_EXPIRY, _FILE, _SIGNATURE = "exp", "file", "sig"


@dataclass(frozen=True, slots=True)
class FileLink:
    """What a link gives.

    Attributes:
        container: of the blob.
        name: the blob's, within its container.
        file_name: what a browser saves it as.
        expires_at: the end of the link, UTC, whole seconds.
    """

    container: str
    name: str
    file_name: str
    expires_at: datetime


class FileLinks:
    """Makes and checks links.

    Args:
        base_url: the address, without a path, at which the local host serves files.
        key_file: holds the key, readable by its owner alone; made on first use, by whichever process comes first.
    """

    def __init__(self, base_url: str, key_file: Path) -> None:
        self._base_url = base_url.rstrip("/")
        self._key_file = key_file
        self._key = b""

    def make(self, linked: FileLink) -> str:
        """Return the address of a link; reads a file on first use."""
        values = {_EXPIRY: str(int(linked.expires_at.timestamp())), _FILE: linked.file_name}
        query = urlencode({**values, _SIGNATURE: self._signature(linked)})
        return f"{self._base_url}{PATH}{quote(linked.container, safe='')}/{quote(linked.name)}?{query}"

    def read(self, container: str, name: str, query: Mapping[str, str]) -> FileLink | None:
        """Return what an address gives, None when it was not made here; an end that has passed is not looked at.

        Args:
            container: the first segment of the path below ``/files/``, decoded.
            name: the rest of the path, decoded.
            query: the query parameters, decoded.
        """
        expiry, signature = query.get(_EXPIRY, ""), query.get(_SIGNATURE, "")
        try:
            expires_at = datetime.fromtimestamp(int(expiry), UTC)
        except (ValueError, OverflowError, OSError):
            return None
        linked = FileLink(container, name, query.get(_FILE, ""), expires_at)
        known = hmac.compare_digest(self._signature(linked).encode(), signature.encode(errors="replace"))
        return linked if known and expiry.isascii() else None

    def _signature(self, linked: FileLink) -> str:
        parts = (linked.container, linked.name, linked.file_name, str(int(linked.expires_at.timestamp())))
        # Each part with its length: no two links share a text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._secret(), text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()

    def _secret(self) -> bytes:
        if not self._key:
            if not self._key_file.exists():
                draft = durable_files.write_draft(self._key_file, secrets.token_bytes(_KEY_BYTES), 0o600)
                durable_files.create(self._key_file, draft, self._key_file.parent)
            self._key = self._key_file.read_bytes()
        return self._key
