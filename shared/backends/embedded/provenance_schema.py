"""Tables of the audit chains in SQLite, and the statements that insert and read their rows."""

import itertools
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from shared.provenance.canonical import parse_json_if_canonical
from shared.provenance.hash_rule import LAST_SEQUENCE, sequence_from_record_id
from shared.provenance.overview_ports import is_pending_amendment
from shared.provenance.ports import PROJECTED, ChainKey, ChainRecord, Target, Tip

COLUMNS: Final = {
    "Timestamp": "timestamp",
    "UserID": "user_id",
    "ActionType": "action_type",
    "EntityType": "entity_type",
    "EntityID": "entity_id",
    "ReasonCategory": "reason_category",
    "Status": "status",
    "AmendmentID": "amendment_id",
}
"""Column of each filter field (copy of a record field by which queries filter), by the name of the field."""

_DECIDES: Final = "substr(canonical, 1, 16) = x'7b22416d656e646d656e744944223a22'"
_DECIDED: Final = "substr(canonical, 17, 12)"
IS_AMENDMENT: Final = "(action_type IS NULL OR status IS NOT NULL OR substr(canonical, 1, 7) = x'7b22416d656e64')"
"""SQL condition for amendments and decisions, which have no action, have a status, and begin with ``{"Amend``.

One of these properties is sufficient. To hide such a record from the index, a forger must change all three.
"""

SCHEMA: Final = f"""
-- Appends change the same last pages of each index repeatedly; fewer checkpoints copy these pages less often. However,
-- a log that is overwritten commits faster than a growing one, whose new size must be flushed to disk, too.
PRAGMA wal_autocheckpoint=2000;
CREATE TABLE IF NOT EXISTS chains (
  chain INTEGER PRIMARY KEY, target TEXT NOT NULL, scope TEXT NOT NULL, sequence INTEGER NOT NULL, hash TEXT NOT NULL,
  timestamp TEXT NOT NULL, UNIQUE (target, scope)
);
CREATE TABLE IF NOT EXISTS records (
  chain INTEGER NOT NULL, sequence INTEGER NOT NULL CHECK (typeof(sequence) = 'integer' AND sequence > 0),
  append_id TEXT NOT NULL, canonical BLOB NOT NULL, hash TEXT NOT NULL,
  timestamp TEXT, user_id TEXT, action_type TEXT, entity_type TEXT, entity_id TEXT,
  reason_category TEXT, status TEXT, amendment_id TEXT,
  PRIMARY KEY (chain, sequence)
);
CREATE UNIQUE INDEX IF NOT EXISTS by_append_id ON records (append_id, chain);
-- Each run of the checkpoint signer queries the changed chains.
CREATE INDEX IF NOT EXISTS chains_by_time ON chains (timestamp, chain);
-- Each index slows down every append. A backward scan finds the newest records of an action or a type, but not those of
-- a user with few records. Amendments, which are few, are queried by entity, too.
CREATE INDEX IF NOT EXISTS by_user ON records (chain, user_id, sequence);
DROP INDEX IF EXISTS by_entity;
CREATE INDEX IF NOT EXISTS by_corrected ON records (chain, entity_id, sequence) WHERE {IS_AMENDMENT};
CREATE INDEX IF NOT EXISTS by_reason ON records (chain, reason_category, sequence) WHERE reason_category IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_status ON records (chain, status, sequence) WHERE status IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS by_amendment ON records (chain, amendment_id) WHERE amendment_id IS NOT NULL;
-- Decisions by content: a record begins with its AmendmentID, because no other member sorts before it.
CREATE INDEX IF NOT EXISTS by_decided ON records (chain, {_DECIDED}) WHERE {_DECIDES};
-- Facts about chains that the overview of all chains returns. `pending` is the number of the chain's rows in
-- pending_amendments, which has all pending amendments among the first `counted_to` records.
CREATE TABLE IF NOT EXISTS chain_summaries (
  chain INTEGER PRIMARY KEY, first_at TEXT, counted_to INTEGER NOT NULL DEFAULT 0, pending INTEGER NOT NULL DEFAULT 0,
  checkpoint_size INTEGER,
  verified_at TEXT, verified_records INTEGER, is_valid INTEGER, broken_at TEXT, reason TEXT
);
CREATE INDEX IF NOT EXISTS broken_chains ON chain_summaries (chain) WHERE is_valid = 0;
-- Verdicts of broken chains that have no row in `chains`, because their rows were deleted. The row that the next append
-- creates takes over the verdict.
CREATE TABLE IF NOT EXISTS missing_chains (
  target TEXT NOT NULL, scope TEXT NOT NULL, verified_at TEXT NOT NULL, verified_records INTEGER NOT NULL,
  is_valid INTEGER NOT NULL, broken_at TEXT NOT NULL, reason TEXT NOT NULL, PRIMARY KEY (target, scope)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS pending_amendments (
  timestamp TEXT NOT NULL, chain INTEGER NOT NULL, sequence INTEGER NOT NULL, PRIMARY KEY (timestamp, chain, sequence)
) WITHOUT ROWID;
CREATE UNIQUE INDEX IF NOT EXISTS pending_by_chain ON pending_amendments (chain, sequence);
"""

