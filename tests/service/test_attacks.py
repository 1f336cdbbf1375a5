"""Hostile principals against one host, while an honest client works as if they were not there.

``ATTACK_SECONDS`` sets how long the attacks last.
"""

import asyncio
import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import WebSocketException

from tests.docs.test_readme import test_the_tour_is_true as run_tour
from tests.service.listening import stream_url
from tests.service.running import ROOT, Service, eventually

SECONDS = float(os.environ.get("ATTACK_SECONDS", "60"))
HEALTH_SECONDS = 0.25
"""Bound of the 99th percentile of /healthz under attack."""
HEALTH_PAUSE = 0.05
SCOPE, ENTITY, CHAIN = "attacked", "long-chain", 300
ATTACKERS = {"queries": "Editor", "escapes": "Editor", "streams": "Viewer", "jobs": "Editor", "reports": "Editor"}
SLOW_TEXTS = ("'\"\\" * 21_800, "'\"\\\\" * 16_300, "'\"\\" + "'\\" * 32_600, "union " * 10_900, "(" * 65_000)
ESCAPES = (
    "cluster('https://example.invalid').database('x').Telemetry",
    "database('other').Telemetry | take 1",
    "externaldata(x: string)['https://example.invalid/x.csv']",
    "evaluate http_request('https://example.invalid')",
    "evaluate sql_request('Server=example.invalid', 'select 1')",
    "external_table('x')",
    "union database('*').* | take 1",
    "let f = () { database('other').Telemetry }; f()",
)
DEEP = f"print parse_json('{'[' * 20_000}{']' * 20_000}')"
RANGE = {"dateRange": {"start": "2026-01-01T00:00:00Z", "end": "2026-12-31T00:00:00Z"}}


@dataclass
class Notes:
    """Statuses of what each attack sent; 0 for a lost connection."""

    stop: threading.Event = field(default_factory=threading.Event)
    statuses: dict[str, Counter[int]] = field(default_factory=dict)

    def add(self, attack: str, status: int) -> None:
        """Note one reply."""
        self.statuses.setdefault(attack, Counter())[status] += 1


@pytest.fixture
def attacked(tmp_path: Path) -> Iterator[Service]:
    """Return the sample plant with a principal for each attack, and one entity with a long chain of amendments."""
    document = (ROOT / "samples" / "workspace.yaml").read_text(encoding="utf-8")
    members = [f"  - {{id: {name}@attack, name: {name}, role: {role}}}\n" for name, role in ATTACKERS.items()]
    path = tmp_path / "workspace.yaml"
    path.write_text(document.replace("\nteam:\n", f"\nteam:\n{''.join(members)}"), encoding="utf-8")
    running = Service(tmp_path / "data", path).start()
    amend_often(running)
    viewer = running.caller("viewer@plant-a.example")
    address = "/oi-api/warm-queries/latest-readings?p.connection=chiller-sim&limit=2"
    eventually(lambda: viewer.get(address).json()["rowCount"], lambda rows: rows == 2)
    yield running
    running.stop()


def amend_often(service: Service) -> None:
    """Give one entity a chain of long amendments."""
    author = service.caller("reports@attack")
    for number in range(CHAIN):
        amendment = {
            "ScopeKey": SCOPE,
            "EntityID": ENTITY,
            "EntityType": "Batch",
            "ReasonCategory": "other",
            "ReasonText": f"Attempt {number}",
            "OriginalRecord": {f"member-{n}": "x" * 50 for n in range(100)},
            "AmendedRecord": {f"member-{n}": "y" * 50 for n in range(100)},
            "ChangedFields": [f"member-{n}" for n in range(100)],
        }
        reply = author.post("/oi-api/provenance/amendments", json=amendment)
        assert reply.status_code == 201, reply.text


def mcp_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return a call of an MCP tool."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def send_slow_texts(client: httpx.Client) -> Iterator[httpx.Response]:
    """Send adversarial KQL by every way that KQL comes in, and deeply nested JSON."""
    yield client.post("/oi-api/warm-queries", json={"query": DEEP})
    accept = {"Accept": "application/json, text/event-stream"}
    for text in SLOW_TEXTS:
        yield client.post("/oi-api/warm-queries", json={"query": text})
        yield client.post("/oi-api/warm-queries", json={"query": f"print 1\n| where '{text[:60_000]}'"})
        yield client.post("/oi-api/warm-queries", json={"query": "Telemetry | take 1", "timeRange": text})
        definition = {"name": "Slow", "surface": "cooling", "kql": text}
        yield client.put("/oi-api/warm-queries/slow-text", json=definition)
        call = mcp_call("run_adhoc_query", {"query": text, "timeRange": "PT1H"})
        yield client.post("/oi-api/mcp", json=call, headers=accept)


