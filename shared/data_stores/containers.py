"""Containers of databases: those of the account, and the workspace's records of them."""

import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

from shared.auth.principals import Principal
from shared.catalog.diff import ItemChange
from shared.catalog.items import ItemKind, build_container_key, to_definition
from shared.catalog.models import PARTITION_KEY_PATH, Container, DataClass, DataStore
from shared.catalog.ports import StoredCatalog
from shared.catalog.service import CatalogService
from shared.catalog.snapshot import Catalog, OwnedDatabase
from shared.data_stores.errors import container_exists
from shared.data_stores.models import AccountContainer, DatabasePlace
from shared.data_stores.ports import ContainerStore
from shared.data_stores.tables import database_not_found
from shared.errors import Kind, ValidationErrors, WorkspaceError, invalid
from shared.observability import logs

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,254}")
PATH: Final = re.compile(PARTITION_KEY_PATH)
EVIDENCE_REASON: Final = (
    "Evidence belongs in the audit chains: a container's documents can be replaced and deleted without a trace."
)
_LOG = logs.get_logger("data_stores")


@dataclass(frozen=True, slots=True)
class ContainerSummary:
    """Container of the account, record of the workspace, or both.

    Attributes:
        name: name of the container and of the record.
        partition_key_path: path of the container, else of the record.
        data_class: None without a record.
        declared: whether the workspace has a record.
        provisioned: whether the account has the container.
    """

    name: str
    partition_key_path: str
    data_class: DataClass | None
    declared: bool
    provisioned: bool


class Containers:
    """Service that lists and creates containers and removes records; creations and removals are audit events.

    Args:
        catalog: returns the current catalog.
        changes: commits changes to the catalog.
        account: containers of the accounts.
    """

    def __init__(
        self, catalog: Callable[[], Awaitable[Catalog]], changes: CatalogService, account: ContainerStore
    ) -> None:
        self._catalog = catalog
        self._changes = changes
        self._account = account

    async def list(self, database: str) -> Sequence[ContainerSummary]:
        """Return the containers of a database, and the records without a container, by name.

        Raises:
            WorkspaceError: NOT_FOUND ``DATABASE_NOT_FOUND``.
        """
        owned = await self._get_database(database)
        found = {container.name: container for container in await self._account.list(_get_place(owned))}
        names = sorted({*found, *owned.containers})
        return [_to_summary(name, found.get(name), owned.containers.get(name)) for name in names]

    async def create(self, caller: Principal, database: str, container: Container) -> ContainerSummary:
        """Create a container with its record.

        The record is stored first and removed if the account rejects the container. An interruption in between leaves a
        record without a container, which the list shows and which can be deleted.

        Raises:
            WorkspaceError: INVALID naming fields, or ``DATA_CLASS_REFUSED``; NOT_FOUND ``DATABASE_NOT_FOUND``; CONFLICT
                ``CONTAINER_EXISTS``.
        """
        faults = ValidationErrors()
        check_container(faults, container.name, container.partition_key_path, container.data_class)
        faults.raise_all()
        owned = await self._get_database(database)
        place = _get_place(owned)
        if container.name in owned.containers or await self._account.find(place, container.name) is not None:
            raise container_exists()
        key, definition = build_container_key(database, container.name), to_definition(container)

        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            if any(item.kind == ItemKind.CONTAINER and item.key == key for item in stored.items):
                raise container_exists()
            return [ItemChange(ItemKind.CONTAINER, key, None, definition)]

        await self._changes.change(decide, caller.member_id)
        created = AccountContainer(container.name, container.partition_key_path)
        try:
            await self._account.create(place, created)
        except WorkspaceError:
            await self._try_remove(caller, key)
            raise
        return _to_summary(container.name, created, container)

    async def delete(self, caller: Principal, database: str, name: str) -> None:
        """Remove the record of a container that the account does not have.

        Raises:
            WorkspaceError: NOT_FOUND ``DATABASE_NOT_FOUND`` or ``CONTAINER_NOT_FOUND``; CONFLICT
                ``CONTAINER_PROVISIONED`` or ``CONTAINER_NOT_DECLARED``.
        """
        owned = await self._get_database(database)
        declared = name in owned.containers
        if await self._account.find(_get_place(owned), name) is not None:
            raise _provisioned(owned, name) if declared else _not_declared(owned, name)
        await self._remove_record(caller, build_container_key(database, name))

    async def _try_remove(self, caller: Principal, key: str) -> None:
        try:
            await self._remove_record(caller, key)
        except WorkspaceError:
            _LOG.exception(
                "the record of a container that was not created could not be removed", extra=logs.fields(container=key)
            )

    async def _remove_record(self, caller: Principal, key: str) -> None:
        def decide(stored: StoredCatalog) -> Sequence[ItemChange]:
            records = [item for item in stored.items if item.kind == ItemKind.CONTAINER and item.key == key]
            if not records:
                detail = "The database has neither a container nor a record of this name."
                raise WorkspaceError(Kind.NOT_FOUND, "CONTAINER_NOT_FOUND", detail)
            return [ItemChange(ItemKind.CONTAINER, key, records[0].definition, None)]

        await self._changes.change(decide, caller.member_id)

    async def _get_database(self, lookup: str) -> OwnedDatabase:
        catalog = await self._catalog()
        owned = catalog.find_database(lookup)
        if owned is None:
            store = catalog.data_stores.get(lookup)
            raise database_not_found() if store is None else _store_instead_of_database(store.value)
        return owned


