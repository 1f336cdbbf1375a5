"""Tests of document writes and reads with Cosmos DB faults: each fault once, then random faults."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from azure.cosmos import PartitionKey
from azure.cosmos.aio import CosmosClient

from emulators.cosmos import AccountOptions, CosmosServer, FaultKind, InjectedFault
from emulators.cosmos.faults import build_random_faults
from shared.backends.azure.cosmos_data_accounts import DataAccount, DataAccounts, parse_data_accounts_by_store
from shared.backends.azure.cosmos_data_requests import ATTEMPTS
from shared.backends.azure.cosmos_documents import CosmosDocumentStore
from shared.data_stores.models import AccountContainer, DatabaseAddress, DocumentKey, Table
from shared.errors import Kind, WorkspaceError
from tests.unit.shared.backends.azure.cosmos_accounts import PLACE, TABLES, create_tables, open_document_store

LINE = TABLES["/line"]
KEY, NEW = DocumentKey("old", "l1"), DocumentKey("new", "l1")
READ_SECONDS = 0.2
UNKNOWN = "DOCUMENT_OUTCOME_UNKNOWN"


def build_document_text(key: DocumentKey, n: int = 0) -> bytes:
    """Return a document with the given partition key as JSON text."""
    return json.dumps({"id": key.id, "line": key.partition, "n": n}).encode()


@pytest.fixture
async def server() -> AsyncIterator[CosmosServer]:
    """Provide an emulator with the containers of documents."""
    async with CosmosServer(physical_partitions=2) as running:
        await create_tables(running)
        yield running


@pytest.fixture
async def store(server: CosmosServer) -> AsyncIterator[CosmosDocumentStore]:
    """Provide a store with one document."""
    async with open_document_store(server, read_seconds=READ_SECONDS) as opened:
        await opened.create(LINE, KEY, build_document_text(KEY))
        yield opened


def _build_fault(status: int, substatus: int = 0, kind: FaultKind = FaultKind.STATUS) -> dict[str, Any]:
    return {"kind": kind, "status": status, "substatus": substatus, "retry_after_ms": 1500}


AFTER = FaultKind.STATUS_AFTER_COMMIT
OUTLASTED: dict[str, dict[str, Any]] = {
    "drop before": {"kind": FaultKind.DROP_BEFORE_COMMIT},
    "drop after": {"kind": FaultKind.DROP_AFTER_COMMIT},
    "reset after": {"kind": FaultKind.DROP_AFTER_COMMIT, "reset": True},
    "drop in reply": {"kind": FaultKind.DROP_IN_REPLY},
    "late": {"kind": FaultKind.DELAY, "seconds": 0.4},
    "late reply": {"kind": FaultKind.DELAY_AFTER_COMMIT, "seconds": 0.4},
    "404/1002": _build_fault(404, 1002) | {"retry_after_ms": 1},
    **{f"{status}": _build_fault(status) | {"retry_after_ms": 1} for status in (408, 410, 449, 500, 503)},
    **{f"{status} after": _build_fault(status, kind=AFTER) | {"retry_after_ms": 1} for status in (408, 500, 503)},
}
NOT_APPLIED_IN_TIME = {"drop before", "late", "408", "410", "500", "503"}
"""Faults before the commit that a writer cannot distinguish from faults after it."""
REFUSED = {
    "429": (_build_fault(429, 3200), "THROTTLED"),
    "403": (_build_fault(403, 5300), "DATA_PLANE_FORBIDDEN"),
    "403/1014": (_build_fault(403, 1014), "PARTITION_FULL"),
    "401": (_build_fault(401), "DATA_PLANE_FORBIDDEN"),
    "413": (_build_fault(413), "DOCUMENT_TOO_LARGE"),
    "403/3": (_build_fault(403, 3), "DATA_STORE_UNAVAILABLE"),
    "404/1003": (_build_fault(404, 1003), "TABLE_NOT_FOUND"),
}
type Call = Callable[[CosmosDocumentStore], Awaitable[object]]
WRITES: dict[str, Call] = {
    "create_item": lambda store: store.create(LINE, NEW, build_document_text(NEW)),
    "replace_item": lambda store: store.replace(LINE, KEY, build_document_text(KEY, 1), None),
    "delete_item": lambda store: store.delete(LINE, KEY, None),
}


def _inject_fault(server: CosmosServer, operation: str, fault: dict[str, Any], times: int = 1) -> InjectedFault:
    return server.faults.add(InjectedFault(match=lambda request: request.operation == operation, times=times, **fault))


async def _count_successes(server: CosmosServer, operation: str) -> int:
    """Return the number of successful requests of an operation, also of those whose reply was lost."""
    async with CosmosClient(server.endpoint, server.key) as client:
        container = client.get_database_client(PLACE.database).get_container_client(LINE.container.name)
        items = {item["id"]: item async for item in container.query_items("SELECT * FROM c")}
    match operation:
        case "create_item":
            return len(items) - 1
        case "replace_item":
            return int(items["old"]["n"])
        case _:
            return 1 - len(items)


@pytest.mark.parametrize(
    ("operation", "name"),
    [(one, name) for one in WRITES for name in OUTLASTED if one != "create_item" or name not in NOT_APPLIED_IN_TIME],
)
async def test_a_document_is_read_after_a_lost_reply(
    server: CosmosServer, store: CosmosDocumentStore, operation: str, name: str
) -> None:
    """After a lost reply to a write, the document is read, and the write is repeated only if its change is missing."""
    fault = _inject_fault(server, operation, OUTLASTED[name])
    etag = await WRITES[operation](store)
    assert fault.applied == 1
    assert await _count_successes(server, operation) == 1
    key = NEW if operation == "create_item" else KEY
    stored = await store.read(LINE, key)
    assert (stored is None) if operation == "delete_item" else (stored is not None and stored.etag == etag)


@pytest.mark.parametrize("name", sorted(NOT_APPLIED_IN_TIME))
async def test_a_creation_without_a_reply_is_not_repeated(
    server: CosmosServer, store: CosmosDocumentStore, name: str
) -> None:
    """If the reply to a creation is lost and the document is missing, the result is unknown; it may be deleted."""
    _inject_fault(server, "create_item", OUTLASTED[name])
    with pytest.raises(WorkspaceError) as caught:
        await store.create(LINE, NEW, build_document_text(NEW))
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, UNKNOWN)


@pytest.mark.parametrize("name", OUTLASTED)
async def test_conditional_writes_outlast_faults(server: CosmosServer, store: CosmosDocumentStore, name: str) -> None:
    """If the reply to a conditional write is lost, it is repeated and does not conflict with the first attempt."""
    before = await store.read(LINE, KEY)
    assert before is not None
    _inject_fault(server, "replace_item", OUTLASTED[name])
    etag = await store.replace(LINE, KEY, build_document_text(KEY, 1), before.etag)
    server.faults.clear()
    _inject_fault(server, "delete_item", OUTLASTED[name])
    await store.delete(LINE, KEY, etag)
    assert await store.read(LINE, KEY) is None


@pytest.mark.parametrize("operation", [*WRITES, "read_item", "query"])
@pytest.mark.parametrize("name", REFUSED)
async def test_rejections_of_the_account_have_their_own_codes(
    server: CosmosServer, store: CosmosDocumentStore, operation: str, name: str
) -> None:
    """If the account definitely rejects a write, an error with its own code is raised at once."""
    fault, code = REFUSED[name]
    calls: dict[str, Call] = {
        **WRITES,
        "read_item": lambda one: one.read(LINE, KEY),
        "query": lambda one: one.list(LINE, "l1", 10, None, all_partitions=False),
    }
    applied = _inject_fault(server, operation, fault)
    with pytest.raises(WorkspaceError) as caught:
        await calls[operation](store)
    assert caught.value.code == code
    assert applied.applied == 1
    if code == "THROTTLED":
        assert caught.value.members == {"retryAfter": 2}
    if operation in WRITES:
        assert await _count_successes(server, operation) == 0


@pytest.mark.parametrize("has_if_match", [True, False], ids=["if-match", "any-version"])
async def test_a_write_followed_by_another_change_has_an_unknown_result(
    server: CosmosServer, store: CosmosDocumentStore, *, has_if_match: bool
) -> None:
    """If another writer changed the document after a lost reply, the result is unknown, and that change stays."""
    before = await store.read(LINE, KEY)
    assert before is not None
    async with open_document_store(server) as other:
        fault = _inject_fault(server, "replace_item", {"kind": FaultKind.DELAY_AFTER_COMMIT, "seconds": 0.4})
        if_match = before.etag if has_if_match else None
        writing = asyncio.create_task(store.replace(LINE, KEY, build_document_text(KEY, 1), if_match))
        async with asyncio.timeout(10):
            while not fault.applied or (await other.read(LINE, KEY)) == before:  # noqa: ASYNC110  another thread's doing
                await asyncio.sleep(0.01)
        await other.replace(LINE, KEY, build_document_text(KEY, 2), None)
        with pytest.raises(WorkspaceError) as caught:
            await writing
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, UNKNOWN)
    stored = await store.read(LINE, KEY)
    assert stored is not None
    assert json.loads(stored.text)["n"] == 2


@pytest.mark.parametrize("change", ["replace", "delete"])
async def test_a_creation_followed_by_another_change_has_an_unknown_result(
    server: CosmosServer, store: CosmosDocumentStore, change: str
) -> None:
    """If another writer changed or deleted a new document after a lost reply, its creation is not repeated."""
    async with open_document_store(server) as other:
        fault = _inject_fault(server, "create_item", {"kind": FaultKind.DELAY_AFTER_COMMIT, "seconds": 0.4})
        creating = asyncio.create_task(store.create(LINE, NEW, build_document_text(NEW)))
        async with asyncio.timeout(10):
            while not fault.applied or (await other.read(LINE, NEW)) is None:  # noqa: ASYNC110  another thread's doing
                await asyncio.sleep(0.01)
        if change == "replace":
            await other.replace(LINE, NEW, build_document_text(NEW, 1), None)
        else:
            await other.delete(LINE, NEW, None)
        after = await other.read(LINE, NEW)
        with pytest.raises(WorkspaceError) as caught:
            await creating
    assert (caught.value.kind, caught.value.code) == (Kind.UNAVAILABLE, UNKNOWN)
    assert await store.read(LINE, NEW) == after


@pytest.mark.parametrize("behind", ["earlier version", "no document"])
@pytest.mark.parametrize("is_reply_lost", [False, True], ids=["reply", "lost-reply"])
async def test_a_stale_read_does_not_reject_a_conditional_delete(
    server: CosmosServer, monkeypatch: pytest.MonkeyPatch, behind: str, *, is_reply_lost: bool
) -> None:
    """The account checks If-Match of a DELETE; a stale read neither rejects it nor proves that it was applied."""
    async with open_document_store(server, read_seconds=READ_SECONDS) as store:
        await store.create(LINE, KEY, build_document_text(KEY))
        earlier = await store._find_item(await store._accounts.open_container(LINE), KEY)
        etag = await store.replace(LINE, KEY, build_document_text(KEY, 1), None)
        find_item, stale = store._find_item, [None if behind == "no document" else earlier]

        async def find_item_of_stale_replica(*arguments: Any, **options: Any) -> Any:
            return stale.pop() if stale else await find_item(*arguments, **options)

        monkeypatch.setattr(store, "_find_item", find_item_of_stale_replica)
        if is_reply_lost:
            _inject_fault(server, "delete_item", OUTLASTED["drop after"])
            with pytest.raises(WorkspaceError) as caught:
                await store.delete(LINE, KEY, etag)
            assert caught.value.code == UNKNOWN
        else:
            await store.delete(LINE, KEY, etag)
        assert await store.read(LINE, KEY) is None


@pytest.mark.parametrize("operation", ["read_item", "query", "read_container"])
async def test_a_replica_behind_the_session_does_not_prove_absence(server: CosmosServer, operation: str) -> None:
    """A read that is answered 404/1002 is repeated; if that does not help, the store is unavailable."""
    async with open_document_store(server) as store:
        await store.create(LINE, KEY, build_document_text(KEY))
    behind = _build_fault(404, 1002) | {"retry_after_ms": 1}
    for times, code in ((2, None), (ATTEMPTS, "DATA_STORE_UNAVAILABLE")):
        async with open_document_store(server) as store:
            fault = _inject_fault(server, operation, behind, times)
            call = _list_documents(store) if operation == "query" else store.read(LINE, KEY)
            if code is None:
                assert await call
            else:
                with pytest.raises(WorkspaceError) as caught:
                    await call
                assert caught.value.code == code
            assert fault.applied == times


async def _list_documents(store: CosmosDocumentStore) -> tuple[bytes, ...]:
    return tuple((await store.list(LINE, "l1", 10, None, all_partitions=False)).texts)


async def test_a_conflict_with_a_unique_key_has_its_own_code(server: CosmosServer) -> None:
    """A new document is rejected as existing only if its id exists, and a violated unique key is reported at once."""
    table = Table(PLACE, AccountContainer("unique", "/line"))
    async with CosmosClient(server.endpoint, server.key) as client:
        keys: Any = {"uniqueKeys": [{"paths": ["/n"]}]}
        database = client.get_database_client(PLACE.database)
        await database.create_container("unique", PartitionKey("/line"), unique_key_policy=keys)
    async with open_document_store(server) as store:
        etag = await store.create(table, KEY, build_document_text(KEY, 1))
        await store.create(table, NEW, build_document_text(NEW, 2))
        third = DocumentKey("third", "l1")
        calls: list[tuple[str, Awaitable[object]]] = [
            ("DOCUMENT_EXISTS", store.create(table, KEY, build_document_text(KEY, 3))),
            ("UNIQUE_KEY_CONFLICT", store.create(table, third, build_document_text(third, 2))),
            ("UNIQUE_KEY_CONFLICT", store.replace(table, KEY, build_document_text(KEY, 2), None)),
            ("UNIQUE_KEY_CONFLICT", store.replace(table, KEY, build_document_text(KEY, 2), etag)),
        ]
        for code, call in calls:
            with pytest.raises(WorkspaceError) as caught:
                await call
            assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, code)
        assert server.requests.count_by_operation()["replace_item"] == 2


async def test_endless_faults_end_the_attempts(
    server: CosmosServer, store: CosmosDocumentStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last attempt, a write reports an unknown result, and a read reports an unavailable store."""
    monkeypatch.setattr("shared.backends.azure.cosmos_data_requests.ATTEMPTS", 3)
    server.faults.add(InjectedFault(FaultKind.STATUS, lambda request: request.operation.endswith("_item"), status=500))
    for operation, call in WRITES.items():
        with pytest.raises(WorkspaceError) as caught:
            await call(store)
        assert caught.value.code == (UNKNOWN if operation == "create_item" else "DATA_STORE_UNAVAILABLE")
    with pytest.raises(WorkspaceError) as caught:
        await store.read(LINE, KEY)
    assert caught.value.code == "DATA_STORE_UNAVAILABLE"


