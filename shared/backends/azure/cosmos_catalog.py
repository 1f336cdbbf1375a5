"""Catalog (the workspace's definitions) in Cosmos DB.

The head item lists the items and the pending audit events of the current version. All items are in one logical
partition. Items and events never change: a new version of the catalog creates items with new ids and lists them in a
new head item. A reader of a head item and of its listed items therefore sees exactly one version. The head item is
replaced under If-Match, in one transactional batch with the new items. Items that do not fit into the batch are stored
before; they become visible when the head item lists them.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import batched
from typing import Any, Final

from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import CATALOG
from shared.backends.azure.cosmos_item_store import MAX_OPERATIONS, CosmosItemStore, Item, NoChange
from shared.backends.azure.cosmos_requests import Operation
from shared.catalog import ports
from shared.catalog.ports import ItemOrigin, PendingEvent, StoredCatalog
from shared.errors import Kind, WorkspaceError
from shared.observability import logs
from shared.timestamps import format_rfc3339, parse_rfc3339

SCOPE: Final = "workspace"
HEAD: Final = "head"
MAX_BATCH_BYTES: Final = 1_000_000
"""Maximum size of the items in a batch: Cosmos DB limits a batch to 2 MB, and the head item must fit as well."""

MAX_ITEM_BYTES: Final = 2_000_000
"""Maximum size of a catalog item as a Cosmos DB item, which has at most 2 MiB."""
MAX_EVENT_BYTES: Final = 2_080_000
"""Maximum size of an audit event as a Cosmos DB item; the event about the removal of the largest catalog item fits."""

ABANDONED_SECONDS: Final = 3_600
"""Age in seconds at which items of a version that was never completed are deleted."""

READ_ATTEMPTS: Final = 20
_ALL: Final = "SELECT * FROM c WHERE c.scope = @scope"
_LOG = logs.get_logger("catalog")


class CosmosCatalogStore:
    """Implementation of CatalogStore: stores catalog items and the audit events of their changes in Cosmos DB.

    Args:
        account: Cosmos DB account of the workspace.
        batch_bytes: maximum size in bytes of the items of one batch.
    """

    def __init__(self, account: CosmosAccount, *, batch_bytes: int = MAX_BATCH_BYTES) -> None:
        self._store = CosmosItemStore(account, CATALOG, "CATALOG_UNAVAILABLE", "the catalog")
        self._batch_bytes = batch_bytes
        self._runtime = account.runtime

    async def read_version(self) -> int:
        head = await self._find_head_item()
        return int(head["version"]) if head else 0

    async def load(self) -> StoredCatalog:
        head, found = await self._load_head_and_listed_items(lambda head: head["items"].values())
        items = sorted((_catalog_item_from_stored(each) for each in found), key=lambda item: (item.kind, item.key))
        return StoredCatalog(int(head["version"]) if head else 0, tuple(items))

    async def save(
        self,
        puts: Sequence[ports.CatalogItem],
        kinds_and_keys_to_delete: Sequence[tuple[str, str]],
        events: Sequence[PendingEvent],
        expected_version: int,
    ) -> int:
        draft, started_at = _CatalogDraft(puts, events, self._runtime.new_id()), self._runtime.monotonic()
        draft.require_allowed_item_sizes()
        staged = await self._store_and_count_items_exceeding_batch(draft.items, draft.sizes)
        while True:
            if staged and self._runtime.monotonic() - started_at > ABANDONED_SECONDS / 2:
                # Another writer may already delete the stored items as remains of a crash.
                raise self._store.build_unavailable_error()
            head = await self._find_head_item()
            if (int(head["version"]) if head else 0) != expected_version:
                await self._delete_items_or_log_failure(item["id"] for item in draft.items[:staged])
                raise WorkspaceError(
                    Kind.CONFLICT, "CATALOG_CHANGED", "The catalog has changed since it was read; read it again."
                )
            next_head = draft.try_build_next_head_item(head, kinds_and_keys_to_delete)
            if next_head is None:
                raise self._store.build_unavailable_error()
            operations: list[Operation] = [("create", (item,), {}) for item in draft.items[staged:]]
            if await self._store.put_if_unchanged(head, next_head, operations) is not None:
                await self._delete_unlisted_items(head, next_head)
                return expected_version + 1

    async def list_pending_events(self) -> Sequence[PendingEvent]:
        head, found = await self._load_head_and_listed_items(lambda head: head["events"].values())
        by_id = {event["append"]: event for event in found}
        return [_pending_event_from_stored(by_id[append_id]) for append_id in head["order"]] if head else []

    async def delete_pending_events(self, append_ids: Sequence[str]) -> None:
        settled = set(append_ids)
        removed: list[str] = []

        def remove_appended_events(head: Item | None) -> Item | NoChange:
            if head is None or not settled & head["events"].keys():
                return None
            removed[:] = [place for append_id, place in head["events"].items() if append_id in settled]
            remaining = {append_id: place for append_id, place in head["events"].items() if append_id not in settled}
            return head | {"events": remaining, "order": [each for each in head["order"] if each in remaining]}

        await self._store.change(HEAD, SCOPE, remove_appended_events)
        await self._delete_items_or_log_failure(removed)

    async def _find_head_item(self) -> Item | None:
        return await self._store.read(HEAD, SCOPE)

    async def _load_head_and_listed_items(
        self, list_ids: Callable[[Item], Iterable[str]]
    ) -> tuple[Item | None, list[Item]]:
        """Return the catalog's head item, and the items with the ids that ``list_ids`` returns for this head item.

        Before the first version of the catalog is stored, the head item is None and the list is empty. If another
        version is stored during the call, the head item and the items are read again.
        """
        for _ in range(READ_ATTEMPTS):
            head = await self._find_head_item()
            wanted = set(list_ids(head)) if head else set()
            if not wanted:
                return head, []
            found = {item["id"]: item for item in await self._store.query_items(_ALL, SCOPE, scope=SCOPE)}
            if wanted <= found.keys():
                return head, [found[each] for each in wanted]
        _LOG.error("the head item of the catalog lists items that do not exist in Cosmos DB")
        raise self._store.build_unavailable_error()

    async def _store_and_count_items_exceeding_batch(self, items: Sequence[Item], item_bytes: Sequence[int]) -> int:
        """Store as many of the first items as necessary, so that the remaining ones fit into the head item's batch.

        Return the number of stored items.
        """
        first = 0
        while not self._can_fit_in_batch(item_bytes[first:]):
            size, count = 0, 0
            while count < MAX_OPERATIONS and first + count < len(items):
                size += item_bytes[first + count]
                if count and size > self._batch_bytes:
                    break
                count += 1
            staged: list[Operation] = [("create", (item,), {}) for item in items[first : first + count]]
            outcome = await self._store.commit_batch(SCOPE, staged)
            # The ids are new, so existing items come from an earlier attempt of this batch.
            if outcome.results is None and not outcome.may_be_applied:
                raise self._store.build_unavailable_error()
            first += count
        return first

    def _can_fit_in_batch(self, item_bytes: Sequence[int]) -> bool:
        return len(item_bytes) < MAX_OPERATIONS and sum(item_bytes) <= self._batch_bytes

    async def _delete_unlisted_items(self, head_before: Item | None, head_after: Item) -> None:
        """Delete the catalog items that a change has replaced, and old items of changes that were never finished.

        Args:
            head_before: head item before the change; None if it was the first change.
            head_after: head item after the change; items that it lists are not deleted.
        """
        listed = {*head_after["items"].values(), *head_after["events"].values(), HEAD}
        old = {*head_before["items"].values(), *head_before["events"].values()} if head_before else set()
        oldest = self._runtime.now().timestamp() - ABANDONED_SECONDS
        try:
            found = await self._store.query_items(
                "SELECT c.id, c._ts FROM c WHERE c.scope = @scope", SCOPE, scope=SCOPE
            )
            await self._delete_items_or_log_failure(
                item["id"] for item in found if item["id"] not in listed and (item["id"] in old or item["_ts"] < oldest)
            )
        except WorkspaceError:
            _LOG.warning("cannot delete replaced items of the catalog; a later change deletes them", exc_info=True)

    async def _delete_items_or_log_failure(self, item_ids: Iterable[str]) -> None:
        """Delete catalog items that the head item does not list.

        If a deletion fails, a warning is logged, and a later change of the catalog deletes the items.
        """
        for batch in batched(item_ids, MAX_OPERATIONS, strict=False):
            try:
                await self._store.commit_batch(SCOPE, [("delete", (item_id,), {}) for item_id in batch])
            except WorkspaceError:
                _LOG.warning("cannot delete replaced items of the catalog; a later change deletes them", exc_info=True)


class _CatalogDraft:
    """Cosmos DB items of a catalog change that is not stored yet; builds the head item that lists them."""

    def __init__(self, puts: Sequence[ports.CatalogItem], events: Sequence[PendingEvent], change: str) -> None:
        placed = [(f"{change}-{number}", put) for number, put in enumerate(puts)]
        pending = [(f"{change}-e{number}", event) for number, event in enumerate(events)]
        self._items = {_build_item_key(put.kind, put.key): place for place, put in placed}
        self._events = [(event.append_id, place) for place, event in pending]
        self.items: list[Item] = [_build_stored_item(place, put) for place, put in placed]
        self.items += [_build_stored_event(place, event) for place, event in pending]
        self.sizes = [_measure_json_bytes(item) for item in self.items]
        self._names = [f"{put.kind} {put.key!r}" for put in puts]
        self._names += [
            f"audit event of {each.event.get('EntityType')} {each.event.get('EntityID')!r}" for each in events
        ]

    def require_allowed_item_sizes(self) -> None:
        """Check that each item fits into Cosmos DB.

        Raises:
            WorkspaceError: TOO_LARGE ``RECORD_TOO_LARGE`` if an item is too large.
        """
        for item, name, size in zip(self.items, self._names, self.sizes, strict=True):
            limit = MAX_EVENT_BYTES if "event" in item else MAX_ITEM_BYTES
            if size > limit:
                detail = f"The {name} has {size} bytes as a Cosmos DB item; the maximum is {limit}. Shorten the item."
                raise WorkspaceError(Kind.TOO_LARGE, "RECORD_TOO_LARGE", detail)

    def try_build_next_head_item(self, head: Item | None, deletes: Sequence[tuple[str, str]]) -> Item | None:
        """Build the head item of the next catalog version.

        Return None if an audit event of this change is already stored and waits for the audit log.
        """
        before = head or {"id": HEAD, "scope": SCOPE, "version": 0, "items": {}, "events": {}, "order": []}
        items = before["items"] | self._items
        for kind, key in deletes:
            items.pop(_build_item_key(kind, key), None)
        ids = [append_id for append_id, _ in self._events]
        if len(set(ids) - before["events"].keys()) < len(self._events):
            return None
        changed = {"items": items, "events": before["events"] | dict(self._events), "order": [*before["order"], *ids]}
        return before | changed | {"version": int(before["version"]) + 1}


def _build_item_key(kind: str, key: str) -> str:
    return f"{kind}/{key}"


def _measure_json_bytes(item: Item) -> int:
    return len(json.dumps(item))


def _build_stored_item(item_id: str, item: ports.CatalogItem) -> Item:
    """Build the Cosmos DB item of a catalog item.

    The definition is stored as text, because Cosmos DB stores numbers as doubles.
    """
    times = {"createdAt": format_rfc3339(item.created_at), "updatedAt": format_rfc3339(item.updated_at)}
    members = {
        "kind": item.kind,
        "key": item.key,
        "origin": item.origin.value,
        "editedBy": item.edited_by,
    }
    return {"id": item_id, "scope": SCOPE, **members, **times, "definition": json.dumps(item.definition)}


def _build_stored_event(item_id: str, event: PendingEvent) -> Item:
    members: dict[str, Any] = {"append": event.append_id, "target": event.target, "userId": event.user_id}
    return {"id": item_id, "scope": SCOPE, **members, "event": json.dumps(event.event)}


def _catalog_item_from_stored(item: Item) -> ports.CatalogItem:
    return ports.CatalogItem(
        kind=item["kind"],
        key=item["key"],
        definition=json.loads(item["definition"]),
        origin=ItemOrigin(item["origin"]),
        created_at=parse_rfc3339(item["createdAt"]),
        updated_at=parse_rfc3339(item["updatedAt"]),
        edited_by=item["editedBy"],
    )


def _pending_event_from_stored(item: Item) -> PendingEvent:
    return PendingEvent(item["append"], item["target"], item["userId"], json.loads(item["event"]))
