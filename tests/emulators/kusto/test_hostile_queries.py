"""Queries that would take the engine's time or memory: they end, and the engine goes on."""

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
LEFT_BYTES = 1_500_000_000
"""Of the 2.6 GB that bound the process, what may still be taken once greedy queries are over."""
GIGABYTE = "print a = strrep('x', 1000) | extend b = strrep(a, 1000) | extend c = strrep(b, 1000)"
"""One text of a gigabyte, which the engine still holds."""
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
HONEST = "range x from 1 to 2000000 step 1 | summarize n = dcount(tostring(x)), s = sum(x)"
GREEDY = [
    "range x from 1 to 100000000 step 1 | summarize make_list(x)",
    "print x = strrep(strrep(strrep('x', 1024), 1024), 1024)",
]


def test_a_time_out_ends_the_query_and_not_the_engine(endpoint: Endpoint) -> None:
    """A query beyond its server time-out is answered with the time-out's error, stops running, and others follow."""
    error = endpoint.error(ENDLESS, servertimeout=timedelta(seconds=1))
    assert isinstance(error, KustoApiError)
    assert error.get_api_error().code == "RequestExecutionTimeout"
    assert getattr(error.http_response, "status_code", None) == 504
    endpoint.until(lambda stats: stats["queries"]["running"] == 0)
    assert endpoint.rows("Telemetry | count") == [[2000]]


@pytest.mark.parametrize("text", EXPANDING, ids=range(len(EXPANDING)))
def test_texts_that_expand_or_nest_without_bound_are_refused(endpoint: Endpoint, text: str) -> None:
    """A text that is too long, too deep or multiplies on translation is an error of that query alone."""
    error = endpoint.error(text)
    assert "EMB0003" in str(error)
    assert endpoint.rows("print 1") == [[1]]


@pytest.mark.parametrize("text", GREEDY, ids=range(len(GREEDY)))
def test_single_values_of_gigabytes_fail_the_query_alone(endpoint: Endpoint, text: str) -> None:
    """Memory that DuckDB's own limit does not count is bounded too, and the process outlives the attempt."""
    assert "E_RUNAWAY_QUERY" in str(endpoint.error(text, servertimeout=timedelta(seconds=20)))
    assert endpoint.process.poll() is None
    assert endpoint.rows("Telemetry | count") == [[2000]]


@pytest.mark.parametrize("text", JOINED)
def test_texts_that_no_engine_holds_fail_the_query_alone(endpoint: Endpoint, text: str) -> None:
    """A text of more than 4 GiB is too large before it is made; it does not end the database, as DuckDB's own check."""
    error = endpoint.error(f"{GIGABYTE} | project n = strlen({text})", servertimeout=timedelta(seconds=20))
    assert "E_RUNAWAY_QUERY" in str(error)
    assert endpoint.process.poll() is None
    assert endpoint.rows("Telemetry | count") == [[2000]]


def test_a_text_that_doubles_with_every_operator_is_refused(endpoint: Endpoint) -> None:
    """The bound holds for what operators before have made, too, and is told with the function that passed it."""
    doubling = "print a = strrep('x', 1024)" + " | extend a = strcat(a, a)" * 14
    assert endpoint.rows(f"{doubling} | project strlen(a)") == [[16_777_216]]
    error = endpoint.error(f"{doubling} | project n = strlen(strcat(a, a))")
    assert "strcat() makes a text of more than 16777216 bytes (E_RUNAWAY_QUERY)" in str(error)


def test_gigabytes_asked_for_again_and_again_leave_room_for_honest_queries(endpoint: Endpoint) -> None:
    """What greedy queries took is given back: honest ones that need memory are answered rightly after any number."""
    greedy = [
        *GREEDY,
        "range i from 1 to 400 step 1 | extend s = strcat(strrep('x', 1024), i) | extend l = repeat(s, 9000)",
    ]
    for text in greedy * 4:
        with contextlib.suppress(KustoServiceError):
            endpoint.rows(f"{text} | count", servertimeout=timedelta(seconds=20))
    for _ in range(4):
        assert endpoint.rows(HONEST) == [[2000000, 2000001000000]]
    deadline = time.monotonic() + DEADLINE_SECONDS
    while (taken := _data_bytes(endpoint)) > LEFT_BYTES:
        assert time.monotonic() < deadline, f"{taken} bytes are still taken"
        assert endpoint.rows(HONEST) == [[2000000, 2000001000000]]


def _data_bytes(endpoint: Endpoint) -> int:
    """Return what the endpoint's process takes of the bound that it has on its data."""
    status = Path(f"/proc/{endpoint.process.pid}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmData:"))
    return int(line.split()[1]) * 1024


@asynccontextmanager
async def hostile(endpoint: Endpoint, count: int) -> AsyncIterator[httpx.AsyncClient]:
    """Keep so many endless queries with the endpoint; in the end their callers hang up and the engine is free."""
    body = {"db": "Telemetry", "csl": ENDLESS, "properties": '{"Options": {"servertimeout": "00:30:00"}}'}
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=endpoint.url, timeout=1800, limits=limits) as client:
        tasks = [asyncio.create_task(client.post("/v2/rest/query", json=body)) for _ in range(count)]
        try:
            await asyncio.to_thread(endpoint.until, lambda stats: stats["queries"]["inside"] == count)
            yield client
            assert not any(task.done() for task in tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
    await asyncio.to_thread(endpoint.until, lambda stats: stats["queries"]["inside"] == 0)


async def test_an_honest_query_is_answered_beside_64_hostile_ones(endpoint: Endpoint) -> None:
    """Long queries share the engine with a short one instead of holding it up until they time out."""
    async with hostile(endpoint, 64):
        query = "Telemetry | where DeviceId == 'dev-01' | count"
        assert await asyncio.to_thread(endpoint.rows, query) == [[100]]


async def test_more_queries_than_the_queue_holds_are_throttled(endpoint: Endpoint) -> None:
    """Beyond the running and the waiting queries a request is refused with 429 at once, and taken again afterwards."""
    async with hostile(endpoint, MAX_RUNNING + MAX_WAITING) as client:
        response = await client.post("/v2/rest/query", json={"db": "Telemetry", "csl": "print 1"})
        assert response.status_code == 429
        assert response.json()["error"]["code"] == "TooManyRequests"
    assert endpoint.rows("print 1") == [[1]]


async def test_a_caller_that_hangs_up_frees_the_engine(endpoint: Endpoint) -> None:
    """A query whose caller is gone is stopped long before its time-out."""
    async with hostile(endpoint, 1):
        pass
    endpoint.until(lambda stats: stats["queries"]["running"] == 0)


def test_a_translator_that_dies_is_replaced(endpoint: Endpoint) -> None:
    """Killing the processes that translate costs at most the query at hand."""
    children = subprocess.run(["pgrep", "-P", str(endpoint.process.pid)], capture_output=True, check=True, text=True)
    for child in children.stdout.split():
        os.kill(int(child), signal.SIGKILL)
    assert endpoint.rows("print fresh = 12345") == [[12345]]
