"""Cosmos DB containers: those that exist in the account, and those that the workspace catalog declares (records)."""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from shared.auth.principals import Principal
from shared.catalog.container_rules import DATA_CLASS_REFUSED, EVIDENCE_REASON, is_data_class_changed_to_evidence
from shared.catalog.diff import ItemChange, get_database_lookups
from shared.catalog.etags import compute_definition_etag
from shared.catalog.items import ItemKind, build_container_key, to_definition
from shared.catalog.models import PARTITION_KEY_PATH, Container, DataClass, DataStore, Verb
from shared.catalog.ports import StoredCatalog
from shared.catalog.service import CatalogService
from shared.catalog.snapshot import Catalog, OwnedDatabase
from shared.conditional_requests import UNCONDITIONAL, Condition, build_item_missing_error
from shared.data_stores.errors import CONTAINER_OUTCOME_UNKNOWN, build_container_exists_error
from shared.data_stores.models import AccountContainer, DatabaseAddress
from shared.data_stores.ports import ContainerStore
from shared.data_stores.tables import build_database_not_found_error
from shared.errors import Kind, ValidationErrors, WorkspaceError, build_invalid_field_error
from shared.observability import logs

NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{1,254}")
PATH: Final = re.compile(PARTITION_KEY_PATH)
_LOG = logs.get_logger("data_stores")


@dataclass(frozen=True, slots=True)
class ContainerSummary:
    """Container that exists in the Cosmos DB account, has a record in the workspace catalog, or both.

    Attributes:
        name: name of the container and of the record.
        partition_key_path: partition key path of the container, or of the record if the container does not exist.
        data_class: data class, such as ``operational``; None without a record.
        declared: True if the workspace catalog has a record.
        provisioned: True if the container exists in the account.
    """

    name: str
    partition_key_path: str
    data_class: DataClass | None
    declared: bool
    provisioned: bool


@dataclass(frozen=True, slots=True)
class ContainerChange:
    """Requested change of a container's record in the catalog; attributes that are None stay unchanged.

    Attributes:
        data_class: new class of the data.
        expose: document operations that the API offers on the container.
        partition_key_path: must equal the current path, which cannot change.
    """

    data_class: DataClass | None = None
    expose: frozenset[Verb] | None = None
    partition_key_path: str | None = None