def send_escapes(client: httpx.Client) -> Iterator[httpx.Response]:
    """Send KQL that would leave the workspace."""
    for text in ESCAPES:
        yield client.post("/oi-api/warm-queries", json={"query": text})


def start_downloads(client: httpx.Client) -> Iterator[httpx.Response]:
    """Start downloads."""
    for form in ("csv", "jsonl", "parquet"):
        yield client.post("/oi-api/downloads/data-connections/chiller-sim", json={"format": form, **RANGE})


def request_reports(client: httpx.Client) -> Iterator[httpx.Response]:
    """Request the printable report of the long chain."""
    query = {"scopeKey": SCOPE, "entityId": ENTITY}
    yield client.get("/oi-api/provenance/amendments/chain", params=query, headers={"Accept": "text/html"})


REQUESTS: dict[str, Callable[[httpx.Client], Iterator[httpx.Response]]] = {
    "queries": send_slow_texts,
    "escapes": send_escapes,
    "jobs": start_downloads,
    "reports": request_reports,
}


def attack(service: Service, name: str, notes: Notes) -> None:
    """Repeat the requests of an attack without a pause."""
    client = service.caller(f"{name}@attack")
    while not notes.stop.is_set():
        try:
            for reply in REQUESTS[name](client):
                notes.add(name, reply.status_code)
                if notes.stop.is_set():
                    return
        except httpx.HTTPError:
            notes.add(name, 0)


def attack_streams(service: Service, notes: Notes) -> None:
    """Open live streams without a pause and close none."""
    token = service.anonymous(bearer=service.key("streams@attack")).get("/workspace/api/keys/jwt").json()["Token"]
    asyncio.run(_hold_streams(stream_url(service), {"Authorization": f"Bearer {token}"}, notes))


async def _hold_streams(url: str, headers: dict[str, str], notes: Notes) -> None:
    held = []

    async def open_one() -> None:
        try:
            held.append(await connect(url, additional_headers=headers, proxy=None))
            notes.add("streams", 101)
        except (WebSocketException, OSError) as error:
            response = getattr(error, "response", None)
            notes.add("streams", 0 if response is None else response.status_code)

    while not notes.stop.is_set():
        await asyncio.gather(*(open_one() for _ in range(20)))
    await asyncio.gather(*(client.close() for client in held))


def probe_health(service: Service, notes: Notes, seconds: list[float]) -> None:
    """Measure how long /healthz takes, each time on a connection of its own."""
    while not notes.stop.wait(HEALTH_PAUSE):
        begun = time.perf_counter()
        notes.add("health", httpx.get(f"{service.url}/healthz", trust_env=False, timeout=30).status_code)
        seconds.append(time.perf_counter() - begun)


def work_honestly(service: Service, folder: Path, until: float) -> Counter[int]:
    """Run the README's tour once and its requests until a moment; return the statuses of the latter."""
    folder.mkdir()
    run_tour(service, folder)
    statuses = Counter[int]()
    editor = service.caller("editor@plant-a.example")
    while time.monotonic() < until:
        for reply in (
            editor.get("/oi-api/warm-queries/latest-readings?timeRange=PT5M&limit=1&p.connection=chiller-sim"),
            editor.post("/oi-api/telemetry/pump-rig", json=[{"messageId": "m-1", "Pressure": 4.25}]),
            editor.post("/oi-api/warm-queries", json={"query": "Telemetry | count"}),
            editor.post("/oi-api/provenance/events/verify", json={"ScopeKey": "line-1"}),
        ):
            statuses[reply.status_code] += 1
    return statuses


@pytest.mark.soak
def test_an_honest_client_does_not_notice_attacks(attacked: Service, tmp_path: Path) -> None:
    """Under all attacks at once every honest call succeeds, and 99 of 100 health checks take less than 250 ms."""
    notes, seconds = Notes(), list[float]()
    threads = [threading.Thread(target=attack, args=(attacked, name, notes)) for name in REQUESTS]
    threads.append(threading.Thread(target=attack_streams, args=(attacked, notes)))
    threads.append(threading.Thread(target=probe_health, args=(attacked, notes, seconds)))
    for thread in threads:
        thread.start()
    try:
        honest = work_honestly(attacked, tmp_path / "tour", time.monotonic() + SECONDS)
    finally:
        notes.stop.set()
        for thread in threads:
            thread.join()
    assert set(honest) <= {200, 202}, honest
    assert set(notes.statuses["health"]) == {200}, notes.statuses
    assert statistics.quantiles(seconds, n=100)[98] < HEALTH_SECONDS
    assert notes.statuses["streams"][101] <= 20, notes.statuses
    assert notes.statuses["jobs"][429] > 0, notes.statuses
    for name in ("queries", "escapes"):
        assert not {0, 500} & set(notes.statuses[name]), notes.statuses
    assert notes.statuses["escapes"][200] == 0, notes.statuses
