"""Storage port of the catalog, and the records that it stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Protocol


class ItemOrigin(StrEnum):
    """Origin of a catalog item: a workspace document or the API.

    Applying a workspace document changes only items from workspace documents.
    """

    DECLARED = "declared"
    API = "api"


@dataclass(frozen=True, slots=True)
class CatalogItem:
    """Stored item of the catalog.

    Attributes:
        kind: a value of :class:`shared.catalog.items.ItemKind`, such as ``connection``.
        key: unique within the kind: lookup (id in URLs), id of a member or OAuth client, ``{database}/{name}`` for a
            container, or ``-`` for kinds with a single item.
        definition: JSON form of the item's model; that of a ``dataStore`` has databases without containers, because
            containers are separate items.
        origin: a workspace document or the API.
        edited_by: id of the user who made the last edit.
    """

    kind: str
    key: str
    definition: dict[str, Any]
    origin: ItemOrigin
    created_at: datetime
    updated_at: datetime
    edited_by: str


CONTEXT: Final = "_context"
"""Property of the pending event of a changed warm query, with data for webhooks: ``editedBy`` and ``changedAt``."""

UNAUDITED: Final = ""
"""Target of a pending event that is only announced, because the workspace has no provenance."""


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """Audit event of a catalog change that is possibly not yet appended to its audit chain.

    Attributes:
        append_id: unique id; a second append with the same id stores nothing.
        target: name of the kind of audit chain, for instance ``PlatformConfig``; :data:`UNAUDITED` for no chain.
        user_id: user who made the change.
        event: ActionType, EntityType, EntityID and optional properties; also the property :data:`CONTEXT`, which is for
            webhooks only and is not appended to the chain.
    """

    append_id: str
    target: str
    user_id: str
    event: dict[str, Any]


type CatalogVersion = int
"""Version of the catalog, which grows with each change; 0 before the first change."""


@dataclass(frozen=True, slots=True)
class StoredCatalog:
    """All items of the catalog, with the version of the catalog that contains them."""

    version: CatalogVersion
    items: tuple[CatalogItem, ...]


class PendingEventStore(Protocol):
    """Storage of audit events that must still be appended to their audit chains (a transactional outbox)."""

    async def list_pending_events(self) -> Sequence[PendingEvent]:
        """Return the audit events that must still be appended to their chains, oldest first."""
        ...

    async def delete_pending_events(self, append_ids: Sequence[str]) -> None:
        """Delete pending audit events that were appended to their chains."""
        ...


class CatalogStore(PendingEventStore, Protocol):
    """Storage of catalog items, and of the audit events of their changes."""

    async def read_version(self) -> CatalogVersion:
        """Read the catalog's version number, 0 before the first change.

        This is called every few seconds, so it must be fast.
        """
        ...

    async def load(self) -> StoredCatalog:
        """Read all items and their version as a consistent snapshot."""
        ...

    async def save(
        self,
        puts: Sequence[CatalogItem],
        kinds_and_keys_to_delete: Sequence[tuple[str, str]],
        events: Sequence[PendingEvent],
        expected_version: CatalogVersion,
    ) -> CatalogVersion:
        """Save the changes of items and the audit events of these changes in one transaction; return the new version.

        Args:
            puts: items to create or replace.
            kinds_and_keys_to_delete: kinds and keys of items to delete.
            events: audit events of the changes, which are stored as pending events.
            expected_version: version of the catalog for which the changes were computed.

        Raises:
            WorkspaceError: CONFLICT ``CATALOG_CHANGED`` if the stored catalog does not have the expected version.
        """
        ...
