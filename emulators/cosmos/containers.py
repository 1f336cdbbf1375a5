"""Containers in memory: items by logical partition and id, in order of creation."""

import base64
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import orjson

from emulators.cosmos.partition_keys import PartitionKey, hash_key, parse_path, split_hash_range
from emulators.cosmos.sort_index import SortEntry, SortIndex
from emulators.cosmos.wire import MAX_BYTES, CosmosError

SYSTEM_FIELDS = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts"})


@dataclass(frozen=True, slots=True)
class CosmosItem:
    """Stored document.

    Attributes:
        number: Its creation number; a replacement has the same number.
        id: Its id.
        key: Its logical partition.
        epk: Its effective partition key.
        document: The document with system properties.
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
        """The ETag, with its quotes."""
        return str(self.document["_etag"])


class ItemList:
    """Items in order of creation, with sort indexes."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._items: dict[int, CosmosItem] = {}
        self._indexes: dict[tuple[str | int, ...], SortIndex] = {}

    def put(self, item: CosmosItem) -> None:
        """Add an item, or replace the item with its number."""
        old = self._items.get(item.number)
        if old is None:
            insort(self._numbers, item.number)
        for index in self._indexes.values():
            if old is not None:
                index.remove(old.number, old.document)
            index.add(item.number, item.document)
        self._items[item.number] = item

    def remove(self, item: CosmosItem) -> None:
        """Remove an item."""
        old = self._items.pop(item.number)
        for index in self._indexes.values():
            index.remove(old.number, old.document)
        del self._numbers[bisect_left(self._numbers, item.number)]

    def iterate_after(self, number: int) -> Iterator[CosmosItem]:
        """Yield the items that were created after a number; the list must not change during the iteration."""
        for index in range(bisect_right(self._numbers, number), len(self._numbers)):
            yield self._items[self._numbers[index]]

    def iterate_sorted_after(
        self, path: tuple[str | int, ...], last: SortEntry | None, *, descending: bool
    ) -> Iterator[CosmosItem]:
        """Yield the items after an entry, sorted by the value at a path; the list must not change meanwhile."""
        if path not in self._indexes:
            self._indexes[path] = SortIndex(path)
            for item in self._items.values():
                self._indexes[path].add(item.number, item.document)
        numbers = self._indexes[path].after(last, descending=descending)
        return (self._items[number] for number in numbers)

    def __len__(self) -> int:
        return len(self._numbers)


@dataclass
class PhysicalRange:
    """Physical partition: the hash range from `low` up to, but excluding, `high`."""

    id: str
    low: str
    high: str
    items: ItemList = field(default_factory=ItemList)


class UniqueKeys:
    """Unique keys of a container: items of a logical partition must differ in the values at these paths.

    Args:
        properties: The container document.
    """

    def __init__(self, properties: Mapping[str, Any]) -> None:
        definitions = (properties.get("uniqueKeyPolicy") or {}).get("uniqueKeys") or []
        self._keys = [[parse_path(path) for path in definition["paths"]] for definition in definitions]

    def claims(self, document: Mapping[str, Any]) -> list[tuple[int, bytes]]:
        """Return the values of a document for each unique key; a missing value counts as null."""
        return [
            (number, orjson.dumps([_value(document, path) for path in paths]))
            for number, paths in enumerate(self._keys)
        ]


class CosmosContainer:
    """Container and its items.

    Args:
        properties: The container document, with `id`, `_rid` and `partitionKey`.
        physical_partitions: The number of physical partitions.
    """

    def __init__(self, properties: dict[str, Any], physical_partitions: int) -> None:
        self.properties = properties
        self.rid = str(properties["_rid"])
        self.paths: list[str] = properties["partitionKey"]["paths"]
        self.ranges = [PhysicalRange(str(i), *bounds) for i, bounds in enumerate(split_hash_range(physical_partitions))]
        self.lsn = 0
        self.unique_keys = UniqueKeys(properties)
        self._claims: dict[tuple[PartitionKey, int, bytes], str] = {}
        self._partitions: dict[PartitionKey, dict[str, CosmosItem]] = {}
        self._items_by_key: dict[PartitionKey, ItemList] = {}
        self._created = 0
        self._expirations: list[tuple[float, int, PartitionKey, str, str]] = []

    def range_of(self, epk: str) -> PhysicalRange:
        """Return the physical partition that holds an effective partition key."""
        return next(part for part in self.ranges if part.low <= epk < part.high)

    def find(self, key: PartitionKey, item_id: str) -> CosmosItem | None:
        """Return the item with an id in a logical partition."""
        return self._partitions.get(key, {}).get(item_id)

    def partition_items(self, key: PartitionKey) -> ItemList:
        """Return the items of a logical partition in order of creation."""
        return self._items_by_key.get(key) or ItemList()

    def find_claim_holder(self, key: PartitionKey, claim: tuple[int, bytes]) -> str | None:
        """Return the id of the item that holds the values of a unique key, None if there is none."""
        return self._claims.get((key, *claim))

    def next_number(self) -> int:
        """Return the next creation number."""
        self._created += 1
        return self._created

    def commit(self, changes: Mapping[tuple[PartitionKey, str], CosmosItem | None]) -> None:
        """Apply changes: items to store, None for items to remove."""
        if changes:
            self.lsn += 1
        for (key, item_id), item in changes.items():
            old = self.find(key, item_id)
            if old is not None:
                self._release_claims(old)
            # An item that is created again has a new number.
            if old is not None and (item is None or item.number != old.number):
                self._remove_item(old)
            if item is not None:
                self._add_item(item)
        for (key, item_id), item in changes.items():
            for claim in self.unique_keys.claims(item.document) if item is not None else ():
                self._claims[key, *claim] = item_id

    def expire(self) -> None:
        """Remove expired items; the service hides them immediately and removes them later."""
        now_seconds = time.time()
        while self._expirations and self._expirations[0][0] <= now_seconds:
            _, _, key, item_id, etag = heappop(self._expirations)
            item = self.find(key, item_id)
            if item is not None and item.etag == etag:
                self.commit({(key, item_id): None})

    def _release_claims(self, item: CosmosItem) -> None:
        for claim in self.unique_keys.claims(item.document):
            self._claims.pop((item.key, *claim), None)

    def _remove_item(self, item: CosmosItem) -> None:
        del self._partitions[item.key][item.id]
        self._items_by_key[item.key].remove(item)
        self.range_of(item.epk).items.remove(item)

    def _add_item(self, item: CosmosItem) -> None:
        self._partitions.setdefault(item.key, {})[item.id] = item
        self._items_by_key.setdefault(item.key, ItemList()).put(item)
        self.range_of(item.epk).items.put(item)
        default = self.properties.get("defaultTtl")
        seconds = item.document.get("ttl", default)
        if default is not None and isinstance(seconds, int) and seconds > 0:
            heappush(self._expirations, (item.document["_ts"] + seconds, item.number, item.key, item.id, item.etag))


