"""Control plane of the test server: databases, containers and their throughput.

As in Azure, the control plane is separate from the data plane, which reads and writes the items of a container.
"""

import copy
import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from emulators.cosmos.containers import CosmosContainer, decode_rid, encode_rid
from emulators.cosmos.indexing import DEFAULT_POLICY
from emulators.cosmos.items import check_item_id
from emulators.cosmos.sql_statement import parse_statement
from emulators.cosmos.wire import CosmosError, CosmosReply, CosmosRequest, build_unsupported_error

_NOT_IMPLEMENTED = ("analyticalStorageTtl", "computedProperties", "vectorEmbeddingPolicy")
_MAX_LEVELS = 3


@dataclass
class CosmosDatabase:
    """Database of the simulated account, with its containers."""

    properties: dict[str, Any]
    containers: dict[str, CosmosContainer] = field(default_factory=dict)


class ControlPlane:
    """Operations on the databases and containers of an account.

    Args:
        physical_partitions: The number of physical partitions of each new container.
        clock: Returns the current time in seconds since 1970.
    """

    def __init__(self, physical_partitions: int, clock: Callable[[], float] = time.time) -> None:
        self._physical_partitions = physical_partitions
        self._clock = clock
        self._last_id = 0
        self._databases: dict[str, CosmosDatabase] = {}
        self._offers: dict[str, dict[str, Any]] = {}

    def require_database(self, name_or_rid: str | None) -> CosmosDatabase:
        """Return a database by its name or resource id.

        Raises:
            CosmosError: 404 if the database does not exist.
        """
        for key, database in self._databases.items():
            if name_or_rid in (key, database.properties["_rid"]):
                return database
        raise CosmosError(404, "Resource Not Found: the database does not exist.", substatus=1003)

    def require_container(self, request: CosmosRequest) -> CosmosContainer:
        """Return the container that a request's path names, by name or resource id.

        Raises:
            CosmosError: 404 if the container does not exist, 400 (sub-status 1024) if the client expects the
                container to have another resource id.
        """
        for key, container in self.require_database(request.database_name_or_rid).containers.items():
            if request.container_name_or_rid in (key, container.rid):
                intended = request.read_header("x-ms-cosmos-intended-collection-rid", container.rid)
                if intended != container.rid:
                    raise CosmosError(
                        400,
                        f"The container's resource id is '{container.rid}', not '{intended}' as the request expects. "
                        "It was probably created again; read its properties again.",
                        1024,
                    )
                container.remove_expired_items()
                return container
        substatus = 1003 if request.segments[4:] else 0
        raise CosmosError(404, "Resource Not Found: the container does not exist.", substatus)

    def create_database(self, request: CosmosRequest) -> CosmosReply:
        """Create the database that a request defines."""
        name = _require_unused_name(request.json_body, self._databases)
        rid = encode_rid(self._assign_resource_number().to_bytes(4, "little"))
        self_link = f"dbs/{rid}/"
        properties = {
            "id": name,
            **self._build_system_properties(rid, self_link),
            "_colls": "colls/",
            "_users": "users/",
        }
        self._databases[name] = CosmosDatabase(properties)
        self._store_throughput_offer_if_requested(request, rid, self_link)
        return _build_resource_reply(201, properties)

    def read_database(self, request: CosmosRequest) -> CosmosReply:
        """Reply with the properties of a database."""
        return _build_resource_reply(200, self.require_database(request.database_name_or_rid).properties)

    def delete_database(self, request: CosmosRequest) -> CosmosReply:
        """Delete a database and its containers."""
        del self._databases[self.require_database(request.database_name_or_rid).properties["id"]]
        return CosmosReply(204)

    def list_databases(self, request: CosmosRequest) -> CosmosReply:
        """Reply with the properties of all databases; for a request with a SQL query, with the results of the query."""
        return _build_resource_list_reply(
            request, "Databases", "", [database.properties for database in self._databases.values()]
        )

    def create_container(self, request: CosmosRequest) -> CosmosReply:
        """Create the container that a request defines."""
        database = self.require_database(request.database_name_or_rid)
        body = request.json_body
        name = _require_unused_name(body, database.containers)
        _check_container_definition(body)
        rid_bytes = (self._assign_resource_number() | 1 << 31).to_bytes(4, "big")
        database_rid = database.properties["_rid"]
        rid = encode_rid(decode_rid(database_rid) + rid_bytes)
        self_link = f"dbs/{database_rid}/colls/{rid}/"
        properties = {
            "indexingPolicy": copy.deepcopy(DEFAULT_POLICY),
            "conflictResolutionPolicy": {"mode": "LastWriterWins", "conflictResolutionPath": "/_ts"},
            "geospatialConfig": {"type": "Geography"},
            **body,
            **self._build_system_properties(rid, self_link),
            **{f"_{kind}": f"{kind}/" for kind in ("docs", "sprocs", "triggers", "udfs", "conflicts")},
        }
        database.containers[name] = CosmosContainer(properties, self._physical_partitions, self._clock)
        self._store_throughput_offer_if_requested(request, rid, self_link)
        return _build_resource_reply(201, properties)

    def read_container(self, request: CosmosRequest) -> CosmosReply:
        """Reply with the properties of a container."""
        return _build_resource_reply(200, self.require_container(request).properties)

    def replace_container(self, request: CosmosRequest) -> CosmosReply:
        """Replace the indexing policy of a container; changes of its id, partition key or unique keys are rejected."""
        container, body = self.require_container(request), request.json_body
        _check_container_definition(body)
        if body.get("uniqueKeyPolicy") != container.properties.get("uniqueKeyPolicy"):
            raise CosmosError(400, "The unique keys of a container cannot be changed.")
        if body.get("id") != container.properties["id"] or body["partitionKey"]["paths"] != container.paths:
            raise CosmosError(400, "Neither the id nor the partition key of a container can be changed.")
        policy = body.get("indexingPolicy", DEFAULT_POLICY)
        container.properties |= {"indexingPolicy": policy, "_etag": _create_etag(), "_ts": int(self._clock())}
        return _build_resource_reply(200, container.properties)

    def delete_container(self, request: CosmosRequest) -> CosmosReply:
        """Delete a container and its items."""
        name = self.require_container(request).properties["id"]
        del self.require_database(request.database_name_or_rid).containers[name]
        return CosmosReply(204)

    def list_containers(self, request: CosmosRequest) -> CosmosReply:
        """Reply with the properties of all containers of a database; for a SQL query, with the results of the query."""
        database = self.require_database(request.database_name_or_rid)
        containers = [container.properties for container in database.containers.values()]
        return _build_resource_list_reply(request, "DocumentCollections", database.properties["_rid"], containers)

    def read_partition_ranges(self, request: CosmosRequest) -> CosmosReply:
        """Reply with the physical partitions of a container.

        Reply with status 304 if the ETag in the header `If-None-Match` shows that the client knows the partitions.
        """
        container = self.require_container(request)
        etag = f'"{len(container.ranges)}"'
        if request.read_header("if-none-match") == etag:
            return CosmosReply(304, headers={"etag": etag})
        ranges = [
            {
                **self._build_system_properties(
                    f"{container.rid}-{part.id}", f"{container.properties['_self']}pkranges/{part.id}/"
                ),
                "id": part.id,
                "minInclusive": part.low,
                "maxExclusive": part.high,
                "ridPrefix": int(part.id),
                "throughputFraction": 1 / len(container.ranges),
                "status": "online",
                "parents": [],
            }
            for part in container.ranges
        ]
        body = {"_rid": container.rid, "PartitionKeyRanges": ranges, "_count": len(ranges)}
        return CosmosReply(200, body, {"etag": etag})

    def query_offers(self, request: CosmosRequest) -> CosmosReply:
        """Reply with all throughput offers (provisioned request units), or with those that a SQL query selects."""
        return _build_resource_list_reply(request, "Offers", "", list(self._offers.values()))

    def replace_offer(self, request: CosmosRequest) -> CosmosReply:
        """Replace the throughput offer (provisioned request units) of a database or container."""
        offer = self._offers.get(request.segments[1])
        if offer is None:
            raise CosmosError(404, "Resource Not Found: the offer does not exist.")
        offer |= {"content": request.json_body.get("content"), "_etag": _create_etag()}
        return _build_resource_reply(200, offer)

    def _store_throughput_offer_if_requested(self, request: CosmosRequest, rid: str, self_link: str) -> None:
        throughput = request.read_header("x-ms-offer-throughput")
        if not throughput:
            return
        offer_rid = f"o{self._assign_resource_number():05d}"
        self._offers[offer_rid] = {
            "id": offer_rid,
            **self._build_system_properties(offer_rid, f"offers/{offer_rid}/"),
            "offerVersion": "V2",
            "offerType": "Invalid",
            "content": {"offerThroughput": int(throughput), "offerIsRUPerMinuteThroughputEnabled": False},
            "resource": self_link,
            "offerResourceId": rid,
        }

    def _assign_resource_number(self) -> int:
        self._last_id += 1
        return self._last_id

    def _build_system_properties(self, rid: str, self_link: str) -> dict[str, Any]:
        return {"_rid": rid, "_self": self_link, "_etag": _create_etag(), "_ts": int(self._clock())}


