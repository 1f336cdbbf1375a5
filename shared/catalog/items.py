"""Kinds of catalog items, and the conversion of a workspace document to items."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from shared.catalog.models import (
    Connection,
    Container,
    DataStore,
    Member,
    Model,
    Policies,
    Surface,
    Tier,
    TierLimits,
    WarmQuery,
    WorkspaceDocument,
    WorkspaceInfo,
)

SINGLETON_KEY: Final = "-"
"""Key of kinds that have a single item."""

type ItemId = tuple[str, str]
"""Kind and key."""


class ItemKind(StrEnum):
    """Kinds of items, in the order in which they are applied."""

    WORKSPACE = "workspace"
    SETTINGS = "settings"
    MEMBER = "member"
    CONNECTION = "connection"
    SURFACE = "surface"
    WARM_QUERY = "warmQuery"
    DATA_STORE = "dataStore"
    CONTAINER = "container"


class WorkspaceSettings(Model):
    """Tier, limits and policies of the workspace."""

    tier: Tier = Tier.FREE
    limits: TierLimits | None = None
    policies: Policies = Policies()


MODELS: Final[Mapping[ItemKind, type[Model]]] = {
    ItemKind.WORKSPACE: WorkspaceInfo,
    ItemKind.SETTINGS: WorkspaceSettings,
    ItemKind.MEMBER: Member,
    ItemKind.CONNECTION: Connection,
    ItemKind.SURFACE: Surface,
    ItemKind.WARM_QUERY: WarmQuery,
    ItemKind.DATA_STORE: DataStore,
    ItemKind.CONTAINER: Container,
}


def to_definition(model: Model) -> dict[str, Any]:
    """Return the JSON form of an item's model, including defaults; equal models give equal forms."""
    return model.model_dump(mode="json", by_alias=True)


def build_container_key(database: str, name: str) -> str:
    """Return the key of a container's record; its first part is the lookup of the database."""
    return f"{database}/{name}"


def items_from_document(document: WorkspaceDocument) -> dict[ItemId, dict[str, Any]]:
    """Return the definitions of a document by kind and key.

    Containers are separate items, so that containers created through the API can belong to a declared database.
    """
    return {(kind, key): to_definition(model) for kind, key, model in _iter_models(document)}


def _iter_models(document: WorkspaceDocument) -> Iterator[tuple[ItemKind, str, Model]]:
    yield ItemKind.WORKSPACE, SINGLETON_KEY, document.workspace
    settings = WorkspaceSettings(tier=document.tier, limits=document.limits, policies=document.policies)
    yield ItemKind.SETTINGS, SINGLETON_KEY, settings
    yield from ((ItemKind.MEMBER, member.id, member) for member in document.team)
    yield from ((ItemKind.CONNECTION, connection.lookup, connection) for connection in document.connections)
    yield from ((ItemKind.SURFACE, surface.lookup, surface) for surface in document.surfaces)
    yield from ((ItemKind.WARM_QUERY, query.lookup, query) for query in document.warm_queries)
    for store in document.data_stores:
        without_containers = tuple(database.model_copy(update={"containers": ()}) for database in store.databases)
        yield ItemKind.DATA_STORE, store.lookup, store.model_copy(update={"databases": without_containers})
        for database in store.databases:
            for container in database.containers:
                yield ItemKind.CONTAINER, build_container_key(database.lookup, container.name), container