_ROW_FIELDS: Final = tuple(COLUMNS[name] for name in PROJECTED)
# JSON has no bytes. SQLite sorts bytes after text; such a field is as invalid as a number.
_ROW_ARRAY: Final = (
    f"CASE WHEN {' OR '.join(f"{name} >= x''" for name in _ROW_FIELDS)} "
    f"THEN json_array({', '.join(f"iif({name} >= x'', 0, {name})" for name in _ROW_FIELDS)}) "
    f"ELSE json_array({', '.join(_ROW_FIELDS)}) END"
)
ROW_COLUMNS: Final = f"sequence, canonical, hash, CAST({_ROW_ARRAY} AS BLOB)"
"""Columns of a :data:`~shared.provenance.ports.Row`; SQLite returns one JSON array faster than eight fields."""

RECORD_COLUMNS: Final = "sequence, canonical, hash, append_id, " + ", ".join(COLUMNS[name] for name in PROJECTED)
_MARKS: Final = f"({', '.join('?' * (5 + len(PROJECTED)))})"
_INSERT: Final = f"INSERT INTO records (chain, {RECORD_COLUMNS}) VALUES "  # noqa: S608  column names
_ROWS_PER_INSERT: Final = 16
"""Number of rows of one INSERT statement, during which Python's global lock is released once."""
_INSERT_ONE: Final = _INSERT + _MARKS
_INSERT_MANY: Final = _INSERT + ", ".join([_MARKS] * _ROWS_PER_INSERT)
IN_PLACE: Final = f"typeof(sequence) = 'integer' AND +sequence <= {LAST_SEQUENCE}"
"""SQL condition: the sequence number of a record is an integer and not too high; old files can contain other values.

The plus sign prevents SQLite from using an index for this condition, which almost all records meet.
"""
_PLACE: Final = (
    f"CASE WHEN sequence IS NULL OR sequence < 1 THEN 1 WHEN {IN_PLACE} THEN sequence "
    f"WHEN sequence < {LAST_SEQUENCE} THEN CAST(sequence AS INTEGER) + 1 ELSE {LAST_SEQUENCE + 1} END"
)
"""SQL expression: the sequence number of a record, or the next valid number if the stored number is invalid."""
MISPLACED: Final = f"""
SELECT {_PLACE} FROM records WHERE chain = ? AND (sequence IS NULL OR +sequence < 1 OR NOT ({IN_PLACE}))
ORDER BY sequence LIMIT 1
"""  # noqa: S608  column names
"""Query for a chain's first record with an invalid sequence number; it returns the next valid sequence number."""
_HAS_RECORD_PAST_END: Final = (
    "SELECT EXISTS (SELECT 1 FROM records WHERE chain = :chain AND sequence > :last) "
    "OR EXISTS (SELECT 1 FROM records WHERE chain = :chain AND sequence < 1)"
)
_MOVE_HEAD: Final = (
    "UPDATE chains SET sequence = :sequence, hash = :hash, timestamp = :timestamp "
    "WHERE target = :target AND scope = :scope RETURNING chain"
)
_HIGHEST: Final = 2**53
_NEW_HEAD: Final = f"""
INSERT INTO chains (chain, target, scope, sequence, hash, timestamp)
VALUES (
  1 + max(
    coalesce((SELECT max(chain) FROM chains WHERE chain < {_HIGHEST}), 0),
    coalesce((SELECT max(chain) FROM records WHERE chain < {_HIGHEST}), 0)
  ), :target, :scope, :sequence, :hash, :timestamp
) RETURNING chain
"""  # noqa: S608  a number
"""Statement that creates a head row with a new chain number.

The number is higher than any number in use, so that no chain takes over the records of a deleted head row.
"""
_NEW_SUMMARY: Final = """
INSERT OR REPLACE INTO chain_summaries (chain, verified_at, verified_records, is_valid, broken_at, reason)
SELECT :chain, verified_at, verified_records, is_valid, broken_at, reason
FROM (SELECT 1) LEFT JOIN missing_chains ON target = :target AND scope = :scope
"""
_REMOVE_MISSING: Final = "DELETE FROM missing_chains WHERE target = :target AND scope = :scope"
_RESTART_SUMMARY: Final = """
INSERT INTO chain_summaries (chain, first_at) VALUES (?, ?)
ON CONFLICT (chain) DO UPDATE
SET first_at = excluded.first_at, counted_to = 0, pending = 0, is_valid = nullif(is_valid, 1)
"""
"""Statement for the first record of a chain.

If the chain begins again, a verdict "valid" is removed, because it applies to other records. "Broken" remains.
"""
_ADD_PENDING: Final = "INSERT OR IGNORE INTO pending_amendments (timestamp, chain, sequence) VALUES (?, ?, ?)"
_REMOVE_PENDING: Final = "DELETE FROM pending_amendments WHERE chain = ? AND sequence = ?"
_UPDATE_SUMMARY: Final = (
    "UPDATE chain_summaries SET pending = pending + :change, "
    "counted_to = iif(counted_to = :before, :last, counted_to) WHERE chain = :chain"
)
DECISIONS: Final = f"""
SELECT {RECORD_COLUMNS} FROM records WHERE chain = :chain AND {_DECIDES}
  AND {_DECIDED} IN (SELECT CAST(value AS BLOB) FROM json_each(:ids)) AND +sequence > 0 AND {IN_PLACE}
UNION ALL
SELECT {RECORD_COLUMNS} FROM records WHERE chain = :chain
  AND amendment_id IN (SELECT value FROM json_each(:ids)) AND +sequence > 0 AND {IN_PLACE}
"""  # noqa: S608  column names
"""Query by two indexes for the decisions about amendments; a record that both indexes find is returned twice."""
ORPHANS: Final = f"""
WITH RECURSIVE numbered (number) AS (
  SELECT min(chain) FROM records
  UNION ALL SELECT (SELECT min(chain) FROM records WHERE chain > number) FROM numbered WHERE number IS NOT NULL
)
SELECT {_PLACE}, {RECORD_COLUMNS.partition(", ")[2]} FROM numbered JOIN records
  ON chain = number AND sequence = (SELECT min(sequence) FROM records WHERE chain = number)
WHERE instr(CAST(canonical AS BLOB), :genesis) AND number <> :chain
    AND (:chain = 0 OR number NOT IN (SELECT chain FROM chains))
  OR :chain = 0 AND number NOT IN (SELECT chain FROM chains)
ORDER BY sequence
"""  # noqa: S608  column names
"""Query for orphans of a chain: records that contain its genesis hash, but that are stored under another chain number.

The other number has no head row, or the head row of another chain. If the chain itself has no head row, the earliest
records of every chain number without a head row are included.
"""

