"""Benchmark of the hash-chained audit log: appends compared with plain SQLite, verification with hashing alone."""

import asyncio
import hashlib
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Sequence
from itertools import batched
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import uvloop

from bench.chain_service import measure_append_requests, measure_healthz_of_busy_service
from bench.figures import Figure
from shared.backends.embedded.provenance import SqliteAuditLog, SqliteChainStore
from shared.backends.embedded.provenance_schema import COLUMNS, ROW_COLUMNS
from shared.backends.embedded.sqlite import connect
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import PROJECTED, ChainKey, ChainRecord, Filters, Target, Tip
from shared.provenance.queries import query_records
from shared.provenance.records import build_event_draft, seal_record
from shared.provenance.verifier import ChainVerifier
from shared.timestamps import format_rfc3339, now

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "bench")
CALLERS = 64
APPENDS = 20_000
ALONE = 300
TURNS = 5
MEASUREMENT_TURNS = 3
BRIEF, SHORT, LONG = 1_000, 10_000, 1_000_000
KIBIBYTE = 1024
READ_BY_VERIFY = ", ".join(("sequence", "canonical", "hash", *(COLUMNS[name] for name in PROJECTED)))


def measure_chain() -> Iterator[Figure]:
    """Measure appends, verification and queries of audit chains in an SQLite file."""
    yield from _measure_appends()
    yield from measure_append_requests()
    yield from _measure_verification()


def build_audit_event(number: int) -> dict[str, Any]:
    """Build an audit event whose record has about 400 bytes; ``number`` varies its content."""
    return {
        "ActionType": ("Create", "Update", "Delete")[number % 3],
        "EntityType": "Batch",
        "EntityID": f"B-{number % 1000}",
        "BeforeState": {"ph": 7.1, "temperature": 21, "note": "as measured"},
        "AfterState": {"ph": 7.3, "temperature": 22, "note": f"adjusted {number}"},
    }


def _measure_appends() -> Iterator[Figure]:
    """Compare the rate of concurrent appends to the audit log with the rates of a single caller and of plain inserts.

    The three measurements alternate, so that other processes on the machine affect all of them equally. The best run of
    each measurement counts.
    """
    engine, raw, alone = [], [], []
    with tempfile.TemporaryDirectory(prefix="bench-") as temporary:
        folder = Path(temporary)
        for turn in range(TURNS):
            engine.append(uvloop.run(_measure_group_commit_records_per_second(folder / f"engine-{turn}.sqlite")))
            records = asyncio.run(_read_chain_records(folder / f"engine-{turn}.sqlite"))
            raw.append(_measure_raw_insert_rows_per_second(folder / f"raw-{turn}.sqlite", records))
            alone.append(uvloop.run(_measure_single_caller_records_per_second(folder / f"alone-{turn}.sqlite")))
    detail = {"appendsPerSecond": round(max(engine)), "callers": CALLERS, "bestOf": TURNS}
    more = {"alonePerSecond": round(max(alone)), "alone": "tip, seal, one record and head a commit, one caller"}
    yield Figure("chain_append_vs_alone", max(engine) / max(alone), "ratio", at_least=10, detail=detail | more)
    more = {"rawPerSecond": round(max(raw)), "raw": f"all bytes of the same rows, {CALLERS} rows a commit, no index"}
    yield Figure("chain_append_vs_raw", max(engine) / max(raw), "ratio", at_least=0.45, detail=detail | more)


async def _get_workspace_id() -> str:
    return "bench"


async def _measure_group_commit_records_per_second(database_path: Path) -> float:
    """Return the records per second that 64 callers append at the same time to the audit log (group commit)."""
    log = EventLog(ChainLog(SqliteChainStore(database_path), _get_workspace_id))
    numbers = iter(range(APPENDS))

    async def append_repeatedly() -> None:
        for number in numbers:
            await log.append_to_chain(CHAIN, "editor@plant", build_audit_event(number))

    await log.append_to_chain(CHAIN, "editor@plant", build_audit_event(0))
    started = time.perf_counter()
    await asyncio.gather(*(append_repeatedly() for _ in range(CALLERS)))
    seconds = time.perf_counter() - started
    await log.close()
    return APPENDS / seconds