def _store_instead_of_database(store: DataStore) -> WorkspaceError:
    """Return the error for the lookup of a data store in place of a database's lookup."""
    databases = sorted(database.lookup for database in store.databases)
    detail = f"`{store.lookup}` is a data store; this route requires the lookup of a database. "
    detail += f"Its databases: {', '.join(databases)}." if databases else "It has no databases."
    return WorkspaceError(Kind.NOT_FOUND, "DATABASE_NOT_FOUND", detail, databases=databases)


def _get_place(owned: OwnedDatabase) -> DatabasePlace:
    return DatabasePlace(owned.store, owned.database.lookup)


def _to_summary(name: str, found: AccountContainer | None, record: Container | None) -> ContainerSummary:
    partition_key_path = found.partition_key_path if found else record.partition_key_path if record else ""
    data_class = None if record is None else record.data_class
    return ContainerSummary(
        name, partition_key_path, data_class, declared=record is not None, provisioned=found is not None
    )


def check_container(faults: ValidationErrors, name: str, partition_key_path: str, data_class: DataClass) -> None:
    """Add the violations of a new container; evidence is rejected with ``DATA_CLASS_REFUSED`` and ``reason``."""
    if faults.has_valid("name") and not NAME.fullmatch(name):
        rule = "must be 2 to 255 letters, digits, _ and -, beginning with a letter or digit"
        faults.add(invalid("name", rule))
    if faults.has_valid("partitionKeyPath") and not PATH.fullmatch(partition_key_path):
        rule = "must be a path such as /line or /plant/line, of letters, digits, _, . and -"
        faults.add(invalid("partitionKeyPath", rule))
    if faults.has_valid("dataClass") and data_class is DataClass.EVIDENCE:
        rejection = WorkspaceError(
            Kind.INVALID,
            "DATA_CLASS_REFUSED",
            EVIDENCE_REASON,
            errors=[{"field": "dataClass", "message": EVIDENCE_REASON}],
            reason=EVIDENCE_REASON,
        )
        faults.add(rejection)


def _provisioned(owned: OwnedDatabase, name: str) -> WorkspaceError:
    detail = (
        f"Container {name} exists in database {owned.database.lookup} of store {owned.store}. Delete it in the Azure "
        "portal (the account's Data Explorer) first, then its record here."
    )
    return WorkspaceError(Kind.CONFLICT, "CONTAINER_PROVISIONED", detail)


def _not_declared(owned: OwnedDatabase, name: str) -> WorkspaceError:
    detail = (
        f"Container {name} exists in database {owned.database.lookup} of store {owned.store}, but the workspace has no "
        "record of it to remove. Delete it in the Azure portal (the account's Data Explorer)."
    )
    return WorkspaceError(Kind.CONFLICT, "CONTAINER_NOT_DECLARED", detail)
