"""Cosmos DB containers in memory; items are found by partition key and id, and listed in order of creation."""

import base64
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, NamedTuple

import orjson

from emulators.cosmos.partition_keys import (
    PartitionKey,
    hash_partition_key,
    split_hash_range_evenly,
    split_property_path,
)
from emulators.cosmos.sort_index import SortEntry, SortIndex
from emulators.cosmos.sql_expressions import DocumentPath
from emulators.cosmos.wire import MAX_BYTES, CosmosError

type PartitionKeyAndId = tuple[PartitionKey, str]
"""Partition key and id, which identify an item of a container."""

SYSTEM_FIELDS = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts"})


@dataclass(frozen=True, slots=True)
class CosmosItem:
    """Stored item of a container.

    Attributes:
        number: The position of the item in order of creation; a replacement of the item has the same number.
        id: The id of the item, unique in its logical partition.
        key: The partition key, which identifies the logical partition.
        epk: The effective partition key: a hash of the partition key, which selects the physical partition.
        document: The JSON document, including system properties such as `_etag`.
        text: The document as JSON bytes.
    """

    number: int
    id: str
    key: PartitionKey
    epk: str
    document: dict[str, Any]
    text: bytes

    @property
    def etag(self) -> str:
        """ETag of the item, including the quotes."""
        return str(self.document["_etag"])


class ItemList:
    """List of items in order of creation, with indexes for sorted reads (ORDER BY)."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._items: dict[int, CosmosItem] = {}
        self._indexes: dict[DocumentPath, SortIndex] = {}

    def put(self, item: CosmosItem) -> None:
        """Add an item, or replace the item with the same creation number."""
        old = self._items.get(item.number)
        if old is None:
            insort(self._numbers, item.number)
        for index in self._indexes.values():
            if old is not None:
                index.remove(old.number, old.document)
            index.add(item.number, item.document)
        self._items[item.number] = item

    def remove(self, item: CosmosItem) -> None:
        """Remove an item from the list."""
        old = self._items.pop(item.number)
        for index in self._indexes.values():
            index.remove(old.number, old.document)
        del self._numbers[bisect_left(self._numbers, item.number)]

    def iterate_items_created_after(self, creation_number: int) -> Iterator[CosmosItem]:
        """Yield the items created after the item with this creation number; the list must not change meanwhile."""
        for index in range(bisect_right(self._numbers, creation_number), len(self._numbers)):
            yield self._items[self._numbers[index]]

    def iterate_items_sorted_after(
        self, path: DocumentPath, last_entry: SortEntry | None, *, descending: bool
    ) -> Iterator[CosmosItem]:
        """Yield the items after the index entry ``last_entry`` (None for all items), sorted by the value at ``path``.

        The list must not change during the iteration.
        """
        if path not in self._indexes:
            self._indexes[path] = SortIndex(path)
            for item in self._items.values():
                self._indexes[path].add(item.number, item.document)
        numbers = self._indexes[path].iterate_creation_numbers_after(last_entry, descending=descending)
        return (self._items[number] for number in numbers)

    def __len__(self) -> int:
        return len(self._numbers)


@dataclass
class PhysicalRange:
    """Physical partition: items with an effective partition key from `low` (inclusive) to `high` (exclusive)."""

    id: str
    low: str
    high: str
    items: ItemList = field(default_factory=ItemList)


class UniqueKeyValues(NamedTuple):
    """Values of one unique key in a document, and the position of the key in the container's unique-key policy."""

    key_position: int
    values_json: bytes


