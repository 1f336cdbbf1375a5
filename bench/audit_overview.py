"""Benchmark: time to read one page of 100 from a list of 100,000 audit scopes (one audit chain each)."""

import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from bench.figures import Figure
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.backends.embedded.provenance_schema import SCHEMA
from shared.backends.embedded.sqlite import connect
from shared.provenance.cursors import decode_cursor, encode_cursor
from shared.provenance.overview import chain_summary_to_json
from shared.provenance.ports import ChainKey, Target

SCOPES: Final = 100_000
PAGE: Final = 100
ROUNDS: Final = 101
_AT: Final = "2026-01-05T08:00:00.000000Z"


def measure_audit_overview() -> Iterator[Figure]:
    """Yield the median time to read a page of the list of audit scopes, at evenly spaced positions of the list."""
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        path = Path(folder) / "provenance.sqlite"
        _store_audit_scopes(path)
        milliseconds = asyncio.run(_measure_median_page_milliseconds(path))
    yield Figure(
        "audit_scopes_page", milliseconds, "ms", at_most=10, detail={"scopes": SCOPES, "page": PAGE, "pages": ROUNDS}
    )


def _store_audit_scopes(database_path: Path) -> None:
    with closing(connect(database_path)) as connection:
        connection.executescript(SCHEMA)
        connection.execute("BEGIN")
        targets = (Target.DOMAIN_AMENDMENTS, Target.DOMAIN_EVENTS)
        rows = [(number + 1, targets[number % 2], f"batch-{number:06d}", 10, "0" * 64, _AT) for number in range(SCOPES)]
        connection.executemany("INSERT INTO chains VALUES (?, ?, ?, ?, ?, ?)", rows)
        sql = (
            "INSERT INTO chain_summaries (chain, first_at, counted_to, pending, checkpoint_size, verified_at, "
            "verified_records, is_valid, broken_at, reason) VALUES (?, ?, 10, 3, 10, ?, 10, 1, '', 'valid')"
        )
        connection.executemany(sql, [(row[0], _AT, _AT) for row in rows])
        connection.execute("COMMIT")


async def _measure_median_page_milliseconds(database_path: Path) -> float:
    overview = SqliteChainOverview(database_path)
    times: list[float] = []
    for number in range(ROUNDS):
        cursor = encode_cursor("scopes", (str(Target.DOMAIN_EVENTS), f"batch-{number * (SCOPES // ROUNDS):06d}"))
        started = time.perf_counter()
        target, scope = map(str, decode_cursor("scopes", cursor, (str, str)))
        page = await overview.list_chains(None, ChainKey(Target(target), scope), PAGE)
        rows = [chain_summary_to_json(summary) for summary in page]
        times.append((time.perf_counter() - started) * 1000)
        if not rows:
            raise AssertionError("a page of the list of audit scopes is empty")
    await overview.close()
    return statistics.median(times)
