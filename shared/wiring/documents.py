"""Data stores: containers and documents."""

from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from shared.data_stores.containers import Containers
from shared.data_stores.continuation import Continuations
from shared.data_stores.documents import Documents
from shared.data_stores.models import AccountContainer, DatabasePlace
from shared.data_stores.ports import ContainerStore, DocumentStore
from shared.data_stores.tables import Tables
from shared.wiring.provenance import ProvenanceServices

if TYPE_CHECKING:
    from shared.backends.embedded.documents import AccountFile


class DocumentServices(ProvenanceServices):
    """Reaches the workspace's document-store accounts."""

    @cached_property
    def containers(self) -> Containers:
        """Lists, creates and forgets containers."""
        return Containers(self.catalog.current, self.catalog_service, self.container_store)

    @cached_property
    def documents(self) -> Documents:
        """Reads and writes documents."""
        tables = Tables(self.catalog.current, self.container_store)
        return Documents(tables, self.document_store, self._continuations)

    @cached_property
    def container_store(self) -> ContainerStore:
        """What accounts have."""
        self._embedded("data stores")
        from shared.backends.embedded.documents import SqliteContainerStore  # noqa: PLC0415

        return SqliteContainerStore(self._account_file, self._declared_containers)

    @cached_property
    def document_store(self) -> DocumentStore:
        """Keeps documents."""
        self._embedded("data stores")
        from shared.backends.embedded.documents import SqliteDocumentStore  # noqa: PLC0415

        return SqliteDocumentStore(self._account_file)

    @cached_property
    def _account_file(self) -> "AccountFile":
        from shared.backends.embedded.documents import AccountFile  # noqa: PLC0415

        return AccountFile(self.settings.data_dir)

    @cached_property
    def _continuations(self) -> Continuations:
        from shared.backends.embedded.secret_key import FileSecret  # noqa: PLC0415

        return Continuations(FileSecret(self.settings.data_dir / "continuation-key"))

    async def _declared_containers(self, place: DatabasePlace) -> Iterable[AccountContainer]:
        owned = (await self.catalog.current()).find_database(place.database)
        records = owned.containers.values() if owned is not None and owned.store == place.store else ()
        return [AccountContainer(one.name, one.partition_key_path) for one in records if one.provisioned]
