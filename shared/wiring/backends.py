"""Backends of the stores: local files of the embedded stores, or accounts of the Azure services."""

from contextlib import AsyncExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from shared.runtime import Runtime
from shared.settings import Settings, Stores

if TYPE_CHECKING:
    from shared.backends.azure.blobs import BlobAccount
    from shared.backends.azure.cosmos_account import CosmosAccount
    from shared.backends.azure.key_vault import Vault
    from shared.backends.embedded.sqlite import SqliteDatabase
    from shared.background.ports import JobLeaseStore
    from shared.cold_data.ports import BlobStore
    from shared.disk_space.guard import DiskGuard
    from shared.disk_space.ports import Disk


class Closeable(Protocol):
    """Resource that must be closed."""

    async def close(self) -> None:
        """Close the connections and files of the resource."""
        ...


class Backends:
    """Opens files and accounts on first use, and closes every resource of the services.

    Args:
        settings: settings of the app.
        runtime: clock, randomness and threads of all services.
    """

    def __init__(self, settings: Settings, runtime: Runtime) -> None:
        self.settings = settings
        self.runtime = runtime
        self._resources = AsyncExitStack()

    def register_for_closing[Resource: Closeable](self, resource: Resource) -> Resource:
        """Register a resource that :meth:`close` will close, and return the resource."""
        self._resources.push_async_callback(resource.close)
        return resource

    async def close(self) -> None:
        """Close all resources in reverse order of creation, because later resources can use earlier ones."""
        await self._resources.aclose()

    @property
    def uses_azure(self) -> bool:
        """True if the stores are Azure services."""
        return self.settings.stores is Stores.AZURE

    @cached_property
    def workspace_file(self) -> "SqliteDatabase":
        """SQLite file of the workspace's state."""
        from shared.backends.embedded import (
            alerts,
            catalog,
            credentials,
            grants,
            idempotency,
            jobs,
            quotas,
            signatures,
            webhooks,
        )
        from shared.backends.embedded.sqlite import SqliteDatabase

        stores = (catalog, credentials, grants, idempotency, jobs, quotas, webhooks, alerts)
        schema = "".join(store.SCHEMA for store in (*stores, signatures))
        return self.register_for_closing(
            SqliteDatabase(self.settings.data_dir / "workspace.sqlite", schema, runtime=self.runtime)
        )

    @cached_property
    def limits_file(self) -> "SqliteDatabase":
        """SQLite file of the rate limits and of the quotas of open streams."""
        from shared.backends.embedded import quotas
        from shared.backends.embedded.rate_limits import SCHEMA, TIMEOUT_SECONDS
        from shared.backends.embedded.sqlite import SqliteDatabase

        path = self.settings.data_dir / "rate-limits.sqlite"
        return self.register_for_closing(
            SqliteDatabase(path, SCHEMA + quotas.SCHEMA, write_seconds=TIMEOUT_SECONDS, runtime=self.runtime)
        )

    @cached_property
    def cosmos(self) -> "CosmosAccount":
        """Cosmos DB account with the workspace's state."""
        from shared.backends.azure.cosmos_account import CosmosAccount

        configured = self.settings
        return self.register_for_closing(
            CosmosAccount(
                configured.cosmos_endpoint,
                configured.cosmos_database,
                client_id=configured.managed_identity_client_id,
                runtime=self.runtime,
            )
        )

    @cached_property
    def blob_account(self) -> "BlobAccount":
        """Azure Storage account with the telemetry archive, downloads and checkpoints of audit chains."""
        from shared.backends.azure.blobs import BlobAccount

        return self.register_for_closing(
            BlobAccount(
                self.settings.blob_endpoint, client_id=self.settings.managed_identity_client_id, runtime=self.runtime
            )
        )

    @cached_property
    def key_vault(self) -> "Vault":
        """Azure Key Vault with the keys that sign tokens and checkpoints."""
        from shared.backends.azure.key_vault import Vault

        return self.register_for_closing(
            Vault(self.settings.key_vault_uri, client_id=self.settings.managed_identity_client_id)
        )

    @cached_property
    def disk(self) -> "Disk":
        """Disk that contains the stores."""
        if self.uses_azure:
            from shared.disk_space.guard import UnlimitedDisk

            return UnlimitedDisk()
        from shared.backends.embedded.disk import FolderDisk

        return FolderDisk(self.settings.data_dir, runtime=self.runtime)

    @cached_property
    def disk_guard(self) -> "DiskGuard":
        """Guard that rejects new data before the disk is full."""
        from shared.disk_space.guard import DiskGuard

        megabytes = self.settings.disk_reserve_mb
        return DiskGuard(self.disk, None if megabytes is None else megabytes * 1_000_000, runtime=self.runtime)

    @cached_property
    def job_leases(self) -> "JobLeaseStore":
        """Store of the leases of background jobs."""
        if self.uses_azure:
            from shared.backends.azure.cosmos_jobs import CosmosJobLeaseStore

            return CosmosJobLeaseStore(self.cosmos)
        from shared.backends.embedded.jobs import SqliteJobLeaseStore

        return SqliteJobLeaseStore(self.workspace_file)

    def build_blob_store(self, container: str) -> "BlobStore":
        """Build the store of one blob container; the caller closes the store."""
        from shared.cold_data.observed_blobs import ObservedBlobs

        return ObservedBlobs(self._build_untraced_blob_store(container), container)

    def _build_untraced_blob_store(self, container: str) -> "BlobStore":
        if self.uses_azure:
            from shared.backends.azure.blobs import AzureBlobStore

            return AzureBlobStore(self.blob_account, container)
        from shared.backends.embedded.blobs import FolderBlobStore
        from shared.backends.embedded.file_links import FileLinks

        folder = self.settings.data_dir
        links = FileLinks(self.settings.files_url, folder / "files-key", runtime=self.runtime)
        return FolderBlobStore(folder / "blobs" / container, links, runtime=self.runtime)
