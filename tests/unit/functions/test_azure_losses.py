"""Each server that the app stands on in the cloud ends and starts again while it is written to: the chain is whole.

``LOSSES_SECONDS`` sets how long the soak runs, ``LOSSES_SEED`` repeats a run.
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

from emulators.cosmos.faults import random_faults
from shared.errors import WorkspaceError
from tests.emulators.kusto.endpoints import end
from tests.unit.functions.azure_plant import ADMIN, EDITOR, EVENTS, Instance, Plant

SUITE_SECONDS = 6.0
SOAK_SECONDS = float(os.environ.get("LOSSES_SECONDS", "300"))
WRITERS = 6
SCOPE = "losses"
HONEST = frozenset({200, 201, 429, 503, 504})
QUERY = {"query": "Telemetry | count"}


@dataclass
class Crowd:
    """Writers and readers over several instances, and what they were told.

    Attributes:
        stored: RecordID and Hash of each event that was acknowledged, by its EntityID.
        statuses: how often each status came.
    """

    app: Instance
    key: str
    token: str
    stored: dict[str, tuple[str, str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    over: bool = False

    async def write(self, name: int) -> None:
        """Append one event after the other, each until it is acknowledged."""
        number = 0
        while not self.over:
            await self._store(f"w{name}-{number}")
            number += 1

    async def _store(self, entity: str) -> None:
        event = {"ActionType": "Test", "EntityType": "Loss", "EntityID": entity, "ScopeKey": SCOPE}
        while True:
            reply = await self._told(self.app.ask("POST", EVENTS, self.token, event, idempotency_key=f"key-{entity}"))
            if reply.status == 201:
                self.stored[entity] = (reply.body["RecordID"], reply.body["Hash"])
                return
            await asyncio.sleep(0.05)

    async def query(self) -> None:
        """Ask the engine, whatever comes."""
        while not self.over:
            await self._told(self.app.ask("POST", "/oi-api/warm-queries", self.token, QUERY))
            await asyncio.sleep(0.02)

    async def mint(self) -> None:
        """Mint tokens, each an event of a chain of its own."""
        while not self.over:
            await self._told(self.app.ask("GET", "/workspace/api/keys/jwt", self.key))
            await asyncio.sleep(0.1)

    async def sign(self) -> None:
        """Make checkpoints."""
        while not self.over:
            try:
                await self.app.services.checkpoints.create_all()
            except WorkspaceError as error:
                assert error.kind.name == "UNAVAILABLE", error  # noqa: PT017  the others are faults
            await asyncio.sleep(0.1)

    async def _told(self, asked: Awaitable[Any]) -> Any:
        reply = await asked
        self.statuses[reply.status] += 1
        assert reply.status in HONEST, reply.body
        assert reply.status not in (429, 503) or int(reply.headers["Retry-After"]) >= 1
        return reply


async def ended_account(plant: Plant, chance: random.Random) -> None:
    """End the document database, and start it again."""
    await asyncio.to_thread(plant.deployed.cosmos.stop)
    await asyncio.sleep(chance.uniform(0.1, 1.5))
    await asyncio.to_thread(plant.deployed.cosmos.start)


async def faulty_account(plant: Plant, chance: random.Random) -> None:
    """Let the document database fail in every way at once."""
    faults = plant.deployed.cosmos.faults
    faults.add(*random_faults(0.4, chance.randrange(2**32), lambda request: request.operation == "batch"))
    await asyncio.sleep(chance.uniform(0.2, 1.0))
    faults.clear()


async def killed_engine(plant: Plant, chance: random.Random) -> None:
    """Kill the query engine, and start it again."""
    plant.kusto.process.kill()
    await asyncio.to_thread(end, plant.kusto.process)
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    await asyncio.to_thread(plant.start_engine)


async def ended_blobs(plant: Plant, chance: random.Random) -> None:
    """End the blob service, and start it again over the same folder."""
    await asyncio.to_thread(plant.deployed.blobs.stop)
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    await asyncio.to_thread(plant.deployed.blobs.start)


async def refusing_vault(plant: Plant, chance: random.Random) -> None:
    """Let the key vault refuse everything for a while."""
    plant.deployed.vault.down = True
    await asyncio.sleep(chance.uniform(0.1, 1.0))
    plant.deployed.vault.down = False


LOSSES: tuple[Callable[[Plant, random.Random], Awaitable[None]], ...] = (
    ended_account,
    faulty_account,
    killed_engine,
    ended_blobs,
    refusing_vault,
)


@asynccontextmanager
async def crowded(app: Instance, key: str) -> AsyncIterator[Crowd]:
    """Let writers, readers and the signer work all the while."""
    crowd = Crowd(app, key, await app.token(key))
    async with asyncio.TaskGroup() as tasks:
        for number in range(WRITERS):
            tasks.create_task(crowd.write(number))
        for work in (crowd.query, crowd.mint, crowd.sign):
            tasks.create_task(work())
        yield crowd
        crowd.over = True


async def lose(plant: Plant, app: Instance, key: str, seconds: float) -> None:
    """Lose one server after the other for a while, each at least once, and look at the chains."""
    seed = int(os.environ.get("LOSSES_SEED", random.SystemRandom().randrange(2**32)))
    print(f"LOSSES_SEED={seed}")  # noqa: T201  shown with a failure
    chance, ends_at = random.Random(seed), asyncio.get_running_loop().time() + seconds
    async with crowded(app, key) as crowd:
        for loss in chance.sample(LOSSES, len(LOSSES)):
            await loss(plant, chance)
        while asyncio.get_running_loop().time() < ends_at:
            await chance.choice(LOSSES)(plant, chance)
            await asyncio.sleep(chance.uniform(0.0, 0.5))
    async with asyncio.timeout(60):
        while (await app.ask("GET", "/readyz")).status != 200:  # noqa: ASYNC110  it looks at other processes
            await asyncio.sleep(0.1)
    assert len(crowd.stored) > WRITERS
    assert crowd.statuses[503] > 0
    await app.services.checkpoints.create_all()
    for chain in ({"ScopeKey": SCOPE}, {"Target": "AccessControl"}):
        verdict = await app.ask("POST", f"{EVENTS}/verify", crowd.token, chain)
        assert verdict.body["ChainValid"] is True, verdict.body
    assert await _records(app, crowd.token) == crowd.stored


async def _records(app: Instance, token: str) -> dict[str, tuple[str, str]]:
    """Return RecordID and Hash of each event by its EntityID, of which none stands there twice."""
    reply = await app.ask("GET", f"{EVENTS}/export?scopeKey={SCOPE}&limit=100000", token)
    assert reply.headers["x-provenance-has-more"] == "false"
    found = {record["EntityID"]: (record["RecordID"], record["Hash"]) for record in reply.body}
    assert len(found) == len(reply.body)
    return found


@pytest.fixture
async def key(apply: Callable[[str], str]) -> str:
    """A key of somebody who may do everything."""
    return await asyncio.to_thread(apply, ADMIN)


async def test_what_was_acknowledged_is_there_once_whichever_server_ended(
    plant: Plant, instances: Callable[[], Instance], key: str
) -> None:
    """Account, engine, blobs and vault fail under load: each 201 is in the chain once, and it is sound."""
    await lose(plant, instances(), key, SUITE_SECONDS)


@pytest.mark.soak
async def test_servers_are_lost_for_long(plant: Plant, instances: Callable[[], Instance], key: str) -> None:
    """The same for long."""
    await lose(plant, instances(), key, SOAK_SECONDS)


async def test_each_server_is_missed_by_its_own_routes_alone(
    plant: Plant, instances: Callable[[], Instance], apply: Callable[[str], str]
) -> None:
    """Without engine, blobs or vault all else goes on; the refusals say when to come again; nothing is started anew."""
    app, admin = instances(), await asyncio.to_thread(apply, EDITOR)
    token = await app.token(admin)
    event = {"ActionType": "A", "EntityType": "T", "EntityID": "1", "ScopeKey": "s"}

    async def statuses() -> dict[str, int]:
        return {
            "event": (await app.ask("POST", EVENTS, token, event)).status,
            "query": (await app.ask("POST", "/oi-api/warm-queries", token, QUERY)).status,
            "list": (await app.ask("GET", "/oi-api/warm-queries", token)).status,
            "token": (await app.ask("GET", "/workspace/api/keys/jwt", admin)).status,
        }

    sound = {"event": 201, "query": 200, "list": 200, "token": 200}
    assert await statuses() == sound
    plant.kusto.process.kill()
    await asyncio.to_thread(end, plant.kusto.process)
    assert await statuses() == sound | {"query": 503}
    await asyncio.to_thread(plant.start_engine)
    await asyncio.to_thread(plant.deployed.blobs.stop)
    assert await statuses() == sound
    await asyncio.to_thread(plant.deployed.blobs.start)
    plant.deployed.vault.down = True
    assert await statuses() == sound | {"token": 503}
    plant.deployed.vault.down = False
    assert await statuses() == sound
