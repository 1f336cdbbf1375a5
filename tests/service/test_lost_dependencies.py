"""Tests that no acknowledged record is lost while the service's dependencies fail under load.

``LOSSES_SECONDS`` sets the duration of the soak test; ``LOSSES_SEED`` repeats the run of a seed.
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
from tests.service.local_service import ROOT, Service, verify_chain, wait_until
from tests.service.test_degradation import find_engine_process_id, lock_database

SUITE_SECONDS = 8.0
SOAK_SECONDS = float(os.environ.get("LOSSES_SECONDS", "300"))
WRITERS, READERS = 6, 2
SCOPE = "losses"
HONEST = frozenset({200, 201, 409, 429, 503, 504})


@dataclass
class LoadGenerator:
    """Load generator that runs concurrent writers and readers against the service.

    Attributes:
        stored: RecordID and Hash of each acknowledged event, by its EntityID.
        statuses: number of replies by status.
    """

    service: Service
    stored: dict[str, tuple[str, str]] = field(default_factory=dict)
    statuses: Counter[int] = field(default_factory=Counter)
    stop: threading.Event = field(default_factory=threading.Event)

    def append_events(self, client: httpx.Client, writer: int) -> None:
        """Append events one after another; repeat each request until the service acknowledges the event."""
        number = 0
        while not self.stop.is_set():
            self._store_event(client, f"w{writer}-{number}")
            number += 1

    def _store_event(self, client: httpx.Client, entity: str) -> None:
        event = {"ActionType": "Test", "EntityType": "Loss", "EntityID": entity, "ScopeKey": SCOPE}
        while True:
            reply = client.post("/oi-api/provenance/events", json=event, headers={"Idempotency-Key": f"key-{entity}"})
            self.statuses[reply.status_code] += 1
            if reply.status_code == httpx.codes.CREATED:
                self.stored[entity] = (reply.json()["RecordID"], reply.json()["Hash"])
                return
            assert reply.status_code in HONEST, reply.text
            self.stop.wait(0.05)

    def run_queries(self, client: httpx.Client) -> None:
        """Run queries repeatedly until the load ends."""
        while not self.stop.is_set():
            reply = client.post("/oi-api/warm-queries", json={"query": "Telemetry | count"})
            self.statuses[reply.status_code] += 1
            assert reply.status_code in HONEST, reply.text


def kill_engine(service: Service, _: random.Random) -> None:
    """Kill the query engine, if it runs."""
    os.kill(wait_until(lambda: _find_engine_process_id(service), bool, 60), signal.SIGKILL)


def _find_engine_process_id(service: Service) -> int:
    try:
        return find_engine_process_id(service)
    except subprocess.CalledProcessError:  # the previous engine has ended and the next one has not started yet
        return 0


def suspend_engine(service: Service, rng: random.Random) -> None:
    """Suspend the query engine for a while."""
    engine = wait_until(lambda: _find_engine_process_id(service), bool, 60)
    os.kill(engine, signal.SIGSTOP)
    time.sleep(rng.uniform(0.1, 1.0))
    os.kill(engine, signal.SIGCONT)


def lock_file(service: Service, rng: random.Random) -> None:
    """Lock one of the databases for a random time, which is sometimes longer than the time that writers wait."""
    name = rng.choice(("provenance.sqlite", "workspace.sqlite", "hub.sqlite", "rate-limits.sqlite"))
    with lock_database(service.data_dir / name):
        time.sleep(rng.choice((0.2, 1.0, 1.0, 11.0)))


def remove_blobs(service: Service, rng: random.Random) -> None:
    """Remove the folder of blobs for a while."""
    blobs, away = service.data_dir / "blobs", service.data_dir / "away"
    blobs.mkdir(exist_ok=True)
    blobs.rename(away)
    blobs.write_text("no folder")
    time.sleep(rng.uniform(0.1, 1.0))
    blobs.unlink()
    away.rename(blobs)


LOSSES: tuple[Callable[[Service, random.Random], None], ...] = (kill_engine, suspend_engine, lock_file, remove_blobs)


@contextmanager
def run_load(service: Service) -> Iterator[LoadGenerator]:
    """Context manager: run writers and readers for the duration of the block."""
    crowd = LoadGenerator(service)
    # A token is issued only if the audit log responds, so all clients have their tokens before the first failure.
    clients = [service.create_client("editor@t") for _ in range(WRITERS + READERS)]
    with ThreadPoolExecutor(WRITERS + READERS) as pool:
        asking = [pool.submit(crowd.append_events, clients[number], number) for number in range(WRITERS)]
        asking += [pool.submit(crowd.run_queries, client) for client in clients[WRITERS:]]
        try:
            yield crowd
        finally:
            crowd.stop.set()
        for one in asking:
            one.result()


def check_failures_under_load(service: Service, seconds: float, tmp_path: Path) -> None:
    """Run a load, let each dependency fail at least once during it, and then verify the audit chains."""
    seed = int(os.environ.get("LOSSES_SEED", random.SystemRandom().randrange(2**32)))
    print(f"LOSSES_SEED={seed}")  # noqa: T201  shown with a failure
    rng, ends_at = random.Random(seed), time.monotonic() + seconds
    with run_load(service) as crowd:
        for loss in rng.sample(LOSSES, len(LOSSES)):
            loss(service, rng)
        while time.monotonic() < ends_at:
            rng.choice(LOSSES)(service, rng)
            time.sleep(rng.uniform(0.0, 0.5))
    assert crowd.statuses[201] == len(crowd.stored) > WRITERS
    editor = service.create_client("editor@t")
    wait_until(lambda: editor.get("/readyz"), lambda reply: reply.status_code == httpx.codes.OK, 60)
    for chain in (("DomainEvents", SCOPE), ("AccessControl",)):
        assert verify_chain(editor, *chain)["Empty"] is False
    records = _export_chain(service, tmp_path)
    assert Counter(record["EntityID"] for record in records).most_common(1)[0][1] == 1
    found = {record["EntityID"]: (record["RecordID"], record["Hash"]) for record in records}
    assert found == crowd.stored


def _export_chain(service: Service, tmp_path: Path) -> list[dict[str, str]]:
    """Export the chain, verify it offline, and return its records."""
    token = service.create_client("editor@t").headers["Authorization"].removeprefix("Bearer ")
    out, verify = tmp_path / "export.json", [sys.executable, "-m", "oi.verification"]
    chain = ["--target", "DomainEvents", "--scope", SCOPE]
    fetch = [*verify, "fetch", service.url, *chain, "--out", str(out)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client" / "src"), "OI_TOKEN": token}
    subprocess.run(fetch, env=environment, check=True, capture_output=True)
    checked = subprocess.run(
        [*verify, str(out), "--workspace", "plant-t", *chain],
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
    records: list[dict[str, str]] = json.loads(out.read_text())
    return records


@pytest.fixture
def disturbed_service(tmp_path: Path) -> Iterator[Service]:
    """Return a running service that only one test uses."""
    running = Service(tmp_path / "data", WORKSPACE, {"QUERY_TIMEOUT_SECONDS": "3"}).start()
    yield running
    assert running.stop() == 0


def test_acknowledged_events_are_stored_exactly_once(disturbed_service: Service, tmp_path: Path) -> None:
    """If dependencies fail under load, each acknowledged event is stored exactly once, and the chain is valid."""
    check_failures_under_load(disturbed_service, SUITE_SECONDS, tmp_path)


@pytest.mark.soak
def test_acknowledged_events_are_stored_exactly_once_soak(disturbed_service: Service, tmp_path: Path) -> None:
    """If dependencies fail for a long time, each acknowledged event is stored exactly once, and the chain is valid."""
    check_failures_under_load(disturbed_service, SOAK_SECONDS, tmp_path)
