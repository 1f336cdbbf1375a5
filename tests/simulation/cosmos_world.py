"""Simulated worlds that store data in a Cosmos DB account instead of SQLite."""

import asyncio
import random
import sqlite3
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from emulators.cosmos import CosmosService
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_alerts import CosmosAlertStore
from shared.backends.azure.cosmos_catalog import CosmosCatalogStore
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_connection_states import CosmosConnectionStates
from shared.backends.azure.cosmos_credentials import CosmosCredentialStore, CosmosGrantStore
from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore, CosmosReplyStore
from shared.backends.azure.cosmos_jobs import CosmosJobLeaseStore, CosmosJobStore
from shared.backends.azure.cosmos_overview import CosmosChainOverview
from shared.backends.azure.cosmos_quotas import CosmosQuotaStore
from shared.backends.azure.cosmos_rate_limits import CosmosLeaseStore
from shared.backends.azure.cosmos_signatures import CosmosSignatureIndex, CosmosSignatureStore
from shared.backends.azure.cosmos_webhooks import CosmosWebhookStore
from shared.idempotency.keys import IdempotencyKeys
from shared.idempotency.replies import IdempotentReplies
from shared.wiring import Services
from tests.simulation.cosmos_account import (
    AccountSnapshot,
    create_service,
    fill_service,
    forget_clients,
    list_items,
    open_account,
    restore_account,
)
from tests.simulation.cosmos_faults import CosmosFaults
from tests.simulation.cosmos_network import MICROSECONDS, CosmosNetwork
from tests.virtual_time import START

if TYPE_CHECKING:
    from tests.simulation.world import World

_SHARE: Final = 0.205
_REQUEST_UNITS: Final = (None, None, 400.0, 2_000.0)
_SMALL_SEGMENT_BYTES: Final = 4_000
_TARGETS: Final = ("PlatformConfig", "AccessControl", "DomainEvents", "DomainAmendments")

STORES: Final[Mapping[tuple[str, str], Callable[[CosmosAccount], object]]] = {
    ("access", "credential_store"): CosmosCredentialStore,
    ("access", "grant_store"): CosmosGrantStore,
    ("alerts", "store"): CosmosAlertStore,
    ("backends", "job_leases"): CosmosJobLeaseStore,
    ("catalog", "store"): CosmosCatalogStore,
    ("downloads", "_job_quota_store"): CosmosQuotaStore,
    ("downloads", "jobs"): CosmosJobStore,
    ("idempotency", "keys"): lambda account: IdempotencyKeys(CosmosIdempotencyStore(account), runtime=account.runtime),
    ("idempotency", "replies"): lambda account: IdempotentReplies(CosmosReplyStore(account), runtime=account.runtime),
    ("live_stream", "_stream_quota_store"): CosmosQuotaStore,
    ("provenance", "chain_overview"): lambda account: CosmosChainOverview(account, CosmosChainStore(account)),
    ("provenance", "chain_store"): CosmosChainStore,
    ("rate_limits", "_lease_store"): CosmosLeaseStore,
    ("signatures", "_index"): CosmosSignatureIndex,
    ("signatures", "_store"): CosmosSignatureStore,
    ("telemetry", "connection_states"): CosmosConnectionStates,
    ("webhooks", "store"): CosmosWebhookStore,
}
"""Stores of the services that have a Cosmos adapter: group of services, attribute, and the adapter."""

_EMBEDDED: Final = "shared/backends/embedded/"
_AZURE: Final = "shared/backends/azure/"
_COUNTERPARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "alerts": ("cosmos_alerts",),
    "catalog": ("cosmos_catalog",),
    "connection_states": ("cosmos_connection_states",),
    "credentials": ("cosmos_credentials",),
    "grants": ("cosmos_credentials",),
    "idempotency": ("cosmos_idempotency",),
    "jobs": ("cosmos_jobs",),
    "places": ("cosmos_quotas",),
    "provenance": ("cosmos_chain", "cosmos_segments"),
    "provenance_overview": ("cosmos_overview",),
    "rate_limits": ("cosmos_rate_limits",),
    "signatures": ("cosmos_signatures",),
    "sqlite": ("cosmos_item_store", "cosmos_requests", "cosmos_queries"),
    "webhooks": ("cosmos_webhooks",),
}
"""Modules of the Cosmos adapter by the module of the embedded adapter that they replace."""


def uses_cosmos(seed: int) -> bool:
    """Return whether the simulated world of a seed stores data in Cosmos DB."""
    return random.Random(f"stores {seed}").random() < _SHARE


