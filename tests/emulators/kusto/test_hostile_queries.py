"""Tests that a query which exhausts time or memory fails without affecting other queries."""

import asyncio
import contextlib
import os
import signal
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from azure.kusto.data.exceptions import KustoApiError, KustoServiceError

from emulators.kusto.engine import MAX_RUNNING, MAX_WAITING
from tests.emulators.kusto.endpoints import DEADLINE_SECONDS, Endpoint

ENDLESS = (
    "Telemetry | extend k = 1 | join kind=inner (Telemetry | extend k = 1) on k"
    " | join kind=inner (Telemetry | extend k = 1) on k | summarize sum(Number + Number1 + Number2)"
)
EXPANDING = [
    "print x = " + "strlen(tostring(" * 20 + "1" + "))" * 20,
    "let a0 = 1;" + "".join(f"let a{i + 1} = a{i} + a{i};" for i in range(40)) + "print a40",
    "print x = " + "(" * 500 + "1" + ")" * 500,
    "print x = dynamic(" + "[" * 3000 + "]" * 3000 + ")",
    "Telemetry | where " + " and ".join(["Number > 1"] * 3000),
    "Telemetry | where DeviceId == '" + "x" * 140_000 + "'",
]
MAX_RETAINED_BYTES = 1_500_000_000
"""Memory that the process may retain after greedy queries, of its limit of 2.6 GB."""
GIGABYTE = "print a = strrep('x', 1000) | extend b = strrep(a, 1000) | extend c = strrep(b, 1000)"
"""Query that creates a text of one gigabyte, which the engine supports."""
JOINED = [
    "strcat(c, c, c, c, c)",
    "strcat_delim('-', c, c, tostring(dynamic(null)), c, c, c)",
    "strcat(substring(c, 1), strcat(c, '!'), tolower(c), c, c)",
    "strrep(c, 1000)",
    "strcat_array(pack_array(c, c, c, c, c), '')",
    "tostring(pack_array(c, c, c, c, c))",
    "url_encode(c)",
    "base64_encode_tostring(c)",
    "replace_string(c, 'x', c)",
]
ORDINARY = "range x from 1 to 2000000 step 1 | summarize n = dcount(tostring(x)), s = sum(x)"
GREEDY = [
    "range x from 1 to 100000000 step 1 | summarize make_list(x)",
    "print x = strrep(strrep(strrep('x', 1024), 1024), 1024)",
]


def test_a_timeout_ends_only_the_query_that_exceeds_it(endpoint: Endpoint) -> None:
    """A query that exceeds the server timeout fails and is stopped; later queries succeed."""
    error = endpoint.query_error(ENDLESS, servertimeout=timedelta(seconds=1))
    assert isinstance(error, KustoApiError)
    assert error.get_api_error().code == "RequestExecutionTimeout"
    assert getattr(error.http_response, "status_code", None) == 504
    endpoint.wait_for_statistics(lambda stats: stats["queries"]["running"] == 0)
    assert endpoint.query_rows("Telemetry | count") == [[2000]]


@pytest.mark.parametrize("text", EXPANDING, ids=range(len(EXPANDING)))
def test_too_long_deep_or_expanding_query_texts_are_rejected(endpoint: Endpoint, text: str) -> None:
    """A query text is rejected if it is too long, too deep, or expands too much."""
    error = endpoint.query_error(text)
    assert "EMB0003" in str(error)
    assert endpoint.query_rows("print 1") == [[1]]


@pytest.mark.parametrize("text", GREEDY, ids=range(len(GREEDY)))
def test_a_query_that_computes_gigabytes_fails_alone(endpoint: Endpoint, text: str) -> None:
    """A query that computes values of gigabytes fails at the memory limit, and the emulator continues."""
    assert "E_RUNAWAY_QUERY" in str(endpoint.query_error(text, servertimeout=timedelta(minutes=2)))
    assert endpoint.process.poll() is None
    assert endpoint.query_rows("Telemetry | count") == [[2000]]


@pytest.mark.parametrize("text", JOINED)
def test_a_query_that_computes_a_text_over_4_gib_fails_alone(endpoint: Endpoint, text: str) -> None:
    """A text over 4 GiB is rejected before it is created, because otherwise DuckDB's database becomes invalid."""
    error = endpoint.query_error(f"{GIGABYTE} | project n = strlen({text})", servertimeout=timedelta(minutes=2))
    assert "E_RUNAWAY_QUERY" in str(error)
    assert endpoint.process.poll() is None
    assert endpoint.query_rows("Telemetry | count") == [[2000]]