async def _measure_single_caller_records_per_second(database_path: Path) -> float:
    """Return how many records per second a single caller appends: read the chain head, link and store one record."""
    store = SqliteChainStore(database_path)
    started = time.perf_counter()
    for number in range(ALONE):
        tip = await store.read_tip(CHAIN)
        previous = tip.hash or compute_genesis_hash("bench", CHAIN.target, CHAIN.scope_key)
        draft = build_event_draft("editor@plant", build_audit_event(number))
        await store.append(
            CHAIN, [seal_record(draft, tip.sequence + 1, format_rfc3339(now()), previous, str(number))], tip
        )
    seconds = time.perf_counter() - started
    await store.close()
    return ALONE / seconds


async def _read_chain_records(database_path: Path) -> list[ChainRecord]:
    store = SqliteChainStore(database_path)
    records = (await store.read(CHAIN, 0, limit=APPENDS, max_bytes=2**40)).records
    await store.close()
    return list(records)


def _measure_raw_insert_rows_per_second(database_path: Path, records: Sequence[ChainRecord]) -> float:
    """Return the rows per second of plain SQLite inserts of the same records, without hash computation and indexes."""
    connection = connect(database_path)
    columns = ", ".join(f"c{number}" for number in range(3 + len(PROJECTED)))
    connection.execute(f"CREATE TABLE records (sequence INTEGER PRIMARY KEY, {columns})")
    marks = ", ".join("?" * (4 + len(PROJECTED)))
    started = time.perf_counter()
    for batch in batched(records, CALLERS, strict=False):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(f"INSERT INTO records VALUES ({marks})", map(_to_table_row, batch))  # noqa: S608  marks alone
        connection.execute("COMMIT")
    seconds = time.perf_counter() - started
    connection.close()
    return len(records) / seconds


def _to_table_row(record: ChainRecord) -> tuple[Any, ...]:
    fields = (record.projection.get(name) for name in PROJECTED)
    return (record.sequence, record.canonical, record.hash, record.append_id, *fields)


def _measure_verification() -> Iterator[Figure]:
    with tempfile.TemporaryDirectory(prefix="bench-") as folder:
        files = {length: Path(folder) / f"{length}.sqlite" for length in (BRIEF, SHORT, LONG)}
        for length, file in files.items():
            asyncio.run(_fill_chain(file, length))
        turns = [
            {what: _measure_cost_in_new_process(what, files[LONG]) for what in MEASUREMENTS}
            for _ in range(MEASUREMENT_TURNS)
        ]
        best = {what: min(turn[what].seconds for turn in turns) for what in MEASUREMENTS}
        detail = {
            "records": LONG,
            "seconds": {what: round(spent, 2) for what, spent in best.items()},
            "floor": "read every column that verify reads, in chain order, parse, SHA-256 and compare",
            "toPackedFloor": round(best["packed"] / best["verify"], 3),
            "packedFloor": "the same, reading the filter columns as one text as verify does",
            "toLeastFloor": round(best["least"] / best["verify"], 3),
            "leastFloor": "the same, reading content and Hash alone",
            "bestOf": MEASUREMENT_TURNS,
        }
        yield Figure("chain_verify_vs_floor", best["floor"] / best["verify"], "ratio", at_least=0.6, detail=detail)
        grown = {
            length: min(
                _measure_cost_in_new_process("verify", files[length]).grown_megabytes for _ in range(MEASUREMENT_TURNS)
            )
            for length in (SHORT, LONG)
        }
        memory = {
            "grownMegabytes": {length: round(size, 1) for length, size in grown.items()},
            "grown": "peak resident size of a fresh process above that before it verifies",
            "leastOf": MEASUREMENT_TURNS,
        }
        yield Figure("chain_verify_memory", grown[LONG] / grown[SHORT], "ratio", at_most=1.3, detail=memory)
        yield from measure_healthz_of_busy_service(files[LONG], LONG)
        times = {
            length: asyncio.run(_measure_median_newest_query_seconds(file)) * 1000 for length, file in files.items()
        }
        spent_on = {"milliseconds": {length: round(spent, 3) for length, spent in times.items()}}
        yield Figure("chain_query_newest", times[LONG] - times[BRIEF], "ms", at_most=5, detail=spent_on)


