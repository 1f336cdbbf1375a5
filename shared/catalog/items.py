"""The workspace as the items that the store keeps: which kinds there are, and how a document becomes them."""

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
"""Key of the kinds that have one item."""

type ItemId = tuple[str, str]
"""Kind and key."""


class ItemKind(StrEnum):
    """The kinds of items, in the order in which they are applied."""

    WORKSPACE = "workspace"
    SETTINGS = "settings"
    MEMBER = "member"
    CONNECTION = "connection"
    SURFACE = "surface"
    WARM_QUERY = "warmQuery"
    DATA_STORE = "dataStore"
    CONTAINER = "container"


class WorkspaceSettings(Model):
    """What the document says of the workspace as a whole."""

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
    """Return the JSON form of an item's model: equal models give equal forms, defaults written out."""
    return model.model_dump(mode="json", by_alias=True)


def container_key(database: str, name: str) -> str:
    """Return the key of a container's record; its first part is the database's lookup."""
    return f"{database}/{name}"


def items_from_document(document: WorkspaceDocument) -> dict[ItemId, dict[str, Any]]:
    """Return the definitions that a document declares, by kind and key.

    Containers are items of their own, so that one made through the API can stand in a declared database.
    """
    return {(kind, key): to_definition(model) for kind, key, model in _models(document)}


def _models(document: WorkspaceDocument) -> Iterator[tuple[ItemKind, str, Model]]:
    yield ItemKind.WORKSPACE, SINGLETON_KEY, document.workspace
    settings = WorkspaceSettings(tier=document.tier, limits=document.limits, policies=document.policies)
    yield ItemKind.SETTINGS, SINGLETON_KEY, settings
    yield from ((ItemKind.MEMBER, member.id, member) for member in document.team)
    yield from ((ItemKind.CONNECTION, connection.lookup, connection) for connection in document.connections)
    yield from ((ItemKind.SURFACE, surface.lookup, surface) for surface in document.surfaces)
    yield from ((ItemKind.WARM_QUERY, query.lookup, query) for query in document.warm_queries)
    for store in document.data_stores:
        bare = tuple(database.model_copy(update={"containers": ()}) for database in store.databases)
        yield ItemKind.DATA_STORE, store.lookup, store.model_copy(update={"databases": bare})
        for database in store.databases:
            for container in database.containers:
                yield ItemKind.CONTAINER, container_key(database.lookup, container.name), container
