"""Backends of the stores: files of the embedded stores, and accounts of the Azure stores."""

from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from shared.settings import Settings, Stores

if TYPE_CHECKING:
    from shared.backends.azure.blobs import BlobAccount
    from shared.backends.azure.cosmos_account import CosmosAccount
    from shared.backends.azure.key_vault import Vault
    from shared.backends.embedded.sqlite import SqliteDatabase
    from shared.cold_data.ports import BlobStore


class Closeable(Protocol):
    """Resource that must be closed."""

    async def close(self) -> None:
        """Release connections and files."""
        ...


class Backends:
    """Opens files and accounts on first use, and closes every resource of the services.

    Args:
        settings: settings of the app.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._resources = AsyncExitStack()

    def close_at_exit[Resource: Closeable](self, resource: Resource) -> Resource:
        """Return a resource that is closed before all resources created earlier, which it may use."""
        self._resources.push_async_callback(resource.close)
        return resource

    async def close(self) -> None:
        """Close all created resources in reverse order."""
        await self._resources.aclose()

    @property
    def on_azure(self) -> bool:
        """True if the stores are Azure services."""
        return self.settings.stores is Stores.AZURE

    @cached_property
    def workspace_file(self) -> "SqliteDatabase":
        """File of the workspace's state."""
        from shared.backends.embedded import (
            catalog,
            credentials,
            download_jobs,
            idempotency,
            job_leases,
            places,
        )
        from shared.backends.embedded.sqlite import SqliteDatabase

        stores = (catalog, credentials, idempotency, download_jobs, job_leases, places)
        schema = "".join(store.SCHEMA for store in stores)
        return self.close_at_exit(SqliteDatabase(self.settings.data_dir / "workspace.sqlite", schema))

    @cached_property
    def limits_file(self) -> "SqliteDatabase":
        """File of rate limits and stream places."""
        from shared.backends.embedded import places
        from shared.backends.embedded.rate_limits import SCHEMA, TIMEOUT_SECONDS
        from shared.backends.embedded.sqlite import SqliteDatabase

        path = self.settings.data_dir / "rate-limits.sqlite"
        return self.close_at_exit(SqliteDatabase(path, SCHEMA + places.SCHEMA, write_seconds=TIMEOUT_SECONDS))

    @cached_property
    def cosmos(self) -> "CosmosAccount":
        """Cosmos DB account of the workspace's state."""
        from shared.backends.azure.cosmos_account import CosmosAccount

        configured = self.settings
        return self.close_at_exit(
            CosmosAccount(
                configured.cosmos_endpoint, configured.cosmos_database, client_id=configured.managed_identity_client_id
            )
        )

    @cached_property
    def blob_account(self) -> "BlobAccount":
        """Blob Storage account of cold data, downloads and checkpoints."""
        from shared.backends.azure.blobs import BlobAccount

        return self.close_at_exit(
            BlobAccount(self.settings.blob_endpoint, client_id=self.settings.managed_identity_client_id)
        )

    @cached_property
    def key_vault(self) -> "Vault":
        """Key Vault of the signing keys."""
        from shared.backends.azure.key_vault import Vault

        return self.close_at_exit(
            Vault(self.settings.key_vault_uri, client_id=self.settings.managed_identity_client_id)
        )

    def build_blob_store(self, container: str) -> "BlobStore":
        """Return the store of a container; the caller closes it."""
        from shared.cold_data.observed_blobs import ObservedBlobs

        return ObservedBlobs(self._build_unobserved_store(container), container)

    def _build_unobserved_store(self, container: str) -> "BlobStore":
        if self.on_azure:
            from shared.backends.azure.blobs import AzureBlobStore

            return AzureBlobStore(self.blob_account, container)
        from shared.backends.embedded.blobs import FolderBlobStore
        from shared.backends.embedded.file_links import FileLinks

        folder = self.settings.data_dir
        links = FileLinks(self.settings.files_url, folder / "files-key")
        return FolderBlobStore(folder / "blobs" / container, links)
