"""Cosmos DB account of a simulated world: creation, clients, and a view of its items for the invariants."""

import io
import itertools
import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from types import FunctionType
from typing import Any, Final

from azure.core.pipeline.policies import CustomHookPolicy, HeadersPolicy
from azure.cosmos._routing.aio import routing_map_provider
from azure.cosmos.aio import CosmosClient
from azure.cosmos.aio._retry_utility_async import _ConnectionRetryPolicy

from emulators.cosmos import AccountOptions, CosmosRequest, CosmosService
from emulators.cosmos.service import DEFAULT_KEY
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_containers import create_containers
from shared.runtime import Runtime
from tests.simulation.cosmos_network import CosmosNetwork

DATABASE: Final = "workspace"
_KEPT_POLICIES: Final = (HeadersPolicy, _ConnectionRetryPolicy, CustomHookPolicy)
"""Policies of the SDK that change requests, repeat them, or pass headers of replies to queries."""

PARTITIONS: Final = 2
_clients = itertools.count(1)


class OpenService(CosmosService):
    """Cosmos DB emulator that accepts requests without a signature, because signatures are slow."""

    def _authenticate(self, request: CosmosRequest) -> None:
        """Accept the request without checking its signature."""


class QuickAccount(CosmosAccount):
    """Client of a simulated account whose SDK skips signatures and other steps that only real networks need."""

    def _create_client(self) -> CosmosClient:
        client = super()._create_client()
        connection: Any = client.client_connection
        connection.master_key = ""
        pipeline = connection.pipeline_client._pipeline
        last = pipeline._impl_policies[-1].next
        kept = [each for each in pipeline._impl_policies if isinstance(getattr(each, "_policy", each), _KEPT_POLICIES)]
        for policy, following in pairwise([*kept, last]):
            policy.next = following
        pipeline._impl_policies = kept
        # The account has one region, so the SDK would look in vain for another one several times in each request.
        manager = connection._global_endpoint_manager
        manager.is_circuit_breaker_applicable = _answer_no
        manager.is_per_partition_automatic_failover_applicable = _answer_no
        return client


def _answer_no(_: object) -> bool:
    return False


def create_service(clock: Callable[[], float], request_units: float | None = None) -> CosmosService:
    """Create a Cosmos DB account without databases.

    Args:
        clock: returns the current time in seconds since 1970.
        request_units: request units per second of each container; None for no limit.
    """
    options = AccountOptions(request_units=request_units)
    return OpenService(options=options, physical_partitions=PARTITIONS, clock=clock)


async def fill_service(network: CosmosNetwork) -> None:
    """Create the database and containers of the service in an account."""
    endpoint = _choose_endpoint(network.service)
    async with CosmosClient(endpoint, DEFAULT_KEY, transport=network.create_transport("setup")) as client:
        await create_containers(await client.create_database(DATABASE))


@dataclass(frozen=True)
class AccountSnapshot:
    """Content of an account, from which copies of the account can be made.

    Attributes:
        content: serialized databases, containers and items.
        functions: compiled expressions that the content refers to by position; all copies share them.
    """

    content: bytes
    functions: list[FunctionType]


class _ServicePickler(pickle.Pickler):
    """Serializer of an account; it stores positions in place of functions, which cannot be serialized."""

    def __init__(self, file: io.BytesIO, clock: Callable[[], float]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._clock = clock
        self.functions: list[FunctionType] = []

    def persistent_id(self, value: object) -> int | None:
        """Return the position of a function, -1 for the account's clock, and None for anything else."""
        if value is self._clock:
            return -1
        if not isinstance(value, FunctionType) or "<locals>" not in value.__qualname__:
            return None
        self.functions.append(value)
        return len(self.functions) - 1


class _ServiceUnpickler(pickle.Unpickler):
    """Deserializer of an account that inserts the functions and another clock."""

    def __init__(self, snapshot: AccountSnapshot, clock: Callable[[], float]) -> None:
        super().__init__(io.BytesIO(snapshot.content))
        self._functions: tuple[Callable[..., Any], ...] = (*snapshot.functions, clock)

    def persistent_load(self, position: int) -> Callable[..., Any]:
        """Return the function at a position; -1 means the clock."""
        return self._functions[position]


def take_snapshot(service: CosmosService) -> AccountSnapshot:
    """Return the content of an account, from which copies of the account can be made."""
    file = io.BytesIO()
    pickler = _ServicePickler(file, service._clock)
    pickler.dump(service._control)
    return AccountSnapshot(file.getvalue(), pickler.functions)


def restore_account(
    snapshot: AccountSnapshot, clock: Callable[[], float], request_units: float | None
) -> CosmosService:
    """Return an account with the content of a snapshot and with the given clock and throughput."""
    service = create_service(clock, request_units)
    service._control = _ServiceUnpickler(snapshot, clock).load()
    return service


def open_account(network: CosmosNetwork, sender: str, runtime: Runtime) -> CosmosAccount:
    """Return an account client for one simulated process.

    The SDK shares caches between all clients of one address, with locks that belong to one event loop. Processes share
    neither, so each client gets its own address.

    Args:
        network: network to the account.
        sender: name of the process, for the trace.
        runtime: clock and randomness of the process.
    """
    return QuickAccount(
        _choose_endpoint(network.service),
        DATABASE,
        key=DEFAULT_KEY,
        create_transport=lambda: network.create_transport(sender),
        runtime=runtime,
    )


def _choose_endpoint(service: CosmosService) -> str:
    endpoint = f"https://cosmos-{next(_clients)}.example:443/"
    # The properties of the account state this address; without endpoint discovery, the SDK keeps its own.
    service.endpoint = endpoint
    return endpoint


def forget_clients() -> None:
    """Delete the SDK's caches of clients that were not closed because their processes crashed."""
    for cache in (
        routing_map_provider._shared_routing_map_cache,
        routing_map_provider._shared_collection_locks,
        routing_map_provider._shared_locks_locks,
        routing_map_provider._shared_cache_refcounts,
    ):
        cache.clear()


def list_items(service: CosmosService, container: str) -> Iterator[dict[str, Any]]:
    """Yield all items of a container in order of creation, without the service's code and the SDK."""
    request = CosmosRequest("GET", ("dbs", DATABASE, "colls", container), {}, b"", "read_container")
    for part in service._control.require_container(request).ranges:
        for item in part.items.iterate_items_created_after(0):
            yield item.document
