"""Store of signed checkpoints of audit chains as immutable blobs.

Intermediate data for the next checkpoint (working state) changes, so it is in another container.

Tested against Azurite, which supports neither managed identities nor immutability.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC
from typing import Any, Final

from azure.core.exceptions import AzureError, ResourceExistsError, ResourceNotFoundError
from azure.storage.blob.aio import BlobClient

from shared.backends.azure.blobs import BlobAccount, is_existing_blob_error
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.provenance.checkpoint_ports import AFTER_ALL_SIZES, StoredCheckpoint
from shared.timestamps import format_rfc3339

NOTES: Final = "checkpoints"
STATES: Final = "checkpoint-state"
_SIZE_DIGITS: Final = 12
_MILLIONS, _THOUSANDS = 6, 9
_LOG = get_logger("checkpoints")


class BlobCheckpointStore:
    """Implementation of CheckpointStore: stores signed checkpoints in two containers of Azure Blob Storage.

    Each chain has a folder with subfolders for millions and thousands of records: ``000012/345/000012345678`` is the
    checkpoint of the first 12,345,678 records. Three short listings therefore find the newest checkpoint. The embedded
    store uses the same names.

    Args:
        account: storage account that contains the containers; closed with the store.
        note_container: name of the container for checkpoints; it can have an immutability policy.
        state_container: name of the container for working state, whose blobs are overwritten.
    """

    def __init__(self, account: BlobAccount, *, note_container: str = NOTES, state_container: str = STATES) -> None:
        self._account = account
        self._notes = note_container
        self._states = state_container

    async def create_if_missing(self, name: str, note: bytes) -> bool:
        async def try_upload_checkpoint() -> bool:
            try:
                await self._open_checkpoint_blob(name).upload_blob(note, overwrite=False)  # with If-None-Match: *
            except ResourceExistsError as error:
                if not is_existing_blob_error(error):
                    raise
                return False
            return True

        return await _call_and_convert_azure_errors(try_upload_checkpoint)

    async def find_newest(self, name_prefix: str, *, older_than_name: str = "") -> StoredCheckpoint | None:
        end = older_than_name.removeprefix(name_prefix) or AFTER_ALL_SIZES
        for millions in await self._list_numeric_names_descending(name_prefix, _MILLIONS, "/"):
            if millions > end:
                continue
            inner = f"{name_prefix}{millions}/"
            for thousands in await self._list_numeric_names_descending(inner, _THOUSANDS - _MILLIONS, "/"):
                if millions + thousands > end:
                    continue
                for size in await self._list_numeric_names_descending(f"{inner}{thousands}/", _SIZE_DIGITS):
                    # A blob whose name does not match its folders is ignored; it could hide the newest checkpoint.
                    if size.startswith(millions + thousands) and size < end:
                        name = f"{name_prefix}{size}"
                        return await self.find_checkpoint(name) or StoredCheckpoint.build_unreadable(name)
        return None

    async def list_name_prefixes(self, parent: str) -> list[str]:
        async def list_prefixes() -> list[str]:
            container = self._account.open_client().get_container_client(self._notes)
            listed: AsyncIterator[Any] = container.walk_blobs(name_starts_with=f"{parent}/", delimiter="/")
            return [each.name async for each in listed if each.name.endswith("/")]

        return await _call_and_convert_azure_errors(list_prefixes)

    async def find_checkpoint(self, name: str) -> StoredCheckpoint | None:
        async def download_checkpoint() -> StoredCheckpoint | None:
            found = await self._open_checkpoint_blob(name).download_blob()
            created_at = found.properties.last_modified.astimezone(UTC)
            return StoredCheckpoint(name, await found.readall(), format_rfc3339(created_at))

        return await _call_and_convert_azure_errors(lambda: _call_or_return_none_if_blob_missing(download_checkpoint))

    async def save_working_state(self, name: str, state: bytes) -> None:
        await _call_and_convert_azure_errors(lambda: self._open_state_blob(name).upload_blob(state, overwrite=True))

    async def find_working_state(self, name: str) -> bytes | None:
        async def download_working_state() -> bytes:
            return await (await self._open_state_blob(name).download_blob()).readall()

        return await _call_and_convert_azure_errors(
            lambda: _call_or_return_none_if_blob_missing(download_working_state)
        )

    async def close(self) -> None:
        """Close the connections to the storage account."""
        await self._account.close()

    async def _list_numeric_names_descending(self, folder: str, digit_count: int, suffix: str = "") -> list[str]:
        """Return the names in a folder that consist of exactly ``digit_count`` digits, highest number first.

        Args:
            folder: path of the folder, with a slash at its end.
            digit_count: number of digits.
            suffix: ``/`` for the subfolders, empty for the blobs.
        """

        async def list_names() -> list[str]:
            container = self._account.open_client().get_container_client(self._notes)
            listed: AsyncIterator[Any] = container.walk_blobs(name_starts_with=folder, delimiter="/")
            return [each.name.removeprefix(folder) async for each in listed]

        names = [
            name.removesuffix(suffix)
            for name in await _call_and_convert_azure_errors(list_names)
            if name.endswith(suffix)
        ]
        return sorted((name for name in names if len(name) == digit_count and name.isdigit()), reverse=True)

    def _open_checkpoint_blob(self, name: str) -> BlobClient:
        prefix, _, size = name.rpartition("/")
        path = "/".join((prefix, size[:_MILLIONS], size[_MILLIONS:_THOUSANDS], size))
        return self._account.open_client().get_blob_client(self._notes, path)

    def _open_state_blob(self, name: str) -> BlobClient:
        return self._account.open_client().get_blob_client(self._states, f"{name}.state")


async def _call_or_return_none_if_blob_missing[T](request: Callable[[], Awaitable[T]]) -> T | None:
    try:
        return await request()
    except ResourceNotFoundError as error:
        if getattr(error, "error_code", None) == "BlobNotFound":  # the SDK sets it on its exceptions
            return None
        raise


async def _call_and_convert_azure_errors[T](request: Callable[[], Awaitable[T]]) -> T:
    try:
        return await request()
    except AzureError as error:
        # The error's text can contain a signed address.
        _LOG.warning("the store of checkpoints does not answer", extra=fields(error=type(error).__name__))
        detail = "The checkpoints cannot be read or written; retry later."
        raise WorkspaceError(Kind.UNAVAILABLE, "CHECKPOINTS_UNAVAILABLE", detail) from error
