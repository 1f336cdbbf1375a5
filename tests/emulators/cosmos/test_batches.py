"""Tests of transactional batches through the SDK."""

from typing import Any

import pytest
from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosHttpResponseError, CosmosResourceNotFoundError


def _build_create_operation(name: str, **properties: Any) -> tuple[str, tuple[dict[str, Any]]]:
    return ("create", ({"id": name, "pk": "p", **properties},))


async def test_a_batch_executes_all_operations_in_order(container: ContainerProxy) -> None:
    """A batch executes its operations in order; each operation sees the changes of the operations before it."""
    await container.create_item({"id": "old", "pk": "p"})
    results = await container.execute_item_batch(
        [
            _build_create_operation("a", n=1),
            ("read", ("a",)),
            ("replace", ("a", {"id": "a", "pk": "p", "n": 2})),
            ("upsert", ({"id": "b", "pk": "p"},)),
            ("patch", ("a", [{"op": "incr", "path": "/n", "value": 1}])),
            ("delete", ("old",)),
        ],
        "p",
    )
    assert [result["statusCode"] for result in results] == [201, 200, 200, 201, 200, 204]
    assert results[4]["resourceBody"]["n"] == 3
    assert results[4]["eTag"] == (await container.read_item("a", "p"))["_etag"]


@pytest.mark.parametrize(
    ("operation", "status"),
    [
        (_build_create_operation("head"), 409),
        (("replace", ("head", {"id": "head", "pk": "p"}), {"if_match_etag": '"stale"'}), 412),
        (("read", ("nothing",)), 404),
        (("create", ({"id": "x", "pk": "other"},)), 400),
    ],
)
async def test_one_failed_operation_undoes_the_batch(container: ContainerProxy, operation: Any, status: int) -> None:
    """If one operation fails, the whole batch is undone; the reply has the status 424 for all other operations."""
    await container.create_item({"id": "head", "pk": "p"})
    with pytest.raises(CosmosBatchOperationError) as caught:
        await container.execute_item_batch([_build_create_operation("a"), operation, _build_create_operation("b")], "p")
    assert (caught.value.status_code, caught.value.error_index) == (status, 1)
    assert [result["statusCode"] for result in caught.value.operation_responses] == [424, status, 424]
    with pytest.raises(CosmosResourceNotFoundError):
        await container.read_item("a", "p")


async def test_a_batch_has_1_to_100_operations(container: ContainerProxy) -> None:
    """A batch without operations, or with more than 100 operations, is rejected with 400."""
    assert len(await container.execute_item_batch([_build_create_operation(str(n)) for n in range(100)], "p")) == 100
    for count in (0, 101):
        with pytest.raises(CosmosHttpResponseError) as caught:
            await container.execute_item_batch([_build_create_operation(f"again-{n}") for n in range(count)], "p")
        assert caught.value.status_code == 400


@pytest.mark.filterwarnings("ignore:Sending a large body directly")  # aiohttp, of what the SDK hands it
async def test_a_batch_over_two_megabytes_is_rejected(container: ContainerProxy) -> None:
    """A batch with more than 2 MB of operations is rejected."""
    batch = [_build_create_operation(str(n), s="x" * 300_000) for n in range(8)]
    with pytest.raises(CosmosHttpResponseError) as caught:
        await container.execute_item_batch(batch, "p")
    assert caught.value.status_code == 413
    await container.execute_item_batch(batch[:6], "p")
