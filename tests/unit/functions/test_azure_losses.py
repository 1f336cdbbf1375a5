"""Tests that no acknowledged record is lost while the app's dependencies fail under load.

``LOSSES_SECONDS`` sets the duration of the soak test, ``LOSSES_SEED`` repeats a run.
"""

import asyncio
import os
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from emulators.cosmos.faults import build_random_faults
from shared.errors import WorkspaceError
from tests.emulators.kusto.endpoints import end_process
from tests.unit.functions.azure_plant import ADMIN, EDITOR, EVENTS, Instance, Plant

SUITE_SECONDS = 6.0
SOAK_SECONDS = float(os.environ.get("LOSSES_SECONDS", "300"))
WRITERS = 6
SCOPE = "losses"
ALLOWED_STATUSES = frozenset({200, 201, 429, 503, 504})
QUERY = {"query": "Telemetry | count"}


@dataclass
class LoadGenerator:
    """Load generator that runs concurrent writers and readers on one instance.

    Attributes:
        stored: RecordID and Hash of each acknowledged event, by its EntityID.
        statuses: number of replies by status.
    """

    app: Instance
    api_key: str
    token: str
    stored: dict[str, tuple[str, str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    stopped: bool = False

    async def append_events(self, writer: int) -> None:
        """Append events one after another; repeat each request until the service acknowledges the event."""
        number = 0
        while not self.stopped:
            await self._store_event(f"w{writer}-{number}")
            number += 1

    async def _store_event(self, entity: str) -> None:
        event = {"ActionType": "Test", "EntityType": "Loss", "EntityID": entity, "ScopeKey": SCOPE}
        while True:
            reply = await self._record_reply(
                self.app.request("POST", EVENTS, self.token, event, idempotency_key=f"key-{entity}")
            )
            if reply.status == 201:
                self.stored[entity] = (reply.body["RecordID"], reply.body["Hash"])
                return
            await asyncio.sleep(0.05)

    async def run_queries(self) -> None:
        """Run queries repeatedly."""
        while not self.stopped:
            await self._record_reply(self.app.request("POST", "/oi-api/warm-queries", self.token, QUERY))
            await asyncio.sleep(0.02)

    async def issue_tokens(self) -> None:
        """Issue tokens repeatedly; each token adds an event to the access-control chain."""
        while not self.stopped:
            await self._record_reply(self.app.request("GET", "/workspace/api/keys/jwt", self.api_key))
            await asyncio.sleep(0.1)

    async def create_checkpoints(self) -> None:
        """Create signed checkpoints repeatedly."""
        while not self.stopped:
            try:
                await self.app.services.provenance.checkpoints.create_all_and_count_them()
            except WorkspaceError as error:
                assert error.kind.name == "UNAVAILABLE", error  # noqa: PT017  other kinds are errors of the app
            await asyncio.sleep(0.1)

    async def _record_reply(self, request: Awaitable[Any]) -> Any:
        reply = await request
        self.statuses[reply.status] += 1
        assert reply.status in ALLOWED_STATUSES, reply.body
        assert reply.status not in (429, 503) or int(reply.headers["Retry-After"]) >= 1
        return reply


async def restart_cosmos_emulator(azure_emulators: Plant, random_source: random.Random) -> None:
    """Stop the Cosmos DB emulator for a while and start it again."""
    await asyncio.to_thread(azure_emulators.deployment.cosmos.stop)
    await asyncio.sleep(random_source.uniform(0.1, 1.5))
    await asyncio.to_thread(azure_emulators.deployment.cosmos.start)


async def inject_cosmos_errors(azure_emulators: Plant, random_source: random.Random) -> None:
    """Make the Cosmos DB emulator return all kinds of errors for a while."""
    faults = azure_emulators.deployment.cosmos.faults
    faults.add_all(
        build_random_faults(0.4, random_source.randrange(2**32), lambda request: request.operation == "batch")
    )
    await asyncio.sleep(random_source.uniform(0.2, 1.0))
    faults.clear()


async def restart_query_engine(azure_emulators: Plant, random_source: random.Random) -> None:
    """Kill the query engine and start it again."""
    azure_emulators.kusto.process.kill()
    await asyncio.to_thread(end_process, azure_emulators.kusto.process)
    await asyncio.sleep(random_source.uniform(0.1, 1.0))
    await asyncio.to_thread(azure_emulators.start_engine)


async def restart_blob_service(azure_emulators: Plant, random_source: random.Random) -> None:
    """Stop the blob service's emulator for a while and start it again with the same folder."""
    await asyncio.to_thread(azure_emulators.deployment.blobs.stop)
    await asyncio.sleep(random_source.uniform(0.1, 1.0))
    await asyncio.to_thread(azure_emulators.deployment.blobs.start)


async def disable_key_vault(azure_emulators: Plant, random_source: random.Random) -> None:
    """Make the Key Vault emulator reject all requests for a while."""
    azure_emulators.deployment.vault.down = True
    await asyncio.sleep(random_source.uniform(0.1, 1.0))
    azure_emulators.deployment.vault.down = False


FAILURES: tuple[Callable[[Plant, random.Random], Awaitable[None]], ...] = (
    restart_cosmos_emulator,
    inject_cosmos_errors,
    restart_query_engine,
    restart_blob_service,
    disable_key_vault,
)


@asynccontextmanager
async def run_load(app: Instance, administrator_key: str) -> AsyncIterator[LoadGenerator]:
    """Run writers, readers and the checkpoint signer while the ``async with`` block runs."""
    load = LoadGenerator(app, administrator_key, await app.issue_token(administrator_key))
    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(load.append_events(number))
        for work in (load.run_queries, load.issue_tokens, load.create_checkpoints):
            tasks.create_task(work())
        yield load
        load.stopped = True


async def fail_each_dependency_under_load(azure_emulators: Plant, app: Instance, api_key: str, seconds: float) -> None:
    """Under load, let each dependency fail at least once; then verify the audit chains."""
    seed = int(os.environ.get("LOSSES_SEED", random.SystemRandom().randrange(2**32)))
    print(f"LOSSES_SEED={seed}")  # noqa: T201  shown with a failure
    random_source, ends_at = random.Random(seed), asyncio.get_running_loop().time() + seconds
    async with run_load(app, api_key) as load:
        for fail in random_source.sample(FAILURES, len(FAILURES)):
            await fail(azure_emulators, random_source)
        while asyncio.get_running_loop().time() < ends_at:
            await random_source.choice(FAILURES)(azure_emulators, random_source)
            await asyncio.sleep(random_source.uniform(0.0, 0.5))
    async with asyncio.timeout(60):
        while (await app.request("GET", "/readyz")).status != 200:  # noqa: ASYNC110  other processes cannot notify this one
            await asyncio.sleep(0.1)
    assert len(load.stored) > WRITERS
    assert load.statuses[503] > 0
    await app.services.provenance.checkpoints.create_all_and_count_them()
    for target, scope in (("DomainEvents", {"ScopeKey": SCOPE}), ("AccessControl", {})):
        verdict = await app.request("POST", f"{EVENTS}/verify?target={target}", load.token, scope)
        assert verdict.body["Target"] == target
        assert (verdict.body["ChainValid"], verdict.body["Empty"]) == (True, False), verdict.body
    assert await _read_records(app, load.token) == load.stored


async def _read_records(app: Instance, token: str) -> dict[str, tuple[str, str]]:
    """Return RecordID and Hash of each event by its EntityID; fail if an EntityID occurs twice."""
    reply = await app.request("GET", f"{EVENTS}/export?scopeKey={SCOPE}&limit=100000", token)
    assert reply.headers["x-provenance-has-more"] == "false"
    found = {record["EntityID"]: (record["RecordID"], record["Hash"]) for record in reply.body}
    assert len(found) == len(reply.body)
    return found


@pytest.fixture
async def api_key(apply_sample_document: Callable[[str], str]) -> str:
    """Return an API key of an administrator."""
    return await asyncio.to_thread(apply_sample_document, ADMIN)


async def test_acknowledged_events_are_stored_exactly_once(
    azure_emulators: Plant, start_instance: Callable[[], Instance], api_key: str
) -> None:
    """If dependencies fail under load, each acknowledged event is stored exactly once, and the chains are valid."""
    await fail_each_dependency_under_load(azure_emulators, start_instance(), api_key, SUITE_SECONDS)


@pytest.mark.soak
async def test_acknowledged_events_are_stored_exactly_once_soak(
    azure_emulators: Plant, start_instance: Callable[[], Instance], api_key: str
) -> None:
    """If dependencies fail under load for a long time, each acknowledged event is stored exactly once."""
    await fail_each_dependency_under_load(azure_emulators, start_instance(), api_key, SOAK_SECONDS)


async def test_a_failed_dependency_affects_only_its_routes(
    azure_emulators: Plant, start_instance: Callable[[], Instance], apply_sample_document: Callable[[str], str]
) -> None:
    """While a dependency is unavailable, only routes that need it return 503; then they succeed again."""
    app, admin = start_instance(), await asyncio.to_thread(apply_sample_document, EDITOR)
    token = await app.issue_token(admin)
    event = {"ActionType": "A", "EntityType": "T", "EntityID": "1", "ScopeKey": "s"}

    async def read_statuses_of_routes() -> dict[str, int]:
        return {
            "event": (await app.request("POST", EVENTS, token, event)).status,
            "query": (await app.request("POST", "/oi-api/warm-queries", token, QUERY)).status,
            "list": (await app.request("GET", "/oi-api/warm-queries", token)).status,
            "token": (await app.request("GET", "/workspace/api/keys/jwt", admin)).status,
        }

    healthy = {"event": 201, "query": 200, "list": 200, "token": 200}
    assert await read_statuses_of_routes() == healthy
    azure_emulators.kusto.process.kill()
    await asyncio.to_thread(end_process, azure_emulators.kusto.process)
    assert await read_statuses_of_routes() == healthy | {"query": 503}
    await asyncio.to_thread(azure_emulators.start_engine)
    await asyncio.to_thread(azure_emulators.deployment.blobs.stop)
    assert await read_statuses_of_routes() == healthy
    await asyncio.to_thread(azure_emulators.deployment.blobs.start)
    azure_emulators.deployment.vault.down = True
    assert await read_statuses_of_routes() == healthy | {"token": 503}
    azure_emulators.deployment.vault.down = False
    assert await read_statuses_of_routes() == healthy