@pytest.mark.parametrize("seed", [20261121, 7])
async def test_random_faults_neither_lose_nor_duplicate_updates(server: CosmosServer, seed: int) -> None:
    """With random faults, an acknowledged increment counts once, and one with an unknown result at most once."""
    async with open_document_store(server, read_seconds=READ_SECONDS) as store:
        await store.create(LINE, KEY, build_document_text(KEY))
        faults = build_random_faults(0.3, seed, lambda request: request.operation in ("replace_item", "read_item"))
        server.faults.add_all(fault for fault in faults if fault.status != 412)
        answered = unknown = 0

        async def write() -> None:
            nonlocal answered, unknown
            for _ in range(8):
                try:
                    stored = await store.read(LINE, KEY)
                    assert stored is not None
                    n = json.loads(stored.text)["n"] + 1
                    await store.replace(LINE, KEY, build_document_text(KEY, n), stored.etag)
                    answered += 1
                except WorkspaceError as error:
                    unknown += error.code == UNKNOWN

        await asyncio.gather(*(write() for _ in range(12)))
        server.faults.clear()
        stored = await store.read(LINE, KEY)
        assert stored is not None
        n = json.loads(stored.text)["n"]
    assert answered <= n <= answered + unknown, (
        f"seed {seed}: {answered} acknowledged increments, {unknown} with unknown results, but the stored number is {n}"
    )
    assert answered > 5, f"seed {seed}"
    assert sum(fault.applied for fault in faults) > 10, f"seed {seed}"