_FIRST_RECORDS_WITH_GENESIS: Final = """
WITH RECURSIVE numbered (number) AS (
  SELECT min(chain) FROM records
  UNION ALL SELECT (SELECT min(chain) FROM records WHERE chain > number) FROM numbered WHERE number IS NOT NULL
)
SELECT number, canonical FROM numbered JOIN records
  ON chain = number AND sequence = (SELECT min(sequence) FROM records WHERE chain = number)
WHERE instr(CAST(canonical AS BLOB), :genesis)
"""
"""Query for the earliest record of each chain number, if it contains a genesis hash, also in a value of its content."""


class RecordPastEndError(Exception):
    """Raised if the file has a record after the end of the chain or before sequence number 1; a retry cannot help."""


def record_from_row(row: Sequence[Any]) -> ChainRecord:
    """Convert a row with :data:`RECORD_COLUMNS` to a record; values of wrong types are converted to text."""
    fields = {name: _value_to_text(value) for name, value in zip(PROJECTED, row[4:], strict=True) if value is not None}
    canonical = row[1] if type(row[1]) is bytes else _value_to_text(row[1]).encode()
    return ChainRecord(row[0], canonical, _value_to_text(row[2]), _value_to_text(row[3]), fields)


def get_chain_number_or_zero(connection: sqlite3.Connection, key: ChainKey) -> int:
    """Return the number that identifies a chain in the file (column ``chain``); 0 if the chain has no head row."""
    sql = "SELECT chain FROM chains WHERE target = ? AND scope = ?"
    row = connection.execute(sql, (key.target, key.scope_key)).fetchone()
    return 0 if row is None else int(row[0])


