"""Transactional batches: all operations on one logical partition, or none."""

from typing import Any

from emulators.cosmos.containers import CosmosContainer, Transaction
from emulators.cosmos.items import ItemOperation, ItemResult
from emulators.cosmos.partition_keys import PartitionKey
from emulators.cosmos.wire import CosmosError

MAX_OPERATIONS = 100


def execute_batch(
    container: CosmosContainer, key: PartitionKey, operations: Any, *, minimal: bool
) -> tuple[int, list[dict[str, Any]]]:
    """Runs a batch.

    Args:
        container: The container.
        key: The logical partition of all operations.
        operations: The request's body.
        minimal: Whether the results leave out the documents.

    Returns:
        The status of the reply, 200 or 207, and a result per operation.

    Raises:
        Refusal: 400, the body is no batch of 1 to 100 operations.
    """
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise CosmosError(400, "A batch is a list of operations.")
    if not 0 < len(operations) <= MAX_OPERATIONS:
        raise CosmosError(400, f"A batch has between 1 and {MAX_OPERATIONS} operations.")
    transaction = Transaction(container)
    results: list[dict[str, Any]] = []
    for index, operation in enumerate(operations):
        try:
            parsed = _operation(operation, key)
            results.append(_batch_result(parsed.apply(transaction), minimal=minimal and parsed.kind != "read"))
        except CosmosError as refusal:
            return 207, failed_results(len(operations), index, refusal)
    transaction.commit()
    return 200, results


def failed_results(count: int, index: int, refusal: CosmosError) -> list[dict[str, Any]]:
    """Gives the results of a batch that failed at one operation: 424 for all others."""
    results = [{"statusCode": 424, "requestCharge": 0.0} for _ in range(count)]
    results[index] = {"statusCode": refusal.status, "subStatusCode": refusal.substatus, "requestCharge": 1.0}
    if refusal.retry_after_ms is not None:
        results[index]["retryAfterMilliseconds"] = refusal.retry_after_ms
    return results


def _operation(operation: dict[str, Any], key: PartitionKey) -> ItemOperation:
    return ItemOperation(
        kind=str(operation.get("operationType", "")).lower(),
        key=key,
        item_id=operation.get("id"),
        body=operation.get("resourceBody"),
        if_match=operation.get("ifMatch"),
        if_none_match=operation.get("ifNoneMatch"),
    )


def _batch_result(result: ItemResult, *, minimal: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"statusCode": result.status, "requestCharge": result.charge}
    if result.item is not None:
        entry["eTag"] = result.item.etag
        if not minimal:
            entry["resourceBody"] = result.item.document
    return entry
