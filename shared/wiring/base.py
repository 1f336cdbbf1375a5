"""Base of the wiring: settings, workspace file, and Azure accounts."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.settings import Settings, Stores

if TYPE_CHECKING:
    from shared.backends.azure.blobs import BlobAccount
    from shared.backends.azure.cosmos_account import CosmosAccount
    from shared.backends.azure.key_vault import Vault
    from shared.backends.embedded.sqlite import SqliteDatabase


class Base:
    """Settings, the file of the embedded stores, and the accounts of the Azure stores."""

    def __init__(self, configured: Settings) -> None:
        self.settings = configured

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
        return SqliteDatabase(self.settings.data_dir / "workspace.sqlite", schema)

    @cached_property
    def cosmos(self) -> "CosmosAccount":
        """Cosmos DB account of the workspace's state."""
        from shared.backends.azure.cosmos_account import CosmosAccount

        configured = self.settings
        return CosmosAccount(
            configured.cosmos_endpoint, configured.cosmos_database, client_id=configured.managed_identity_client_id
        )

    @cached_property
    def blob_account(self) -> "BlobAccount":
        """Blob Storage account of cold data, downloads and checkpoints."""
        from shared.backends.azure.blobs import BlobAccount

        return BlobAccount(self.settings.blob_endpoint, client_id=self.settings.managed_identity_client_id)

    @cached_property
    def key_vault(self) -> "Vault":
        """Key Vault of the signing keys."""
        from shared.backends.azure.key_vault import Vault

        return Vault(self.settings.key_vault_uri, client_id=self.settings.managed_identity_client_id)

    @property
    def on_azure(self) -> bool:
        """True if the stores are Azure services."""
        return self.settings.stores is Stores.AZURE
