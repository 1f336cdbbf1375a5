"""Services for workspace documents, which declare everything in a workspace."""

from collections.abc import Collection
from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.backends import Backends
from shared.wiring.data_stores import DataStoreServices
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.catalog.document_service import DocumentService


class WorkspaceDocumentServices:
    """Exports and applies workspace documents: to the catalog, and to the containers of document stores."""

    def __init__(self, backends: Backends, provenance: ProvenanceServices, data_stores: DataStoreServices) -> None:
        self._backends = backends
        self._provenance = provenance
        self._data_stores = data_stores

    @cached_property
    def documents(self) -> "DocumentService":
        """Service that exports, plans and applies the workspace documents of API requests."""
        from shared.catalog.document_service import DocumentService

        return DocumentService(self._provenance.catalog_service, self._list_containers, runtime=self._backends.runtime)

    async def _list_containers(self, store: str, database: str) -> Collection[str]:
        from shared.data_stores.models import DatabasePlace

        found = await self._data_stores.container_store.list(DatabasePlace(store, database))
        return [container.name for container in found]
