"""Tests of creating containers with their catalog records, with the real catalog and audit log."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from shared.auth.principals import CredentialKind, Principal
from shared.catalog.document import load_document
from shared.catalog.items import ItemKind, to_definition
from shared.catalog.models import Container, DataClass
from shared.catalog.reader import build_catalog
from shared.catalog.snapshot import Catalog
from shared.data_stores.containers import ContainerChange, Containers, apply_container_change
from shared.data_stores.errors import build_container_outcome_unknown_error, build_store_unavailable_error
from shared.data_stores.models import AccountContainer, DatabaseAddress
from shared.errors import WorkspaceError
from tests.unit.shared.catalog.stores import CatalogStores, open_catalog_stores

DOCUMENT = """
workspace: {id: plant-a, name: Plant A}
policies: {provenance: {}}
team: [{id: admin@x, name: Ann, role: Admin}]
dataStores: [{lookup: mes, databases: [{lookup: orders}]}]
"""
ADMIN = Principal("admin@x", "admin@x", "Ann", frozenset(), CredentialKind.JWT, "", None)
BATCHES = Container(name="batches", partition_key_path="/line", data_class=DataClass.OPERATIONAL)


class Account:
    """Fake account that creates containers, or raises an error if the test has set one."""

    def __init__(self) -> None:
        self.containers: list[AccountContainer] = []
        self.error: WorkspaceError | None = None

    async def list(self, _: DatabaseAddress) -> Sequence[AccountContainer]:
        """Return the containers."""
        return self.containers

    async def find_container(self, _: DatabaseAddress, name: str) -> AccountContainer | None:
        """Return the container with this name."""
        return next((container for container in self.containers if container.name == name), None)

    async def create_container(self, _: DatabaseAddress, container: AccountContainer) -> None:
        """Create the container, or raise the error that the test has set."""
        if self.error is not None:
            raise self.error
        self.containers.append(container)


@pytest.fixture
async def stores(tmp_path: Path) -> AsyncIterator[CatalogStores]:
    """Provide the catalog of a workspace with an empty database."""
    async with open_catalog_stores(tmp_path) as opened:
        await opened.service.apply(load_document(DOCUMENT, "w.yaml"), "apply")
        yield opened


def open_containers(stores: CatalogStores, account: Account) -> Containers:
    """Return the service that manages the containers of an account."""

    async def load_catalog() -> Catalog:
        return build_catalog(await stores.service.load())

    return Containers(load_catalog, stores.service, account)


async def get_error_code(containers: Containers) -> str:
    """Return the error code that the creation of a container raises."""
    with pytest.raises(WorkspaceError) as refused:
        await containers.create(ADMIN, "orders", BATCHES)
    return refused.value.code


async def list_containers(containers: Containers) -> list[tuple[str, bool, bool]]:
    """Return the name of each container, whether it has a record, and whether the account has it."""
    return [(each.name, each.declared, each.provisioned) for each in await containers.list("orders")]


async def test_a_rejected_container_has_no_record(stores: CatalogStores) -> None:
    """If the account rejects a container, its record is removed, so that the creation can be repeated."""
    account = Account()
    containers = open_containers(stores, account)
    account.error = build_store_unavailable_error()
    assert await get_error_code(containers) == "DATA_STORE_UNAVAILABLE"
    assert await list_containers(containers) == []
    account.error = None
    await containers.create(ADMIN, "orders", BATCHES)
    assert await list_containers(containers) == [("batches", True, True)]


async def test_a_container_that_is_created_after_a_timeout_has_a_record(stores: CatalogStores) -> None:
    """If the outcome of a creation is unknown, the record stays, because the account can still create the container."""
    account = Account()
    containers = open_containers(stores, account)
    account.error = build_container_outcome_unknown_error()
    assert await get_error_code(containers) == "CONTAINER_OUTCOME_UNKNOWN"
    assert await list_containers(containers) == [("batches", True, False)]
    assert await get_error_code(containers) == "CONTAINER_EXISTS"
    account.containers.append(AccountContainer("batches", "/line"))
    assert await list_containers(containers) == [("batches", True, True)]


async def test_the_record_of_a_container_that_was_not_created_can_be_deleted(stores: CatalogStores) -> None:
    """If the account has not created a container after an unknown outcome, the record can be deleted."""
    account = Account()
    containers = open_containers(stores, account)
    account.error = build_container_outcome_unknown_error()
    assert await get_error_code(containers) == "CONTAINER_OUTCOME_UNKNOWN"
    await containers.delete_container_record(ADMIN, "orders", "batches")
    assert await list_containers(containers) == []


async def test_a_container_of_a_database_that_was_removed_meanwhile_is_not_created(
    stores: CatalogStores, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a document removes the database during the creation of a container, neither record nor container is made."""
    account = Account()

    async def find_container_after_removal(database: DatabaseAddress, _: str) -> AccountContainer | None:
        document = DOCUMENT.replace(
            f"dataStores: [{{lookup: {database.store}, databases: [{{lookup: orders}}]}}]\n", ""
        )
        await stores.service.apply(load_document(document, "w.yaml"), "apply")
        return None

    monkeypatch.setattr(account, "find_container", find_container_after_removal)
    assert await get_error_code(open_containers(stores, account)) == "DATABASE_NOT_FOUND"
    assert account.containers == []
    assert not any(item.kind == ItemKind.CONTAINER for item in (await stores.service.load()).items)


def test_a_change_cannot_set_the_data_class_to_evidence() -> None:
    """A change can state the data class evidence only if the stored container has this class when it is committed."""
    change = ContainerChange(data_class=DataClass.EVIDENCE)
    evidence = BATCHES.model_copy(update={"data_class": DataClass.EVIDENCE})
    assert apply_container_change(change, to_definition(evidence)) == evidence
    with pytest.raises(WorkspaceError) as caught:
        apply_container_change(change, to_definition(BATCHES))
    assert caught.value.code == "DATA_CLASS_REFUSED"
