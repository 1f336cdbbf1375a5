"""SQL queries for the records of an audit chain that match filters.

This module is separate from ``provenance`` because it only builds SQL text and opens no file.
"""

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from typing import Any, NamedTuple

from shared.backends.embedded.provenance_schema import COLUMNS, IN_PLACE, IS_AMENDMENT, RECORD_COLUMNS, record_from_row
from shared.provenance.decisions import parse_content_if_verified
from shared.provenance.hash_rule import get_record_time
from shared.provenance.ports import ChainRecord, Filters, RecordPage

_LAST = 2**62
_INDEXED = frozenset(("UserID", "ReasonCategory", "Status"))


class _SqlCondition(NamedTuple):
    """SQL condition with question marks, and the values of the question marks."""

    sql: str
    values: list[Any]


class _SequenceRange(NamedTuple):
    """Range of sequence numbers, both inclusive."""

    first: int
    last: int


def build_record_page(rows: Iterator[tuple[Any, ...]], limit: int, max_bytes: int) -> RecordPage:
    """Build a page of records from database rows; the first row is on the page even if it exceeds ``max_bytes``.

    Only forgery creates several records with one sequence number. They are on the same page, even if they exceed both
    limits, because the next page begins at another sequence number.

    Args:
        rows: database rows with the columns of a record, in the order of the page.
        limit: maximum number of records.
        max_bytes: maximum total size of the records' canonical bytes.
    """
    records: list[ChainRecord] = []
    size = 0
    for row in rows:
        record = record_from_row(row)
        full = records and (len(records) >= limit or size + len(record.canonical) > max_bytes)
        if full and records[-1].sequence != record.sequence:
            return RecordPage(records, more=True, scanned=len(records) + 1)
        records.append(record)
        size += len(record.canonical)
    return RecordPage(records, more=False, scanned=len(records))


def select_matching_rows(
    connection: sqlite3.Connection,
    chain_number: int,
    filters: Filters,
    *,
    newest_first: bool,
    offset: int,
    is_amendment_chain: bool,
) -> Iterator[tuple[Any, ...]]:
    """Select the rows of a chain that match filters, in order of their sequence numbers.

    Args:
        connection: connection to the SQLite file.
        chain_number: number of the chain in this file.
        filters: conditions on the records.
        newest_first: whether the newest rows come first.
        offset: number of matches to skip.
        is_amendment_chain: whether the chain contains amendments, for which the file has an index by entity.
    """
    where, values = _build_sql_condition(connection, chain_number, filters, is_amendment_chain=is_amendment_chain)
    order = "DESC" if newest_first else "ASC"
    # Only names of columns and operators are inserted into the text.
    sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE {where} ORDER BY sequence {order} LIMIT -1 OFFSET ?"  # noqa: S608
    return connection.execute(sql, (*values, min(offset, _LAST)))


def count_matching_rows(
    connection: sqlite3.Connection, chain_number: int, filters: Filters, max_count: int, *, is_amendment_chain: bool
) -> int:
    """Count the rows of an audit chain that match filters; counting stops at ``max_count``."""
    where, values = _build_sql_condition(connection, chain_number, filters, is_amendment_chain=is_amendment_chain)
    sql = f"SELECT count(*) FROM (SELECT 1 FROM records WHERE {where} LIMIT ?)"  # noqa: S608  as above
    return int(connection.execute(sql, (*values, min(max_count, _LAST))).fetchone()[0])


def _build_sql_condition(
    connection: sqlite3.Connection, chain_number: int, filters: Filters, *, is_amendment_chain: bool
) -> _SqlCondition:
    first, last = _find_sequence_range(connection, chain_number, filters)
    conditions = ["chain = ?", "sequence BETWEEN ? AND ?", IN_PLACE]
    values: list[Any] = [chain_number, first, last]
    for name, value in filters.equal.items():
        # With unlikely(), SQLite uses the index. Without it, SQLite scans the chain, because a range is requested, too.
        conditions.append(f"unlikely({COLUMNS[name]} = ?)" if name in _INDEXED else f"{COLUMNS[name]} = ?")
        values.append(value)
    if is_amendment_chain and "EntityID" in filters.equal:
        conditions.append(IS_AMENDMENT)
    conditions += [f"{COLUMNS[name]} IS NULL" for name in filters.absent]
    if filters.sequences is not None:
        conditions.append("sequence IN (SELECT value FROM json_each(?))")
        values.append(json.dumps(filters.sequences))
    for bound, operator in ((filters.start, ">="), (filters.end, "<=")):
        if bound:
            conditions.append(f"timestamp {operator} ?")
            values.append(bound)
    return _SqlCondition(" AND ".join(conditions), values)


def _find_sequence_range(connection: sqlite3.Connection, chain_number: int, filters: Filters) -> _SequenceRange:
    """Return the lowest and the highest sequence number of records that can match the filters.

    Timestamps never decrease along a chain. Bisection therefore converts the time limits to sequence numbers.
    """
    first = min(max(1, filters.from_sequence or 1), _LAST)
    last = _LAST if filters.to_sequence is None else max(0, min(filters.to_sequence, _LAST))
    if filters.start:
        first = max(
            first, _find_first_sequence_at_or_after(connection, chain_number, filters.start, exclude_equal=False)
        )
    if filters.end:
        last = min(
            last, _find_first_sequence_at_or_after(connection, chain_number, filters.end, exclude_equal=True) - 1
        )
    return _SequenceRange(first, last)


def _find_first_sequence_at_or_after(
    connection: sqlite3.Connection, chain_number: int, timestamp: str, *, exclude_equal: bool
) -> int:
    """Return the sequence number of the first record at or after a time; if ``exclude_equal``, only after the time.

    If there is no such record, return the last sequence number + 1.
    """
    low = 1
    newest = f"SELECT sequence FROM records WHERE chain = ? AND {IN_PLACE} ORDER BY sequence DESC LIMIT 1"  # noqa: S608
    row = connection.execute(newest, (chain_number,)).fetchone()
    high = max(0, row[0] if row else 0) + 1
    while low < high:
        middle = (low + high) // 2
        found = _find_next_sequence_and_valid_time(connection, chain_number, middle)
        if found is None:
            # No record from here on has a valid time: do not exclude records.
            low, high = (middle + 1, high) if exclude_equal else (low, middle)
        elif found[1] > timestamp or (found[1] == timestamp and not exclude_equal):
            high = middle
        else:
            low = found[0] + 1
    return low


def _find_next_sequence_and_valid_time(
    connection: sqlite3.Connection, chain_number: int, from_sequence: int
) -> tuple[int, str] | None:
    """Find the first record, at or after a sequence number, whose content has a valid time.

    Return the sequence number and the time of the record; None if there is no such record. The time is read from the
    signed content and not from the copy for queries, because a forged copy must not hide records. The record's number
    can be much higher than ``from_sequence``, because a tampered chain can have gaps.
    """
    sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE chain = ? AND sequence >= ? AND {IN_PLACE} ORDER BY sequence"  # noqa: S608
    with closing(connection.execute(sql, (chain_number, from_sequence))) as rows:
        for record in map(record_from_row, rows):
            content = parse_content_if_verified(record)
            time = get_record_time(content) if content is not None else ""
            if time:
                return record.sequence, time
    return None
