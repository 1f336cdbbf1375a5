"""Filters of the audit chains as SQL."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any

from shared.backends.embedded.provenance_schema import COLUMNS, CORRECTED, IN_PLACE, RECORD_COLUMNS, record_from_row
from shared.provenance.decisions import parse_content
from shared.provenance.hash_rule import record_time
from shared.provenance.ports import ChainRecord, Filters, RecordPage

_LAST = 2**62
_INDEXED = frozenset(("UserID", "ReasonCategory", "Status"))


def page_of(
    rows: Iterator[tuple[Any, ...]], limit: int, max_bytes: int, *, whole_sequences: bool = False
) -> RecordPage:
    """Return rows as a page; it ends after ``limit`` records or so many canonical bytes, and has one at least.

    Args:
        rows: of the columns of a record, in order.
        limit: most records.
        max_bytes: canonical bytes after which to stop.
        whole_sequences: do not part records of the same sequence.
    """
    records: list[ChainRecord] = []
    size = 0
    for row in rows:
        record = record_from_row(row)
        full = records and (len(records) >= limit or size + len(record.canonical) > max_bytes)
        if full and not (whole_sequences and records[-1].sequence == record.sequence):
            return RecordPage(records, more=True, scanned=len(records) + 1)
        records.append(record)
        size += len(record.canonical)
    return RecordPage(records, more=False, scanned=len(records))


def matching(
    connection: sqlite3.Connection, chain: int, filters: Filters, *, newest_first: bool, offset: int, corrected: bool
) -> Iterator[tuple[Any, ...]]:
    """Give the rows that match, in order of sequence.

    Args:
        connection: to the file.
        chain: its number.
        filters: what to match.
        newest_first: descending order, else ascending.
        offset: matches to skip first.
        corrected: the chain is one of corrections, which are found by entity through an index.
    """
    where, values = _where(connection, chain, filters, corrected=corrected)
    order = "DESC" if newest_first else "ASC"
    # Only names of columns and operators are put into the text.
    sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE {where} ORDER BY sequence {order} LIMIT -1 OFFSET ?"  # noqa: S608
    return connection.execute(sql, (*values, min(offset, _LAST)))


def count(connection: sqlite3.Connection, chain: int, filters: Filters, most: int, *, corrected: bool) -> int:
    """Return how many rows match, counting up to ``most``; as :func:`matching`."""
    where, values = _where(connection, chain, filters, corrected=corrected)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM records WHERE {where} LIMIT ?)"  # noqa: S608  as above
    return int(connection.execute(sql, (*values, min(most, _LAST))).fetchone()[0])


def _where(connection: sqlite3.Connection, chain: int, filters: Filters, *, corrected: bool) -> tuple[str, list[Any]]:
    first, last = _window(connection, chain, filters)
    conditions = ["chain = ?", "sequence BETWEEN ? AND ?", IN_PLACE]
    values: list[Any] = [chain, first, last]
    for name, value in filters.equal.items():
        # Told that it is rare, SQLite takes the index; by itself it walks the chain, since a window is asked for too.
        conditions.append(f"unlikely({COLUMNS[name]} = ?)" if name in _INDEXED else f"{COLUMNS[name]} = ?")
        values.append(value)
    if corrected and "EntityID" in filters.equal:
        conditions.append(CORRECTED)
    conditions += [f"{COLUMNS[name]} IS NULL" for name in filters.absent]
    for bound, operator in ((filters.start, ">="), (filters.end, "<=")):
        if bound:
            conditions.append(f"timestamp {operator} ?")
            values.append(bound)
    return " AND ".join(conditions), values


def _window(connection: sqlite3.Connection, chain: int, filters: Filters) -> tuple[int, int]:
    """Return the lowest and highest sequence that can match.

    Timestamps never decrease, so that dates bound sequences too; found by bisection, they cost no index.
    """
    first = min(max(1, filters.from_sequence or 1), _LAST)
    last = _LAST if filters.to_sequence is None else max(0, min(filters.to_sequence, _LAST))
    if filters.start:
        first = max(first, _first_from(connection, chain, filters.start, strict=False))
    if filters.end:
        last = min(last, _first_from(connection, chain, filters.end, strict=True) - 1)
    return first, last


def _first_from(connection: sqlite3.Connection, chain: int, instant: str, *, strict: bool) -> int:
    """Return the lowest sequence whose timestamp is an instant (strict: after it) or later; else one past the end."""
    low = 1
    newest = f"SELECT sequence FROM records WHERE chain = ? AND {IN_PLACE} ORDER BY sequence DESC LIMIT 1"  # noqa: S608
    row = connection.execute(newest, (chain,)).fetchone()
    high = max(0, row[0] if row else 0) + 1
    while low < high:
        middle = (low + high) // 2
        found = _next_time(connection, chain, middle)
        if found is None:
            # Nothing tells: the window stays as wide as it may have to be.
            low, high = (middle + 1, high) if strict else (low, middle)
        elif found[1] > instant or (found[1] == instant and not strict):
            high = middle
        else:
            low = found[0] + 1
    return low


def _next_time(connection: sqlite3.Connection, chain: int, sequence: int) -> tuple[int, str] | None:
    """Return the nearest record from a sequence on that says its time, and that; None without one.

    A chain that somebody cut has gaps, and a filter field that somebody edited must not hide other records.
    """
    sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE chain = ? AND sequence >= ? AND {IN_PLACE} ORDER BY sequence"  # noqa: S608
    with closing(connection.execute(sql, (chain, sequence))) as rows:
        for record in map(record_from_row, rows):
            content = parse_content(record)
            time = record_time(content) if content is not None else ""
            if time:
                return record.sequence, time
    return None
