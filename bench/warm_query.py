"""Benchmark of saved KQL queries: time that the service adds to the query engine's time, and rows per second.

The rows per second are measured for JSON and for Arrow replies.
"""

import json
import statistics
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

import pandas as pd
import pyarrow as pa

from bench.figures import Figure
from bench.ingest import build_messages, wait_for_rows
from bench.running import RunningService, call_service, post_bodies_and_measure_seconds, run_service

REQUESTS = 300
ROWS = 100
STORED = 20_000
MANY_ROWS = 10_000
MANY_REQUESTS = 20


def measure_warm_query() -> Iterator[Figure]:
    """Measure the time that the service adds to the query engine's time, and the rows per second by reply format.

    Requests are sent one after the other. Each reply states the engine's time for the query; the time that the service
    adds is the response time without the engine's time. The formats are JSON and Arrow.
    """
    with run_service() as running:
        bodies = [json.dumps(batch).encode() for batch in build_messages(STORED, 500)]
        post_bodies_and_measure_seconds(f"{running.url}/oi-api/telemetry/line", running.headers, bodies, 4)
        wait_for_rows(running, STORED)
        for _ in range(20):
            _measure_request_and_engine_milliseconds(running)
        times = [_measure_request_and_engine_milliseconds(running) for _ in range(REQUESTS)]
        kept, computed = (_measure_rows_per_second_by_format(running, lookup) for lookup in ("newest-kept", "newest"))
    whole = statistics.median(total for total, _ in times)
    engine = statistics.median(own for _, own in times)
    detail = {"routeMs": round(whole, 3), "engineMs": round(engine, 3), "rows": ROWS, "requests": REQUESTS}
    yield Figure("warm_query_overhead", whole - engine, "ms", at_most=2.5, detail=detail)
    # The engine's time is the same for all formats, so the bound is for results that the service has cached.
    detail = {"rows": MANY_ROWS, "requests": MANY_REQUESTS}
    for name, rates in (("warm_query_arrow", kept), ("warm_query_arrow_computed", computed)):
        measured = {**detail, **{f"{each}RowsPerS": round(rate) for each, rate in rates.items()}}
        bound = 2 if rates is kept else None
        yield Figure(name, rates["arrow"] / rates["json"], "times the rows/s of JSON", at_least=bound, detail=measured)


def _measure_rows_per_second_by_format(running: RunningService, lookup: str) -> dict[str, float]:
    """Request the results of a saved query as JSON and as Arrow alternately; return the rows per second by format.

    The measured time includes the conversion of the reply to a data frame; both formats give the same column types.
    """
    times: dict[str, list[float]] = {name: [] for name in _READERS}
    for _ in range(MANY_REQUESTS):
        for name, read in _READERS.items():
            started = time.perf_counter()
            frame = read(_fetch_large_result_body(running, lookup, name))
            times[name].append(time.perf_counter() - started)
            timestamp_type = str(frame.dtypes["Timestamp"])
            if frame.shape != (MANY_ROWS, 4) or timestamp_type != "datetime64[us, UTC]":
                raise RuntimeError(
                    f"the data frame must have {MANY_ROWS} rows, 4 columns and UTC timestamps, "
                    f"but its shape is {frame.shape} and the type of Timestamp is {timestamp_type}"
                )
    return {name: MANY_ROWS / statistics.median(each) for name, each in times.items()}


def _json_reply_to_data_frame(body: bytes) -> pd.DataFrame:
    frame = pd.DataFrame(json.loads(body)["results"])
    frame["Timestamp"] = pd.to_datetime(frame["Timestamp"], format="ISO8601")
    return frame


def _arrow_reply_to_data_frame(body: bytes) -> pd.DataFrame:
    return pa.ipc.open_stream(body).read_all().to_pandas()


_READERS: Final[Mapping[str, Callable[[bytes], pd.DataFrame]]] = {
    "json": _json_reply_to_data_frame,
    "arrow": _arrow_reply_to_data_frame,
}


def _fetch_large_result_body(running: RunningService, lookup: str, row_format: str) -> bytes:
    address = f"{running.url}/oi-api/warm-queries/{lookup}?limit={MANY_ROWS}&format={row_format}"
    with urllib.request.urlopen(urllib.request.Request(address, headers=running.headers)) as reply:  # noqa: S310  http
        return bytes(reply.read())


class _RequestAndEngineMilliseconds(NamedTuple):
    """Response time of a request that runs a saved query, and time of the query in the engine, in milliseconds."""

    request: float
    engine: float


def _measure_request_and_engine_milliseconds(running: RunningService) -> _RequestAndEngineMilliseconds:
    started = time.perf_counter()
    reply = call_service(running, f"/oi-api/warm-queries/newest?limit={ROWS}")
    elapsed = (time.perf_counter() - started) * 1000
    if reply["rowCount"] != ROWS:
        raise RuntimeError(f"the query returned {reply['rowCount']} rows instead of {ROWS}")
    return _RequestAndEngineMilliseconds(elapsed, float(str(reply["executionTimeMs"])))
