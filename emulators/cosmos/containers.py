"""One container's items in memory: by logical partition and id, and in order of creation."""

import base64
import time
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any

import orjson

from emulators.cosmos.partition_keys import PartitionKey, hash_key, split_hash_range
from emulators.cosmos.sort_index import SortEntry, SortIndex
from emulators.cosmos.unique_keys import UniqueKeys
from emulators.cosmos.wire import MAX_BYTES, CosmosError

SYSTEM_FIELDS = frozenset({"_rid", "_self", "_etag", "_attachments", "_ts"})


@dataclass(frozen=True, slots=True)
class CosmosItem:
    """One stored document.

    Attributes:
        number: Its place in the order of creation; a replacement keeps it.
        id: Its id.
        key: Its logical partition.
        epk: The effective partition key.
        document: The document with the system's fields.
        text: The document's bytes.
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
    """Items in order of creation, found by position."""

    def __init__(self) -> None:
        self._numbers: list[int] = []
        self._items: dict[int, CosmosItem] = {}
        self._indexes: dict[tuple[str | int, ...], SortIndex] = {}

    def put(self, item: CosmosItem) -> None:
        """Adds an item, or replaces the one with its number."""
        old = self._items.get(item.number)
        if old is None:
            insort(self._numbers, item.number)
        for index in self._indexes.values():
            if old is not None:
                index.remove(old.number, old.document)
            index.add(item.number, item.document)
        self._items[item.number] = item

    def remove(self, item: CosmosItem) -> None:
        """Takes an item away."""
        old = self._items.pop(item.number)
        for index in self._indexes.values():
            index.remove(old.number, old.document)
        del self._numbers[bisect_left(self._numbers, item.number)]

    def after(self, number: int) -> Iterator[CosmosItem]:
        """Gives the items created after a number; the shelf must not change meanwhile."""
        for index in range(bisect_right(self._numbers, number), len(self._numbers)):
            yield self._items[self._numbers[index]]

    def iterate_sorted_after(
        self, path: tuple[str | int, ...], last: SortEntry | None, *, descending: bool
    ) -> Iterator[CosmosItem]:
        """Gives the items by the value at a path that follow an entry; the shelf must not change meanwhile."""
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
    """One physical partition: a part of the hash range, from `low` up to but without `high`."""

    id: str
    low: str
    high: str
    items: ItemList = field(default_factory=ItemList)


class CosmosContainer:
    """A container and its items.

    Args:
        properties: The container as it is answered, with `id`, `_rid` and `partitionKey`.
        physical_partitions: How many physical partitions it shows.
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
        """Gives the physical partition that holds an effective partition key."""
        return next(part for part in self.ranges if part.low <= epk < part.high)

    def find(self, key: PartitionKey, item_id: str) -> CosmosItem | None:
        """Gives the item with an id in a logical partition."""
        return self._partitions.get(key, {}).get(item_id)

    def partition_items(self, key: PartitionKey) -> ItemList:
        """Gives the items of one logical partition in order of creation."""
        return self._items_by_key.get(key) or ItemList()

    def find_claim_holder(self, key: PartitionKey, claim: tuple[int, bytes]) -> str | None:
        """Gives the id of the item in a logical partition that has these values of a unique key."""
        return self._claims.get((key, *claim))

    def next_number(self) -> int:
        """Gives the next place in the order of creation."""
        self._created += 1
        return self._created

    def commit(self, changes: Mapping[tuple[PartitionKey, str], CosmosItem | None]) -> None:
        """Makes changes: items to store, and None for what is to be removed."""
        if changes:
            self.lsn += 1
        for (key, item_id), item in changes.items():
            old = self.find(key, item_id)
            if old is not None:
                self._release_claims(old)
            # A re-created item has another number than the one it follows.
            if old is not None and (item is None or item.number != old.number):
                self._remove_item(old)
            if item is not None:
                self._add_item(item)
        for (key, item_id), item in changes.items():
            for claim in self.unique_keys.claims(item.document) if item is not None else ():
                self._claims[key, *claim] = item_id

    def expire(self) -> None:
        """Removes the items whose time to live is over; the service does so when it finds the time, but hides them."""
        moment = time.time()
        while self._expirations and self._expirations[0][0] <= moment:
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
    """Changes to one container that are made together or not at all."""

    def __init__(self, container: CosmosContainer) -> None:
        self.container = container
        self._changes: dict[tuple[PartitionKey, str], CosmosItem | None] = {}
        self._claims: dict[tuple[PartitionKey, int, bytes], str] = {}

    def find(self, key: PartitionKey, item_id: str) -> CosmosItem | None:
        """Gives an item as this transaction has left it."""
        if (key, item_id) in self._changes:
            return self._changes[key, item_id]
        return self.container.find(key, item_id)

    def store(self, document: Mapping[str, Any], key: PartitionKey, old: CosmosItem | None, etag: str) -> CosmosItem:
        """Stores a document under a new ETag.

        Args:
            document: The document as sent.
            key: Its partition key.
            old: The item that it replaces, if any.
            etag: The new ETag, with its quotes.

        Raises:
            Refusal: 413, it is larger than 2 MB; 409, another item has its values of a unique key.
        """
        number = old.number if old else self.container.next_number()
        stored = {name: _as_double(value) for name, value in document.items() if name not in SYSTEM_FIELDS}
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
            # An item that this transaction removed or changed holds what it has claimed here, if anything.
            changed = (item.key, holder) in self._changes and (item.key, *claim) not in self._claims
            if holder not in (None, item.id) and not changed:
                raise CosmosError(409, "Unique index constraint violation.")
            self._claims[item.key, *claim] = item.id

    def remove(self, item: CosmosItem) -> None:
        """Removes an item."""
        self._changes[item.key, item.id] = None

    def commit(self) -> None:
        """Makes the changes."""
        self.container.commit(self._changes)


def document_rid(container_rid: str, number: int) -> str:
    """Gives a document's resource id: the container's, and eight bytes more."""
    return encode_rid(decode_rid(container_rid) + number.to_bytes(8, "little"))


def encode_rid(value: bytes) -> str:
    """Writes a resource id as Cosmos does: base64 with - for /."""
    return base64.b64encode(value, b"+-").decode()


def decode_rid(text: str) -> bytes:
    """Reads a resource id."""
    return base64.b64decode(text, b"+-")


def _as_double(value: Any) -> Any:
    """Rounds whole numbers as a double does; Cosmos holds no others."""
    if isinstance(value, dict):
        return {name: _as_double(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_as_double(part) for part in value]
    if isinstance(value, int) and abs(value) > 1 << 53:
        return float(value)
    return value
