"""Storage port of the catalog, and the records that it stores."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class ItemOrigin(StrEnum):
    """Origin of an item; an apply changes and removes only declared items."""

    DECLARED = "declared"
    API = "api"


@dataclass(frozen=True, slots=True)
class CatalogItem:
    """Stored item of the catalog.

    Attributes:
        kind: ``workspace``, ``settings`` (tier, limits, policies), ``member``, ``connection``, ``surface``,
            ``warmQuery``, ``dataStore`` (its databases without their containers) or ``container``.
        key: unique within the kind: lookup, member id, ``{database}/{name}`` for a container, or ``-`` for kinds
            with a single item.
        definition: JSON form of the item's model.
    """

    kind: str
    key: str
    definition: dict[str, Any]
    origin: ItemOrigin
    created_at: datetime
    updated_at: datetime
    edited_by: str


@dataclass(frozen=True, slots=True)
class PendingEvent:
    """Audit event of a change whose append to the chain is not yet confirmed.

    Attributes:
        append_id: unique id; a second append with it stores nothing.
        target: target of the chain, for instance ``PlatformConfig``.
        user_id: the actor.
        event: ActionType, EntityType, EntityID and the optional members.
    """

    append_id: str
    target: str
    user_id: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredCatalog:
    """All items of one version."""

    version: int
    items: tuple[CatalogItem, ...]


class CatalogStore(Protocol):
    """Storage of catalog items, and of the audit events of their changes (a transactional outbox)."""

    async def version(self) -> int:
        """Return the current version; 0 before the first change. Called every few seconds, so it must be cheap."""
        ...

    async def load(self) -> StoredCatalog:
        """Return all items and their version as a consistent snapshot."""
        ...

    async def save(
        self,
        puts: Sequence[CatalogItem],
        deletes: Sequence[tuple[str, str]],
        events: Sequence[PendingEvent],
        expected_version: int,
    ) -> int:
        """Save all changes and their events in one transaction; return the new version.

        Raises:
            WorkspaceError: CONFLICT ``CATALOG_CHANGED`` if the version is not the expected one.
        """
        ...

    async def pending_events(self) -> Sequence[PendingEvent]:
        """Return the events that are not yet settled, oldest first."""
        ...

    async def settle(self, append_ids: Sequence[str]) -> None:
        """Delete events that were appended to their chains."""
        ...