async def test_returned_documents_have_no_system_properties(server: CosmosServer, store: CosmosDocumentStore) -> None:
    """A returned document contains no properties of Cosmos DB, but its own properties with similar names."""
    async with CosmosClient(server.endpoint, server.key) as client:
        container = client.get_database_client(PLACE.database).get_container_client(LINE.container.name)
        await container.create_item({"id": "foreign", "line": None, "_own": 1, "n": 1e300})
    stored = await store.read(LINE, DocumentKey("foreign", None))
    assert stored is not None
    assert json.loads(stored.text) == {"id": "foreign", "line": None, "_own": 1, "n": 1e300}


async def test_missing_tables_and_accounts_raise_errors(server: CosmosServer, store: CosmosDocumentStore) -> None:
    """A missing container is an unknown table; a store without an account is unavailable."""
    missing = Table(PLACE, AccountContainer("missing", "/line"))
    with pytest.raises(WorkspaceError) as caught:
        await store.read(missing, KEY)
    assert caught.value.code == "TABLE_NOT_FOUND"
    nowhere = Table(DatabaseAddress("nowhere", "orders"), LINE.container)
    with pytest.raises(WorkspaceError) as caught:
        await store.read(nowhere, KEY)
    assert caught.value.code == "DATA_STORE_UNAVAILABLE"
    assert server.requests.count_by_operation()["create_item"] == 1


