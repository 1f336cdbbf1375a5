"""The chain store in SQLite: create-only rows, a head row each chain, several processes."""

import asyncio
import itertools
import json
import sqlite3
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

from shared.backends.embedded.provenance_filters import count, matching, page_of
from shared.backends.embedded.provenance_schema import (
    DECISIONS,
    IN_PLACE,
    RECORD_COLUMNS,
    ROW_COLUMNS,
    SCHEMA,
    STRAYS,
    RecordPastEndError,
    chain_number,
    forgiving,
    insert,
    misplaced,
    read_tip,
    record_from_row,
    tip_from_row,
)
from shared.backends.embedded.provenance_verifier import VerifierProcess
from shared.backends.embedded.sqlite import SqliteDatabase, unavailable_on_failure
from shared.errors import Kind, WorkspaceError
from shared.provenance.chain_log import ChainLog, EventLog
from shared.provenance.head_checks import MAX_ORPHANS, can_be_earliest
from shared.provenance.parallel import VerifierUnavailableError, VerifyWindow
from shared.provenance.ports import (
    ChainKey,
    ChainRecord,
    Filters,
    Lookup,
    OutcomeUnknownError,
    RecordPage,
    Row,
    Target,
    Tip,
    TipMovedError,
)
from shared.provenance.records import parse_record
from shared.timestamps import now

CODE = "PROVENANCE_UNAVAILABLE"
_TIPS_PAGE = 500
CHANGED = (
    "SELECT chain, target, scope, sequence, hash, timestamp FROM chains WHERE (timestamp, chain) > (?, ?) "
    "ORDER BY timestamp, chain LIMIT ?"
)
"""Heads of chains from an instant on; one that moves while pages are read comes again, later."""

_TARGETS = frozenset(map(str, Target))
_RECORDS_BY = {Lookup.APPEND_ID: "append_id", Lookup.AMENDMENT_ID: "amendment_id"}


