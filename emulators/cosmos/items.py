"""Operations on items: create, read, replace, upsert, patch, delete, and transactional batches."""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from emulators.cosmos.containers import CosmosContainer, CosmosItem, Transaction
from emulators.cosmos.partition_keys import PartitionKey, partition_key_from_document
from emulators.cosmos.sql_statement import parse_statement
from emulators.cosmos.wire import CosmosError

_MAX_ID_BYTES = 1023
MAX_BATCH_OPERATIONS = 100
_MAX_OPERATIONS = 10


@dataclass(frozen=True)
class ItemResult:
    """Result of an operation on an item: HTTP status, item to return (if any), and charge in request units."""

    status: int
    item: CosmosItem | None = None
    charge: float = 0.0


@dataclass(frozen=True)
class ItemOperation:
    """Operation on one item of one logical partition.

    Attributes:
        kind: create, read, replace, upsert, patch or delete.
        key: The partition key, which identifies the logical partition.
        item_id: The id of the item in the URL or batch operation; None if only the body contains the id.
        body: The document to write, or the patch to apply.
        if_match: The ETag that the stored item must have; `*` for any.
        if_none_match: The ETag that the item to read must not have.
    """

    kind: str
    key: PartitionKey
    item_id: str | None = None
    body: Any = None
    if_match: str | None = None
    if_none_match: str | None = None

    def apply(self, transaction: Transaction) -> ItemResult:
        """Execute this operation within a transaction.

        The changes are visible only in the transaction until its commit.

        Raises:
            CosmosError: 400 if the operation or its body is invalid, 404 if the item does not exist, 409 if another
                item has the same id or unique key values, 412 if the ETag does not match or the condition of a patch
                is false, 413 if the document is too large.
        """
        match self.kind:
            case "create" | "upsert" | "replace":
                return self._write_item(transaction)
            case "read":
                return self._read_item(transaction)
            case "patch":
                return self._patch_item(transaction)
            case "delete":
                transaction.remove_item(self._require_item_with_matching_etag(transaction))
                return ItemResult(204, None, 6.0)
            case _:
                raise CosmosError(
                    400,
                    f"The operation type '{self.kind}' is not one of create, read, replace, upsert, patch, delete.",
                )

    def _write_item(self, transaction: Transaction) -> ItemResult:
        document = require_document(self.body)
        check_document_partition_key(document, self.key, transaction.container.paths)
        if self.kind == "replace":
            old = self._require_item_with_matching_etag(transaction)
            if document["id"] != self.item_id:
                raise CosmosError(400, "The id in the document does not match the id of the resource.")
            return _store_document(200, transaction, document, self.key, old)
        found = transaction.find(self.key, document["id"])
        if found is None:
            return _store_document(201, transaction, document, self.key, None)
        if self.kind == "create":
            raise CosmosError(409, "Resource with specified id or name already exists.")
        self._check_etag(found)
        return _store_document(200, transaction, document, self.key, found)

    def _read_item(self, transaction: Transaction) -> ItemResult:
        item = self._require_item_with_matching_etag(transaction)
        if self.if_none_match in ("*", item.etag):
            return ItemResult(304, None, 1.0)
        return ItemResult(200, item, 1.0 + len(item.text) // 1024 / 10)

    def _patch_item(self, transaction: Transaction) -> ItemResult:
        old = self._require_item_with_matching_etag(transaction)
        document = require_document(apply_patch(old.document, self.body))
        if document["id"] != old.id:
            raise CosmosError(400, "The id of an item cannot be patched.")
        check_document_partition_key(document, self.key, transaction.container.paths)
        return _store_document(200, transaction, document, self.key, old)

    def _require_item_with_matching_etag(self, transaction: Transaction) -> CosmosItem:
        item = transaction.find(self.key, self.item_id or "")
        if item is None:
            raise CosmosError(404, "Entity with the specified id does not exist in the system.")
        self._check_etag(item)
        return item

    def _check_etag(self, item: CosmosItem) -> None:
        if self.if_match not in (None, "", "*", item.etag):
            raise CosmosError(
                412, "Operation cannot be performed because one of the specified precondition is not met."
            )


def require_document(body: Any) -> dict[str, Any]:
    """Return the body of a request, which must be a JSON object with a valid id.

    Raises:
        CosmosError: 400 if the body is not a JSON object or its id is missing or invalid.
    """
    if not isinstance(body, dict):
        raise CosmosError(400, "The input content is invalid: a document must be a JSON object.")
    item_id = body.get("id")
    if not isinstance(item_id, str) or not item_id:
        raise CosmosError(400, "The input content is invalid because the required properties - 'id; ' - are missing")
    check_item_id(item_id)
    return body


def check_item_id(item_id: str) -> None:
    r"""Check an item's id: none of the characters / \ ? #, no space at the end, at most 1,023 bytes.

    Raises:
        CosmosError: 400 if the id is invalid.
    """
    if any(letter in item_id for letter in "/\\?#") or item_id.endswith(" "):
        raise CosmosError(400, "Id contains illegal chars: / \\ ? # or a space at its end.")
    if len(item_id.encode()) > _MAX_ID_BYTES:
        raise CosmosError(400, f"Id is longer than {_MAX_ID_BYTES} bytes.")


def check_document_partition_key(document: dict[str, Any], expected_key: PartitionKey, key_paths: list[str]) -> None:
    """Check that a document has the partition key that the request states.

    Raises:
        CosmosError: 400 (sub-status 1001) if the partition keys differ.
    """
    if partition_key_from_document(document, key_paths) != expected_key:
        raise CosmosError(
            400, "PartitionKey extracted from document doesn't match the one specified in the header", substatus=1001
        )


def _store_document(
    status: int, transaction: Transaction, document: dict[str, Any], key: PartitionKey, previous_item: CosmosItem | None
) -> ItemResult:
    item = transaction.store_document(document, key, previous_item, transaction.container.create_etag())
    return ItemResult(status, item, 5.0 + len(item.text) // 1024 * (1.5 if previous_item is None else 2.0))


class BatchResult(NamedTuple):
    """Result of a batch: HTTP status (200, or 207 if an operation failed), and a result for each operation."""

    status: int
    operation_results: list[dict[str, Any]]


def execute_batch(
    container: CosmosContainer, key: PartitionKey, operations: Any, *, omit_documents: bool
) -> BatchResult:
    """Execute a batch of operations on one logical partition; if one operation fails, none has an effect.

    Args:
        container: The container that the batch changes.
        key: The partition key of all operations.
        operations: The operations as JSON objects, from the body of the request.
        omit_documents: True if the results of writes omit the documents.

    Raises:
        CosmosError: 400 if the body is not a batch of 1 to 100 operations.
    """
    if not isinstance(operations, list) or not all(isinstance(operation, dict) for operation in operations):
        raise CosmosError(400, "The body of a batch must be a list of operations.")
    if not 0 < len(operations) <= MAX_BATCH_OPERATIONS:
        raise CosmosError(400, f"A batch must have between 1 and {MAX_BATCH_OPERATIONS} operations.")
    transaction = Transaction(container)
    results: list[dict[str, Any]] = []
    for index, operation in enumerate(operations):
        try:
            parsed = _parse_batch_operation(operation, key)
            results.append(
                _build_batch_result(parsed.apply(transaction), omit_documents=omit_documents and parsed.kind != "read")
            )
        except CosmosError as refusal:
            return BatchResult(207, build_failed_batch_results(len(operations), index, refusal))
    transaction.commit()
    return BatchResult(200, results)


def build_failed_batch_results(operation_count: int, failed_index: int, error: CosmosError) -> list[dict[str, Any]]:
    """Build the results of the ``operation_count`` operations of a failed batch.

    The operation at position ``failed_index`` has the error ``error``, all others have status 424.
    """
    results = [{"statusCode": 424, "requestCharge": 0.0} for _ in range(operation_count)]
    results[failed_index] = {"statusCode": error.status, "subStatusCode": error.substatus, "requestCharge": 1.0}
    if error.retry_after_ms is not None:
        results[failed_index]["retryAfterMilliseconds"] = error.retry_after_ms
    return results


def _parse_batch_operation(operation: dict[str, Any], key: PartitionKey) -> ItemOperation:
    return ItemOperation(
        kind=str(operation.get("operationType", "")).lower(),
        key=key,
        item_id=operation.get("id"),
        body=operation.get("resourceBody"),
        if_match=operation.get("ifMatch"),
        if_none_match=operation.get("ifNoneMatch"),
    )


def _build_batch_result(result: ItemResult, *, omit_documents: bool) -> dict[str, Any]:
    entry: dict[str, Any] = {"statusCode": result.status, "requestCharge": result.charge}
    if result.item is not None:
        entry["eTag"] = result.item.etag
        if not omit_documents:
            entry["resourceBody"] = result.item.document
    return entry


def apply_patch(document: Mapping[str, Any], patch: Any) -> dict[str, Any]:
    """Apply a patch (partial update) to a copy of a document and return the copy.

    Args:
        document: The stored document, which is not changed.
        patch: The JSON object with `operations` and an optional `condition` such as `FROM c WHERE c.n = 1`.

    Raises:
        CosmosError: 400 if the patch is invalid, 412 if its condition is false.
    """
    if not isinstance(patch, dict) or not isinstance(patch.get("operations"), list):
        raise CosmosError(400, "The body of a patch must be a JSON object with a list `operations`.")
    if not 0 < len(patch["operations"]) <= _MAX_OPERATIONS:
        raise CosmosError(400, f"The number of patch operations must be between 1 and {_MAX_OPERATIONS}.")
    condition = patch.get("condition")
    if condition and not parse_statement(f"SELECT * {condition}", {}).matches(document):
        raise CosmosError(412, "The condition of the patch is not met.")
    patched = copy.deepcopy(dict(document))
    for operation in patch["operations"]:
        _apply_patch_operation(patched, operation)
    return patched


def _apply_patch_operation(document: dict[str, Any], operation: Mapping[str, Any]) -> None:
    kind, path = operation.get("op"), operation.get("path")
    if kind == "move":
        value = _require_value_at_path(document, operation.get("from"), remove=True)
        _set_value_at_path(document, path, value, insert=True)
    elif kind in ("add", "set"):
        _set_value_at_path(document, path, operation.get("value"), insert=kind == "add")
    elif kind == "replace":
        _require_value_at_path(document, path, remove=False)
        _set_value_at_path(document, path, operation.get("value"), insert=False)
    elif kind == "remove":
        _require_value_at_path(document, path, remove=True)
    elif kind == "incr":
        _set_value_at_path(
            document, path, _compute_incremented_number(document, path, operation.get("value")), insert=False
        )
    else:
        raise CosmosError(400, f"The patch operation '{kind}' is not one of add, set, replace, remove, incr, move.")


def _compute_incremented_number(document: dict[str, Any], path: object, increment: object) -> float:
    """Return the sum of the number at a path and an increment; a property that does not exist counts as 0."""
    parent, name = _require_patch_target(document, path)
    before = parent.get(name, 0) if isinstance(parent, dict) else parent[_parse_array_index(parent, name)]
    if any(isinstance(number, bool) or not isinstance(number, int | float) for number in (before, increment)):
        raise CosmosError(400, f"The operation 'incr' requires numbers, but '{path}' or the increment is not a number.")
    total: float = before + increment
    return total


class _PatchTarget(NamedTuple):
    """Object or array that contains a value, and the name or index of the value in it."""

    parent: Any
    name_or_index: str


def _require_patch_target(document: dict[str, Any], path: object) -> _PatchTarget:
    """Return the object or array that contains the value at a path, and the name or index of the value.

    The value itself need not exist.

    Raises:
        CosmosError: 400 if the path is invalid, or the document has no such object or array.
    """
    if not isinstance(path, str) or not path.startswith("/"):
        raise CosmosError(400, f"'{path}' is not a valid path of a patch; a path starts with '/'.")
    *parents, name = (part.replace("~1", "/").replace("~0", "~") for part in path[1:].split("/"))
    value: Any = document
    for part in parents:
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list):
            value = value[_parse_array_index(value, part)]
        else:
            raise CosmosError(400, f"The path '{path}' does not exist in the document.")
    if not isinstance(value, dict | list):
        raise CosmosError(400, f"The parent of the path '{path}' is not an object or array.")
    return _PatchTarget(value, name)


def _parse_array_index(array: list[Any], index_text: str) -> int:
    """Parse a segment of a patch path as an array index; raise a 400 error if the array has no such index."""
    if not index_text.isdecimal() or int(index_text) >= len(array):
        raise CosmosError(400, f"'{index_text}' in the path of a patch is not an index of the array.")
    return int(index_text)


def _set_value_at_path(document: dict[str, Any], path: object, value: object, *, insert: bool) -> None:
    """Set the value of the property or array element at a path.

    With ``insert``, an array element at the path is not replaced: the value is inserted before it. The value is
    appended if the path ends with ``-`` or with the index after the last element.
    """
    parent, name = _require_patch_target(document, path)
    if isinstance(parent, dict):
        parent[name] = value
    elif insert and (name == "-" or name == str(len(parent))):
        parent.append(value)
    elif insert:
        parent.insert(_parse_array_index(parent, name), value)
    else:
        parent[_parse_array_index(parent, name)] = value


def _require_value_at_path(document: dict[str, Any], path: object, *, remove: bool) -> Any:
    """Return the value at a path, and remove it from the document if ``remove`` is True.

    Raises:
        CosmosError: 400 if the document has no value at the path, or the path is invalid.
    """
    parent, name = _require_patch_target(document, path)
    if isinstance(parent, list):
        index = _parse_array_index(parent, name)
        return parent.pop(index) if remove else parent[index]
    if name not in parent:
        raise CosmosError(400, f"The path '{path}' does not exist in the document.")
    return parent.pop(name) if remove else parent[name]
