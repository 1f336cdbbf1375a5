"""Tests that attacks on a host do not affect an honest client of the same host.

``ATTACK_SECONDS`` sets the duration of the attacks.
"""

import asyncio
import multiprocessing
import os
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from multiprocessing.queues import Queue
from multiprocessing.synchronize import Event
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import WebSocketException

from tests.docs.test_readme import test_the_tour_prints_the_shown_outputs as run_tour
from tests.plain_http import NO_TLS
from tests.service.local_service import ROOT, Service, build_range_around_now, wait_until

SECONDS = float(os.environ.get("ATTACK_SECONDS", "60"))
HEALTH_SECONDS = 0.25
"""Maximum of the 99th percentile of /healthz during attacks."""
HEALTH_PAUSE = 0.05
SCOPE, ENTITY, CHAIN = "attacked", "long-chain", 300
type Result = tuple[str, Counter[int]]
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
RANGE = {"dateRange": build_range_around_now()}


@pytest.fixture
def attacked_service(tmp_path: Path) -> Iterator[Service]:
    """Return a service with one principal for each attack, and an entity with many amendments."""
    document = (ROOT / "samples" / "workspace.yaml").read_text(encoding="utf-8")
    members = [f"  - {{id: {name}@attack, name: {name}, role: {role}}}\n" for name, role in ATTACKERS.items()]
    path = tmp_path / "workspace.yaml"
    path.write_text(document.replace("\nteam:\n", f"\nteam:\n{''.join(members)}"), encoding="utf-8")
    running = Service(tmp_path / "data", path).start()
    append_amendments(running)
    viewer = running.create_client("viewer@plant-a.example")
    address = "/oi-api/warm-queries/latest-readings?p.connection=chiller-sim&limit=2"
    wait_until(lambda: viewer.get(address).json()["rowCount"], lambda rows: rows == 2)
    yield running
    running.stop()


def append_amendments(service: Service) -> None:
    """Append many long amendments about one entity."""
    author = service.create_client("reports@attack")
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


