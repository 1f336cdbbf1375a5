"""Tests of the Azure Resource Manager client for containers, with a fake Resource Manager."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from azure.core.pipeline.policies import SansIOHTTPPolicy

from shared.backends.azure.cosmos_data_accounts import DataAccount, DataAccounts
from shared.backends.azure.cosmos_data_containers import CosmosContainerStore
from shared.data_stores.models import AccountContainer, DatabaseAddress
from shared.errors import WorkspaceError

PLACE = DatabaseAddress("mes", "orders")
ROUTE = (
    "/subscriptions/s-1/resourceGroups/plant/providers/Microsoft.DocumentDB/databaseAccounts/mes-1"
    "/sqlDatabases/orders/containers"
)
WORKORDERS = AccountContainer("workorders", "/line")


class FakeResourceManager:
    """Fake Resource Manager that lists, returns and creates containers as Azure does."""

    def __init__(self) -> None:
        self.containers: dict[str, dict[str, Any]] = {}
        self.refuse: dict[str, int] = {}
        self.lost_replies = 0
        self.operation_status = "Succeeded"
        self.asked: list[str] = []

    def app(self) -> web.Application:
        """Return the web application that serves the fake Resource Manager."""
        made = web.Application()
        made.router.add_get(ROUTE, self._list_containers)
        made.router.add_get(ROUTE + "/{name}", self._get_container)
        made.router.add_put(ROUTE + "/{name}", self._put_container)
        made.router.add_get("/operations/{name}", self._return_operation_status)
        return made

    def add_container(self, name: str, *paths: str) -> None:
        """Add a container to the fake account."""
        self.containers[name] = {"id": name, "partitionKey": {"paths": list(paths), "kind": "Hash"}}

    def _build_reply(self, name: str) -> dict[str, Any]:
        return {"name": name, "properties": {"resource": self.containers[name]}}

    async def _list_containers(self, request: web.Request) -> web.Response:
        self.asked.append("list")
        if "list" in self.refuse:
            return _build_rejection(self.refuse["list"])
        names = sorted(self.containers, reverse=True)
        half = len(names) // 2
        if "page" in request.query:
            return web.json_response({"value": [self._build_reply(name) for name in names[half:]]})
        more = str(request.url.update_query(page="2"))
        return web.json_response({"value": [self._build_reply(name) for name in names[:half]], "nextLink": more})

    async def _get_container(self, request: web.Request) -> web.Response:
        self.asked.append("get")
        name = request.match_info["name"]
        if name not in self.containers:
            return web.json_response({"code": "NotFound", "message": "no container"}, status=404)
        return web.json_response(self._build_reply(name))

    async def _put_container(self, request: web.Request) -> web.Response:
        self.asked.append("put")
        if "put" in self.refuse:
            return _build_rejection(self.refuse["put"])
        name = request.match_info["name"]
        self.containers[name] = (await request.json())["properties"]["resource"]
        if self.lost_replies:
            self.lost_replies -= 1
            assert request.transport is not None
            request.transport.close()
        status = str(request.url.with_path(f"/operations/{name}"))
        return web.json_response({"status": "Enqueued"}, status=202, headers={"Azure-AsyncOperation": status})

    async def _return_operation_status(self, _: web.Request) -> web.Response:
        self.asked.append("status")
        if "status" in self.refuse:
            return _build_rejection(self.refuse["status"])
        return web.json_response({"status": self.operation_status})


def _build_rejection(status: int) -> web.Response:
    return web.json_response(
        {"error": {"code": "x", "message": "refused"}}, status=status, headers={"Retry-After": "1"}
    )


@pytest.fixture
def manager() -> FakeResourceManager:
    """Provide an empty Resource Manager."""
    return FakeResourceManager()


@pytest.fixture
async def store(manager: FakeResourceManager) -> AsyncIterator[CosmosContainerStore]:
    """Provide a container store that sends no tokens, because the fake uses plain HTTP."""
    runner = web.AppRunner(manager.app())
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    accounts = DataAccounts({"mes": DataAccount("", "s-1", "plant", "mes-1")})
    opened = CosmosContainerStore(
        accounts,
        base_url=f"http://127.0.0.1:{runner.addresses[0][1]}",
        authentication_policy=SansIOHTTPPolicy(),
        polling_interval=0,
        retry_backoff_factor=0,
    )
    yield opened
    await opened.close()
    await accounts.close()
    await runner.cleanup()


async def test_containers_of_all_pages_are_listed(manager: FakeResourceManager, store: CosmosContainerStore) -> None:
    """Containers of all pages are listed by name; a hierarchical partition key has all its paths."""
    for name, paths in (("b", ["/x"]), ("a", ["/y"]), ("c", ["/p", "/q"])):
        manager.add_container(name, *paths)
    assert await store.list(PLACE) == [
        AccountContainer("a", "/y"),
        AccountContainer("b", "/x"),
        AccountContainer("c", "/p,/q"),
    ]


async def test_a_container_is_created_once(manager: FakeResourceManager, store: CosmosContainerStore) -> None:
    """A created container exists; creating an existing container does not change it."""
    assert await store.find_container(PLACE, "workorders") is None
    await store.create_container(PLACE, WORKORDERS)
    assert manager.containers["workorders"]["partitionKey"]["paths"] == ["/line"]
    assert manager.containers["workorders"]["partitionKey"]["kind"] == "Hash"
    assert await store.find_container(PLACE, "workorders") == WORKORDERS
    puts = manager.asked.count("put")
    with pytest.raises(WorkspaceError) as caught:
        await store.create_container(PLACE, AccountContainer("workorders", "/other"))
    assert caught.value.code == "CONTAINER_EXISTS"
    assert manager.asked.count("put") == puts
    assert "status" in manager.asked


@pytest.mark.parametrize(
    ("status", "code"), [(429, "THROTTLED"), (403, "DATA_STORE_UNAVAILABLE"), (400, "DATA_STORE_UNAVAILABLE")]
)
async def test_errors_of_resource_manager_are_converted(
    manager: FakeResourceManager, store: CosmosContainerStore, status: int, code: str
) -> None:
    """Throttling is reported with its delay; other rejections are logged and reported as unavailable."""
    manager.refuse = {"list": status, "put": status}
    with pytest.raises(WorkspaceError) as caught:
        await store.list(PLACE)
    assert caught.value.code == code
    with pytest.raises(WorkspaceError) as caught:
        await store.create_container(PLACE, WORKORDERS)
    assert caught.value.code == code
    assert status != 429 or caught.value.members == {"retryAfter": 1}
    assert manager.containers == {}


async def get_creation_error_code(store: CosmosContainerStore) -> str:
    """Return the error code that the creation of a container raises."""
    with pytest.raises(WorkspaceError) as caught:
        await store.create_container(PLACE, WORKORDERS)
    return caught.value.code


async def test_a_failed_creation_has_created_nothing(manager: FakeResourceManager, store: CosmosContainerStore) -> None:
    """If Resource Manager reports that an accepted creation has failed, the store is unavailable."""
    manager.operation_status = "Failed"
    assert await get_creation_error_code(store) == "DATA_STORE_UNAVAILABLE"


@pytest.mark.parametrize(
    "refuse", [{"put": 500}, {"put": 409}, {"status": 429}, {"status": 500}, {"status": 404}], ids=str
)
async def test_a_reply_that_does_not_rule_out_the_container_leaves_the_outcome_unknown(
    manager: FakeResourceManager, store: CosmosContainerStore, refuse: dict[str, int]
) -> None:
    """The outcome is unknown after a conflict, a server error or a rejected poll: the creation possibly continues."""
    manager.refuse = refuse
    assert await get_creation_error_code(store) == "CONTAINER_OUTCOME_UNKNOWN"


async def test_a_creation_that_takes_too_long_has_an_unknown_outcome(
    manager: FakeResourceManager, store: CosmosContainerStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the timeout the outcome is unknown, because Resource Manager continues the creation."""
    monkeypatch.setattr("shared.backends.azure.cosmos_data_containers.CREATE_SECONDS", 0)
    manager.operation_status = "InProgress"
    assert await get_creation_error_code(store) == "CONTAINER_OUTCOME_UNKNOWN"
    assert await store.find_container(PLACE, "workorders") == WORKORDERS


async def test_a_lost_reply_to_a_creation_leaves_the_outcome_unknown(
    manager: FakeResourceManager, store: CosmosContainerStore
) -> None:
    """A creation whose reply is lost is repeated; if all replies are lost, its outcome is unknown."""
    manager.lost_replies = 100
    assert await get_creation_error_code(store) == "CONTAINER_OUTCOME_UNKNOWN"
    manager.containers.clear()
    manager.lost_replies = 1
    await store.create_container(PLACE, WORKORDERS)
    assert await store.find_container(PLACE, "workorders") == WORKORDERS


async def test_a_store_without_an_account_is_unavailable(store: CosmosContainerStore) -> None:
    """If no account is configured for a store, the store is unavailable."""
    with pytest.raises(WorkspaceError) as caught:
        await store.list(DatabaseAddress("lab", "samples"))
    assert caught.value.code == "DATA_STORE_UNAVAILABLE"


async def test_a_missing_database_has_no_containers(manager: FakeResourceManager, store: CosmosContainerStore) -> None:
    """If a database does not exist in the account, its list of containers is empty."""
    manager.refuse["list"] = 404
    assert list(await store.list(PLACE)) == []
