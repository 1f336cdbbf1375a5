"""Resolution of table addresses, with the errors in their documented order."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from shared.catalog.models import Container, DatabaseAccess, Verb
from shared.catalog.snapshot import Catalog, OwnedDatabase
from shared.data_stores.errors import data_plane_forbidden, table_not_found
from shared.data_stores.models import AccountContainer, DatabasePlace, Table
from shared.data_stores.ports import ContainerStore
from shared.errors import Kind, WorkspaceError


@dataclass(frozen=True, slots=True)
class TableAddress:
    """Store, database and table of a URL path."""

    store: str
    database: str
    table: str


@dataclass(frozen=True, slots=True)
class ExposedTable:
    """Table that exposes the requested operation.

    Attributes:
        table: the table.
        granted: whether the account grants access to its documents.
    """

    table: Table
    granted: bool

    @property
    def path(self) -> str:
        """Partition key path."""
        return self.table.container.partition_key_path

    def check_granted(self) -> None:
        """Check that the account grants access to documents.

        Raises:
            WorkspaceError: FORBIDDEN ``DATA_PLANE_FORBIDDEN``.
        """
        if not self.granted:
            raise data_plane_forbidden()


def database_not_found() -> WorkspaceError:
    """Return the error for an unknown database."""
    return WorkspaceError(Kind.NOT_FOUND, "DATABASE_NOT_FOUND", "No database has this lookup.")


class TableFinder:
    """Finder of tables by address.

    Args:
        catalog: returns the current catalog.
        containers: containers of the accounts.
    """

    def __init__(self, catalog: Callable[[], Awaitable[Catalog]], containers: ContainerStore) -> None:
        self._catalog = catalog
        self._containers = containers

    async def find_exposed(self, address: TableAddress, verb: Verb) -> ExposedTable:
        """Return the table of an address, for one operation.

        Raises:
            WorkspaceError: the first that applies of NOT_FOUND ``DATABASE_NOT_FOUND``, ``DATABASE_NOT_IN_STORE``,
                ``TABLE_NOT_FOUND``, ``TABLE_NOT_EXPOSED``, and FORBIDDEN ``OPERATION_NOT_EXPOSED``.
        """
        owned = (await self._catalog()).find_database(address.database)
        if owned is None:
            raise database_not_found()
        if owned.store != address.store:
            detail = "The database is not in this store."
            raise WorkspaceError(Kind.NOT_FOUND, "DATABASE_NOT_IN_STORE", detail)
        record = await self._find_record(owned, address.table)
        if not record.expose:
            raise _not_exposed()
        if verb not in record.expose:
            detail = f"The table does not expose the operation {verb}."
            raise WorkspaceError(Kind.FORBIDDEN, "OPERATION_NOT_EXPOSED", detail, exposed=sorted(record.expose))
        container = AccountContainer(record.name, record.partition_key_path)
        table = Table(DatabasePlace(owned.store, owned.database.lookup), container)
        return ExposedTable(table, owned.database.access is DatabaseAccess.GRANTED)

    async def _find_record(self, owned: OwnedDatabase, name: str) -> Container:
        """Return a container's record; query the account if the record is missing or not provisioned.

        Raises:
            WorkspaceError: NOT_FOUND ``TABLE_NOT_FOUND`` or ``TABLE_NOT_EXPOSED``.
        """
        record = owned.containers.get(name)
        if record is not None and record.provisioned:
            return record
        place = DatabasePlace(owned.store, owned.database.lookup)
        if await self._containers.find(place, name) is None:
            raise table_not_found()
        if record is None:
            raise _not_exposed()
        return record


def _not_exposed() -> WorkspaceError:
    return WorkspaceError(Kind.NOT_FOUND, "TABLE_NOT_EXPOSED", "The container exposes no operation.")
