"""Benchmark: reads and creations of documents, compared with a trivial authenticated request; time of a long list."""

import asyncio
import itertools
import json
import statistics
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import aiohttp

from bench.figures import Figure
from bench.running import RunningService, measure_replies_per_second, run_service
from shared.backends.embedded.documents import DocumentFile, SqliteDocumentStore
from shared.data_stores.models import AccountContainer, DatabaseAddress, Table

ROUNDS = 3
SECONDS = 2.0
CONNECTIONS = 64
LISTED = 1000
LISTS = 50
TABLE = "/oi-api/data-stores/mes/databases/orders/tables/workorders"
PLACE = Table(DatabaseAddress("mes", "orders"), AccountContainer("workorders", "/line"))
_NUMBERS = itertools.count()


def measure_documents() -> Iterator[Figure]:
    """Measure the rates of trivial requests, reads and creations alternately.

    Then measure how much longer a list request takes than the store needs to read the same list.
    """
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        rates: dict[str, list[float]] = {"whoami": [], "read": [], "create": []}
        with run_service(folder=Path(folder)) as running:
            asyncio.run(_fill_container(running))
            for _ in range(ROUNDS):
                for name, run in (
                    ("whoami", _measure_trivial_requests_per_second),
                    ("read", _measure_reads_per_second),
                    ("create", _measure_creations_per_second),
                ):
                    rates[name].append(run(running))
            whole = statistics.median(_measure_list_request_milliseconds(running) for _ in range(LISTS))
        own = asyncio.run(_measure_median_store_list_milliseconds(Path(folder)))
    median = {name: statistics.median(values) for name, values in rates.items()}
    detail = {f"{name}PerSecond": round(rate) for name, rate in median.items()} | {"connections": CONNECTIONS}
    yield Figure("document_read_to_trivial", median["read"] / median["whoami"], "ratio", at_least=0.5, detail=detail)
    yield Figure(
        "document_create_to_trivial", median["create"] / median["whoami"], "ratio", at_least=0.6, detail=detail
    )
    lists = {"routeMs": round(whole, 3), "storeMs": round(own, 3), "documents": LISTED}
    yield Figure("document_list_overhead", whole - own, "ms", at_most=15, detail=lists)


def _build_document(document_id: str, partition_key: str) -> dict[str, object]:
    return {"id": document_id, "line": partition_key, "state": "open", "quantity": 500, "note": "x" * 100}


async def _fill_container(running: RunningService) -> None:
    async with aiohttp.ClientSession(headers=running.headers) as session:
        for number in range(LISTED):
            async with session.post(running.url + TABLE, json=_build_document(f"listed-{number}", "listed")) as reply:
                reply.raise_for_status()


def _measure_trivial_requests_per_second(running: RunningService) -> float:
    url = f"{running.url}/workspace/api/keys/whoami"
    return measure_replies_per_second(url, running.headers, connection_count=CONNECTIONS, duration_seconds=SECONDS)


def _measure_reads_per_second(running: RunningService) -> float:
    url = f"{running.url}{TABLE}/listed-7?partitionKey=listed"
    return measure_replies_per_second(url, running.headers, connection_count=CONNECTIONS, duration_seconds=SECONDS)


def _measure_creations_per_second(running: RunningService) -> float:
    return asyncio.run(_create_and_measure_documents_per_second(running))


async def _create_and_measure_documents_per_second(running: RunningService) -> float:
    ends_at = time.perf_counter() + SECONDS

    async def create_and_count_documents(session: aiohttp.ClientSession) -> int:
        count = 0
        while time.perf_counter() < ends_at:
            document = _build_document(f"created-{next(_NUMBERS)}", "created")
            async with session.post(running.url + TABLE, json=document) as reply:
                reply.raise_for_status()
                await reply.read()
            count += 1
        return count

    async with aiohttp.ClientSession(headers=running.headers) as session:
        started = time.perf_counter()
        counts = await asyncio.gather(*(create_and_count_documents(session) for _ in range(CONNECTIONS)))
        return sum(counts) / (time.perf_counter() - started)


def _measure_list_request_milliseconds(running: RunningService) -> float:
    url = f"{running.url}{TABLE}?partitionKey=listed&limit={LISTED}"
    request = urllib.request.Request(url, headers=running.headers)  # noqa: S310  our own
    started = time.perf_counter()
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310  our own
        body = reply.read()
    elapsed = (time.perf_counter() - started) * 1000
    if (count := json.loads(body)["count"]) != LISTED:
        raise RuntimeError(f"the list has {count} of {LISTED} documents")
    return elapsed


async def _measure_median_store_list_milliseconds(data_dir: Path) -> float:
    file = DocumentFile(data_dir)
    store = SqliteDocumentStore(file)
    times = []
    for _ in range(LISTS):
        started = time.perf_counter()
        await store.list(PLACE, "listed", LISTED, None, all_partitions=False)
        times.append((time.perf_counter() - started) * 1000)
    await file.close()
    return statistics.median(times)
