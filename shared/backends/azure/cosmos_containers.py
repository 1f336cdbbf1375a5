"""Definitions of the service's own Cosmos DB containers; the Bicep templates use the same definitions."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from azure.cosmos import PartitionKey
from azure.cosmos.aio import DatabaseProxy

from shared.provenance.ports import PROJECTED, Target

ITEMS_DECIDE: Final = -1
"""Default time to live of a container in which only items with a property ``ttl`` expire."""

_HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class ContainerDefinition:
    """Definition of a Cosmos DB container.

    Attributes:
        name: name of the container.
        partition_key_path: path of the partition key (version 2).
        indexed_paths: paths of the properties by which queries filter; ids are always indexed.
        unique_key_paths: paths of the unique keys.
        default_ttl: seconds from the last write of an item to its expiry; :data:`ITEMS_DECIDE` if each item contains
            its own time to live; None if items never expire.
    """

    name: str
    partition_key_path: str
    indexed_paths: tuple[str, ...] = ()
    unique_key_paths: tuple[str, ...] = ()
    default_ttl: int | None = None

    @property
    def partition_key_property(self) -> str:
        """Name of the item property that contains the partition key."""
        return self.partition_key_path.removeprefix("/")

    def build_indexing_policy(self) -> dict[str, Any]:
        """Return the indexing policy: only ``indexed_paths`` are indexed.

        Indexing stays on even without paths, because Cosmos DB expires no items in a container without an index.
        """
        return {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [{"path": path} for path in self.indexed_paths],
            "excludedPaths": [{"path": "/*"}],
        }

    def describe_differences(self, container_properties: Mapping[str, Any]) -> list[str]:
        """Describe the differences from this definition that make an existing container unusable.

        Args:
            container_properties: properties of the container, from the Cosmos DB API.
        """
        faults = []
        if container_properties.get("partitionKey", {}).get("paths") != [self.partition_key_path]:
            faults.append(f"its partition key must be {self.partition_key_path}")
        unique = container_properties.get("uniqueKeyPolicy") or {}
        paths = [key.get("paths") for key in unique.get("uniqueKeys", [])]
        faults += [f"it must have the unique key {path}" for path in self.unique_key_paths if [path] not in paths]
        if (container_properties.get("defaultTtl") or None) != self.default_ttl:
            faults.append(_EXPIRY.get(self.default_ttl, f"its items must expire after {self.default_ttl} seconds"))
        return faults


_EXPIRY: Final[Mapping[int | None, str]] = {
    None: "its items must not expire",
    ITEMS_DECIDE: "its items must expire by their own ttl",
}

CHAIN_PATHS: Final = (
    "/chain/?",
    "/append/?",
    "/tip/timestamp/?",
    "/scope/?",
    "/counts/from/?",
    "/pendingAt/?",
    "/verdict/valid/?",
    *(f"/p/{name}/?" for name in PROJECTED),
)
CHAINS: Final = tuple(
    ContainerDefinition(target.value, "/chain", CHAIN_PATHS, unique_key_paths=("/append",)) for target in Target
)
CATALOG: Final = ContainerDefinition("catalog", "/scope", ("/scope/?",))
CREDENTIALS: Final = ContainerDefinition(
    "credentials",
    "/scope",
    ("/scope/?", "/parent/?", "/principal/?", "/member/?", "/token/?", "/apiKey/?", "/ancestors/[]/?"),
    default_ttl=ITEMS_DECIDE,
)
CONNECTIONS: Final = ContainerDefinition("connections", "/id")
REQUESTS: Final = ContainerDefinition("requests", "/id", default_ttl=25 * _HOUR)
RATE_LIMITS: Final = ContainerDefinition("rateLimits", "/id", default_ttl=180)
DOWNLOADS: Final = ContainerDefinition("downloads", "/id", ("/owner/?", "/expiresAt/?"))
BACKGROUND: Final = ContainerDefinition("background", "/id")
WEBHOOKS: Final = ContainerDefinition(
    "webhooks", "/endpoint", ("/status/?", "/place/?", "/dueAt/?", "/scheduledAt/?", "/expiresAt/?")
)
ALERTS: Final = ContainerDefinition(
    "alerts", "/rule", ("/open/?", "/state/?", "/severity/?", "/surface/?", "/sort/?"), default_ttl=ITEMS_DECIDE
)
SIGNATURES: Final = ContainerDefinition(
    "signatures", "/place", ("/sort/?", "/userId/?", "/pending/?"), default_ttl=ITEMS_DECIDE
)

CONTAINERS: Final = (
    *CHAINS,
    CATALOG,
    CREDENTIALS,
    CONNECTIONS,
    REQUESTS,
    RATE_LIMITS,
    DOWNLOADS,
    BACKGROUND,
    WEBHOOKS,
    ALERTS,
    SIGNATURES,
)
DEFINITIONS: Final[Mapping[str, ContainerDefinition]] = {definition.name: definition for definition in CONTAINERS}


async def create_containers(database: DatabaseProxy) -> None:
    """Create all containers of the service in a database.

    This requires the account's key, because Entra tokens cannot create containers.
    """
    for definition in CONTAINERS:
        unique: Any = {"uniqueKeys": [{"paths": [path]} for path in definition.unique_key_paths]}
        await database.create_container(
            definition.name,
            PartitionKey(definition.partition_key_path),
            indexing_policy=definition.build_indexing_policy(),
            default_ttl=definition.default_ttl,
            unique_key_policy=unique if definition.unique_key_paths else None,
        )
