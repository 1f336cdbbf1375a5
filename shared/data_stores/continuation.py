"""Continuation tokens for lists of documents: opaque and signed, valid for one table and one partition filter."""

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
from shared.errors import Kind, WorkspaceError, build_invalid_field_error

FIELD: Final = "continuationToken"
_SIGNATURE_BYTES: Final = 16
_MIN_SECRET_LENGTH: Final = 32
_KEY_BYTES: Final = 32

type SigningKeyFunction = Callable[[], Awaitable[bytes]]


def build_signing_key_function(secret_text: str) -> SigningKeyFunction:
    """Return a function that derives the signing key from a secret of at least 32 characters (HKDF, RFC 5869).

    The function raises UNAVAILABLE ``STORE_NOT_AVAILABLE`` if the secret is too short.
    """

    async def derive_signing_key() -> bytes:
        if len(secret_text) < _MIN_SECRET_LENGTH:
            detail = f"CONTINUATION_SECRET must have at least {_MIN_SECRET_LENGTH} characters."
            raise WorkspaceError(Kind.UNAVAILABLE, "STORE_NOT_AVAILABLE", detail)
        return HKDF(hashes.SHA256(), _KEY_BYTES, salt=None, info=b"oi-continuation/v1").derive(secret_text.encode())

    return derive_signing_key


class ContinuationTokens:
    """Creates and verifies the signed continuation tokens of document lists.

    Args:
        secret: function that returns the signing key, which is the same on all instances.
    """

    def __init__(self, secret: SigningKeyFunction) -> None:
        self._secret = secret

    async def create_token(
        self, table: Table, partition: PartitionValue, next_position: str, *, all_partitions: bool
    ) -> str:
        """Create the continuation token for the next page of a list of documents.

        Args:
            table: table of the documents.
            partition: partition whose documents are listed; ignored if ``all_partitions``.
            next_position: start of the next page, ``next_position`` of :class:`DocumentPage`.
            all_partitions: True if the documents of every partition are listed.
        """
        signature = await self._sign_list_position(table, partition, next_position, all_partitions=all_partitions)
        return base64.urlsafe_b64encode(signature + next_position.encode()).rstrip(b"=").decode()

    async def verify_and_read_position(
        self, table: Table, partition: PartitionValue, token: str, *, all_partitions: bool
    ) -> str:
        """Verify a continuation token; return the position in the list at which the next page starts.

        For ``table``, ``partition`` and ``all_partitions``, see :meth:`create_token`.

        Raises:
            WorkspaceError: INVALID naming ``continuationToken`` if the token is forged or belongs to another list.
        """
        content = _decode_token_bytes(token)
        try:
            position = content[_SIGNATURE_BYTES:].decode()
        except UnicodeDecodeError:
            raise _build_invalid_token_error() from None
        signature = await self._sign_list_position(table, partition, position, all_partitions=all_partitions)
        if not hmac.compare_digest(signature, content[:_SIGNATURE_BYTES]):
            raise _build_invalid_token_error()
        return position

    async def _sign_list_position(
        self, table: Table, partition: PartitionValue, position: str, *, all_partitions: bool
    ) -> bytes:
        place = table.place
        partition_filter = "" if all_partitions else f"={format_partition_key(partition)}"
        parts = (place.store, place.database, table.container.name, partition_filter, position)
        # The length of each part makes the text unique for a list.
        text = "".join(f"{len(part)}:{part}" for part in parts)
        return hmac.digest(await self._secret(), text.encode(), hashlib.sha256)[:_SIGNATURE_BYTES]


def _decode_token_bytes(token: str) -> bytes:
    if not token.isascii():
        raise _build_invalid_token_error()
    try:
        content = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise _build_invalid_token_error() from None
    # Reject unused bits, because they would give one token several spellings.
    if base64.urlsafe_b64encode(content).rstrip(b"=").decode() != token:
        raise _build_invalid_token_error()
    return content


def _build_invalid_token_error() -> Exception:
    return build_invalid_field_error(FIELD, "does not belong to this list; send the token of the previous page")
