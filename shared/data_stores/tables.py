"""Resolution of URLs to tables (Cosmos DB containers that the API exposes).

If several errors apply, the first one in the documented order is raised.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared.catalog.models import Container, DatabaseAccess, Verb
from shared.catalog.snapshot import Catalog, OwnedDatabase
from shared.data_stores.errors import build_data_plane_forbidden_error, build_table_not_found_error
from shared.data_stores.models import AccountContainer, DatabaseAddress, Table
from shared.data_stores.ports import ContainerStore
from shared.errors import Kind, WorkspaceError


@dataclass(frozen=True, slots=True)
class TableAddress:
    """Parts of a URL path that identify a table: lookups (ids) of data store and database, and name of the table."""

    store: str
    database: str
    table: str


@dataclass(frozen=True, slots=True)
class ExposedTable:
    """Table that exposes the requested operation.

    Attributes:
        table: container with its database.
        granted: True if the Cosmos DB account grants the service access to documents.
    """

    table: Table
    granted: bool

    @property
    def partition_key_path(self) -> str:
        """Partition key path of the table, such as ``/line``."""
        return self.table.container.partition_key_path

    def require_document_access(self) -> None:
        """Require that the Cosmos DB account grants the service access to documents.

        Raises:
            WorkspaceError: FORBIDDEN ``DATA_PLANE_FORBIDDEN``.
        """
        if not self.granted:
            raise build_data_plane_forbidden_error()


def build_database_not_found_error(database_lookup: str) -> WorkspaceError:
    """Build the error for a URL that names an unknown database."""
    detail = f"No database of the workspace has the lookup {database_lookup[:64]!r} (short name in URLs)."
    return WorkspaceError(Kind.NOT_FOUND, "DATABASE_NOT_FOUND", detail)


class TableFinder:
    """Finds the table (exposed container) that a URL names.

    Args:
        catalog: function that returns the current workspace catalog.
        containers: gives access to the containers in the Cosmos DB accounts.
    """

    def __init__(self, catalog: Callable[[], Awaitable[Catalog]], containers: ContainerStore) -> None:
        self._catalog = catalog
        self._containers = containers

    async def require_exposed_table(self, address: TableAddress, verb: Verb) -> ExposedTable:
        """Return the table that a URL names, if the table exposes an operation.

        Raises:
            WorkspaceError: the first of these errors that applies: NOT_FOUND ``DATABASE_NOT_FOUND``,
                ``DATABASE_NOT_IN_STORE`` if another data store has the database, ``TABLE_NOT_FOUND`` if the container
                does not exist, ``TABLE_NOT_EXPOSED`` if the API exposes no operation on it; FORBIDDEN
                ``OPERATION_NOT_EXPOSED`` if the API exposes other operations on it.
        """
        owned = (await self._catalog()).find_database(address.database)
        if owned is None:
            raise build_database_not_found_error(address.database)
        if owned.store != address.store:
            detail = "The database belongs to a different data store than the path states."
            raise WorkspaceError(Kind.NOT_FOUND, "DATABASE_NOT_IN_STORE", detail)
        record = await self._require_container_record(owned, address.table)
        if not record.expose:
            raise _build_not_exposed_error()
        if verb not in record.expose:
            detail = f"The table does not expose the operation {verb}."
            raise WorkspaceError(Kind.FORBIDDEN, "OPERATION_NOT_EXPOSED", detail, exposed=sorted(record.expose))
        container = AccountContainer(record.name, record.partition_key_path)
        table = Table(DatabaseAddress(owned.store, owned.database.lookup), container)
        return ExposedTable(table, owned.database.access is DatabaseAccess.GRANTED)

    async def _require_container_record(self, owned: OwnedDatabase, container_name: str) -> Container:
        """Return the catalog record of a container, after a check that the container exists.

        The account is queried for the container unless the record states that it exists.

        Raises:
            WorkspaceError: NOT_FOUND ``TABLE_NOT_FOUND`` if the container does not exist, or ``TABLE_NOT_EXPOSED`` if
                it has no record.
        """
        record = owned.containers.get(container_name)
        if record is not None and record.provisioned:
            return record
        place = DatabaseAddress(owned.store, owned.database.lookup)
        if await self._containers.find_container(place, container_name) is None:
            raise build_table_not_found_error()
        if record is None:
            raise _build_not_exposed_error()
        return record


def _build_not_exposed_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.NOT_FOUND, "TABLE_NOT_EXPOSED", "The container exposes no operation; add `expose` to its declaration."
    )
