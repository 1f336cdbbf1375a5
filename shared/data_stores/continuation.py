"""Continuation tokens: opaque, signed, and good for one table and one partition filter only."""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Awaitable, Callable
from typing import Final

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from shared.data_stores.models import PartitionValue, Table
from shared.data_stores.partition_keys import format_partition_key
from shared.errors import Kind, WorkspaceError, invalid

FIELD: Final = "continuationToken"
_SIGNATURE_BYTES: Final = 16
_LONGEST: Final = 16_384
_LEAST_SECRET: Final = 32
_KEY_BYTES: Final = 32

type Secret = Callable[[], Awaitable[bytes]]


def derive_secret(text: str) -> Secret:
    """Return what gives a key made from a secret of at least 32 characters (HKDF, RFC 5869).

    Without one, whoever asks for the key is told UNAVAILABLE ``STORE_NOT_AVAILABLE``.
    """

    async def secret() -> bytes:
        if len(text) < _LEAST_SECRET:
            detail = f"CONTINUATION_SECRET must have at least {_LEAST_SECRET} characters."
            raise WorkspaceError(Kind.UNAVAILABLE, "STORE_NOT_AVAILABLE", detail)
        return HKDF(hashes.SHA256(), _KEY_BYTES, salt=None, info=b"oi-continuation/v1").derive(text.encode())

    return secret


class ContinuationTokens:
    """Makes and reads tokens.

    Args:
        secret: gives the key that signs them, the same on all instances.
    """

    def __init__(self, secret: Secret) -> None:
        self._secret = secret

    async def create(self, table: Table, partition: PartitionValue, position: str, *, all_partitions: bool) -> str:
        """Return the token of a store's position in a list."""
        signature = await self._sign(table, partition, position, all_partitions=all_partitions)
        return base64.urlsafe_b64encode(signature + position.encode()).rstrip(b"=").decode()

    async def read(self, table: Table, partition: PartitionValue, token: str, *, all_partitions: bool) -> str:
        """Return the position that a token stands for.

        Raises:
            WorkspaceError: INVALID naming ``continuationToken``: it was not made here, or for another list.
        """
        content = _decoded(token)
        try:
            position = content[_SIGNATURE_BYTES:].decode()
        except UnicodeDecodeError:
            raise _refused() from None
        signature = await self._sign(table, partition, position, all_partitions=all_partitions)
        if not hmac.compare_digest(signature, content[:_SIGNATURE_BYTES]):
            raise _refused()
        return position

    async def _sign(self, table: Table, partition: PartitionValue, position: str, *, all_partitions: bool) -> bytes:
        place = table.place
        listed = "" if all_partitions else f"={format_partition_key(partition)}"
        parts = (place.store, place.database, table.container.name, listed, position)
        # Each part with its length: no two lists share a text.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.digest(await self._secret(), text.encode(), hashlib.sha256)[:_SIGNATURE_BYTES]


def _decoded(token: str) -> bytes:
    if not token.isascii() or len(token) > _LONGEST:
        raise _refused()
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _refused() from None
    # Bits that no byte holds would let one token have several texts.
    if base64.urlsafe_b64encode(content).rstrip(b"=").decode() != token:
        raise _refused()
    return content


def _refused() -> Exception:
    return invalid(FIELD, "is not one that this list gave")
