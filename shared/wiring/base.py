"""Base of the wiring: settings, workspace file, and Azure accounts."""

from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from shared.errors import Kind, WorkspaceError
from shared.settings import Settings, Stores

if TYPE_CHECKING:
    from shared.backends.azure.blobs import BlobAccount
    from shared.backends.azure.cosmos_account import CosmosAccount
    from shared.backends.azure.key_vault import Vault
    from shared.backends.embedded.sqlite import SqliteDatabase
    from shared.catalog.ports import CatalogStore
    from shared.catalog.reader import CatalogReader


class Closeable(Protocol):
    """Resource that must be closed."""

    async def close(self) -> None:
        """Release connections and files."""
        ...


class Base:
    """Settings, the file of the embedded stores, and the accounts of the Azure stores."""

    def __init__(self, configured: Settings) -> None:
        self.settings = configured
        self._resources = AsyncExitStack()

    def close_at_exit[Resource: Closeable](self, resource: Resource) -> Resource:
        """Return a resource that is closed before all resources created earlier, which it may use."""
        self._resources.push_async_callback(resource.close)
        return resource

    @cached_property
    def _workspace_file(self) -> "SqliteDatabase":
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

    @property
    def on_azure(self) -> bool:
        """True if the stores are Azure services."""
        return self.settings.stores is Stores.AZURE


MAX_STALE_CREDENTIALS_SECONDS = 15.0
"""Maximum age of credentials and team if the store does not answer; revocations take effect within this time."""


class CatalogServices(Base):
    """Reads the catalog."""

    @cached_property
    def catalog_store(self) -> "CatalogStore":
        """Store of the catalog."""
        if self.on_azure:
            from shared.backends.azure.cosmos_catalog import CosmosCatalogStore

            return CosmosCatalogStore(self.cosmos)
        from shared.backends.embedded.catalog import SqliteCatalogStore

        return SqliteCatalogStore(self._workspace_file)

    @cached_property
    def catalog(self) -> "CatalogReader":
        """Cached catalog of this process."""
        from shared.catalog.reader import CatalogReader

        return CatalogReader(
            self.catalog_store, self.settings.refresh_seconds, max_stale_seconds=MAX_STALE_CREDENTIALS_SECONDS
        )

    async def _workspace_id(self) -> str:
        workspace = (await self.catalog.current()).workspace
        if workspace is None:
            raise WorkspaceError(
                Kind.UNAVAILABLE, "WORKSPACE_NOT_DECLARED", "No workspace document has been applied yet."
            )
        return workspace.id
