"""Blobs in Azure Blob Storage.

Tested against Azurite, which supports neither managed identities nor user delegation keys.
"""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any, Final, cast

from azure.core import MatchConditions
from azure.core.exceptions import (
    AzureError,
    HttpResponseError,
    ResourceExistsError,
    ResourceModifiedError,
    ResourceNotFoundError,
)
from azure.identity.aio import DefaultAzureCredential
from azure.storage.blob import BlobSasPermissions, UserDelegationKey, generate_blob_sas
from azure.storage.blob.aio import BlobClient, BlobLeaseClient, BlobServiceClient, ContainerClient

from shared.backends.azure.identity import create_app_credential
from shared.cold_data.observed_blobs import open_blob_span
from shared.cold_data.ports import Blob, BlobReplacedError, format_content_disposition
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime

CONNECT_SECONDS: Final = 5
READ_SECONDS: Final = 30
RETRIES: Final = 3
FIRST_BACKOFF_SECONDS: Final = 1
"""Base of the SDK's exponential backoff in seconds; its default of 15 s is too long for the caller of a request."""
BLOCK_BYTES: Final = 1024 * 1024
"""Size in bytes of an uploaded block; the event loop waits while a block is copied to the socket."""
_PARALLEL_DELETES: Final = 8
_RANGE_NOT_SATISFIABLE: Final = 416
_KEY_LIVES: Final = timedelta(hours=25)
"""Validity of a user delegation key; longer than that of upload links, so that a key can sign several of them."""
_KEY_REUSE_SECONDS: Final = 15 * 60
"""Seconds for which a user delegation key signs links; the service cannot see whether an operator has revoked it."""
_CLOCK_SKEW: Final = timedelta(minutes=15)
_EXISTING_BLOB_CODES: Final = frozenset({"BlobAlreadyExists", "BlobImmutableDueToPolicy"})
_LOG = get_logger("blobs")


@dataclass(frozen=True, slots=True)
class _DelegationKey:
    """User delegation key, which signs links until ``reusable_until`` on the monotonic clock, in seconds."""

    value: UserDelegationKey
    expires_at: datetime
    reusable_until: float


class BlobAccount:
    """Azure Storage account, opened on first use. It also signs links to its blobs.

    Each attempt of a request has a timeout of ``read_seconds``; each retry follows a random pause of at most 5 s.

    Args:
        endpoint: address of the account's blob service.
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        connection_string: connection string with the account's key, for Azurite; empty to sign in with the identity.
        retries: maximum number of retries of a failed request.
        read_seconds: timeout of a reply in seconds.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        endpoint: str,
        *,
        client_id: str = "",
        connection_string: str = "",
        retries: int = RETRIES,
        read_seconds: float = READ_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._endpoint = endpoint
        self._client_id = client_id
        self._connection_string = connection_string
        self._retries = retries
        self._read_seconds = read_seconds
        self._client: BlobServiceClient | None = None
        self._credential: DefaultAzureCredential | None = None
        self._key: _DelegationKey | None = None
        self.runtime = runtime

    def open_client(self) -> BlobServiceClient:
        """Return the SDK client of the storage account."""
        if self._client is None:
            options: dict[str, Any] = {
                "connection_timeout": CONNECT_SECONDS,
                "read_timeout": self._read_seconds,
                "retry_total": self._retries,
                "initial_backoff": FIRST_BACKOFF_SECONDS,
                "increment_base": FIRST_BACKOFF_SECONDS,
                "max_single_put_size": BLOCK_BYTES,
                "max_block_size": BLOCK_BYTES,
            }
            if self._connection_string:
                self._client = BlobServiceClient.from_connection_string(self._connection_string, **options)
            else:
                self._credential = create_app_credential(self._client_id)
                self._client = BlobServiceClient(self._endpoint, credential=self._credential, **options)
        return self._client

    async def create_upload_sas_query(self, blob: BlobClient, expires_at: datetime) -> str:
        """Sign a link with which anyone can write a blob until the link expires; return the link's query string.

        The link also grants read access: to resume an upload, a client reads the list of uploaded blocks.
        """
        return generate_blob_sas(
            str(blob.account_name),
            blob.container_name,
            blob.blob_name,
            permission=BlobSasPermissions(read=True, create=True, write=True),
            expiry=expires_at,
            **await self._load_sas_signing_arguments(expires_at),
        )

    async def create_download_sas_query(self, blob: BlobClient, file_name: str, expires_at: datetime) -> str:
        """Sign a link with which anyone can read a blob until the link expires; return the link's query string."""
        return generate_blob_sas(
            str(blob.account_name),
            blob.container_name,
            blob.blob_name,
            permission=BlobSasPermissions(read=True),
            expiry=expires_at,
            content_disposition=format_content_disposition(file_name),
            **await self._load_sas_signing_arguments(expires_at),
        )

    async def close(self) -> None:
        """Close the connections to the storage account."""
        client, self._client = self._client, None
        credential, self._credential = self._credential, None
        if client is not None:
            await client.close()
        if credential is not None:
            await credential.close()

    async def _load_sas_signing_arguments(self, expires_at: datetime) -> dict[str, Any]:
        if self._connection_string:
            return {"account_key": self.open_client().credential.account_key}
        key = self._key
        if key is None or key.expires_at < expires_at or key.reusable_until < self.runtime.monotonic():
            key = self._key = await self._request_delegation_key(expires_at)
        return {"user_delegation_key": key.value, "protocol": "https"}

    async def _request_delegation_key(self, link_expires_at: datetime) -> _DelegationKey:
        at, reusable_until = self.runtime.now(), self.runtime.monotonic() + _KEY_REUSE_SECONDS
        expires_at = max(at + _KEY_LIVES, link_expires_at)
        value = await self.open_client().get_user_delegation_key(at - _CLOCK_SKEW, expires_at)
        return _DelegationKey(value, expires_at, reusable_until)


