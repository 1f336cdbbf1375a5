"""Audit chains in SQLite: rows that are never changed, and one head row for each chain."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from shared.backends.embedded.provenance_filters import build_record_page, count_matching_rows, select_matching_rows
from shared.backends.embedded.provenance_schema import (
    DECISIONS,
    IN_PLACE,
    ORPHANS,
    RECORD_COLUMNS,
    ROW_COLUMNS,
    SCHEMA,
    RecordPastEndError,
    find_chain_number_of_orphans,
    find_sequence_after_misplaced_record,
    get_chain_number_or_zero,
    insert_records,
    read_tip,
    record_from_row,
    tip_from_row,
    wrap_to_tolerate_invalid_utf8,
)
from shared.backends.embedded.provenance_verifier import VerifierProcess
from shared.backends.embedded.sqlite import SqliteDatabase, build_file_failure_error, convert_sqlite_errors
from shared.errors import Kind, WorkspaceError
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.head_checks import MAX_ORPHANS, can_be_earliest_record
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    Filters,
    LookupField,
    OutcomeUnknownError,
    RecordPage,
    Row,
    Target,
    Tip,
    TipMovedError,
)
from shared.provenance.records import parse_record
from shared.provenance.window_verification import VerifierUnavailableError, VerifyWindow
from shared.runtime import SYSTEM_RUNTIME, Runtime

CODE = "PROVENANCE_UNAVAILABLE"
_STORE_NAME = "the audit log"
_TIPS_PAGE = 500
_ORPHANS_PAGE = 1_000
_ORPHANS_PAGE_BYTES = 8_000_000
CHANGED = (
    "SELECT chain, target, scope, sequence, hash, timestamp FROM chains WHERE (timestamp, chain) > (?, ?) "
    "ORDER BY timestamp, chain LIMIT ?"
)
"""Query for one page of the head rows that changed since a time.

