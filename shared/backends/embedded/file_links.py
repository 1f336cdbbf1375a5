"""Signed links: until a link expires, anyone who has it can read or write one stored file."""

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from urllib.parse import quote, urlencode

from shared.backends.embedded.key_files import load_or_create_secret
from shared.runtime import SYSTEM_RUNTIME, Runtime

PATH = "/files/"
_EXPIRY, _FILE, _PERMISSION, _SIGNATURE = "exp", "file", "perm", "sig"


class LinkPermission(StrEnum):
    """Access that a link grants."""

    READ = "r"
    WRITE = "w"


@dataclass(frozen=True, slots=True)
class FileLink:
    """Content of a signed link to a file.

    Attributes:
        container: container of the linked blob.
        name: name of the linked blob in its container.
        file_name: name under which browsers save the file.
        expires_at: time in UTC, in whole seconds, after which the link is invalid.
        permission: access that the link grants; a link for writing grants no access for reading.
    """

    container: str
    name: str
    file_name: str
    expires_at: datetime
    permission: LinkPermission = LinkPermission.READ


class FileLinks:
    """Creates and verifies signed links to files.

    Args:
        base_url: the address, without a path, at which the local host serves files.
        key_file: file of the key that signs links, created on first use; only its owner can read it.
        runtime: source of the key's random bytes.
    """

    def __init__(self, base_url: str, key_file: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._runtime = runtime
        self._base_url = base_url.rstrip("/")
        self._key_file = key_file
        self._key = b""

    def create_signed_url(self, link: FileLink) -> str:
        """Sign a link and return its URL.

        Raises:
            OSError: the key file cannot be used.
        """
        values = {_EXPIRY: str(int(link.expires_at.timestamp()))}
        if link.permission is LinkPermission.READ:
            values[_FILE] = link.file_name
        else:
            values[_PERMISSION] = link.permission
        query = urlencode({**values, _SIGNATURE: self._compute_signature_hex(link)})
        return f"{self._base_url}{PATH}{quote(link.container, safe='')}/{quote(link.name)}?{query}"

    def parse_link_if_signature_is_valid(
        self, container_name: str, blob_name: str, query: Mapping[str, str]
    ) -> FileLink | None:
        """Verify and parse the signed link in a request's URL; return None if it is invalid. The expiry is not checked.

        Args:
            container_name: name of the container: the first path segment below ``/files/``, percent-decoded.
            blob_name: name of the blob: the rest of the path, percent-decoded.
            query: percent-decoded query parameters of the URL.

        Raises:
            OSError: the key file cannot be used.
        """
        expiry, signature = query.get(_EXPIRY, ""), query.get(_SIGNATURE, "")
        try:
            permission = LinkPermission(query.get(_PERMISSION, LinkPermission.READ))
            expires_at = datetime.fromtimestamp(int(expiry), UTC)
        except (ValueError, OverflowError, OSError):
            return None
        link = FileLink(container_name, blob_name, query.get(_FILE, ""), expires_at, permission)
        is_valid = hmac.compare_digest(self._compute_signature_hex(link).encode(), signature.encode(errors="replace"))
        return link if is_valid and expiry.isascii() else None

    def _compute_signature_hex(self, link: FileLink) -> str:
        parts = [link.container, link.name, link.file_name, str(int(link.expires_at.timestamp()))]
        if link.permission is not LinkPermission.READ:
            parts.append(link.permission)
        # Each part has its length as a prefix, so that different links never have the same text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.new(self._load_secret(), text.encode(errors="surrogatepass"), hashlib.sha256).hexdigest()

    def _load_secret(self) -> bytes:
        if not self._key:
            self._key = load_or_create_secret(self._key_file, self._runtime)
        return self._key
