"""Summaries of all audit chains and the index of pending amendments, in the SQLite file of the chains."""

import sqlite3
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from shared.backends.embedded.provenance_schema import (
    IN_PLACE,
    RECORD_COLUMNS,
    SCHEMA,
    get_chain_number_or_zero,
    record_from_row,
    tip_from_row,
    wrap_to_tolerate_invalid_utf8,
)
from shared.backends.embedded.sqlite import SqliteDatabase, convert_sqlite_errors
from shared.provenance.overview_ports import (
    ChainSummary,
    PendingEntry,
    PendingPlace,
    StoredVerdict,
    build_verdict_if_valid,
    compute_latest_verdict_time,
)
from shared.provenance.ports import ChainKey, Target
from shared.runtime import SYSTEM_RUNTIME, Runtime

COUNTED_AT_ONCE: Final = 1_000
"""Number of amendments that one transaction counts; appends to the file wait for this transaction."""

_IS_UNDECIDED: Final = (
    "status = 'pending' AND amendment_id IS NULL AND NOT EXISTS (SELECT 1 FROM records AS decision "
    "WHERE decision.chain = records.chain AND decision.amendment_id = printf('%012d', records.sequence))"
)
_SUMMARIES: Final = f"""
SELECT target, scope, chains.sequence, chains.hash, chains.timestamp,
  coalesce(first_at, (SELECT timestamp FROM records WHERE records.chain = chains.chain AND records.sequence = 1)),
  iif(target <> '{Target.DOMAIN_AMENDMENTS}', 0, iif(counted_to = chains.sequence, pending, NULL)),
  checkpoint_size, verified_at, verified_records, is_valid, broken_at, reason
FROM chains LEFT JOIN chain_summaries USING (chain) WHERE typeof(scope) = 'text' AND
"""  # noqa: S608  names
_IS_BROKEN: Final = "chains.chain IN (SELECT chain FROM chain_summaries WHERE is_valid = 0)"
_UNCOUNTED: Final = f"""
SELECT scope FROM chains LEFT JOIN chain_summaries USING (chain)
WHERE target = '{Target.DOMAIN_AMENDMENTS}' AND counted_to IS NOT sequence LIMIT ?
"""  # noqa: S608  names
_NEXT_AMENDMENTS: Final = (
    "SELECT sequence FROM records WHERE chain = ? AND status = 'pending' AND sequence > ? AND sequence <= ? "
    "ORDER BY sequence LIMIT ?"
)
_ADD_UNDECIDED: Final = f"""
INSERT OR IGNORE INTO pending_amendments (timestamp, chain, sequence)
SELECT CAST(coalesce(timestamp, '') AS TEXT), chain, sequence FROM records
WHERE chain = ? AND sequence > ? AND sequence <= ? AND {IN_PLACE} AND {_IS_UNDECIDED}
"""  # noqa: S608  names
_REMOVE_DECIDED: Final = """
DELETE FROM pending_amendments WHERE chain = ?
  AND EXISTS (SELECT 1 FROM records AS decision WHERE decision.chain = pending_amendments.chain
    AND decision.amendment_id = printf('%012d', pending_amendments.sequence))
"""
_PENDING_OF_CHAIN: Final = (
    "SELECT sequence FROM pending_amendments WHERE chain = ? AND sequence < ? AND typeof(sequence) = 'integer' "
    "ORDER BY sequence DESC LIMIT ?"
)
_SAVE_COUNT: Final = (
    "UPDATE chain_summaries SET counted_to = :to, "
    "pending = (SELECT count(*) FROM pending_amendments WHERE chain = :chain) WHERE chain = :chain"
)
_NEW_SUMMARY: Final = "INSERT OR IGNORE INTO chain_summaries (chain) VALUES (?)"
_SAVE_SIZE: Final = (
    "UPDATE chain_summaries SET checkpoint_size = :size WHERE chain = :chain "
    "AND iif(typeof(checkpoint_size) = 'integer', checkpoint_size, -1) < :size"
)
_VERDICT: Final = (
    "SELECT verified_at, verified_records, is_valid, broken_at, reason FROM chain_summaries "
    "JOIN chains ON chains.chain = chain_summaries.chain WHERE target = ? AND scope = ?"
)
_IS_MISSING: Final = (
    "typeof(scope) = 'text' AND NOT EXISTS (SELECT 1 FROM chains WHERE chains.target = missing_chains.target "
    "AND chains.scope = missing_chains.scope)"
)
_VERDICT_COLUMNS: Final = "verified_at, verified_records, is_valid, broken_at, reason"
_MISSING: Final = f"SELECT scope, {_VERDICT_COLUMNS} FROM missing_chains WHERE {_IS_MISSING} AND target = ?"  # noqa: S608  names
_MISSING_VERDICT: Final = (
    f"SELECT {_VERDICT_COLUMNS} FROM missing_chains WHERE {_IS_MISSING} AND target = ? AND scope = ?"  # noqa: S608  names
)
_SAVE_MISSING: Final = (
    "INSERT OR REPLACE INTO missing_chains VALUES (:target, :scope, :at, :records, :valid, :brokenAt, :reason)"
)
_SAVE_VERDICT: Final = (
    "UPDATE chain_summaries SET verified_at = :at, verified_records = :records, is_valid = :valid, "
    "broken_at = :brokenAt, reason = :reason "
    "WHERE chain = :chain AND (NOT :valid OR typeof(verified_at) <> 'text' OR verified_at <= :startedAt "
    "OR verified_at > :latest)"
)