async def _fill_chain(database_path: Path, record_count: int) -> None:
    store = SqliteChainStore(database_path)
    tip, previous, instant = Tip(), compute_genesis_hash("bench", CHAIN.target, CHAIN.scope_key), format_rfc3339(now())
    for numbers in batched(range(record_count), 5_000, strict=False):
        records = []
        for number in numbers:
            draft = build_event_draft("editor@plant", build_audit_event(number))
            records.append(seal_record(draft, number + 1, instant, previous, f"{number:x}"))
            previous = records[-1].hash
        tip = await store.append(CHAIN, records, tip)
    await store.close()


class _ProcessCost(NamedTuple):
    """Duration of a measurement in seconds, and the megabytes by which the peak memory of its process grew."""

    seconds: float
    grown_megabytes: float


def _measure_cost_in_new_process(measurement_name: str, database_path: Path) -> _ProcessCost:
    """Run one of the functions in ``MEASUREMENTS`` in a new process; return its duration and its memory growth."""
    command = [sys.executable, "-m", "bench.chain", measurement_name, str(database_path)]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    seconds, megabytes = output.split()
    return _ProcessCost(float(seconds), float(megabytes))


def _read_resident_memory_mb(status_field: str) -> float:
    """Return the resident memory of this process in megabytes: current (field ``VmRSS``) or peak (field ``VmHWM``).

    The peak from ``getrusage`` would be wrong, because it includes the memory of the parent process.
    """
    status = Path("/proc/self/status").read_text()
    return int(status.partition(f"{status_field}:")[2].split()[0]) / KIBIBYTE


async def _verify_chain(database_path: Path) -> None:
    log = SqliteAuditLog(database_path, _get_workspace_id)
    verdict = await ChainVerifier(log.store, _get_workspace_id).verify(CHAIN)
    await log.close()
    if not verdict.chain_valid or verdict.empty:
        raise RuntimeError(verdict.reason)


async def _read_and_hash_records(database_path: Path, columns_sql: str = READ_BY_VERIFY) -> None:
    """Read, parse and hash all records of a chain, which is the least that a verification must do.

    ``columns_sql`` lists the columns to read; by default, those that the verification needs.
    """
    connection = sqlite3.connect(database_path)
    sql = f"SELECT {columns_sql} FROM records WHERE chain = 1 ORDER BY sequence"  # noqa: S608  column names
    for _, canonical, stored, *_ in connection.execute(sql):
        orjson.loads(canonical)
        if hashlib.sha256(canonical).hexdigest() != stored:
            raise RuntimeError("the content of a stored audit record does not match the Hash of the record")
    connection.close()


async def _read_packed_rows_and_hash(database_path: Path) -> None:
    """Read and hash all records of a chain; SQLite returns the filter columns packed into one text per record."""
    await _read_and_hash_records(database_path, ROW_COLUMNS)


async def _read_content_and_hash(database_path: Path) -> None:
    """Read and hash all records of a chain; read only their content and stored hash, no other columns."""
    await _read_and_hash_records(database_path, "1, canonical, hash")


async def _measure_median_newest_query_seconds(database_path: Path) -> float:
    """Return the median seconds of a query for the newest 100 records of a chain."""
    store = SqliteChainStore(database_path)
    spent = []
    for _ in range(9):
        started = time.perf_counter()
        await query_records(store, CHAIN, Filters(), limit=100)
        spent.append(time.perf_counter() - started)
    await store.close()
    return sorted(spent)[len(spent) // 2]


MEASUREMENTS: dict[str, Callable[[Path], Coroutine[None, None, None]]] = {
    "verify": _verify_chain,
    "floor": _read_and_hash_records,
    "packed": _read_packed_rows_and_hash,
    "least": _read_content_and_hash,
}

if __name__ == "__main__":
    before, begun = _read_resident_memory_mb("VmRSS"), time.perf_counter()
    asyncio.run(MEASUREMENTS[sys.argv[1]](Path(sys.argv[2])))
    print(time.perf_counter() - begun, _read_resident_memory_mb("VmHWM") - before)
