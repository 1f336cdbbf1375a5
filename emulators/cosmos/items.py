"""What can be done to one item: create, read, replace, upsert, patch, delete."""

from dataclasses import dataclass
from itertools import count
from typing import Any

from emulators.cosmos.containers import CosmosItem, Transaction
from emulators.cosmos.partition_keys import PartitionKey, key_from_document
from emulators.cosmos.patches import apply_patch
from emulators.cosmos.wire import CosmosError

_MAX_ID_BYTES = 1023
_versions = count(1)


@dataclass(frozen=True)
class ItemResult:
    """How an operation ended: its status and the item that it left, if it is to be answered."""

    status: int
    item: CosmosItem | None = None
    charge: float = 0.0


@dataclass(frozen=True)
class ItemOperation:
    """One operation on one item of one logical partition.

    Attributes:
        kind: create, read, replace, upsert, patch or delete.
        key: The logical partition.
        item_id: The id that the caller names; None where the body names it.
        body: The document or patch.
        if_match: The ETag that the item must have; `*` for any.
        if_none_match: The ETag that a read item must not have.
    """

    kind: str
    key: PartitionKey
    item_id: str | None = None
    body: Any = None
    if_match: str | None = None
    if_none_match: str | None = None

    def apply(self, transaction: Transaction) -> ItemResult:
        """Does it within a transaction.

        Raises:
            Refusal: It cannot be done: 400, 404, 409, 412 or 413.
        """
        match self.kind:
            case "create" | "upsert" | "replace":
                return self._write(transaction)
            case "read":
                return self._read(transaction)
            case "patch":
                return self._patch(transaction)
            case "delete":
                transaction.remove(self._find_existing(transaction))
                return ItemResult(204, None, 6.0)
            case _:
                raise CosmosError(400, f"The operation type '{self.kind}' is invalid.")

    def _write(self, transaction: Transaction) -> ItemResult:
        document = check_document(self.body)
        check_key(document, self.key, transaction.container.paths)
        if self.kind == "replace":
            old = self._find_existing(transaction)
            if document["id"] != self.item_id:
                raise CosmosError(400, "The id in the document does not match the id of the resource.")
            return _store_document(200, transaction, document, self.key, old)
        found = transaction.find(self.key, document["id"])
        if found is None:
            return _store_document(201, transaction, document, self.key, None)
        if self.kind == "create":
            raise CosmosError(409, "Resource with specified id or name already exists.")
        self._check_match(found)
        return _store_document(200, transaction, document, self.key, found)

    def _read(self, transaction: Transaction) -> ItemResult:
        item = self._find_existing(transaction)
        if self.if_none_match in ("*", item.etag):
            return ItemResult(304, None, 1.0)
        return ItemResult(200, item, 1.0 + len(item.text) // 1024 / 10)

    def _patch(self, transaction: Transaction) -> ItemResult:
        old = self._find_existing(transaction)
        document = check_document(apply_patch(old.document, self.body))
        if document["id"] != old.id:
            raise CosmosError(400, "The id of an item cannot be patched.")
        check_key(document, self.key, transaction.container.paths)
        return _store_document(200, transaction, document, self.key, old)

    def _find_existing(self, transaction: Transaction) -> CosmosItem:
        item = transaction.find(self.key, self.item_id or "")
        if item is None:
            raise CosmosError(404, "Entity with the specified id does not exist in the system.")
        self._check_match(item)
        return item

    def _check_match(self, item: CosmosItem) -> None:
        if self.if_match not in (None, "", "*", item.etag):
            raise CosmosError(
                412, "Operation cannot be performed because one of the specified precondition is not met."
            )


def check_document(body: Any) -> dict[str, Any]:
    """Checks that a body is a document with a sound id.

    Raises:
        Refusal: 400, it is not.
    """
    if not isinstance(body, dict):
        raise CosmosError(400, "The input content is invalid: a document is a JSON object.")
    item_id = body.get("id")
    if not isinstance(item_id, str) or not item_id:
        raise CosmosError(400, "The input content is invalid because the required properties - 'id; ' - are missing")
    check_id(item_id)
    return body


def check_id(item_id: str) -> None:
    r"""Checks an id: no / \ ? #, at most 1,023 bytes, no space at its end.

    Raises:
        Refusal: 400, it breaks a rule.
    """
    if any(letter in item_id for letter in "/\\?#") or item_id.endswith(" "):
        raise CosmosError(400, "Id contains illegal chars: / \\ ? # or a space at its end.")
    if len(item_id.encode()) > _MAX_ID_BYTES:
        raise CosmosError(400, f"Id is longer than {_MAX_ID_BYTES} bytes.")


def check_key(document: dict[str, Any], key: PartitionKey, paths: list[str]) -> None:
    """Checks that a document lies in the logical partition that the request names.

    Raises:
        Refusal: 400/1001, it does not.
    """
    if key_from_document(document, paths) != key:
        raise CosmosError(
            400, "PartitionKey extracted from document doesn't match the one specified in the header", substatus=1001
        )


def _store_document(
    status: int, transaction: Transaction, document: dict[str, Any], key: PartitionKey, old: CosmosItem | None
) -> ItemResult:
    etag = f'"{next(_versions):08x}-0000-0000-0000-{transaction.container.lsn:012x}"'
    item = transaction.store(document, key, old, etag)
    return ItemResult(status, item, 5.0 + len(item.text) // 1024 * (1.5 if old is None else 2.0))