def find_chain_number_of_orphans(connection: sqlite3.Connection, genesis_hash: str) -> int | None:
    """Return the chain number of a stored first record with this genesis hash; None if there is no such record.

    Orphans are records of a chain without a head row; their first record contains the genesis hash of the chain.
    """
    for number, canonical in connection.execute(_FIRST_RECORDS_WITH_GENESIS, {"genesis": genesis_hash.encode()}):
        value = parse_json_if_canonical(canonical) if type(canonical) is bytes else None
        if type(value) is dict and value.get("PreviousHash") == genesis_hash:
            return int(number)
    return None


def find_sequence_after_misplaced_record(connection: sqlite3.Connection, key: ChainKey) -> int | None:
    """Find the first record of a chain whose sequence number is invalid: 0, negative, a fraction or text.

    Return the next valid sequence number after that record; return None if all sequence numbers are valid.
    """
    row = connection.execute(MISPLACED, (get_chain_number_or_zero(connection, key),)).fetchone()
    return None if row is None else int(row[0])


def read_tip(connection: sqlite3.Connection, key: ChainKey) -> Tip:
    """Read the tip of a chain (sequence number, hash and time of its last record) from the chain's head row.

    Return ``Tip()`` if there is no head row.
    """
    sql = "SELECT sequence, hash, timestamp FROM chains WHERE target = ? AND scope = ?"
    row = connection.execute(sql, (key.target, key.scope_key)).fetchone()
    return Tip() if row is None else tip_from_row(row)


def tip_from_row(row: Sequence[Any]) -> Tip:
    """Convert a row with sequence number, hash and time of a record to a chain's tip; an invalid number becomes 0."""
    sequence = row[0] if type(row[0]) is int and row[0] > 0 else 0
    return Tip(sequence, _value_to_text(row[1]), _value_to_text(row[2]), str(row[0]))


def wrap_to_tolerate_invalid_utf8[T](function: Callable[[sqlite3.Connection], T]) -> Callable[[sqlite3.Connection], T]:
    """Wrap a function so that it is called again if a text in the file is not valid UTF-8.

    In the second call, the connection returns replacement characters instead of the invalid bytes.
    """

    def run_with_fallback(connection: sqlite3.Connection) -> T:
        try:
            return function(connection)
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
            # Slow, and needed for tampered files only; it stays in effect until the connection is closed.
            connection.text_factory = _decode_with_replacements
            return function(connection)

    return run_with_fallback