class Transaction:
    """Atomic changes to one container."""

    def __init__(self, container: CosmosContainer) -> None:
        self.container = container
        self._changes: dict[tuple[PartitionKey, str], CosmosItem | None] = {}
        self._claims: dict[tuple[PartitionKey, int, bytes], str] = {}

    def find(self, key: PartitionKey, item_id: str) -> CosmosItem | None:
        """Return an item as changed by this transaction."""
        if (key, item_id) in self._changes:
            return self._changes[key, item_id]
        return self.container.find(key, item_id)

    def store(self, document: Mapping[str, Any], key: PartitionKey, old: CosmosItem | None, etag: str) -> CosmosItem:
        """Store a document with a new ETag.

        Args:
            document: The document of the request.
            key: Its partition key.
            old: The item that it replaces, if any.
            etag: The new ETag, with its quotes.

        Raises:
            CosmosError: 413 if it is larger than 2 MB, 409 if another item has the same unique key values.
        """
        number = old.number if old else self.container.next_number()
        stored = {name: _to_double(value) for name, value in document.items() if name not in SYSTEM_FIELDS}
        rid = document_rid(self.container.rid, number)
        stored |= {
            "_rid": rid,
            "_self": f"{self.container.properties['_self']}docs/{rid}/",
            "_etag": etag,
            "_attachments": "attachments/",
            "_ts": int(time.time()),
        }
        text = orjson.dumps(stored)
        if len(text) > MAX_BYTES:
            raise CosmosError(413, "Request size is too large")
        item = CosmosItem(number, str(stored["id"]), key, hash_key(key), stored, text)
        self._claim(item)
        self._changes[key, item.id] = item
        return item

    def _claim(self, item: CosmosItem) -> None:
        for claim in self.container.unique_keys.claims(item.document):
            holder = self._claims.get((item.key, *claim)) or self.container.find_claim_holder(item.key, claim)
            # Old claims of an item that this transaction changed or removed do not count.
            changed = (item.key, holder) in self._changes and (item.key, *claim) not in self._claims
            if holder not in (None, item.id) and not changed:
                raise CosmosError(409, "Unique index constraint violation.")
            self._claims[item.key, *claim] = item.id

    def remove(self, item: CosmosItem) -> None:
        """Remove an item."""
        self._changes[item.key, item.id] = None

    def commit(self) -> None:
        """Apply the changes."""
        self.container.commit(self._changes)


def document_rid(container_rid: str, number: int) -> str:
    """Return the resource id of a document: the id of the container and eight more bytes."""
    return encode_rid(decode_rid(container_rid) + number.to_bytes(8, "little"))


def encode_rid(value: bytes) -> str:
    """Encode a resource id: base64 with - in place of /."""
    return base64.b64encode(value, b"+-").decode()


def decode_rid(text: str) -> bytes:
    """Decode a resource id."""
    return base64.b64decode(text, b"+-")


def _to_double(value: Any) -> Any:
    """Round integers to doubles, because Cosmos DB stores only doubles."""
    if isinstance(value, dict):
        return {name: _to_double(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_to_double(part) for part in value]
    if isinstance(value, int) and abs(value) > 1 << 53:
        return float(value)
    return value


def _value(document: Any, path: list[str]) -> Any:
    for step in path:
        if not isinstance(document, Mapping) or step not in document:
            return None
        document = document[step]
    return document