A head row that changes while the pages are read is returned a second time.
"""

_RECORDS_BY = {LookupField.APPEND_ID: "append_id", LookupField.AMENDMENT_ID: "amendment_id"}


class SqliteChainStore:
    """Implementation of ChainStore: stores audit chains in a SQLite file; reads and writes do not block each other.

    Args:
        path: the SQLite file, created on first use.
        runtime: clock, randomness and threads.
    """

    max_batch_records = 500
    max_batch_bytes = 16_000_000

    def __init__(self, path: Path, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._path = path
        self._has_verifier = False
        self._writing = SqliteDatabase(path, SCHEMA, runtime=runtime)
        self._reading = SqliteDatabase(path, SCHEMA, runtime=runtime)
        # Separate connections, so that appends and look-ups do not wait for long queries, nor these for verifications.
        self._querying = SqliteDatabase(path, SCHEMA, runtime=runtime)
        self._verifying = SqliteDatabase(path, SCHEMA, runtime=runtime)

    def measure_bytes_in_batch(self, canonical_json: bytes) -> int:
        return len(canonical_json)

    async def provision(self, chain: ChainKey) -> None:
        """Do nothing, because opening the file creates the tables."""

    async def read_tip(self, chain: ChainKey) -> Tip:
        return await self._read_in_thread(lambda connection: read_tip(connection, chain))

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected_tip: Tip) -> Tip:
        committing = False

        def append_records(connection: sqlite3.Connection) -> Tip:
            nonlocal committing
            if read_tip(connection, chain) != expected_tip:
                raise TipMovedError
            try:
                tip = insert_records(connection, chain, records)
            except sqlite3.IntegrityError as error:
                if find_sequence_after_misplaced_record(connection, chain) is None:
                    raise TipMovedError from error
                # A misplaced record is possibly the cause, which a look-up by append id would not find.
                fault = f"The audit chain {chain.target} has a record with an invalid sequence number"
                raise _build_damaged_chain_error(fault) from error
            except RecordPastEndError as error:
                fault = f"The audit chain {chain.target} has a record that its head row does not include"
                raise _build_damaged_chain_error(fault) from error
            committing = True
            return tip

        try:
            return await self._writing.write(append_records)
        except (sqlite3.Error, OSError) as error:
            if committing:
                raise OutcomeUnknownError from error
            raise build_file_failure_error(CODE, _STORE_NAME, error) from error

    async def read(self, chain: ChainKey, after_sequence: int, *, limit: int, max_bytes: int) -> RecordPage:
        def select_page(connection: sqlite3.Connection) -> RecordPage:
            number = get_chain_number_or_zero(connection, chain)
            return _select_record_page(connection, number, max(after_sequence, 0), limit, max_bytes)

        return await self._read_in_thread(select_page)

    async def stream_rows(
        self, chain: ChainKey, first_sequence: int, last_sequence: int, consume_rows: Callable[[Iterable[Row]], None]
    ) -> None:
        where = f"chain = ? AND sequence BETWEEN ? AND ? AND {IN_PLACE}"
        sql = f"SELECT {ROW_COLUMNS} FROM records WHERE {where} ORDER BY sequence"  # noqa: S608  column names

        def pass_rows_to_consumer(connection: sqlite3.Connection) -> None:
            with closing(
                connection.execute(sql, (get_chain_number_or_zero(connection, chain), first_sequence, last_sequence))
            ) as rows:
                consume_rows(rows)

        with convert_sqlite_errors(CODE, _STORE_NAME):
            await self._verifying.read(wrap_to_tolerate_invalid_utf8(pass_rows_to_consumer))

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Return a context manager that runs a process for verifying windows (ranges of records) of a chain.

        Only one such process runs at a time, so that requests get processor time.

        Raises:
            VerifierUnavailableError: another chain is being verified.
        """
        if self._has_verifier:
            raise VerifierUnavailableError("another chain is being verified; retry when that verification has finished")
        self._has_verifier = True
        try:
            async with VerifierProcess(self._path) as process:
                yield process.verify
        finally:
            self._has_verifier = False

    async def read_hashes(self, chain: ChainKey, after_sequence: int, *, limit: int) -> Sequence[str]:
        sql = f"SELECT hash FROM records WHERE chain = ? AND sequence > ? AND {IN_PLACE} ORDER BY sequence LIMIT ?"  # noqa: S608  column names

        def select_hashes(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(sql, (get_chain_number_or_zero(connection, chain), max(after_sequence, 0), limit))
            return [str(row[0]) for row in rows]

        return await self._read_in_thread(select_hashes)

    async def scan(
        self,
        chain: ChainKey,
        filters: Filters,
        *,
        newest_first: bool = True,
        offset: int = 0,
        limit: int,
        max_bytes: int,
    ) -> RecordPage:
        def select_matches(connection: sqlite3.Connection) -> RecordPage:
            number = get_chain_number_or_zero(connection, chain)
            of_amendments = chain.target is Target.DOMAIN_AMENDMENTS
            rows = select_matching_rows(
                connection, number, filters, newest_first=newest_first, offset=offset, is_amendment_chain=of_amendments
            )
            page = build_record_page(rows, limit, max_bytes)
            # Skipped rows were read, too. If the offset is past the end, fewer rows than the offset were skipped.
            skipped = (
                offset
                if page.records or not offset
                else count_matching_rows(connection, number, filters, offset, is_amendment_chain=of_amendments)
            )
            return replace(page, scanned=page.scanned + skipped)

        return await self._read_until_cancelled(select_matches)

    async def find(self, chain: ChainKey, lookup_field: LookupField, values: Sequence[str]) -> Sequence[ChainRecord]:
        marks = ", ".join("?" * len(values))
        where = f"chain = ? AND {_RECORDS_BY[lookup_field]} IN ({marks}) AND +sequence > 0 AND {IN_PLACE}"
        sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE {where}"  # noqa: S608  column names

        def select_records(connection: sqlite3.Connection) -> list[ChainRecord]:
            rows = connection.execute(sql, (get_chain_number_or_zero(connection, chain), *values))
            return [record_from_row(row) for row in rows]

        return await self._read_in_thread(select_records) if values else []

    async def find_decisions(self, chain: ChainKey, amendment_ids: Sequence[str]) -> Sequence[ChainRecord]:
        """Find the decisions about amendments, both by the signed content and by the filter field of records.

        The filter field is a copy of the content for queries. A forger may have changed only the copy.
        """

        def select_decisions(connection: sqlite3.Connection) -> list[ChainRecord]:
            names = {"chain": get_chain_number_or_zero(connection, chain), "ids": json.dumps(list(amendment_ids))}
            return [record_from_row(row) for row in connection.execute(DECISIONS, names)]

        return await self._read_in_thread(select_decisions)

    async def find_sequence_after_misplaced_record(self, chain: ChainKey) -> int | None:
        with convert_sqlite_errors(CODE, _STORE_NAME):
            return await self._verifying.read(
                lambda connection: find_sequence_after_misplaced_record(connection, chain)
            )

    async def list_orphan_records(self, chain: ChainKey, genesis_hash: str) -> Sequence[ChainRecord]:
        def select_orphans(connection: sqlite3.Connection) -> list[ChainRecord]:
            names = {"genesis": genesis_hash.encode(), "chain": get_chain_number_or_zero(connection, chain)}
            records = map(record_from_row, connection.execute(ORPHANS, names))
            return list(
                itertools.islice((one for one in records if can_be_earliest_record(one, genesis_hash)), MAX_ORPHANS)
            )

        return await self._read_in_thread(select_orphans)

    async def iterate_orphan_pages(self, genesis_hash: str) -> AsyncIterator[Sequence[ChainRecord]]:
        number = await self._read_until_cancelled(
            lambda connection: find_chain_number_of_orphans(connection, genesis_hash)
        )
        last, has_more = 0, number is not None
        while has_more:
            page = await self._read_until_cancelled(_build_page_reader(number or 0, last))
            if page.records:
                yield page.records
                last = page.records[-1].sequence
            has_more = page.more

    async def iterate_tips(
        self, changed_from_time: str = "", targets: Sequence[Target] = tuple(Target)
    ) -> AsyncIterator[tuple[ChainKey, Tip]]:
        last: tuple[Any, Any] = (changed_from_time, 0)
        while True:
            values = (*last, _TIPS_PAGE)
            rows = await self._read_in_thread(_build_row_reader(CHANGED, values))
            for row in rows:
                if row[1] in targets:
                    yield ChainKey(Target(row[1]), row[2]), tip_from_row(row[3:])
            if len(rows) < _TIPS_PAGE:
                return
            last = (rows[-1][5], rows[-1][0])

    async def close(self) -> None:
        databases = (self._writing, self._reading, self._querying, self._verifying)
        await asyncio.gather(*(database.close() for database in databases))

    async def _read_in_thread[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        with convert_sqlite_errors(CODE, _STORE_NAME):
            return await self._reading.read(wrap_to_tolerate_invalid_utf8(function))

    async def _read_until_cancelled[T](self, function: Callable[[sqlite3.Connection], T]) -> T:
        with convert_sqlite_errors(CODE, _STORE_NAME):
            return await self._querying.read_until_cancelled(wrap_to_tolerate_invalid_utf8(function))


class SqliteAuditLog(EventLog):
    """Audit log in one SQLite file, for tests and benchmarks; the service creates its audit log in ``shared.wiring``.

    Args:
        path: the SQLite file, created on first use.
        workspace: returns the id of the workspace, which is part of each genesis hash.
        runtime: clock, randomness and threads.

    Attributes:
        store: store of the chains in this file.
    """

    def __init__(
        self, path: Path, workspace: Callable[[], Awaitable[str]], *, runtime: Runtime = SYSTEM_RUNTIME
    ) -> None:
        self.store = SqliteChainStore(path, runtime=runtime)
        super().__init__(ChainLog(self.store, workspace, runtime=runtime))

    async def read_all_records(self, target: Target, scope_key: str = "") -> list[dict[str, Any]]:
        """Return all records of an audit chain, in order."""
        page = await self.store.read(ChainKey(target, scope_key), 0, limit=2**31, max_bytes=2**31)
        return [parse_record(record.canonical, record.hash) for record in page.records]


def _build_damaged_chain_error(fault: str) -> WorkspaceError:
    """Return the error for an append to a damaged chain; it has no Retry-After, because no retry can succeed."""
    detail = f"{fault}; an operator must verify the chain."
    return WorkspaceError(Kind.UNAVAILABLE, CODE, detail, retryAfter=None)


def _select_record_page(
    connection: sqlite3.Connection, chain_number: int, after_sequence: int, limit: int, max_bytes: int
) -> RecordPage:
    sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE chain = ? AND sequence > ? AND {IN_PLACE} ORDER BY sequence"  # noqa: S608  column names
    return build_record_page(connection.execute(sql, (chain_number, after_sequence)), limit, max_bytes)


def _build_page_reader(chain_number: int, after_sequence: int) -> Callable[[sqlite3.Connection], RecordPage]:
    return lambda connection: _select_record_page(
        connection, chain_number, after_sequence, _ORPHANS_PAGE, _ORPHANS_PAGE_BYTES
    )


def _build_row_reader(sql: str, values: tuple[Any, ...]) -> Callable[[sqlite3.Connection], list[Any]]:
    return lambda connection: connection.execute(sql, values).fetchall()