class SqliteChainOverview:
    """Implementation of ChainOverview: stores the summaries of audit chains in the SQLite file of the chains.

    Args:
        path: the SQLite file, created on first use.
        runtime: clock, randomness and threads.
    """

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._database = SqliteDatabase(path, SCHEMA, runtime=runtime)

    async def list_chains(
        self, target: Target | None, after: ChainKey | None, limit: int, *, broken_only: bool = False
    ) -> Sequence[ChainSummary]:
        targets = [one for one in sorted(Target) if target in (None, one) and (after is None or one >= after.target)]

        def select_summaries(connection: sqlite3.Connection) -> list[ChainSummary]:
            found: list[ChainSummary] = []
            for one in targets:
                last = after.scope_key if after is not None and one == after.target else None
                condition = "target = ?" if last is None else "target = ? AND scope > ?"
                values = (one,) if last is None else (one, last)
                # The plus sign prevents SQLite from searching all chains of the target.
                condition = f"+{condition} AND {_IS_BROKEN}" if broken_only else condition
                sql = f"{_SUMMARIES} {condition} ORDER BY scope LIMIT ?"
                stored = map(_summary_from_row, connection.execute(sql, (*values, limit - len(found))))
                missing = _select_chains_without_head_row(connection, one, last, limit - len(found))
                both = sorted((*stored, *missing), key=lambda summary: summary.chain.scope_key)
                found += both[: limit - len(found)]
                if len(found) >= limit:
                    break
            return found

        return await self._run_read(select_summaries)

    async def find_verdict(self, chain: ChainKey) -> StoredVerdict | None:
        def select_verdict(connection: sqlite3.Connection) -> StoredVerdict | None:
            values = chain.target, chain.scope_key
            row = connection.execute(_VERDICT, values).fetchone()
            row = row or connection.execute(_MISSING_VERDICT, values).fetchone()
            return None if row is None else _verdict_from_columns_if_valid(*row)

        return await self._run_read(select_verdict)

    async def count_pending_amendments(self, chain: ChainKey) -> int:
        sql = f"SELECT count(*) FROM records WHERE chain = ? AND {_IS_UNDECIDED}"  # noqa: S608  names

        def select_count(connection: sqlite3.Connection) -> int:
            return int(connection.execute(sql, (get_chain_number_or_zero(connection, chain),)).fetchone()[0])

        return await self._run_read(select_count)

    async def list_chains_with_incomplete_counts(self, limit: int) -> Sequence[ChainKey]:
        def select_chains_with_incomplete_counts(connection: sqlite3.Connection) -> list[ChainKey]:
            return [ChainKey(Target.DOMAIN_AMENDMENTS, row[0]) for row in connection.execute(_UNCOUNTED, (limit,))]

        return await self._run_read(select_chains_with_incomplete_counts)

    async def complete_record_count(self, chain: ChainKey) -> None:
        while not await self._run_write(lambda connection: _count_next_amendments_and_check_if_done(connection, chain)):
            pass

    async def list_pending_amendments(
        self, after: PendingPlace | None, limit: int, max_bytes: int, *, with_records: bool = True
    ) -> Sequence[PendingEntry]:
        def select_entries(connection: sqlite3.Connection) -> list[PendingEntry]:
            entries = _select_pending_entries(connection, after, limit)
            return _add_records_to_entries(connection, entries, max_bytes) if with_records else entries

        return await self._run_read(select_entries)

    async def list_pending_sequences(self, chain: ChainKey, before_sequence: int, limit: int) -> Sequence[int]:
        def select_sequences(connection: sqlite3.Connection) -> list[int]:
            number = get_chain_number_or_zero(connection, chain)
            return [row[0] for row in connection.execute(_PENDING_OF_CHAIN, (number, before_sequence, limit))]

        return await self._run_read(select_sequences)

    async def remove_pending_entries(self, entries: Sequence[PendingEntry]) -> None:
        places = [entry.place for entry in entries]

        def delete_entries(connection: sqlite3.Connection) -> None:
            for place in places:
                number = get_chain_number_or_zero(connection, place.chain)
                sql = "DELETE FROM pending_amendments WHERE chain = ? AND sequence = ?"
                removed = connection.execute(sql, (number, place.sequence)).rowcount
                sql = "UPDATE chain_summaries SET pending = pending - ? WHERE chain = ?"
                connection.execute(sql, (removed, number))

        if places:
            await self._run_write(delete_entries)

    async def save_checkpoint_sizes(self, sizes_by_chain: Mapping[ChainKey, int]) -> None:
        def update_sizes(connection: sqlite3.Connection) -> None:
            for chain, size in sizes_by_chain.items():
                number = _ensure_summary_row_and_get_chain_number(connection, chain)
                connection.execute(_SAVE_SIZE, {"size": size, "chain": number})

        if sizes_by_chain:
            await self._run_write(update_sizes)

    async def save_verdict(self, chain: ChainKey, verdict: StoredVerdict, started_at: str) -> None:
        names = {
            "at": verdict.verified_at,
            "records": verdict.records,
            "valid": verdict.is_valid,
            "brokenAt": verdict.broken_at,
            "reason": verdict.reason,
            "startedAt": started_at,
            "latest": compute_latest_verdict_time(self._database.runtime.now()),
        }

        def update_verdict(connection: sqlite3.Connection) -> None:
            number = _ensure_summary_row_and_get_chain_number(connection, chain)
            if not number and not verdict.is_valid:
                connection.execute(_SAVE_MISSING, {**names, "target": chain.target, "scope": chain.scope_key})
                return
            connection.execute("DELETE FROM missing_chains WHERE target = ? AND scope = ?", chain)
            connection.execute(_SAVE_VERDICT, {**names, "chain": number})

        await self._run_write(update_verdict)

    async def close(self) -> None:
        await self._database.close()

    async def _run_read[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        with convert_sqlite_errors("PROVENANCE_UNAVAILABLE", "the audit log"):
            return await self._database.read(wrap_to_tolerate_invalid_utf8(function))

    async def _run_write[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        with convert_sqlite_errors("PROVENANCE_UNAVAILABLE", "the audit log"):
            return await self._database.write(function)


def _select_chains_without_head_row(
    connection: sqlite3.Connection, target: Target, after_scope: str | None, limit: int
) -> list[ChainSummary]:
    condition, values = ("", ()) if after_scope is None else (" AND scope > ?", (after_scope,))
    rows = connection.execute(f"{_MISSING}{condition} ORDER BY scope LIMIT ?", (target, *values, limit))
    return [
        ChainSummary(ChainKey(target, scope), 0, "", verdict=_verdict_from_columns_if_valid(*row))
        for scope, *row in rows
    ]


def _ensure_summary_row_and_get_chain_number(connection: sqlite3.Connection, chain: ChainKey) -> int:
    """Create a chain's summary row if it is missing; return the chain's number, or 0 if the chain has no head row."""
    number = get_chain_number_or_zero(connection, chain)
    if number:
        connection.execute(_NEW_SUMMARY, (number,))
    return number


def _count_next_amendments_and_check_if_done(connection: sqlite3.Connection, chain: ChainKey) -> bool:
    """Count the next pending amendments of a chain, up to 1,000; return True if no uncounted record remains."""
    number = _ensure_summary_row_and_get_chain_number(connection, chain)
    row = connection.execute("SELECT sequence, hash, timestamp FROM chains WHERE chain = ?", (number,)).fetchone()
    if row is None:
        return True
    last = tip_from_row(row).sequence
    sql = "SELECT counted_to FROM chain_summaries WHERE chain = ?"
    stored = connection.execute(sql, (number,)).fetchone()[0]
    # A writer to the file can store another type; then all amendments are counted again.
    counted_to = stored if type(stored) is int else 0
    rows = connection.execute(_NEXT_AMENDMENTS, (number, counted_to, last, COUNTED_AT_ONCE)).fetchall()
    end = rows[-1][0] if len(rows) == COUNTED_AT_ONCE else last
    connection.execute(_ADD_UNDECIDED, (number, counted_to, end))
    if end == last:
        # An earlier version that ran after this one appends decisions without removing entries of the index.
        connection.execute(_REMOVE_DECIDED, (number,))
    connection.execute(_SAVE_COUNT, {"to": end, "chain": number})
    return bool(end == last)


def _select_pending_entries(
    connection: sqlite3.Connection, after: PendingPlace | None, limit: int
) -> list[PendingEntry]:
    place = (
        ("", 0, 0)
        if after is None
        else (after.timestamp, get_chain_number_or_zero(connection, after.chain), after.sequence)
    )
    sql = (
        "SELECT entry.timestamp, scope, entry.sequence FROM pending_amendments AS entry "
        "CROSS JOIN chains ON chains.chain = entry.chain "
        "WHERE (entry.timestamp, entry.chain, entry.sequence) > (?, ?, ?) AND target = 'DomainAmendments' "
        "AND typeof(entry.timestamp) = 'text' AND typeof(entry.sequence) = 'integer' AND typeof(scope) = 'text' "
        "ORDER BY entry.timestamp, entry.chain, entry.sequence LIMIT ?"
    )
    return [PendingEntry(PendingPlace(*row), None) for row in connection.execute(sql, (*place, limit))]


def _add_records_to_entries(
    connection: sqlite3.Connection, entries: Sequence[PendingEntry], max_bytes: int
) -> list[PendingEntry]:
    """Return the first entries, each with the record of its amendment.

    The records have at most ``max_bytes`` in total; the first one is returned at any size.
    """
    sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE chain = ? AND sequence = ?"  # noqa: S608  names
    found: list[PendingEntry] = []
    size = 0
    for entry in entries:
        number = get_chain_number_or_zero(connection, entry.place.chain)
        row = connection.execute(sql, (number, entry.place.sequence)).fetchone()
        record = None if row is None else record_from_row(row)
        size += len(record.canonical) if record else 0
        if found and size > max_bytes:
            break
        found.append(PendingEntry(entry.place, record))
    return found


def _summary_from_row(row: Sequence[Any]) -> ChainSummary:
    target, scope, *tip, first_at, pending, checkpoint_size, verified_at, records, is_valid, broken_at, reason = row
    read = tip_from_row(tip)
    return ChainSummary(
        ChainKey(Target(target), scope),
        read.sequence,
        read.timestamp,
        first_at if isinstance(first_at, str) else "",
        pending if isinstance(pending, int) else None,
        checkpoint_size if isinstance(checkpoint_size, int) else None,
        _verdict_from_columns_if_valid(verified_at, records, is_valid, broken_at, reason),
    )


def _verdict_from_columns_if_valid(
    verified_at: object, records: object, is_valid: object, broken_at: object, reason: object
) -> StoredVerdict | None:
    """Build the result of the last verification from its columns; return None if they are empty or damaged."""
    flag = is_valid == 1 if is_valid in (0, 1) else None
    return build_verdict_if_valid(verified_at, records, flag, broken_at, reason)