def _decode_with_replacements(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _value_to_text(value: object) -> str:
    """Convert a column value to text, because SQLite columns accept values of any type."""
    return value if type(value) is str else "" if value is None else str(value)


def insert_records(connection: sqlite3.Connection, key: ChainKey, records: Sequence[ChainRecord]) -> Tip:
    """Write records and the head row of their chain in the caller's transaction; return the new tip.

    Raises:
        sqlite3.IntegrityError: a record with the same sequence number or append id exists, or another decision about
            the same amendment exists.
        RecordPastEndError: a record exists after the end of the chain or before sequence number 1.
    """
    last = records[-1]
    tip = Tip(last.sequence, last.hash, last.projection["Timestamp"], str(last.sequence))
    names = {"target": key.target, "scope": key.scope_key, "sequence": tip.sequence, "hash": tip.hash}
    names["timestamp"] = tip.timestamp
    row = connection.execute(_MOVE_HEAD, names).fetchone()
    chain = row[0] if row else _create_head_and_summary(connection, names)
    if connection.execute(_HAS_RECORD_PAST_END, {"chain": chain, "last": records[0].sequence - 1}).fetchone()[0]:
        raise RecordPastEndError
    rows = [_record_to_row(chain, record) for record in records]
    for batch in itertools.batched(rows, _ROWS_PER_INSERT, strict=False):
        if len(batch) == _ROWS_PER_INSERT:
            connection.execute(_INSERT_MANY, tuple(itertools.chain.from_iterable(batch)))
        else:
            connection.executemany(_INSERT_ONE, batch)
    if records[0].sequence == 1:
        connection.execute(_RESTART_SUMMARY, (chain, records[0].projection["Timestamp"]))
    if key.target is Target.DOMAIN_AMENDMENTS:
        _index_amendments(connection, chain, records)
    return tip


def _create_head_and_summary(connection: sqlite3.Connection, head: Mapping[str, object]) -> int:
    """Create the head row of a chain and its summary; return the chain's number.

    If the rows of a broken chain were deleted, the new summary gets the stored verdict of the last verification. Only
    another verification may replace this verdict.
    """
    chain = int(connection.execute(_NEW_HEAD, head).fetchone()[0])
    names = {"chain": chain, "target": head["target"], "scope": head["scope"]}
    connection.execute(_NEW_SUMMARY, names)
    connection.execute(_REMOVE_MISSING, names)
    return chain


def _index_amendments(connection: sqlite3.Connection, chain_number: int, records: Sequence[ChainRecord]) -> None:
    """Add new pending amendments to the index, remove decided amendments, and update the chain's counts.

    The column ``counted_to`` (number of the last counted record) changes only if all earlier records are counted.
    """
    pending = [
        (one.projection["Timestamp"], chain_number, one.sequence) for one in records if is_pending_amendment(one)
    ]
    decided = [
        (chain_number, sequence_from_record_id(one.projection["AmendmentID"]))
        for one in records
        if "AmendmentID" in one.projection
    ]
    added = removed = 0
    if pending:
        added = connection.executemany(_ADD_PENDING, pending).rowcount
    if decided:
        removed = connection.executemany(_REMOVE_PENDING, decided).rowcount
    names = {
        "chain": chain_number,
        "change": added - removed,
        "before": records[0].sequence - 1,
        "last": records[-1].sequence,
    }
    connection.execute(_UPDATE_SUMMARY, names)


def _record_to_row(chain_number: int, record: ChainRecord) -> tuple[Any, ...]:
    sequence, canonical, hashed, append_id, projection = record
    return (chain_number, sequence, canonical, hashed, append_id, *map(projection.get, PROJECTED))