class SqliteChainStore:
    """The ChainStore port over a SQLite file; reads run beside writes.

    Args:
        path: the file; made on first use.
    """

    max_batch_records = 500
    max_batch_weight = 16_000_000

    def __init__(self, path: Path) -> None:
        self._path = path
        self._walked_apart = False
        self._writing = SqliteDatabase(path, SCHEMA)
        self._reading = SqliteDatabase(path, SCHEMA)
        # Of its own, so that queries do not wait for walks.
        self._walking = SqliteDatabase(path, SCHEMA)

    def weight(self, canonical: bytes) -> int:
        return len(canonical)

    async def provision(self, chain: ChainKey) -> None:
        """Do nothing: the tables are made when the file is opened."""

    async def tip(self, chain: ChainKey) -> Tip:
        return await self._read(lambda connection: read_tip(connection, chain))

    async def append(self, chain: ChainKey, records: Sequence[ChainRecord], expected: Tip) -> Tip:
        committing = False

        def work(connection: sqlite3.Connection) -> Tip:
            nonlocal committing
            if read_tip(connection, chain) != expected:
                raise TipMovedError
            try:
                tip = insert(connection, chain, records)
            except sqlite3.IntegrityError as error:
                if misplaced(connection, chain) is None:
                    raise TipMovedError from error
                # It may be the one in the way, and is nowhere to be found.
                raise _unavailable("a record stands in no place of this chain; verify the chain") from error
            except RecordPastEndError as error:
                raise _unavailable("a record stands past the end of this chain; verify the chain") from error
            committing = True
            return tip

        try:
            return await self._writing.write(work)
        except (sqlite3.Error, OSError) as error:
            if committing:
                raise OutcomeUnknownError from error
            raise _unavailable() from error

    async def read(self, chain: ChainKey, after: int, *, limit: int, max_bytes: int) -> RecordPage:
        sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE chain = ? AND sequence > ? AND {IN_PLACE} ORDER BY sequence"  # noqa: S608  column names

        def work(connection: sqlite3.Connection) -> RecordPage:
            rows = connection.execute(sql, (chain_number(connection, chain), max(after, 0)))
            return page_of(rows, limit, max_bytes, whole_sequences=True)

        return await self._read(work)

    async def stream(self, chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        """Hand the rows of a window to a function."""
        where = f"chain = ? AND sequence BETWEEN ? AND ? AND {IN_PLACE}"
        where = f"chain = ? AND sequence BETWEEN ? AND ? AND {IN_PLACE}"
        sql = f"SELECT {ROW_COLUMNS} FROM records WHERE {where} ORDER BY sequence"  # noqa: S608  column names

        def read(connection: sqlite3.Connection) -> None:
            with closing(connection.execute(sql, (chain_number(connection, chain), first, last))) as rows:
                work(rows)

        with unavailable_on_failure(CODE, "the audit log"):
            await self._walking.read(forgiving(read))

    @asynccontextmanager
    async def open_window_verifier(self) -> AsyncIterator[VerifyWindow]:
        """Start a process that walks windows; one at a time, since more would leave no processor to requests."""
        if self._walked_apart:
            raise VerifierUnavailableError("another chain is walked apart")
        self._walked_apart = True
        try:
            async with VerifierProcess(self._path) as process:
                yield process.ask
        finally:
            self._walked_apart = False

    async def hashes(self, chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        sql = f"SELECT hash FROM records WHERE chain = ? AND sequence > ? AND {IN_PLACE} ORDER BY sequence LIMIT ?"  # noqa: S608  column names

        def work(connection: sqlite3.Connection) -> list[str]:
            rows = connection.execute(sql, (chain_number(connection, chain), max(after, 0), limit))
            return [str(row[0]) for row in rows]

        return await self._read(work)

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
        def work(connection: sqlite3.Connection) -> RecordPage:
            number = chain_number(connection, chain)
            corrected = chain.target is Target.DOMAIN_AMENDMENTS
            rows = matching(connection, number, filters, newest_first=newest_first, offset=offset, corrected=corrected)
            page = page_of(rows, limit, max_bytes)
            # What was skipped was read too; past the end it is less than the offset.
            skipped = (
                offset
                if page.records or not offset
                else count(connection, number, filters, offset, corrected=corrected)
            )
            return replace(page, scanned=page.scanned + skipped)

        return await self._read(work)

    async def find(self, chain: ChainKey, by: Lookup, values: Sequence[str]) -> Sequence[ChainRecord]:
        marks = ", ".join("?" * len(values))
        where = f"chain = ? AND {_RECORDS_BY[by]} IN ({marks}) AND +sequence > 0 AND {IN_PLACE}"
        sql = f"SELECT {RECORD_COLUMNS} FROM records WHERE {where}"  # noqa: S608  column names

        def work(connection: sqlite3.Connection) -> list[ChainRecord]:
            rows = connection.execute(sql, (chain_number(connection, chain), *values))
            return [record_from_row(row) for row in rows]

        return await self._read(work) if values else []

    async def find_decisions(self, chain: ChainKey, amendments: Sequence[str]) -> Sequence[ChainRecord]:
        """Return the records about corrections, each found through an index over what it says, or its filter field."""

        def work(connection: sqlite3.Connection) -> list[ChainRecord]:
            names = {"chain": chain_number(connection, chain), "ids": json.dumps(list(amendments))}
            return [record_from_row(row) for row in connection.execute(DECISIONS, names)]

        return await self._read(work)

    async def find_misplaced(self, chain: ChainKey) -> int | None:
        """Return the place behind the first record that stands in none; one look at an index of the chain."""
        with unavailable_on_failure(CODE, "the audit log"):
            return await self._walking.read(lambda connection: misplaced(connection, chain))

    async def list_orphans(self, chain: ChainKey, genesis: str) -> Sequence[ChainRecord]:
        """Return earliest records that a missing or renamed head no longer leads to."""

        def work(connection: sqlite3.Connection) -> list[ChainRecord]:
            names = {"genesis": genesis.encode(), "chain": chain_number(connection, chain)}
            records = map(record_from_row, connection.execute(STRAYS, names))
            return list(itertools.islice((one for one in records if can_be_earliest(one, genesis)), MAX_ORPHANS))

        return await self._read(work)

    async def tips(self, changed_from: str = "") -> AsyncIterator[tuple[ChainKey, Tip]]:
        last: tuple[Any, Any] = (changed_from, 0)
        while True:
            values = (*last, _TIPS_PAGE)
            rows = await self._read(_all_rows(CHANGED, values))
            for row in rows:
                if row[1] in _TARGETS:
                    yield ChainKey(Target(row[1]), row[2]), tip_from_row(row[3:])
            if len(rows) < _TIPS_PAGE:
                return
            last = (rows[-1][5], rows[-1][0])

    async def close(self) -> None:
        await asyncio.gather(self._writing.close(), self._reading.close(), self._walking.close())

    async def _read[T](self, work: Callable[[sqlite3.Connection], T]) -> T:
        with unavailable_on_failure(CODE, "the audit log"):
            return await self._reading.read(forgiving(work))


class SqliteAuditLog(EventLog):
    """The AuditLog port over a SQLite file.

    Args:
        path: the file; made on first use.
        workspace: gives the workspace's id, which each chain starts from.
        clock: gives the current instant.

    Attributes:
        store: the chains.
    """

    def __init__(
        self, path: Path, workspace: Callable[[], Awaitable[str]], *, clock: Callable[[], datetime] = now
    ) -> None:
        self.store = SqliteChainStore(path)
        super().__init__(ChainLog(self.store, workspace, clock=clock))

    async def records(self, target: Target, scope_key: str = "") -> list[dict[str, Any]]:
        """Return a chain from its first record; holds it whole in memory."""
        page = await self.store.read(ChainKey(target, scope_key), 0, limit=2**31, max_bytes=2**31)
        return [parse_record(record.canonical, record.hash) for record in page.records]


def _unavailable(detail: str = "the audit log does not answer at the moment; try again") -> WorkspaceError:
    return WorkspaceError(Kind.UNAVAILABLE, CODE, detail)


def _all_rows(sql: str, values: tuple[Any, ...]) -> Callable[[sqlite3.Connection], list[Any]]:
    return lambda connection: connection.execute(sql, values).fetchall()
