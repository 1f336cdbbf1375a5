"""Services for the workspace's document stores (containers and JSON documents), and for workspace documents.

A workspace document declares everything in a workspace, including the containers of its document stores.
"""

from collections.abc import Collection, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.backends.azure.cosmos_data_accounts import DataAccounts
    from shared.backends.azure.cosmos_data_containers import CosmosContainerStore
    from shared.backends.embedded.documents import DocumentFile
    from shared.catalog.document_service import DocumentService
    from shared.data_stores.containers import Containers
    from shared.data_stores.continuation import ContinuationTokens
    from shared.data_stores.documents import Documents
    from shared.data_stores.models import AccountContainer, DatabaseAddress
    from shared.data_stores.ports import ContainerStore, DocumentStore


class DataStoreServices:
    """Provides access to the workspace's document stores: accounts with JSON documents of the users."""

    def __init__(self, backends: Backends, catalog: CatalogServices, provenance: ProvenanceServices) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._provenance = provenance

    @cached_property
    def containers(self) -> "Containers":
        """Service that lists, creates and removes containers."""
        from shared.data_stores.containers import Containers

        return Containers(self._catalog.reader.get_catalog, self._provenance.catalog_service, self.container_store)

    @cached_property
    def documents(self) -> "Documents":
        """Service that reads and writes documents."""
        from shared.data_stores.documents import Documents
        from shared.data_stores.tables import TableFinder

        tables = TableFinder(self._catalog.reader.get_catalog, self.container_store)
        return Documents(tables, self.document_store, self._continuation_tokens, runtime=self._backends.runtime)

    @cached_property
    def container_store(self) -> "ContainerStore":
        """Store of the containers in the document-store accounts."""
        if self._backends.uses_azure:
            return self._cosmos_containers
        from shared.backends.embedded.documents import SqliteContainerStore

        return SqliteContainerStore(self._document_file, self._list_declared_containers)

    @cached_property
    def document_store(self) -> "DocumentStore":
        """Store of the JSON documents in tables; a table is a Cosmos DB container that the API exposes."""
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_documents import CosmosDocumentStore

            return CosmosDocumentStore(self._data_accounts)
        from shared.backends.embedded.documents import SqliteDocumentStore

        return SqliteDocumentStore(self._document_file)

    @cached_property
    def _cosmos_containers(self) -> "CosmosContainerStore":
        from shared.backends.azure.cosmos_data_containers import CosmosContainerStore

        return self._backends.register_for_closing(CosmosContainerStore(self._data_accounts))

    @cached_property
    def _data_accounts(self) -> "DataAccounts":
        from shared.backends.azure.cosmos_data_accounts import DataAccounts, parse_data_accounts_by_store

        configured = self._settings
        accounts = parse_data_accounts_by_store(configured.data_store_accounts, configured.data_store_dns_suffix)
        return self._backends.register_for_closing(
            DataAccounts(accounts, client_id=configured.managed_identity_client_id, runtime=self._backends.runtime)
        )

    @cached_property
    def _document_file(self) -> "DocumentFile":
        from shared.backends.embedded.documents import DocumentFile

        return self._backends.register_for_closing(
            DocumentFile(self._settings.data_dir, runtime=self._backends.runtime)
        )

    @cached_property
    def _continuation_tokens(self) -> "ContinuationTokens":
        from shared.data_stores.continuation import ContinuationTokens, build_signing_key_function

        if self._backends.uses_azure:
            return ContinuationTokens(build_signing_key_function(self._settings.continuation_secret))
        from shared.backends.embedded.key_files import FileSecret

        return ContinuationTokens(
            FileSecret(
                self._settings.data_dir / "continuation-key", "STORE_NOT_AVAILABLE", runtime=self._backends.runtime
            )
        )

    async def _list_declared_containers(self, database_address: "DatabaseAddress") -> "Iterable[AccountContainer]":
        from shared.data_stores.models import AccountContainer

        owned = (await self._catalog.get_current_catalog()).find_database(database_address.database)
        records = owned.containers.values() if owned is not None and owned.store == database_address.store else ()
        return [AccountContainer(one.name, one.partition_key_path) for one in records if one.provisioned]


class WorkspaceDocumentServices:
    """Exports, plans and applies workspace documents; a plan depends on the containers that exist in the accounts."""

    def __init__(self, backends: Backends, provenance: ProvenanceServices, data_stores: DataStoreServices) -> None:
        self._backends = backends
        self._provenance = provenance
        self._data_stores = data_stores

    @cached_property
    def documents(self) -> "DocumentService":
        """Service that exports the workspace document, and plans and applies documents that callers send."""
        from shared.catalog.document_service import DocumentService

        return DocumentService(
            self._provenance.catalog_service, self._list_container_names, runtime=self._backends.runtime
        )

    async def _list_container_names(self, store_lookup: str, database_lookup: str) -> Collection[str]:
        from shared.data_stores.models import DatabaseAddress

        found = await self._data_stores.container_store.list(DatabaseAddress(store_lookup, database_lookup))
        return [container.name for container in found]