def build_mcp_call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the request body of an MCP tool call."""
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": name, "arguments": arguments}}


def send_expensive_queries(client: httpx.Client) -> Iterator[httpx.Response]:
    """Send expensive KQL to every route that accepts KQL, and deeply nested JSON."""
    yield client.post("/oi-api/warm-queries", json={"query": DEEP})
    accept = {"Accept": "application/json, text/event-stream"}
    for text in SLOW_TEXTS:
        yield client.post("/oi-api/warm-queries", json={"query": text})
        yield client.post("/oi-api/warm-queries", json={"query": f"print 1\n| where '{text[:60_000]}'"})
        yield client.post("/oi-api/warm-queries", json={"query": "Telemetry | take 1", "timeRange": text})
        definition = {"name": "Slow", "surface": "cooling", "kql": text}
        yield client.put("/oi-api/warm-queries/slow-text", json=definition)
        call = build_mcp_call("run_adhoc_query", {"query": text, "timeRange": "PT1H"})
        yield client.post("/oi-api/mcp", json=call, headers=accept)


def send_queries_of_other_data(client: httpx.Client) -> Iterator[httpx.Response]:
    """Send KQL that tries to read data outside of the workspace."""
    for text in ESCAPES:
        yield client.post("/oi-api/warm-queries", json={"query": text})


def start_downloads(client: httpx.Client) -> Iterator[httpx.Response]:
    """Start cold downloads without waiting for their files."""
    for form in ("csv", "jsonl", "parquet"):
        yield client.post("/oi-api/downloads/data-connections/chiller-sim", json={"format": form, **RANGE})


def request_reports(client: httpx.Client) -> Iterator[httpx.Response]:
    """Request the HTML report of the entity with many amendments."""
    query = {"scopeKey": SCOPE, "entityId": ENTITY}
    yield client.get("/oi-api/provenance/amendments/chain", params=query, headers={"Accept": "text/html"})


REQUESTS: dict[str, Callable[[httpx.Client], Iterator[httpx.Response]]] = {
    "queries": send_expensive_queries,
    "escapes": send_queries_of_other_data,
    "jobs": start_downloads,
    "reports": request_reports,
}


def run_attack(url: str, token: str, name: str, stop: Event, results: "Queue[Result]") -> None:
    """Repeat the requests of an attack until the stop signal, and report the number of replies by status.

    Status 0 is a lost connection.
    """
    # Attackers have machines of their own; here their clients must not take the processor from the host.
    os.nice(19)
    headers = {"Authorization": f"Bearer {token}"}
    statuses = Counter[int]()
    if name == "streams":
        asyncio.run(open_streams(f"{url.replace('http', 'ws', 1)}/oi-api/live-stream", headers, stop, statuses))
    else:
        with httpx.Client(base_url=url, headers=headers, trust_env=False, verify=NO_TLS, timeout=60) as client:
            while not stop.is_set():
                repeat_requests(client, name, stop, statuses)
    results.put((name, statuses))


def repeat_requests(client: httpx.Client, name: str, stop: Event, statuses: "Counter[int]") -> None:
    """Send all requests of an attack once, and count the statuses of the replies."""
    try:
        for reply in REQUESTS[name](client):
            statuses[reply.status_code] += 1
            if stop.is_set():
                return
    except httpx.HTTPError:
        statuses[0] += 1


async def open_streams(url: str, headers: dict[str, str], stop: Event, statuses: "Counter[int]") -> None:
    """Open live streams one after another and keep them open; count the open streams under the status 101.

    A client that does not read is disconnected, and could then open another stream.
    """
    streams = set[ClientConnection]()
    readers = set[asyncio.Task[None]]()

    async def read(stream: ClientConnection) -> None:
        streams.add(stream)
        statuses[101] = max(statuses[101], len(streams))
        async for _ in stream:
            pass
        streams.discard(stream)

    async def open_stream() -> None:
        try:
            readers.add(asyncio.create_task(read(await connect(url, additional_headers=headers, proxy=None))))
        except (WebSocketException, OSError) as error:
            response = getattr(error, "response", None)
            statuses[0 if response is None else response.status_code] += 1

    while not stop.is_set():
        await asyncio.gather(*(open_stream() for _ in range(20)))
    await asyncio.gather(*(stream.close() for stream in streams))
    await asyncio.gather(*readers, return_exceptions=True)


def probe_health(url: str, stop: Event, seconds: list[float], statuses: "Counter[int]") -> None:
    """Request /healthz over new connections until the stop signal, and record the latency of each request."""
    host = url.removeprefix("http://")
    while not stop.wait(HEALTH_PAUSE):
        begun = time.perf_counter()
        connection = HTTPConnection(host, timeout=60)
        connection.request("GET", "/healthz")
        with connection.getresponse() as reply:
            reply.read()
            statuses[reply.status] += 1
        connection.close()
        seconds.append(time.perf_counter() - begun)


@contextmanager
def run_attacks(service: Service, stop: Event, statuses: dict[str, "Counter[int]"]) -> Iterator[None]:
    """Run each attack in a separate process, and collect the statuses of all replies."""
    context = multiprocessing.get_context("spawn")
    results: Queue[Result] = context.Queue()
    tokens = {
        name: service.create_anonymous_client(bearer=service.read_api_key(f"{name}@attack"))
        .get("/workspace/api/keys/jwt")
        .json()["Token"]
        for name in ATTACKERS
    }
    processes = [
        context.Process(target=run_attack, args=(service.url, token, name, stop, results))
        for name, token in tokens.items()
    ]
    for process in processes:
        process.start()
    try:
        yield
    finally:
        stop.set()
        statuses.update(results.get(timeout=180) for _ in processes)
        for process in processes:
            process.join()


def run_honest_client(service: Service, folder: Path, until: float) -> Counter[int]:
    """Run the README's tour once, repeat its requests until the deadline, and return the statuses of the replies."""
    folder.mkdir()
    run_tour(service, folder)
    statuses = Counter[int]()
    editor = service.create_client("editor@plant-a.example")
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
def test_attacks_do_not_affect_an_honest_client(attacked_service: Service, tmp_path: Path) -> None:
    """During all attacks, each request of another client succeeds, and 99 % of health checks take less than 250 ms."""
    stop = multiprocessing.get_context("spawn").Event()
    found, health, seconds = dict[str, Counter[int]](), Counter[int](), list[float]()
    probe = threading.Thread(target=probe_health, args=(attacked_service.url, stop, seconds, health))
    with run_attacks(attacked_service, stop, found):
        probe.start()
        honest = run_honest_client(attacked_service, tmp_path / "tour", time.monotonic() + SECONDS)
        stop.set()
        probe.join()
    assert set(honest) <= {200, 202}, honest
    assert set(health) == {200}, health
    shares = statistics.quantiles(seconds, n=100)
    assert shares[98] < HEALTH_SECONDS, ([round(shares[n - 1], 3) for n in (50, 90, 95, 99)], len(seconds), found)
    assert found["streams"][101] <= 20, found
    assert found["jobs"][429] > 0, found
    for name in ("queries", "escapes"):
        assert not {0, 500} & set(found[name]), found
    assert found["escapes"][200] == 0, found
