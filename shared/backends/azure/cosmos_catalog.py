"""The catalog in Cosmos DB: one head item that names the items and pending events of the current version.

Everything lies in one logical partition. Items and events are never changed, only made under new ids and named by the
next head; so whoever reads a head and then what it names has read one version. The head is replaced under If-Match with
what is new in the same transactional batch; what does not fit is stored before, and counts once the head names it.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from itertools import batched
from typing import Any, Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CATALOG
from shared.backends.azure.cosmos_item_store import MAX_OPERATIONS, CosmosItemStore, Item
from shared.backends.azure.cosmos_requests import Operation
from shared.catalog import ports
from shared.catalog.ports import ItemOrigin, PendingEvent, StoredCatalog
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.timestamps import parse_rfc3339, rfc3339

SCOPE: Final = "workspace"
HEAD: Final = "head"
MAX_BATCH_BYTES: Final = 1_000_000
"""A batch holds two megabytes, and the head, which names everything, must fit as well."""

ABANDONED_SECONDS: Final = 3_600
"""What was stored for a version that never came to be is removed when it is this old."""

READ_ATTEMPTS: Final = 20
_ALL: Final = "SELECT * FROM c WHERE c.scope = @scope"
_LOG = logs.get_logger("catalog")


class CosmosCatalogStore:
    """The CatalogStore port over Cosmos DB.

    Args:
        account: where the container is.
        batch_bytes: how much goes into a batch.
    """

    def __init__(self, account: CosmosAccount, *, batch_bytes: int = MAX_BATCH_BYTES) -> None:
        self._state = CosmosItemStore(account, CATALOG, "CATALOG_UNAVAILABLE", "the catalog")
        self._batch_bytes = batch_bytes

    async def version(self) -> int:
        """Return the current version: one point read of the head."""
        head = await self._head()
        return int(head["version"]) if head else 0

    async def load(self) -> StoredCatalog:
        """Return all items, by kind and key, with their version."""
        head, found = await self._named(lambda head: head["items"].values())
        items = sorted((_item(each) for each in found), key=lambda item: (item.kind, item.key))
        return StoredCatalog(int(head["version"]) if head else 0, tuple(items))

    async def save(
        self,
        puts: Sequence[ports.CatalogItem],
        deletes: Sequence[tuple[str, str]],
        events: Sequence[PendingEvent],
        expected_version: int,
    ) -> int:
        """Apply all changes and keep their events, or nothing; return the new version."""
        made, begun = _Made(puts, events), time.time()
        staged = await self._stage(made.items)
        while True:
            if staged and time.time() - begun > ABANDONED_SECONDS / 2:
                # Somebody may remove what was stored before, as the rest of a crash.
                raise self._state.unavailable()
            head = await self._head()
            if (int(head["version"]) if head else 0) != expected_version:
                await self._remove(item["id"] for item in made.items[:staged])
                raise WorkspaceError(Kind.CONFLICT, "CATALOG_CHANGED", "the catalog was changed by someone else")
            following = made.following(head, deletes)
            if following is None:
                raise self._state.unavailable()
            beside: list[Operation] = [("create", (item,), {}) for item in made.items[staged:]]
            if await self._state.put(head, following, beside) is not None:
                await self._tidy(head, following)
                return expected_version + 1

    async def pending_events(self) -> Sequence[PendingEvent]:
        """Return the events not yet settled, oldest first."""
        head, found = await self._named(lambda head: head["events"].values())
        by_id = {event["append"]: event for event in found}
        return [_event(by_id[append_id]) for append_id in head["order"]] if head else []

    async def settle(self, append_ids: Sequence[str]) -> None:
        """Forget events that now stand in their chain."""
        settled = set(append_ids)
        gone: list[str] = []

        def without(head: Item | None) -> Item | None:
            if head is None or not settled & head["events"].keys():
                return None
            gone[:] = [place for append_id, place in head["events"].items() if append_id in settled]
            left = {append_id: place for append_id, place in head["events"].items() if append_id not in settled}
            return head | {"events": left, "order": [each for each in head["order"] if each in left]}

        await self._state.change(HEAD, SCOPE, without)
        await self._remove(gone)

    async def _head(self) -> Item | None:
        return await self._state.read(HEAD, SCOPE)

    async def _named(self, names: Callable[[Item], Iterable[str]]) -> tuple[Item | None, list[Item]]:
        """Return a head and items that it names; anew when another version came between."""
        for _ in range(READ_ATTEMPTS):
            head = await self._head()
            wanted = set(names(head)) if head else set()
            if not wanted:
                return head, []
            found = {item["id"]: item for item in await self._state.find(_ALL, SCOPE, scope=SCOPE)}
            if wanted <= found.keys():
                return head, [found[each] for each in wanted]
        _LOG.error("the catalog names items that are not there")
        raise self._state.unavailable()

    async def _stage(self, items: Sequence[Item]) -> int:
        """Store what does not fit the last batch, and return how many items that are."""
        first = 0
        while not self._fits(items[first:]):
            size, count = 0, 0
            while count < MAX_OPERATIONS and first + count < len(items):
                size += _bytes(items[first + count])
                if count and size > self._batch_bytes:
                    break
                count += 1
            staged: list[Operation] = [("create", (item,), {}) for item in items[first : first + count]]
            results, uncertain = await self._state.commit(SCOPE, staged)
            # Their ids are new: what exists was made by an earlier try of this batch.
            if results is None and not uncertain:
                raise self._state.unavailable()
            first += count
        return first

    def _fits(self, items: Sequence[Item]) -> bool:
        return len(items) < MAX_OPERATIONS and sum(map(_bytes, items)) <= self._batch_bytes

    async def _tidy(self, before: Item | None, after: Item) -> None:
        """Remove what the new head names no more, and what others stored and never named."""
        named = {*after["items"].values(), *after["events"].values(), HEAD}
        old = {*before["items"].values(), *before["events"].values()} if before else set()
        oldest = time.time() - ABANDONED_SECONDS
        try:
            found = await self._state.find("SELECT c.id, c._ts FROM c WHERE c.scope = @scope", SCOPE, scope=SCOPE)
            await self._remove(
                item["id"] for item in found if item["id"] not in named and (item["id"] in old or item["_ts"] < oldest)
            )
        except WorkspaceError:
            _LOG.warning("replaced items of the catalog stay for now", exc_info=True)

    async def _remove(self, ids: Iterable[str]) -> None:
        """Delete items that no head names; what stays is removed after a later change."""
        for some in batched(ids, MAX_OPERATIONS, strict=False):
            try:
                await self._state.commit(SCOPE, [("delete", (item_id,), {}) for item_id in some])
            except WorkspaceError:
                _LOG.warning("replaced items of the catalog stay for now", exc_info=True)


class _Made:
    """The items of a change, under ids of their own, and the head that names them."""

    def __init__(self, puts: Sequence[ports.CatalogItem], events: Sequence[PendingEvent]) -> None:
        change = uuid.uuid4().hex
        placed = [(f"{change}-{number}", put) for number, put in enumerate(puts)]
        pending = [(f"{change}-e{number}", event) for number, event in enumerate(events)]
        self._items = {_key(put.kind, put.key): place for place, put in placed}
        self._events = [(event.append_id, place) for place, event in pending]
        self.items: list[Item] = [_stored_item(place, put) for place, put in placed]
        self.items += [_stored_event(place, event) for place, event in pending]

    def following(self, head: Item | None, deletes: Sequence[tuple[str, str]]) -> Item | None:
        """Return the next head; None where one of the events is pending already."""
        before = head or {"id": HEAD, "scope": SCOPE, "version": 0, "items": {}, "events": {}, "order": []}
        items = before["items"] | self._items
        for kind, key in deletes:
            items.pop(_key(kind, key), None)
        ids = [append_id for append_id, _ in self._events]
        if len(set(ids) - before["events"].keys()) < len(self._events):
            return None
        changed = {"items": items, "events": before["events"] | dict(self._events), "order": [*before["order"], *ids]}
        return before | changed | {"version": int(before["version"]) + 1}


def _key(kind: str, key: str) -> str:
    return f"{kind}/{key}"


def _bytes(item: Item) -> int:
    return len(json.dumps(item))


def _stored_item(place: str, item: ports.CatalogItem) -> Item:
    """Return the item as it stands; the definition as text, since Cosmos holds numbers as doubles."""
    times = {"createdAt": rfc3339(item.created_at), "updatedAt": rfc3339(item.updated_at)}
    named = {"kind": item.kind, "key": item.key, "origin": item.origin.value, "editedBy": item.edited_by}
    return {"id": place, "scope": SCOPE, **named, **times, "definition": json.dumps(item.definition)}


def _stored_event(place: str, event: PendingEvent) -> Item:
    members: dict[str, Any] = {"append": event.append_id, "target": event.target, "userId": event.user_id}
    return {"id": place, "scope": SCOPE, **members, "event": json.dumps(event.event)}


def _item(item: Item) -> ports.CatalogItem:
    return ports.CatalogItem(
        kind=item["kind"],
        key=item["key"],
        definition=json.loads(item["definition"]),
        origin=ItemOrigin(item["origin"]),
        created_at=parse_rfc3339(item["createdAt"]),
        updated_at=parse_rfc3339(item["updatedAt"]),
        edited_by=item["editedBy"],
    )


def _event(item: Item) -> PendingEvent:
    return PendingEvent(item["append"], item["target"], item["userId"], json.loads(item["event"]))