def test_a_text_that_doubles_with_every_operator_is_rejected(endpoint: Endpoint) -> None:
    """The size limit of computed texts includes those of earlier operators; the error names the function."""
    doubling = "print a = strrep('x', 1024)" + " | extend a = strcat(a, a)" * 14
    assert endpoint.query_rows(f"{doubling} | project strlen(a)") == [[16_777_216]]
    error = endpoint.query_error(f"{doubling} | project n = strlen(strcat(a, a))")
    assert "strcat() would create a text of more than 16777216 bytes (E_RUNAWAY_QUERY)" in str(error)


@pytest.mark.parametrize("repeats", [2, pytest.param(8, marks=pytest.mark.soak)])
def test_queries_that_use_up_the_memory_release_it(endpoint: Endpoint, repeats: int) -> None:
    """After any number of queries that use up the memory, ordinary queries succeed."""
    greedy = [
        *GREEDY,
        "range i from 1 to 400 step 1 | extend s = strcat(strrep('x', 1024), i) | extend l = repeat(s, 9000)",
    ]
    for text in greedy * repeats:
        with contextlib.suppress(KustoServiceError):
            endpoint.query_rows(f"{text} | count", servertimeout=timedelta(seconds=20))
    for _ in range(4):
        assert endpoint.query_rows(ORDINARY) == [[2000000, 2000001000000]]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (retained := _measure_data_segment(endpoint)) > MAX_RETAINED_BYTES:
        assert time.monotonic() < deadline, f"{retained} bytes are still allocated"
        assert endpoint.query_rows(ORDINARY) == [[2000000, 2000001000000]]


def _measure_data_segment(endpoint: Endpoint) -> int:
    """Return the size of the data segment of the emulator's process."""
    status = Path(f"/proc/{endpoint.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


@asynccontextmanager
async def run_endless_queries(endpoint: Endpoint, count: int) -> AsyncIterator[httpx.AsyncClient]:
    """Run queries that never end for the duration of the block; afterwards disconnect their callers."""
    body = {"db": "Telemetry", "csl": ENDLESS, "properties": '{"Options": {"servertimeout": "00:30:00"}}'}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=endpoint.url, timeout=1800, limits=limits) as client:
        tasks = [asyncio.create_task(client.post("/v2/rest/query", json=body)) for _ in range(count)]
        try:
            await asyncio.to_thread(endpoint.wait_for_statistics, lambda stats: stats["queries"]["inside"] == count)
            yield client
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.to_thread(endpoint.wait_for_statistics, lambda stats: stats["queries"]["inside"] == 0)


@pytest.mark.parametrize("count", [16, pytest.param(64, marks=pytest.mark.soak)])
async def test_a_short_query_succeeds_while_endless_queries_run(endpoint: Endpoint, count: int) -> None:
    """While queries run that never end, a short query succeeds."""
    async with run_endless_queries(endpoint, count):
        query = "Telemetry | where DeviceId == 'dev-01' | count"
        assert await asyncio.to_thread(endpoint.query_rows, query) == [[100]]


async def test_queries_beyond_the_queue_are_throttled(endpoint: Endpoint) -> None:
    """While the queue is full, queries get 429; later, queries succeed again."""
    async with run_endless_queries(endpoint, MAX_RUNNING + MAX_WAITING) as client:
        response = await client.post("/v2/rest/query", json={"db": "Telemetry", "csl": "print 1"})
        assert response.status_code == 429
        assert response.json()["error"]["code"] == "TooManyRequests"
    assert endpoint.query_rows("print 1") == [[1]]


async def test_a_disconnect_of_the_caller_stops_the_query(endpoint: Endpoint) -> None:
    """If the caller disconnects, the engine stops the query."""
    async with run_endless_queries(endpoint, 1):
        pass
    endpoint.wait_for_statistics(lambda stats: stats["queries"]["running"] == 0)


def test_a_killed_translator_is_replaced(endpoint: Endpoint) -> None:
    """After the translator processes are killed, a query succeeds."""
    children = subprocess.run(["pgrep", "-P", str(endpoint.process.pid)], capture_output=True, check=True, text=True)
    for child in children.stdout.split():
        os.kill(int(child), signal.SIGKILL)
    assert endpoint.query_rows("print fresh = 12345") == [[12345]]