def replace_modules(modules: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of a component's modules; the Cosmos DB adapters replace the embedded adapters."""
    replaced: list[str] = []
    for module in modules:
        name = module.removeprefix(_EMBEDDED).removesuffix(".py")
        is_replaced = module.startswith(_EMBEDDED) and name in _COUNTERPARTS
        replaced += [f"{_AZURE}{other}.py" for other in _COUNTERPARTS[name]] if is_replaced else [module]
    return tuple(replaced)


def attach_services(services: Services, account: CosmosAccount, segment_bytes: int | None = None) -> None:
    """Replace the stores of a process with Cosmos DB stores, where an adapter for Cosmos DB exists.

    Args:
        services: services of a process.
        account: account of the same process.
        segment_bytes: size of a chain's segments; None for the size that the app uses.
    """
    for (group, attribute), create in STORES.items():
        # A cached property reads its value from here.
        vars(getattr(services, group))[attribute] = create(account)
    if segment_bytes is not None:
        chains = CosmosChainStore(account, segment_bytes=segment_bytes)
        vars(services.provenance)["chain_store"] = chains
        vars(services.provenance)["chain_overview"] = CosmosChainOverview(account, chains)


async def create_template_account(services: Services, now: float) -> CosmosService:
    """Create an account with the service's containers, make the services use it, and return it.

    Args:
        services: services that will fill the account.
        now: current time in seconds since 1970.
    """
    loop = asyncio.get_running_loop()
    service = create_service(lambda: now)
    network = CosmosNetwork(service, lambda _, callback: _call_soon(loop, callback), random.Random(0), CosmosFaults())
    await fill_service(network)
    account = open_account(network, "template", services.runtime)
    attach_services(services, services.backends.register_for_closing(account))
    return service


def _call_soon(loop: asyncio.AbstractEventLoop, callback: Callable[[], None]) -> None:
    loop.call_soon(callback)


class WorldAccount:
    """Cosmos DB account of one simulated world.

    Args:
        world: the world.
        template: snapshot of the account of a new workspace.
    """

    def __init__(self, world: "World", template: AccountSnapshot) -> None:
        source = random.Random(f"cosmos {world.seed}")
        self._scheduler = world.scheduler
        service = restore_account(template, self._read_clock, source.choice(_REQUEST_UNITS))
        network_source = random.Random(source.getrandbits(64))
        faults = CosmosFaults.draw(source)
        self._network = CosmosNetwork(service, world.scheduler.call_after, network_source, faults, world.trace)
        self._segment_bytes = source.choice((None, _SMALL_SEGMENT_BYTES))

    def _read_clock(self) -> float:
        return START.timestamp() + self._scheduler.now / MICROSECONDS

    def attach(self, services: Services, name: str) -> None:
        """Replace the stores of a process's services by stores in this world's Cosmos DB account."""
        attach_services(services, open_account(self._network, name, services.runtime), self._segment_bytes)

    def stop_faults(self) -> None:
        """Stop all network faults, but keep the limit of request units."""
        self._network.faults.stop()

    def close(self) -> None:
        """Delete the SDK's caches of the clients of this world's processes."""
        forget_clients()

    def export(self, folder: Path) -> None:
        """Copy the account's data into files of the embedded stores, so that the checks of invariants can read them."""
        export_chains(self._network.service, folder / "provenance.sqlite")


def export_chains(service: CosmosService, path: Path) -> None:
    """Copy an account's audit chains into tables of the embedded store, without the code of the adapters."""
    with closing(sqlite3.connect(path)) as file:
        for table in ("records", "chains"):
            file.execute(f"DROP TABLE IF EXISTS {table}")
        file.execute("CREATE TABLE chains (chain, target, scope, sequence, hash, timestamp)")
        file.execute("CREATE TABLE records (chain, sequence, canonical, hash)")
        for target in _TARGETS:
            _export_container(file, target, list(list_items(service, target)))
        file.commit()


def _export_container(file: sqlite3.Connection, target: str, items: list[dict[str, Any]]) -> None:
    heads: dict[str, dict[str, Any]] = {}
    for item in items:
        # All segments of a chain have partition keys that begin with the same hash.
        chain = f"{target} {item['chain'].rpartition('-')[0]}"
        if item["id"] == "head":
            heads[chain] = max(heads.get(chain, item), item, key=lambda head: int(head["segment"]))
        elif item["id"].isdecimal():
            row = (chain, int(item["id"]), item["text"], item["hash"])
            file.execute("INSERT INTO records VALUES (?, ?, ?, ?)", row)
    for chain, head in heads.items():
        tip = head["tip"]
        file.execute(
            "INSERT INTO chains VALUES (?, ?, ?, ?, ?, ?)",
            (chain, target, head["scope"], tip["sequence"], tip["hash"], tip["timestamp"]),
        )
