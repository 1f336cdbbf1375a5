"""Tests that a table request gets the first applicable error, for each combination of request and workspace."""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.catalog.models import Container, Database, DatabaseAccess, DataClass, DataStore, Verb
from shared.catalog.snapshot import Catalog, CatalogEntry
from shared.conditional_requests import Condition
from shared.data_stores.continuation import ContinuationTokens
from shared.data_stores.documents import Documents
from shared.data_stores.models import (
    MISSING,
    AccountContainer,
    DatabaseAddress,
    DocumentKey,
    DocumentPage,
    PartitionValue,
    StoredDocument,
    Table,
)
from shared.data_stores.tables import TableAddress, TableFinder
from shared.errors import WorkspaceError

AT = datetime(2026, 1, 5, tzinfo=UTC)
EXPOSURES = [frozenset(some) for count in range(6) for some in itertools.combinations(Verb, count)]
DONE = "done"


class Account:
    """Fake account with one container that the workspace does not declare."""

    async def list(self, _: DatabaseAddress) -> Sequence[AccountContainer]:
        """Return the undeclared container."""
        return [AccountContainer("foreign", "/line")]

    async def find_container(self, place: DatabaseAddress, name: str) -> AccountContainer | None:
        """Return the undeclared container by name."""
        return next((one for one in await self.list(place) if one.name == name), None)

    async def create_container(self, place: DatabaseAddress, container: AccountContainer) -> None:
        """Fail, because no test creates a container."""
        raise NotImplementedError


class ReachableStore:
    """Fake document store that records whether it was called."""

    async def read(self, _table: Table, _key: DocumentKey) -> StoredDocument | None:
        """Return a document."""
        return StoredDocument(b"{}", '"1"')

    async def create(self, _table: Table, _key: DocumentKey, _text: bytes) -> str:
        """Accept a document."""
        return '"1"'

    async def replace(self, _table: Table, _key: DocumentKey, _text: bytes, _if_match: str | None) -> str:
        """Accept a document."""
        return '"1"'

    async def delete(self, _table: Table, _key: DocumentKey, _if_match: str | None) -> None:
        """Remove a document."""

    async def list(self, *_: Any, all_partitions: bool) -> DocumentPage:
        """Return an empty page."""
        assert all_partitions is not None
        return DocumentPage((), None)


@dataclass(frozen=True)
class Case:
    """One combination of a request and a workspace."""

    database: str
    store: str
    table: str
    path: str
    exposed: frozenset[Verb]
    access: DatabaseAccess
    verb: Verb
    key: bool

    @property
    def expected(self) -> str:
        """Error code that the specification gives first for this combination."""
        single = self.verb in (Verb.READ, Verb.REPLACE, Verb.DELETE, Verb.CREATE)
        refusals = (
            ("DATABASE_NOT_FOUND", self.database != "orders"),
            ("DATABASE_NOT_IN_STORE", self.store != "mes"),
            ("TABLE_NOT_FOUND", self.table not in ("known", "foreign")),
            ("TABLE_NOT_EXPOSED", self.table == "foreign" or not self.exposed),
            ("OPERATION_NOT_EXPOSED", self.verb not in self.exposed),
            ("PARTITION_KEY_REQUIRED", single and not self.key and self.path != "/id"),
            ("DATA_PLANE_FORBIDDEN", self.access is DatabaseAccess.REFUSED),
        )
        return next((code for code, holds in refusals if holds), DONE)


def list_cases() -> Iterable[Case]:
    """Yield every combination of a request and a workspace."""
    for place in itertools.product(
        ("orders", "Orders", "nothing"),
        ("mes", "lab", "MES", "nowhere"),
        ("known", "Known", "foreign", "unprovisioned", "unknown"),
        ("/line", "/id"),
        EXPOSURES,
        DatabaseAccess,
        Verb,
        (True, False),
    ):
        yield Case(*place)


def build_catalog(case: Case) -> Catalog:
    """Return the catalog of a combination."""
    records = tuple(
        Container(
            name=name,
            partition_key_path=case.path,
            data_class=DataClass.OPERATIONAL,
            expose=case.exposed,
            provisioned=name == "known",
        )
        for name in ("known", "unprovisioned")
    )
    mine = DataStore(lookup="mes", databases=(Database(lookup="orders", access=case.access, containers=records),))
    other = DataStore(lookup="lab", databases=(Database(lookup="samples"),))
    return Catalog(data_stores={one.lookup: CatalogEntry(one, AT, AT, "admin") for one in (mine, other)})


async def find_error_code(case: Case) -> str:
    """Return the error code for a combination, or ``done`` if it has none."""
    now = build_catalog(case)

    async def current() -> Catalog:
        return now

    async def secret() -> bytes:
        return b"secret"

    documents = Documents(TableFinder(current, Account()), ReachableStore(), ContinuationTokens(secret))
    address = TableAddress(case.store, case.database, case.table)
    key: PartitionValue = "x" if case.key else MISSING
    body = {"line": "x"} if case.key else {}
    calls: dict[Verb, Callable[[], Awaitable[object]]] = {
        Verb.LIST: lambda: documents.list(address, key, 1, None),
        Verb.READ: lambda: documents.read(address, "x", key, Condition()),
        Verb.CREATE: lambda: documents.create(address, body),
        Verb.REPLACE: lambda: documents.replace(address, "x", key, body, Condition()),
        Verb.DELETE: lambda: documents.delete(address, "x", key, Condition()),
    }
    try:
        await calls[case.verb]()
    except WorkspaceError as error:
        return error.code
    return DONE


@pytest.mark.parametrize("verb", Verb)
def test_document_requests_are_checked_in_the_documented_order(verb: Verb) -> None:
    """Errors are checked in the order database, store, table, exposure, operation, partition key, access."""

    async def check_cases() -> dict[str, int]:
        seen: dict[str, int] = {}
        for case in list_cases():
            if case.verb is verb:
                found = await find_error_code(case)
                assert found == case.expected, case
                seen[found] = seen.get(found, 0) + 1
        return seen

    seen = asyncio.run(check_cases())
    assert set(seen) == {
        "DATABASE_NOT_FOUND",
        "DATABASE_NOT_IN_STORE",
        "TABLE_NOT_FOUND",
        "TABLE_NOT_EXPOSED",
        "OPERATION_NOT_EXPOSED",
        "DATA_PLANE_FORBIDDEN",
        DONE,
        *(() if verb is Verb.LIST else ("PARTITION_KEY_REQUIRED",)),
    }