class Containers:
    """Service that lists and creates Cosmos DB containers and removes their catalog records, with audit events.

    Args:
        catalog: function that returns the current workspace catalog.
        changes: commits changes to the catalog.
        account: gives access to the containers in the Cosmos DB accounts.
    """

    def __init__(
        self, catalog: Callable[[], Awaitable[Catalog]], changes: CatalogService, account: ContainerStore
    ) -> None:
        self._catalog = catalog
        self._changes = changes
        self._account = account

    async def list(self, database_lookup: str) -> Sequence[ContainerSummary]:
        """Return the containers of a database, and the catalog records without a container, sorted by name.

        Raises:
            WorkspaceError: NOT_FOUND ``DATABASE_NOT_FOUND``.
        """
        owned = await self._get_database(database_lookup)
        found = {container.name: container for container in await self._account.list(_get_database_address(owned))}
        names = sorted({*found, *owned.containers})
        return [_build_container_summary(name, found.get(name), owned.containers.get(name)) for name in names]

    async def create(self, caller: Principal, database_lookup: str, container: Container) -> ContainerSummary:
        """Create a container in the Cosmos DB account, and its record in the workspace catalog.

        The record is stored first, and is removed if the account rejects the container. If the account has possibly
        created the container, the record stays, because this service cannot add a record to an existing container. A
        record without a container can therefore remain, also after a crash. It is listed and can be deleted.

        Raises:
            WorkspaceError: INVALID naming the invalid fields, with the code ``DATA_CLASS_REFUSED`` for the data class
                ``evidence``; NOT_FOUND ``DATABASE_NOT_FOUND``; CONFLICT ``CONTAINER_EXISTS`` if a container or a record
                has this name; UNAVAILABLE ``CONTAINER_OUTCOME_UNKNOWN`` if the account has possibly created the
                container.
        """
        faults = ValidationErrors()
        check_new_container(faults, container.name, container.partition_key_path, container.data_class)
        faults.raise_all()
        owned = await self._get_database(database_lookup)
        place = _get_database_address(owned)
        if container.name in owned.containers or await self._account.find_container(place, container.name) is not None:
            raise build_container_exists_error()
        key, definition = build_container_key(database_lookup, container.name), to_definition(container)

        def build_creation_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            # A workspace document may have removed the database since the catalog was read.
            if not _has_database(stored, place):
                raise build_database_not_found_error(database_lookup)
            if any(item.kind == ItemKind.CONTAINER and item.key == key for item in stored.items):
                raise build_container_exists_error()
            return [ItemChange(ItemKind.CONTAINER, key, None, definition)]

        await self._changes.commit_api_changes(build_creation_changes, caller.member_id)
        created = AccountContainer(container.name, container.partition_key_path)
        try:
            await self._account.create_container(place, created)
        except WorkspaceError as error:
            if error.code != CONTAINER_OUTCOME_UNKNOWN:
                await self._try_remove_record_after_failed_creation(caller, key)
            raise
        return _build_container_summary(container.name, created, container)

    async def delete_container_record(
        self, caller: Principal, database_lookup: str, container_name: str, condition: Condition = UNCONDITIONAL
    ) -> None:
        """Remove the catalog record of a container that no longer exists in the Cosmos DB account.

        Raises:
            WorkspaceError: NOT_FOUND ``DATABASE_NOT_FOUND``. If the container still exists in the account: CONFLICT
                ``CONTAINER_PROVISIONED``, or ``CONTAINER_NOT_DECLARED`` if the catalog has no record of it. If neither
                container nor record exists: PRECONDITION_FAILED for a request with If-Match, else NOT_FOUND
                ``CONTAINER_NOT_FOUND``. PRECONDITION_FAILED if the record does not satisfy the condition.
        """
        owned = await self._get_database(database_lookup)
        declared = container_name in owned.containers
        if await self._account.find_container(_get_database_address(owned), container_name) is not None:
            raise (
                _build_container_still_exists_error(owned, container_name)
                if declared
                else _build_container_without_record_error(owned, container_name)
            )
        await self._remove_container_record(caller, build_container_key(database_lookup, container_name), condition)

    async def _try_remove_record_after_failed_creation(self, caller: Principal, container_key: str) -> None:
        try:
            await self._remove_container_record(caller, container_key)
        except WorkspaceError:
            _LOG.exception(
                "the record of a container that was not created could not be removed",
                extra=logs.fields(container=container_key),
            )

    async def _remove_container_record(
        self, caller: Principal, container_key: str, condition: Condition = UNCONDITIONAL
    ) -> None:
        def build_removal_changes(stored: StoredCatalog) -> Sequence[ItemChange]:
            records = [item for item in stored.items if item.kind == ItemKind.CONTAINER and item.key == container_key]
            if not records:
                raise build_item_missing_error() if condition.match is not None else build_container_not_found_error()
            condition.check_write_allowed(compute_definition_etag(records[0].definition))
            return [ItemChange(ItemKind.CONTAINER, container_key, records[0].definition, None)]

        await self._changes.commit_api_changes(build_removal_changes, caller.member_id)

    async def _get_database(self, database_lookup: str) -> OwnedDatabase:
        catalog = await self._catalog()
        owned = catalog.find_database(database_lookup)
        if owned is None:
            store = catalog.data_stores.get(database_lookup)
            raise (
                build_database_not_found_error(database_lookup)
                if store is None
                else _build_not_a_database_error(store.value)
            )
        return owned


def _build_not_a_database_error(store: DataStore) -> WorkspaceError:
    """Build the error for a URL that contains the id of a data store instead of a database's id."""
    databases = sorted(database.lookup for database in store.databases)
    detail = f"`{store.lookup}` is a data store; this route requires the lookup of a database. "
    detail += f"Its databases: {', '.join(databases)}." if databases else "It has no databases."
    return WorkspaceError(Kind.NOT_FOUND, "DATABASE_NOT_FOUND", detail, databases=databases)


def _get_database_address(owned: OwnedDatabase) -> DatabaseAddress:
    return DatabaseAddress(owned.store, owned.database.lookup)


def _has_database(stored: StoredCatalog, place: DatabaseAddress) -> bool:
    """Return whether the stored catalog has a database in its data store."""
    return any(
        item.kind == ItemKind.DATA_STORE
        and item.key == place.store
        and place.database in get_database_lookups(item.definition)
        for item in stored.items
    )