def _require_unused_name(body: Any, existing_resources: dict[str, Any]) -> str:
    """Return the name of a new resource from the property `id` of a request's body.

    Raise a CosmosError with status 400 if the name is missing or invalid, 409 if an existing resource has it.
    """
    if not isinstance(body, dict) or not isinstance(body.get("id"), str) or not body["id"]:
        raise CosmosError(400, "The input content is invalid because the required properties - 'id; ' - are missing")
    check_item_id(body["id"])
    if body["id"] in existing_resources:
        raise CosmosError(409, "Resource with specified id or name already exists.")
    return str(body["id"])


def _check_container_definition(body: dict[str, Any]) -> None:
    definition = body.get("partitionKey") or {}
    paths = definition.get("paths")
    kind = definition.get("kind", "Hash")
    if not isinstance(paths, list) or not all(isinstance(path, str) and path.startswith("/") for path in paths):
        raise CosmosError(400, "A partition key definition must have a list of paths that begin with /.")
    if not 1 <= len(paths) <= (_MAX_LEVELS if kind == "MultiHash" else 1):
        raise CosmosError(400, f"The kind '{kind}' does not allow {len(paths)} partition key paths.")
    if definition.get("version", 1) != 2:
        raise build_unsupported_error("partition keys of hash version 1")
    _check_unique_key_policy(body.get("uniqueKeyPolicy"))
    ttl = body.get("defaultTtl")
    if ttl is not None and (not isinstance(ttl, int) or (ttl < 1 and ttl != -1)):
        raise CosmosError(400, "The time to live of a container must be -1 or a positive number of seconds.")
    if ttl is not None and body.get("indexingPolicy", {}).get("indexingMode") == "none":
        raise CosmosError(400, "A container without an index cannot have a time to live.")
    for name in _NOT_IMPLEMENTED:
        if body.get(name):
            raise build_unsupported_error(f"the container property '{name}'")


def _check_unique_key_policy(policy: Any) -> None:
    keys = (policy or {}).get("uniqueKeys") or []
    if not all(isinstance(key, dict) and key.get("paths") for key in keys):
        raise CosmosError(400, "Each unique key must have at least one path.")


def _create_etag() -> str:
    return f'"{uuid.uuid4()}"'


def _build_resource_reply(status: int, properties: dict[str, Any]) -> CosmosReply:
    return CosmosReply(status, properties, {"etag": properties["_etag"], "x-ms-request-charge": "2.0"})


def _build_resource_list_reply(
    request: CosmosRequest, list_name: str, parent_rid: str, resources: list[dict[str, Any]]
) -> CosmosReply:
    if request.operation.startswith("query"):
        body = request.json_body
        parameters = {entry["name"]: entry["value"] for entry in body.get("parameters", [])}
        statement = parse_statement(body["query"], parameters)
        resources = [
            value for one in resources if statement.matches(one) for value in statement.list_result_if_defined(one)
        ]
    return CosmosReply(
        200, {"_rid": parent_rid, list_name: resources, "_count": len(resources)}, {"x-ms-request-charge": "2.0"}
    )