class AzureBlobStore:
    """Implementation of BlobStore: stores blobs in a container of Azure Blob Storage.

    Args:
        account: storage account that contains the container; closed with the store.
        container: name of the container.
    """

    def __init__(self, account: BlobAccount, container: str) -> None:
        self._account = account
        self._name = container
        self._runtime = account.runtime

    async def create_if_missing(self, name: str, content: bytes) -> bool:
        async def try_upload_new_blob() -> bool:
            try:
                await self._open_blob_client(name).upload_blob(content, overwrite=False)  # with If-None-Match: *
            except ResourceExistsError as error:
                if not is_existing_blob_error(error):
                    raise
                return False
            return True

        return await _call_and_convert_azure_errors(try_upload_new_blob)

    async def upload(self, name: str, source: Path) -> None:
        async def upload_file() -> None:
            with await self._runtime.run_in_thread(source.open, "rb") as file:
                stream = cast("IO[bytes]", _AsyncFile(file, self._runtime))
                size = (await self._runtime.run_in_thread(source.stat)).st_size
                await self._open_blob_client(name).upload_blob(stream, length=size, overwrite=True, max_concurrency=2)

        await _call_and_convert_azure_errors(upload_file)

    async def read(self, name: str) -> bytes:
        async def download_blob() -> bytes:
            return await (await self._open_blob_client(name).download_blob()).readall()

        return await _read_blob_and_convert_azure_errors(download_blob)

    async def read_range(self, name: str, start: int, size: int, etag: str | None = None) -> bytes:
        condition: dict[str, Any] = {}
        if etag is not None:
            condition = {"etag": f'"{etag}"', "match_condition": MatchConditions.IfNotModified}

        async def download_range() -> bytes:
            blob = self._open_blob_client(name)
            try:
                content: bytes = await (await blob.download_blob(offset=start, length=size, **condition)).readall()
            except (HttpResponseError, ValueError) as error:
                # The SDK raises ValueError for the reply of Azurite to a range of an empty blob.
                if isinstance(error, HttpResponseError) and error.status_code != _RANGE_NOT_SATISFIABLE:
                    raise
                # The blob ends before the range, but this may be another blob than the one of the ETag.
                await blob.get_blob_properties(**condition)
                return b""
            return content

        return await _call_and_convert_azure_errors(download_range)

    async def download_to_file(self, name: str, target: Path) -> None:
        async def download_chunks_to_file() -> None:
            found = await self._open_blob_client(name).download_blob()
            with await self._runtime.run_in_thread(target.open, "wb") as file:
                async for chunk in found.chunks():
                    await self._runtime.run_in_thread(file.write, chunk)

        await _read_blob_and_convert_azure_errors(download_chunks_to_file)

    async def list(self, name_prefix: str) -> AsyncIterator[Blob]:
        pages = self._open_container_client().list_blobs(name_starts_with=name_prefix).by_page()

        async def fetch_next_page_if_any() -> "list[Blob] | None":
            with open_blob_span("list", self._name):
                return await _call_and_convert_azure_errors(lambda: _fetch_next_page_if_any(pages))

        while (page := await fetch_next_page_if_any()) is not None:
            for blob in page:
                yield blob

    async def delete(self, names: Collection[str]) -> None:
        limit = asyncio.Semaphore(_PARALLEL_DELETES)

        async def delete_blob(name: str) -> None:
            async with limit:
                with contextlib.suppress(FileNotFoundError):
                    await _call_and_convert_azure_errors(
                        lambda: _delete_blob_despite_lease(self._open_blob_client(name))
                    )

        await asyncio.gather(*(delete_blob(name) for name in names))

    async def create_download_link(self, name: str, file_name: str, expires_at: datetime) -> str:
        blob = self._open_blob_client(name)
        query = await _call_and_convert_azure_errors(
            lambda: self._account.create_download_sas_query(blob, file_name, expires_at)
        )
        return f"{blob.url}?{query}"

    async def create_upload_link(self, name: str, expires_at: datetime) -> str:
        blob = self._open_blob_client(name)
        query = await _call_and_convert_azure_errors(lambda: self._account.create_upload_sas_query(blob, expires_at))
        return f"{blob.url}?{query}"

    async def require_available(self) -> None:
        await _call_and_convert_azure_errors(self._open_container_client().get_container_properties)

    async def close(self) -> None:
        await self._account.close()

    def _open_container_client(self) -> ContainerClient:
        return self._account.open_client().get_container_client(self._name)

    def _open_blob_client(self, name: str) -> BlobClient:
        return self._account.open_client().get_blob_client(self._name, name)


