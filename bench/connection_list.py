"""Benchmark: response time for a page of 1,000 data connections.

The baseline is the response time of a trivial request plus the time to convert the page to JSON.
"""

import http.client
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import orjson

from bench.figures import Figure
from bench.large_workspace import write_workspace_document
from bench.running import RunningService, run_service

CONNECTIONS: Final = 5_000
PAGE: Final = 1_000
_ROUNDS: Final = 40
_TRIVIAL: Final = "/workspace/api/keys/whoami"


def measure_connection_list() -> Iterator[Figure]:
    """Compare the median response time for a page of data connections with the sum of two other median times.

    These are the response time of a trivial request, and the time to convert the page to JSON.
    """
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        document = Path(folder) / "workspace.yaml"
        write_workspace_document(document, connection_count=CONNECTIONS, query_count=0)
        with run_service({"WORKSPACE_FILE": str(document)}) as running:
            client = http.client.HTTPConnection(urlsplit(running.url).netloc)
            page, trivial, dump = _measure_median_seconds(running, client)
            client.close()
    detail = {
        "pageMilliseconds": round(page * 1e3, 2),
        "trivialMilliseconds": round(trivial * 1e3, 2),
        "dumpMilliseconds": round(dump * 1e3, 2),
        "connections": CONNECTIONS,
        "page": PAGE,
    }
    yield Figure("connections", page / (dump + trivial), "ratio", at_most=3, detail=detail)


class _MedianSeconds(NamedTuple):
    """Median seconds of a page request, of a trivial request, and of converting the page to JSON."""

    page_request: float
    trivial_request: float
    json_conversion: float


def _measure_median_seconds(running: RunningService, client: http.client.HTTPConnection) -> _MedianSeconds:
    """Alternately request a page of connections, send a trivial request, and convert the page to JSON."""
    body = orjson.loads(_fetch_reply_body(running, client, "/oi-api/connections"))
    if len(body["connections"]) != PAGE:
        raise RuntimeError(f"the page of connections has {len(body['connections'])} of {PAGE} items")
    # The three requests alternate, so that other load on the machine affects all of them.
    rounds = [
        (
            _measure_seconds(lambda: _fetch_reply_body(running, client, "/oi-api/connections")),
            _measure_seconds(lambda: _fetch_reply_body(running, client, _TRIVIAL)),
            _measure_seconds(lambda: orjson.dumps(body)),
        )
        for _ in range(_ROUNDS)
    ]
    page, trivial, dump = (statistics.median(times) for times in zip(*rounds, strict=True))
    return _MedianSeconds(page, trivial, dump)


def _fetch_reply_body(running: RunningService, client: http.client.HTTPConnection, url_path: str) -> bytes:
    client.request("GET", url_path, headers=running.headers)
    reply = client.getresponse()
    content = reply.read()
    if reply.status != http.HTTPStatus.OK:
        raise RuntimeError(f"{url_path} returned status {reply.status} instead of 200")
    return content


def _measure_seconds(action: Callable[[], Any]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started
