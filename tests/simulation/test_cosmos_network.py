"""Tests of the Cosmos DB adapter with an account in the same process and random network faults."""

import asyncio
import hashlib
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from emulators.cosmos import CosmosService
from shared.backends.azure.cosmos_account import CosmosAccount
from shared.backends.azure.cosmos_chain import CosmosChainStore
from shared.backends.azure.cosmos_idempotency import CosmosIdempotencyStore, CosmosReplyStore
from shared.errors import Kind, WorkspaceError
from shared.idempotency.keys import Claim, IdempotencyKeys
from shared.provenance.chain_log import ChainLog
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import build_event_draft
from shared.runtime import Runtime
from tests.simulation.cosmos_account import (
    create_service,
    fill_service,
    forget_clients,
    list_items,
    open_account,
    restore_account,
    take_snapshot,
)
from tests.simulation.cosmos_faults import CosmosFaults
from tests.simulation.cosmos_network import MICROSECONDS, CosmosNetwork
from tests.virtual_time import START, run_in_virtual_time

SEEDS: Final = range(25)
CHAIN: Final = ChainKey(Target.DOMAIN_EVENTS, "line-1")


class _Site:
    """Simulated Cosmos DB account of a seed, and the processes that use it.

    Attributes:
        service: the account.
        lines: every request and reply.
    """

    def __init__(self, seed: int, *, request_units: float | None = None, faults: CosmosFaults | None = None) -> None:
        loop = asyncio.get_running_loop()
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.service: CosmosService = create_service(lambda: START.timestamp() + loop.time(), request_units)
        self.network = CosmosNetwork(
            self.service,
            self._deliver_later,
            random.Random(self.random.getrandbits(64)),
            CosmosFaults(),
            lambda line: self.lines.append(f"{loop.time():.6f} {line}"),
        )
        self._faults = faults or CosmosFaults.draw(self.random)

    @staticmethod
    def _deliver_later(delay: int, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_later(delay / MICROSECONDS, callback)

    async def start(self) -> "_Site":
        """Create the containers without faults, then enable the faults."""
        await fill_service(self.network)
        self.network.faults = self._faults
        return self

    def open_process(self, name: str) -> CosmosAccount:
        """Start a simulated process; return its client of the Cosmos DB account."""
        loop = asyncio.get_running_loop()
        source = random.Random(self.random.getrandbits(64))
        runtime = Runtime(
            now=lambda: START + timedelta(seconds=loop.time()),
            monotonic=loop.time,
            random_bytes=source.randbytes,
            uniform=source.uniform,
        )
        return open_account(self.network, name, runtime)


def raise_unless_unavailable(error: WorkspaceError) -> None:
    """Ignore the error of an unavailable store; raise any other error again."""
    if error.kind is not Kind.UNAVAILABLE:
        raise error


async def _append_record(log: ChainLog, keys: IdempotencyKeys, text: str, acknowledged: dict[str, int]) -> None:
    event = {"EntityType": "Test", "EntityID": text, "ActionType": "Test"}
    for _ in range(30):
        try:
            append_id = (await keys.claim_append_id("ann", "append", text, text.encode())).append_id
            result = await log.append(CHAIN, build_event_draft("ann", event), append_id=append_id)
        except WorkspaceError as error:
            raise_unless_unavailable(error)
            await asyncio.sleep(1)
        else:
            assert acknowledged.setdefault(text, result.record.sequence) == result.record.sequence
            return


def check_chain(service: CosmosService, workspace: str = "plant-t") -> dict[str, list[int]]:
    """Check sequence numbers and hashes of the chain; return the sequence numbers of each event."""
    items = [item for item in list_items(service, CHAIN.target.value) if item["id"].isdecimal()]
    previous = hashlib.sha256(f"oi-provenance/v1\n{workspace}\n{CHAIN.target}\n{CHAIN.scope_key}".encode()).hexdigest()
    found: dict[str, list[int]] = {}
    for number, item in enumerate(sorted(items, key=lambda item: str(item["id"])), start=1):
        record = json.loads(item["text"])
        assert (int(item["id"]), record["RecordID"], record["PreviousHash"]) == (number, f"{number:012d}", previous)
        previous = hashlib.sha256(item["text"].encode()).hexdigest()
        assert item["hash"] == previous
        found.setdefault(record["EntityID"], []).append(number)
    return found


async def append_concurrently(seed: int) -> list[str]:
    """Append the same events with the same append ids from two processes at the same time; return the trace."""
    site = await _Site(seed, request_units=random.Random(seed).choice((None, 300.0))).start()
    acknowledged: dict[str, int] = {}
    tasks = []
    for process in ("i0", "i1"):
        account = site.open_process(process)

        async def load_workspace() -> str:
            return "plant-t"

        log = ChainLog(CosmosChainStore(account), load_workspace, runtime=account.runtime)
        keys = IdempotencyKeys(CosmosIdempotencyStore(account), runtime=account.runtime)
        tasks += [_append_record(log, keys, f"event {number}", acknowledged) for number in range(8)]
    await asyncio.gather(*tasks)
    site.network.faults.stop()
    stored = check_chain(site.service)
    for text, sequence in acknowledged.items():
        assert stored[text] == [sequence], text
    assert all(len(found) == 1 for found in stored.values())
    forget_clients()
    return site.lines


@pytest.mark.parametrize("seed", SEEDS)
def test_acknowledged_appends_are_stored_exactly_once(seed: int) -> None:
    """If the network loses, repeats or delays requests, each acknowledged event is stored exactly once."""
    run_in_virtual_time(append_concurrently(seed))


async def _store_replies_for_one_key_concurrently(seed: int) -> None:
    site = await _Site(seed).start()
    answers: set[bytes] = set()
    executed: list[str] = []

    async def serve(process: str) -> None:
        account = site.open_process(process)
        store = CosmosReplyStore(account)
        now, wanted = account.runtime.now, Claim("fingerprint", account.runtime.new_id())
        for _ in range(60):
            await asyncio.sleep(account.runtime.uniform(0, 5))
            lease = account.runtime.new_id()
            try:
                begun = await store.claim_and_lease_key(
                    "name", wanted, lease, now(), now() + timedelta(seconds=30), now() - timedelta(hours=24)
                )
                if begun.reply is not None:
                    answers.add(begun.reply)
                    return
                if begun.owns_lease and await store.try_save_reply("name", lease, lease.encode()):
                    executed.append(lease)
            except WorkspaceError as error:
                raise_unless_unavailable(error)

    await asyncio.gather(*(serve(f"i{number}") for number in range(3)))
    assert len(answers) <= 1
    assert len(executed) <= 1
    assert not executed or not answers or answers == {executed[0].encode()}
    forget_clients()


@pytest.mark.parametrize("seed", SEEDS)
def test_concurrent_requests_with_one_idempotency_key_get_the_same_reply(seed: int) -> None:
    """Concurrent requests with one Idempotency-Key all get the reply that is stored first."""
    run_in_virtual_time(_store_replies_for_one_key_concurrently(seed))


async def _measure_throttled_writes() -> tuple[float, int]:
    site = await _Site(1, request_units=20, faults=CosmosFaults()).start()
    account = site.open_process("i0")
    store = CosmosIdempotencyStore(account)
    at = account.runtime.now()
    for number in range(20):
        await store.store_or_get_claim(f"key {number}", Claim("f", str(number)), at, at)
    return asyncio.get_running_loop().time(), account.usage.throttled + account.usage.read_retries


def test_a_request_unit_budget_slows_writes_down() -> None:
    """Writes beyond the request units of a container are repeated later, and then succeed."""
    seconds, throttled = run_in_virtual_time(_measure_throttled_writes())
    assert throttled > 0
    assert 3 < seconds < 60


async def _copy_account_and_compare_items() -> None:
    site = await _Site(1, faults=CosmosFaults()).start()
    original = site.service
    site.network.service = restore_account(take_snapshot(original), lambda: 0.0, None)
    store = CosmosIdempotencyStore(site.open_process("i0"))
    await store.store_or_get_claim("key", Claim("f", "1"), START, START)
    assert not list(list_items(original, "requests"))
    assert [(item["id"], item["_ts"]) for item in list_items(site.network.service, "requests")] == [("key-key", 0)]


def test_copies_of_an_account_do_not_share_items() -> None:
    """A copy of an account has the same items and a clock of its own.

    Later changes do not affect the original account.
    """
    run_in_virtual_time(_copy_account_and_compare_items())


async def _list_policies_of_client() -> list[str]:
    site = await _Site(1, faults=CosmosFaults()).start()
    client: Any = site.open_process("i0")._create_client()
    policies: list[str] = []
    policy = client.client_connection.pipeline_client._pipeline._impl_policies[0]
    while policy is not None:
        policies.append(type(getattr(policy, "_policy", policy)).__name__)
        policy = getattr(policy, "next", None)
    return policies


def test_clients_skip_policies_that_only_real_networks_need() -> None:
    """A simulated client keeps the policies that set headers, repeat requests and call hooks, and no others."""
    assert run_in_virtual_time(_list_policies_of_client()) == [
        "HeadersPolicy",
        "_ConnectionRetryPolicy",
        "CustomHookPolicy",
        "_AsyncTransportRunner",
    ]


def print_trace_of_seed(seed: int) -> None:
    """Print the trace of the simulation with this seed."""
    sys.stdout.write("\n".join(run_in_virtual_time(append_concurrently(seed))))


def test_a_seed_gives_the_same_trace_in_two_processes() -> None:
    """Two processes with different hash seeds produce the same trace from a seed."""
    code = "from tests.simulation.test_cosmos_network import print_trace_of_seed; print_trace_of_seed(7)"
    traces = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }
    (trace,) = traces
    assert trace.count(b"\n") > 30