class _AsyncFile:
    """File whose ``read`` is a coroutine, so that the SDK uploads the file without blocking the event loop."""

    def __init__(self, file: IO[bytes], runtime: Runtime) -> None:
        self._file = file
        self._runtime = runtime

    async def read(self, size: int = -1) -> bytes:
        return await self._runtime.run_in_thread(self._file.read, size)


async def _delete_blob_despite_lease(blob: BlobClient) -> None:
    """Delete a blob with its snapshots; if the blob has a lease, end the lease first.

    The holder of an upload link can lease the blob without end, and can create snapshots of it
    (https://learn.microsoft.com/rest/api/storageservices/create-service-sas).
    """
    try:
        await blob.delete_blob(delete_snapshots="include")
    except HttpResponseError as error:
        if getattr(error, "error_code", None) != "LeaseIdMissing":
            raise
        await BlobLeaseClient(blob).break_lease(lease_break_period=0)  # needs no lease id
        await blob.delete_blob(delete_snapshots="include")


async def _fetch_next_page_if_any(pages: AsyncIterator[Any]) -> "list[Blob] | None":
    try:
        page = await anext(pages)
    except StopAsyncIteration:
        return None
    return [
        # Lists have ETags without quotation marks, other replies have them.
        Blob(each.name, each.size, each.last_modified.astimezone(UTC), each.etag.strip('"'))
        async for each in page
    ]


async def _call_and_convert_azure_errors[T](request: Callable[[], Awaitable[T]]) -> T:
    try:
        return await request()
    except ResourceNotFoundError as error:
        if getattr(error, "error_code", None) == "BlobNotFound":  # the SDK sets it on its exceptions
            raise FileNotFoundError(error.message) from None
        raise _build_unavailable_error(error) from error
    except ResourceModifiedError:
        raise BlobReplacedError from None
    except AzureError as error:
        raise _build_unavailable_error(error) from error


async def _read_blob_and_convert_azure_errors[T](read: Callable[[], Awaitable[T]]) -> T:
    """Read a blob without a condition on its ETag; convert the errors of the SDK.

    Raises:
        WorkspaceError: UNAVAILABLE also if the blob is replaced between two requests of the SDK; the caller can retry.
    """
    try:
        return await _call_and_convert_azure_errors(read)
    except BlobReplacedError as error:
        raise _build_unavailable_error(error) from error


def is_existing_blob_error(error: ResourceExistsError) -> bool:
    """Return whether a blob was not created because a blob with its name exists.

    The SDK raises the same exception for every reply 409, for instance while the container is being deleted.
    """
    return getattr(error, "error_code", None) in _EXISTING_BLOB_CODES


def _build_unavailable_error(error: AzureError | BlobReplacedError) -> WorkspaceError:
    # The error's text can contain a signed address.
    _LOG.warning("the blob store does not answer", extra=fields(error=type(error).__name__))
    detail = "The blob store does not respond; retry later."
    return WorkspaceError(Kind.UNAVAILABLE, "BLOB_STORE_UNAVAILABLE", detail)
