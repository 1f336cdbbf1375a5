"""Benchmark: time to list saved KQL queries; the time must grow only in proportion to the number of queries."""

import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from bench.figures import Figure
from bench.large_workspace import write_workspace_document
from bench.running import RunningService, call_service, run_service

SMALL: Final = 500
LARGE: Final = 2_000
_ROUNDS: Final = 15
_PATIENCE_SECONDS: Final = 600.0


def measure_catalog_lists() -> Iterator[Figure]:
    """Compare the median time per listed query in a large workspace with that in a small workspace."""
    small, large = (_measure_seconds_per_listed_query(queries) for queries in (SMALL, LARGE))
    detail = {"smallMicroseconds": round(small * 1e6, 2), "largeMicroseconds": round(large * 1e6, 2)}
    yield Figure("query_list_growth", large / small, "ratio", at_most=1.5, detail={**detail, "queries": LARGE})


def _measure_seconds_per_listed_query(query_count: int) -> float:
    """Return the median seconds per query to list all ``query_count`` queries of a new workspace."""
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        document = Path(folder) / "workspace.yaml"
        write_workspace_document(document, connection_count=query_count, query_count=query_count)
        with run_service({"WORKSPACE_FILE": str(document)}) as running:
            _wait_for_query_checks(running)
            _measure_query_list_seconds(running, query_count)
            return (
                statistics.median(_measure_query_list_seconds(running, query_count) for _ in range(_ROUNDS))
                / query_count
            )


def _wait_for_query_checks(running: RunningService) -> None:
    """Wait until the service has checked all saved queries after its start.

    From then on, lists read the results of these checks from a cache.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while "running" in call_service(running, "/readyz"):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the service did not finish the checks of its queries within {_PATIENCE_SECONDS:.0f} s")
        time.sleep(0.5)


def _measure_query_list_seconds(running: RunningService, query_count: int) -> float:
    """Read all pages of the list of queries; return the duration in seconds."""
    started = time.perf_counter()
    count, cursor = 0, ""
    while True:
        page = call_service(running, f"/oi-api/warm-queries{cursor}")
        listed = page["warmQueries"]
        count += len(listed) if isinstance(listed, list) else 0
        if "cursor" not in page:
            break
        cursor = f"?cursor={page['cursor']}"
    if count != query_count:
        raise RuntimeError(f"the list of queries has {count} of {query_count} items")
    return time.perf_counter() - started
