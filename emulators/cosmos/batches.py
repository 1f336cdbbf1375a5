"""Transactional batches: all operations on one logical partition, or none."""

from typing import Any

from emulators.cosmos.containers import Container, Transaction
from emulators.cosmos.items import ItemOperation, Outcome
from emulators.cosmos.partition_keys import Key
from emulators.cosmos.wire import Refusal

MAX_OPERATIONS = 100


def run_batch(container: Container, key: Key, operations: Any, *, minimal: bool) -> tuple[int, list[dict[str, Any]]]:
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
        raise Refusal(400, "A batch is a list of operations.")
    if not 0 < len(operations) <= MAX_OPERATIONS:
        raise Refusal(400, f"A batch has between 1 and {MAX_OPERATIONS} operations.")
    transaction = Transaction(container)
    results: list[dict[str, Any]] = []
    for index, operation in enumerate(operations):
        try:
            parsed = _operation(operation, key)
            results.append(_result(parsed.apply(transaction), bare=minimal and parsed.kind != "read"))
        except Refusal as refusal:
            return 207, failed(len(operations), index, refusal)
    transaction.commit()
    return 200, results


def failed(count: int, index: int, refusal: Refusal) -> list[dict[str, Any]]:
    """Gives the results of a batch that failed at one operation: 424 for all others."""
    results = [{"statusCode": 424, "requestCharge": 0.0} for _ in range(count)]
    results[index] = {"statusCode": refusal.status, "subStatusCode": refusal.substatus, "requestCharge": 1.0}
    if refusal.retry_after_ms is not None:
        results[index]["retryAfterMilliseconds"] = refusal.retry_after_ms
    return results


def _operation(operation: dict[str, Any], key: Key) -> ItemOperation:
    return ItemOperation(
        kind=str(operation.get("operationType", "")).lower(),
        key=key,
        item_id=operation.get("id"),
        body=operation.get("resourceBody"),
        if_match=operation.get("ifMatch"),
        if_none_match=operation.get("ifNoneMatch"),
    )


def _result(outcome: Outcome, *, bare: bool) -> dict[str, Any]:
    result: dict[str, Any] = {"statusCode": outcome.status, "requestCharge": outcome.charge}
    if outcome.item is not None:
        result["eTag"] = outcome.item.etag
        if not bare:
            result["resourceBody"] = outcome.item.document
    return result