def _build_container_summary(
    name: str, account_container: AccountContainer | None, catalog_record: Container | None
) -> ContainerSummary:
    partition_key_path = (
        account_container.partition_key_path
        if account_container
        else catalog_record.partition_key_path
        if catalog_record
        else ""
    )
    data_class = None if catalog_record is None else catalog_record.data_class
    return ContainerSummary(
        name,
        partition_key_path,
        data_class,
        declared=catalog_record is not None,
        provisioned=account_container is not None,
    )


def check_new_container(faults: ValidationErrors, name: str, partition_key_path: str, data_class: DataClass) -> None:
    """Check name, partition key path and data class of a new container; add violations to ``faults``.

    The data class ``evidence`` is rejected with ``DATA_CLASS_REFUSED`` and a ``reason``.
    """
    if faults.has_valid_fields("name") and not NAME.fullmatch(name):
        rule = "must be 2 to 255 letters, digits, _ and -, beginning with a letter or digit"
        faults.add(build_invalid_field_error("name", rule))
    if faults.has_valid_fields("partitionKeyPath") and not PATH.fullmatch(partition_key_path):
        rule = "must be a path such as /line or /plant/line, of letters, digits, _, . and -"
        faults.add(build_invalid_field_error("partitionKeyPath", rule))
    if faults.has_valid_fields("dataClass") and data_class is DataClass.EVIDENCE:
        faults.add(_build_evidence_class_refused_error())


def check_data_class_change(
    faults: ValidationErrors, stored_definition: Mapping[str, Any] | None, new_data_class: DataClass | None
) -> None:
    """Add an error if a change sets a container's data class to ``evidence``, unless the container already has it.

    Args:
        faults: collects the errors of the request.
        stored_definition: stored definition of the container; None if it does not exist.
        new_data_class: the requested class; None keeps the class.
    """
    if is_data_class_changed_to_evidence(stored_definition, new_data_class):
        faults.add(_build_evidence_class_refused_error())


def apply_container_change(change: ContainerChange, stored_definition: Mapping[str, Any] | None) -> Container:
    """Return the catalog record of a container after a change; the partition key path is not checked.

    Args:
        change: the requested change.
        stored_definition: stored definition of the container; None if it does not exist.

    Raises:
        WorkspaceError: NOT_FOUND ``CONTAINER_NOT_FOUND``; INVALID ``DATA_CLASS_REFUSED`` if the change sets the data
            class to ``evidence``.
    """
    if stored_definition is None:
        raise build_container_not_found_error()
    # The class can have changed since the check of the request.
    if is_data_class_changed_to_evidence(stored_definition, change.data_class):
        raise _build_evidence_class_refused_error()
    container = Container.model_validate(stored_definition)
    changes = {
        "data_class": change.data_class,
        "expose": change.expose,
        "partition_key_path": change.partition_key_path,
    }
    return container.model_copy(update={name: value for name, value in changes.items() if value is not None})


def build_container_not_found_error() -> WorkspaceError:
    """Return the error for a container that does not exist."""
    detail = "The database has neither a container nor a record of this name."
    return WorkspaceError(Kind.NOT_FOUND, "CONTAINER_NOT_FOUND", detail)


def _build_evidence_class_refused_error() -> WorkspaceError:
    return WorkspaceError(
        Kind.INVALID,
        DATA_CLASS_REFUSED,
        EVIDENCE_REASON,
        errors=[{"field": "dataClass", "message": EVIDENCE_REASON}],
        reason=EVIDENCE_REASON,
    )


def _build_container_still_exists_error(owned: OwnedDatabase, container_name: str) -> WorkspaceError:
    detail = (
        f"Container {container_name} exists in database {owned.database.lookup} of store {owned.store}. Delete it in "
        "the Azure portal (the account's Data Explorer) first, then its record here."
    )
    return WorkspaceError(Kind.CONFLICT, "CONTAINER_PROVISIONED", detail)


def _build_container_without_record_error(owned: OwnedDatabase, container_name: str) -> WorkspaceError:
    detail = (
        f"Container {container_name} exists in database {owned.database.lookup} of store {owned.store}, but the "
        "workspace has no record of it to remove. Delete it in the Azure portal (the account's Data Explorer)."
    )
    return WorkspaceError(Kind.CONFLICT, "CONTAINER_NOT_DECLARED", detail)
