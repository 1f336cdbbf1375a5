"""Signed links that grant anyone read access to one stored file until a time."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote, urlencode

from shared.backends.embedded.key_files import load_or_create_secret

PATH = "/files/"
_EXPIRY, _FILE, _SIGNATURE = "exp", "file", "sig"


@dataclass(frozen=True, slots=True)
class FileLink:
    """Content of a signed link to a file.

    Attributes:
        container: container of the blob.
        name: name of the blob in its container.
        file_name: file name for browsers.
        expires_at: time in UTC, in whole seconds, after which the link is invalid.
    """

    container: str
    name: str
    file_name: str
    expires_at: datetime


class FileLinks:
    """Creates and verifies signed links to files.

    Args:
        base_url: the address, without a path, at which the local host serves files.
        key_file: file of the key that signs links, created on first use; only its owner can read it.
    """

    def __init__(self, base_url: str, key_file: Path) -> None:
        self._base_url = base_url.rstrip("/")
        self._key_file = key_file
        self._key = b""

    def create(self, link: FileLink) -> str:
        """Return the URL of a link."""
        values = {_EXPIRY: str(int(link.expires_at.timestamp())), _FILE: link.file_name}
        query = urlencode({**values, _SIGNATURE: self._compute_signature(link)})
        return f"{self._base_url}{PATH}{quote(link.container, safe='')}/{quote(link.name)}?{query}"

    def read(self, container: str, name: str, query: Mapping[str, str]) -> FileLink | None:
        """Parse the link of a request, which may have expired; return None if its signature is invalid.

        Args:
            container: first segment of the path below ``/files/``, decoded.
            name: rest of the path, decoded.
            query: query parameters, decoded.
        """
        expiry, signature = query.get(_EXPIRY, ""), query.get(_SIGNATURE, "")
        try:
            expires_at = datetime.fromtimestamp(int(expiry), UTC)
        except (ValueError, OverflowError, OSError):
            return None
        link = FileLink(container, name, query.get(_FILE, ""), expires_at)
        is_valid = hmac.compare_digest(self._compute_signature(link).encode(), signature.encode(errors="replace"))
        return link if is_valid and expiry.isascii() else None

    def _compute_signature(self, link: FileLink) -> str:
        parts = (link.container, link.name, link.file_name, str(int(link.expires_at.timestamp())))
        # Each part has its length as a prefix, so that different links never have the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._load_secret(), text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()

    def _load_secret(self) -> bytes:
        if not self._key:
            self._key = load_or_create_secret(self._key_file)
        return self._key