class UniqueKeys:
    """Unique-key policy: no two items of a logical partition may have the same values at all paths of a unique key.

    Args:
        properties: The definition of the container; `uniqueKeyPolicy` may be missing.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        definitions = (properties.get("uniqueKeyPolicy") or {}).get("uniqueKeys") or []
        self._keys = [[split_property_path(path) for path in definition["paths"]] for definition in definitions]

    def list_unique_key_values(self, document: Mapping[str, Any]) -> list[UniqueKeyValues]:
        """Return the values of each unique key in a document; a value that the document lacks counts as null."""
        return [
            UniqueKeyValues(number, orjson.dumps([_find_document_value(document, path) for path in paths]))
            for number, paths in enumerate(self._keys)
        ]


class CosmosContainer:
    """Container of the simulated account, with its items.

    Args:
        properties: The definition of the container, with `id`, `_rid` (resource id) and `partitionKey`.
        physical_partitions: The number of physical partitions.
        clock: Returns the current time in seconds since 1970.

    Attributes:
        rid: The resource id of the container.
        paths: The paths of the partition key in an item.
        ranges: The physical partitions.
        lsn: The log sequence number: the number of transactions that have been committed so far.
        unique_keys: The unique keys that the definition declares.
    """

    def __init__(
        self, properties: dict[str, Any], physical_partitions: int, clock: Callable[[], float] = time.time
    ) -> None:
        self.properties = properties
        self.clock = clock
        self.rid = str(properties["_rid"])
        self.paths: list[str] = properties["partitionKey"]["paths"]
        self.ranges = [
            PhysicalRange(str(i), *bounds) for i, bounds in enumerate(split_hash_range_evenly(physical_partitions))
        ]
        self.lsn = 0
        self.unique_keys = UniqueKeys(properties)
        self._unique_values: dict[tuple[PartitionKey, int, bytes], str] = {}
        self._partitions: dict[PartitionKey, dict[str, CosmosItem]] = {}
        self._items_by_key: dict[PartitionKey, ItemList] = {}
        self._created = 0
        self._versions = 0
        self._expirations: list[tuple[float, int, PartitionKey, str, str]] = []

    def get_physical_range(self, effective_partition_key: str) -> PhysicalRange:
        """Return the physical partition that stores the items with this effective partition key."""
        return next(part for part in self.ranges if part.low <= effective_partition_key < part.high)

    def find(self, key: PartitionKey, item_id: str) -> CosmosItem | None:
        """Return the item with an id in a logical partition; None if the partition has no such item."""
        return self._partitions.get(key, {}).get(item_id)

    def get_partition_items(self, key: PartitionKey) -> ItemList:
        """Return the items of a logical partition, in order of creation."""
        return self._items_by_key.get(key) or ItemList()

    def find_item_id_by_unique_values(self, key: PartitionKey, unique_values: UniqueKeyValues) -> str | None:
        """Return the id of the item that has these values of a unique key; None if no item has them."""
        return self._unique_values.get((key, *unique_values))

    def assign_creation_number(self) -> int:
        """Assign and return the creation number (position in order of creation) of a new item."""
        self._created += 1
        return self._created

    def create_etag(self) -> str:
        """Return a new ETag for an item, unique in the container and including the quotes."""
        self._versions += 1
        return f'"{self._versions:08x}-0000-0000-0000-{self.lsn:012x}"'

    def commit(self, new_items: Mapping[PartitionKeyAndId, CosmosItem | None]) -> None:
        """Apply the changes of a transaction to this container.

        Args:
            new_items: The new item for each partition key and id; None to remove the item.
        """
        if new_items:
            self.lsn += 1
        for (key, item_id), item in new_items.items():
            old = self.find(key, item_id)
            if old is not None:
                self._release_unique_values(old)
            # An item that is created again has a new number.
            if old is not None and (item is None or item.number != old.number):
                self._remove_item(old)
            if item is not None:
                self._add_item(item)
        for (key, item_id), item in new_items.items():
            for claim in self.unique_keys.list_unique_key_values(item.document) if item is not None else ():
                self._unique_values[key, *claim] = item_id

    def remove_expired_items(self) -> None:
        """Remove the items whose time to live has ended.

        The Azure service hides expired items at once and removes them later; clients notice no difference.
        """
        now_seconds = self.clock()
        while self._expirations and self._expirations[0][0] <= now_seconds:
            _, _, key, item_id, etag = heappop(self._expirations)
            item = self.find(key, item_id)
            if item is not None and item.etag == etag:
                self.commit({(key, item_id): None})

    def _release_unique_values(self, item: CosmosItem) -> None:
        """Free the unique-key values of an item that is changed or removed, so that other items may have them."""
        for claim in self.unique_keys.list_unique_key_values(item.document):
            self._unique_values.pop((item.key, *claim), None)

    def _remove_item(self, item: CosmosItem) -> None:
        del self._partitions[item.key][item.id]
        self._items_by_key[item.key].remove(item)
        self.get_physical_range(item.epk).items.remove(item)

    def _add_item(self, item: CosmosItem) -> None:
        self._partitions.setdefault(item.key, {})[item.id] = item
        self._items_by_key.setdefault(item.key, ItemList()).put(item)
        self.get_physical_range(item.epk).items.put(item)
        default = self.properties.get("defaultTtl")
        seconds = item.document.get("ttl", default)
        if default is not None and isinstance(seconds, int) and seconds > 0:
            heappush(self._expirations, (item.document["_ts"] + seconds, item.number, item.key, item.id, item.etag))


class Transaction:
    """Changes to the items of one container that are applied together or not at all."""

    def __init__(self, container: CosmosContainer) -> None:
        self.container = container
        self._changes: dict[PartitionKeyAndId, CosmosItem | None] = {}
        self._unique_values: dict[tuple[PartitionKey, int, bytes], str] = {}

    def find(self, key: PartitionKey, item_id: str) -> CosmosItem | None:
        """Return an item, including the changes of this transaction; None if the item does not exist."""
        if (key, item_id) in self._changes:
            return self._changes[key, item_id]
        return self.container.find(key, item_id)

    def store_document(
        self, document: Mapping[str, Any], key: PartitionKey, previous_item: CosmosItem | None, etag: str
    ) -> CosmosItem:
        """Add a change that stores a document as an item with a new ETag.

        Args:
            document: The document in the request; its system properties are replaced.
            key: The partition key of the document.
            previous_item: The item that the document replaces; None to create an item.
            etag: The new ETag, including the quotes.

        Raises:
            CosmosError: 413 if the document is larger than 2 MB, 409 if another item has the same unique key values.
        """
        number = previous_item.number if previous_item else self.container.assign_creation_number()
        stored = {
            name: _round_large_integers_to_doubles(value)
            for name, value in document.items()
            if name not in SYSTEM_FIELDS
        }
        rid = build_document_rid(self.container.rid, number)
        stored |= {
            "_rid": rid,
            "_self": f"{self.container.properties['_self']}docs/{rid}/",
            "_etag": etag,
            "_attachments": "attachments/",
            "_ts": int(self.container.clock()),
        }
        text = orjson.dumps(stored)
        if len(text) > MAX_BYTES:
            raise CosmosError(413, "Request size is too large")
        item = CosmosItem(number, str(stored["id"]), key, hash_partition_key(key), stored, text)
        self._reserve_unique_values(item)
        self._changes[key, item.id] = item
        return item

    def _reserve_unique_values(self, item: CosmosItem) -> None:
        """Record the unique-key values of an item; raise a 409 error if another item has the same values."""
        for claim in self.container.unique_keys.list_unique_key_values(item.document):
            holder = self._unique_values.get((item.key, *claim)) or self.container.find_item_id_by_unique_values(
                item.key, claim
            )
            # Values that an item had before this transaction changed or removed it are free.
            changed = (item.key, holder) in self._changes and (item.key, *claim) not in self._unique_values
            if holder not in (None, item.id) and not changed:
                raise CosmosError(409, "Unique index constraint violation.")
            self._unique_values[item.key, *claim] = item.id

    def remove_item(self, item: CosmosItem) -> None:
        """Add a change to this transaction that removes an item."""
        self._changes[item.key, item.id] = None

    def commit(self) -> None:
        """Apply all changes of this transaction to the container."""
        self.container.commit(self._changes)


def build_document_rid(container_rid: str, creation_number: int) -> str:
    """Build the resource id (`_rid`) of a document: its container's resource id, followed by its creation number."""
    return encode_rid(decode_rid(container_rid) + creation_number.to_bytes(8, "little"))


def encode_rid(rid_bytes: bytes) -> str:
    """Encode the bytes of a resource id as text: Base64 with `-` instead of `/`."""
    return base64.b64encode(rid_bytes, b"+-").decode()


def decode_rid(rid: str) -> bytes:
    """Decode the text of a resource id to its bytes."""
    return base64.b64decode(rid, b"+-")


def _round_large_integers_to_doubles(json_value: Any) -> Any:
    """Round the large integers in a JSON value to doubles, because Cosmos DB stores only doubles."""
    if isinstance(json_value, dict):
        return {name: _round_large_integers_to_doubles(part) for name, part in json_value.items()}
    if isinstance(json_value, list):
        return [_round_large_integers_to_doubles(part) for part in json_value]
    if isinstance(json_value, int) and abs(json_value) > 1 << 53:
        return float(json_value)
    return json_value


def _find_document_value(document: Any, path: list[str]) -> Any:
    for step in path:
        if not isinstance(document, Mapping) or step not in document:
            return None
        document = document[step]
    return document