async def test_accounts_with_several_write_regions_are_rejected() -> None:
    """No document is written to an account with several write regions, because ETags are unreliable there."""
    async with CosmosServer(options=AccountOptions(multiple_write_locations=True)) as server:
        accounts = DataAccounts({"mes": DataAccount(server.endpoint, key=server.key)})
        with pytest.raises(WorkspaceError) as caught:
            await CosmosDocumentStore(accounts).read(LINE, KEY)
        assert caught.value.code == "DATA_STORE_UNAVAILABLE"
        await accounts.close()


async def test_an_account_with_per_partition_failover_is_used_like_any_other() -> None:
    """Per-partition automatic failover of an account changes no read or write of documents."""
    async with CosmosServer(options=AccountOptions(per_partition_failover=True)) as server:
        await create_tables(server)
        async with open_document_store(server) as store:
            await store.create(LINE, NEW, build_document_text(NEW))
            stored = await store.read(LINE, NEW)
            assert stored is not None
            assert json.loads(stored.text)["id"] == NEW.id
            assert len((await store.list(LINE, "l1", 9, None, all_partitions=False)).texts) == 1


def test_accounts_are_parsed_from_their_setting() -> None:
    """Each entry of the setting has a store and a resource id; the error about an invalid entry names the store."""
    resource = "/subscriptions/s-1/resourceGroups/plant/providers/Microsoft.DocumentDB/databaseAccounts/mes-1"
    read = parse_data_accounts_by_store(
        f"mes={resource}, lab={resource.replace('mes-1', 'lab-1')},", "documents.azure.com"
    )
    assert set(read) == {"mes", "lab"}
    assert read["mes"] == DataAccount("https://mes-1.documents.azure.com:443/", "s-1", "plant", "mes-1")
    with pytest.raises(ValueError, match="mes"):
        parse_data_accounts_by_store("mes=mes-1", "documents.azure.com")


async def test_the_position_of_a_page_is_limited(server: CosmosServer, store: CosmosDocumentStore) -> None:
    """Each request for a page limits the size of the next position, which becomes a part of a URL."""
    await store.create(LINE, NEW, build_document_text(NEW))
    server.requests.clear()
    page = await store.list(LINE, "l1", 1, None, all_partitions=False)
    assert page.next_position is not None
    await store.list(LINE, "l1", 1, page.next_position, all_partitions=False)
    await store.list(LINE, "l1", 1, None, all_partitions=True)
    sent = server.requests.list_by_operation("query")
    assert {each.request.read_header("x-ms-documentdb-responsecontinuationtokenlimitinkb") for each in sent} == {"3"}
