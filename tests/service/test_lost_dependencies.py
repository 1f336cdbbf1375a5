"""Everything that the service stands on goes away and comes back while it is written to: the audit chain is whole.

``LOSSES_SECONDS`` sets how long the soak runs, ``LOSSES_SEED`` repeats a run.
"""

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import httpx
import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import ROOT, Service, wait_until
from tests.service.test_degradation import engine_of, locked

SUITE_SECONDS = 8.0
SOAK_SECONDS = float(os.environ.get("LOSSES_SECONDS", "300"))
WRITERS, READERS = 6, 2
SCOPE = "losses"
HONEST = frozenset({200, 201, 409, 429, 503, 504})


@dataclass
class Crowd:
    """Writers and readers, and what they were told.

    Attributes:
        stored: RecordID and Hash of each event that was acknowledged, by its EntityID.
        statuses: how often each status came.
    """

    service: Service
    stored: dict[str, tuple[str, str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def write(self, name: int) -> None:
        """Append one event after the other, each until it is acknowledged."""
        client, number = self.service.caller("editor@t"), 0
        while not self.stop.is_set():
            self._store(client, f"w{name}-{number}")
            number += 1

    def _store(self, client: httpx.Client, entity: str) -> None:
        event = {"ActionType": "Test", "EntityType": "Loss", "EntityID": entity, "ScopeKey": SCOPE}
        while True:
            reply = client.post("/oi-api/provenance/events", json=event, headers={"Idempotency-Key": f"key-{entity}"})
            self.statuses[reply.status_code] += 1
            if reply.status_code == httpx.codes.CREATED:
                self.stored[entity] = (reply.json()["RecordID"], reply.json()["Hash"])
                return
            assert reply.status_code in HONEST, reply.text
            self.stop.wait(0.05)

    def read(self, _: int) -> None:
        """Query, whatever comes."""
        client = self.service.caller("editor@t")
        while not self.stop.is_set():
            reply = client.post("/oi-api/warm-queries", json={"query": "Telemetry | count"})
            self.statuses[reply.status_code] += 1
            assert reply.status_code in HONEST, reply.text


def killed_engine(service: Service, _: random.Random) -> None:
    """Kill the query engine, once it runs."""
    os.kill(wait_until(lambda: _engine(service), bool, 60), signal.SIGKILL)


def _engine(service: Service) -> int:
    try:
        return engine_of(service)
    except subprocess.CalledProcessError:  # the one before is dead, the next one not there yet
        return 0


def hung_engine(service: Service, chance: random.Random) -> None:
    """Stop the query engine for a while."""
    engine = wait_until(lambda: _engine(service), bool, 60)
    os.kill(engine, signal.SIGSTOP)
    time.sleep(chance.uniform(0.1, 1.0))
    os.kill(engine, signal.SIGCONT)


def held_file(service: Service, chance: random.Random) -> None:
    """Hold one of the files for a while, at times longer than writers wait."""
    name = chance.choice(("provenance.sqlite", "workspace.sqlite", "hub.sqlite", "rate-limits.sqlite"))
    with locked(service.data_dir / name):
        time.sleep(chance.choice((0.2, 1.0, 1.0, 11.0)))


def missing_blobs(service: Service, chance: random.Random) -> None:
    """Take the folder of blobs away for a while."""
    blobs, away = service.data_dir / "blobs", service.data_dir / "away"
    blobs.mkdir(exist_ok=True)
    blobs.rename(away)
    blobs.write_text("no folder")
    time.sleep(chance.uniform(0.1, 1.0))
    blobs.unlink()
    away.rename(blobs)


LOSSES: tuple[Callable[[Service, random.Random], None], ...] = (killed_engine, hung_engine, held_file, missing_blobs)


@contextmanager
def crowded(service: Service) -> Iterator[Crowd]:
    """Let writers and readers ask all the while."""
    crowd = Crowd(service)
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        asking = [pool.submit(crowd.write, number) for number in range(WRITERS)]
        asking += [pool.submit(crowd.read, number) for number in range(READERS)]
        try:
            yield crowd
        finally:
            crowd.stop.set()
        for one in asking:
            one.result()


def lose(service: Service, seconds: float, tmp_path: Path) -> None:
    """Lose one thing after the other for a while, each of them at least once, and look at the chain."""
    seed = int(os.environ.get("LOSSES_SEED", random.SystemRandom().randrange(2**32)))
    print(f"LOSSES_SEED={seed}")  # noqa: T201  shown with a failure
    chance, ends_at = random.Random(seed), time.monotonic() + seconds
    with crowded(service) as crowd:
        for loss in chance.sample(LOSSES, len(LOSSES)):
            loss(service, chance)
        while time.monotonic() < ends_at:
            chance.choice(LOSSES)(service, chance)
            time.sleep(chance.uniform(0.0, 0.5))
    assert crowd.statuses[201] == len(crowd.stored) > WRITERS
    editor = service.caller("editor@t")
    wait_until(lambda: editor.get("/readyz"), lambda reply: reply.status_code == httpx.codes.OK, 60)
    verdict = editor.post("/oi-api/provenance/events/verify", json={"ScopeKey": SCOPE}).json()
    assert verdict["ChainValid"] is True, verdict
    records = _exported(service, tmp_path)
    assert Counter(record["EntityID"] for record in records).most_common(1)[0][1] == 1
    found = {record["EntityID"]: (record["RecordID"], record["Hash"]) for record in records}
    assert found == crowd.stored


def _exported(service: Service, tmp_path: Path) -> list[dict[str, str]]:
    """Fetch the chain, let the offline verifier look at it, and return its records."""
    token = service.caller("editor@t").headers["Authorization"].removeprefix("Bearer ")
    out, verify = tmp_path / "export.json", [sys.executable, "-m", "shared.provenance.verify"]
    chain = ["--target", "DomainEvents", "--scope", SCOPE]
    fetch = [*verify, "fetch", service.url, *chain, "--out", str(out)]
    subprocess.run(fetch, cwd=ROOT, env={**os.environ, "OI_TOKEN": token}, check=True, capture_output=True)
    checked = subprocess.run(
        [*verify, str(out), "--workspace", "plant-t", *chain], cwd=ROOT, check=False, capture_output=True, text=True
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    records: list[dict[str, str]] = json.loads(out.read_text())
    return records


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Service]:
    """Return a service of the test's own."""
    running = Service(tmp_path / "data", WORKSPACE, {"QUERY_TIMEOUT_SECONDS": "3"}).start()
    yield running
    assert running.stop() == 0


def test_what_was_acknowledged_is_there_once_whatever_went_away(plant: Service, tmp_path: Path) -> None:
    """Engine, files and blobs are lost under load: each 201 is in the chain once, and it is sound, offline too."""
    lose(plant, SUITE_SECONDS, tmp_path)


@pytest.mark.soak
def test_losses_for_long(plant: Service, tmp_path: Path) -> None:
    """The same for long."""
    lose(plant, SOAK_SECONDS, tmp_path)
