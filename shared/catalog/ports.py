"""Where the catalog is kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol


class ItemOrigin(StrEnum):
    """What made an item; apply changes and removes only what an apply declared."""

    DECLARED = "declared"
    API = "api"


@dataclass(frozen=True, slots=True)
class CatalogItem:
    """One stored thing of the catalog.

    Attributes:
        kind: ``workspace``, ``settings`` (tier, limits, policies), ``member``, ``connection``, ``surface``,
            ``warmQuery``, ``dataStore`` (its databases without their containers) or ``container``.
        key: unique within the kind: lookup, member id, ``{database}/{name}`` for a container, or ``-`` where there is
            one only.
        definition: the JSON form of the item's model.
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
    """An audit event that belongs to a change and is not yet known to stand in its chain.

    Attributes:
        append_id: unique; appending it twice stores it once.
        target: the chain's target, for instance ``PlatformConfig``.
        user_id: the actor.
        event: ActionType, EntityType, EntityID and the optional members.
    """

    append_id: str
    target: str
    user_id: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredCatalog:
    """All items as of one version."""

    version: int
    items: tuple[CatalogItem, ...]


class CatalogStore(Protocol):
    """Keeps catalog items and, beside them, the audit events of their changes (a transactional outbox)."""

    async def version(self) -> int:
        """Return the current version; 0 before the first change. Cheap: asked every few seconds."""
        ...

    async def load(self) -> StoredCatalog:
        """Return all items with their version, consistently."""
        ...

    async def save(
        self,
        puts: Sequence[CatalogItem],
        deletes: Sequence[tuple[str, str]],
        events: Sequence[PendingEvent],
        expected_version: int,
    ) -> int:
        """Apply all changes and keep their events, or nothing; return the new version.

        Raises:
            WorkspaceError: CONFLICT ``CATALOG_CHANGED`` when the version is no longer the expected one.
        """
        ...

    async def pending_events(self) -> Sequence[PendingEvent]:
        """Return the events not yet settled, oldest first."""
        ...

    async def settle(self, append_ids: Sequence[str]) -> None:
        """Forget events that now stand in their chain."""
        ...
