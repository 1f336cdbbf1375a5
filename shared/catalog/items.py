"""Kinds of catalog items, and the conversion of a workspace document to items."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, Final

from pydantic import ConfigDict, Field

from shared.catalog.models import (
    AlertRule,
    Connection,
    Container,
    DataStore,
    Instant,
    Member,
    Model,
    OAuthClient,
    Policies,
    StoredWarmQuery,
    Surface,
    Tier,
    TierLimits,
    WorkspaceDocument,
    WorkspaceInfo,
)

SINGLETON_KEY: Final = "-"
"""Key of the items that exist once in a workspace."""

type ItemId = tuple[str, str]
"""Kind and key, which together identify a catalog item."""


class ItemKind(StrEnum):
    """Kinds of catalog items, in the order of a plan's additions and edits; removals follow in the reverse order."""

    WORKSPACE = "workspace"
    SETTINGS = "settings"
    MEMBER = "member"
    CONNECTION = "connection"
    SURFACE = "surface"
    WARM_QUERY = "warmQuery"
    DATA_STORE = "dataStore"
    CONTAINER = "container"
    ALERT_RULE = "alertRule"
    OAUTH_CLIENT = "oauthClient"
    MEMBER_STATE = "memberState"


class MemberState(Model):
    """State of a team member that remains after the member's removal; workspace documents cannot declare it.

    Attributes:
        tokens_valid_from: time at which the member was last disabled or enabled; earlier tokens stay invalid.
        retired_at: time of the last removal; earlier API keys and tokens stay invalid.
        service_until: time at which the member last stopped being a service, by an edit or by its removal. API keys of
            the member from before this time count as keys of a service: the person who created such a key possibly
            made edits with it under the member's id.
    """

    # A newer version can store further properties during an update. They stay stored if this version changes the state.
    model_config = ConfigDict(extra="allow")

    tokens_valid_from: Instant | None = Field(None, alias="tokensValidFrom")
    retired_at: Instant | None = Field(None, alias="retiredAt")
    service_until: Instant | None = Field(None, alias="serviceUntil")


class WorkspaceSettings(Model):
    """Settings of the whole workspace as a catalog item: tier, limits and policies."""

    tier: Tier = Tier.FREE
    limits: TierLimits | None = None
    policies: Policies = Policies()


MODELS: Final[Mapping[ItemKind, type[Model]]] = {
    ItemKind.WORKSPACE: WorkspaceInfo,
    ItemKind.SETTINGS: WorkspaceSettings,
    ItemKind.MEMBER: Member,
    ItemKind.CONNECTION: Connection,
    ItemKind.SURFACE: Surface,
    ItemKind.WARM_QUERY: StoredWarmQuery,
    ItemKind.DATA_STORE: DataStore,
    ItemKind.CONTAINER: Container,
    ItemKind.ALERT_RULE: AlertRule,
    ItemKind.OAUTH_CLIENT: OAuthClient,
    ItemKind.MEMBER_STATE: MemberState,
}
UNDECLARED: Final = frozenset({ItemKind.MEMBER_STATE})
"""Kinds of catalog items that workspace documents cannot declare."""


def to_definition(model: Model) -> dict[str, Any]:
    """Serialise the model of a catalog item as JSON values, including defaults; equal models give equal values."""
    # A workspace can have thousands of items; the serializer is twice as fast as `model_dump`, which calls it.
    definition: dict[str, Any] = model.__pydantic_serializer__.to_python(model, mode="json", by_alias=True)
    return definition


def build_container_key(database_lookup: str, container_name: str) -> str:
    """Build the catalog key of a container's record: ``{database_lookup}/{container_name}``."""
    return f"{database_lookup}/{container_name}"


def definitions_from_document(document: WorkspaceDocument) -> dict[ItemId, dict[str, Any]]:
    """Convert a workspace document to the definitions of its catalog items, by kind and key.

    Containers are separate items, so that containers created through the API can belong to a declared database.
    """
    return {(kind, key): to_definition(model) for kind, key, model in _iterate_kinds_keys_and_models(document)}


def _iterate_kinds_keys_and_models(document: WorkspaceDocument) -> Iterator[tuple[ItemKind, str, Model]]:
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
    yield from ((ItemKind.ALERT_RULE, rule.lookup, rule) for rule in document.alert_rules)
    yield from ((ItemKind.OAUTH_CLIENT, client.id, client) for client in document.oauth_clients)
