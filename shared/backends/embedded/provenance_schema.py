"""Tables of the audit chains in SQLite, and how rows become records."""

import itertools
import sqlite3
from collections.abc import Callable, Sequence
from typing import Any, Final

from shared.provenance.hash_rule import LAST_SEQUENCE
from shared.provenance.ports import PROJECTED, ChainKey, ChainRecord, Tip

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
"""Column of each projected field."""

_DECIDES: Final = "substr(canonical, 1, 16) = x'7b22416d656e646d656e744944223a22'"
_DECIDED: Final = "substr(canonical, 17, 12)"
CORRECTED: Final = "(action_type IS NULL OR status IS NOT NULL OR substr(canonical, 1, 7) = x'7b22416d656e64')"
"""Holds for all but events: corrections and decisions have no action and a status, and begin with ``{"Amend``.

Whoever is to hide one from its entity's must change all three.
"""

SCHEMA: Final = f"""
-- Appends touch the same last pages of each index again and again: copied back less often, they are copied once. But a
-- log that is written over takes a commit faster than one that grows, whose new size must be put on disk as well.
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
-- Which chains changed is asked for in every sweep of the signer.
CREATE INDEX IF NOT EXISTS chains_by_time ON chains (timestamp, chain);
-- Each index costs every append. The newest records of an action or a type are found by walking back, not so those of
-- somebody who did little. Corrections, which are few, are asked for by entity too.
CREATE INDEX IF NOT EXISTS by_user ON records (chain, user_id, sequence);
DROP INDEX IF EXISTS by_entity;
CREATE INDEX IF NOT EXISTS by_corrected ON records (chain, entity_id, sequence) WHERE {CORRECTED};
CREATE INDEX IF NOT EXISTS by_reason ON records (chain, reason_category, sequence) WHERE reason_category IS NOT NULL;
CREATE INDEX IF NOT EXISTS by_status ON records (chain, status, sequence) WHERE status IS NOT NULL;
CREATE UNIQUE INDEX IF NOT EXISTS by_amendment ON records (chain, amendment_id) WHERE amendment_id IS NOT NULL;
-- Decisions by what they say: a record begins with its AmendmentID, since no member of it sorts before that.
CREATE INDEX IF NOT EXISTS by_decided ON records (chain, {_DECIDED}) WHERE {_DECIDES};
"""

_ROW_FIELDS: Final = tuple(COLUMNS[name] for name in PROJECTED)
# JSON holds no bytes; whatever sorts behind text is bytes, and a number is as wrong.
_ROW_ARRAY: Final = (
    f"CASE WHEN {' OR '.join(f"{name} >= x''" for name in _ROW_FIELDS)} "
    f"THEN json_array({', '.join(f"iif({name} >= x'', 0, {name})" for name in _ROW_FIELDS)}) "
    f"ELSE json_array({', '.join(_ROW_FIELDS)}) END"
)
ROW_COLUMNS: Final = f"sequence, canonical, hash, CAST({_ROW_ARRAY} AS BLOB)"
"""Columns of a :data:`~shared.provenance.ports.Row`; one text is read faster than eight."""

RECORD_COLUMNS: Final = "sequence, canonical, hash, append_id, " + ", ".join(COLUMNS[name] for name in PROJECTED)
_MARKS: Final = f"({', '.join('?' * (5 + len(PROJECTED)))})"
_INSERT: Final = f"INSERT INTO records (chain, {RECORD_COLUMNS}) VALUES "  # noqa: S608  column names
_AT_ONCE: Final = 16
"""Rows of one statement: Python's lock is let go once for all of them, while requests are worked on."""
_INSERT_ONE: Final = _INSERT + _MARKS
_INSERT_MANY: Final = _INSERT + ", ".join([_MARKS] * _AT_ONCE)
IN_PLACE: Final = f"typeof(sequence) = 'integer' AND +sequence <= {LAST_SEQUENCE}"
"""A record stands in a place that records have; the caller bounds it from below. Older files take others, too.

The sign keeps SQLite from taking this bound, that all records keep, for the one to search by.
"""
_PLACE: Final = (
    f"CASE WHEN sequence IS NULL OR sequence < 1 THEN 1 WHEN {IN_PLACE} THEN sequence "
    f"WHEN sequence < {LAST_SEQUENCE} THEN CAST(sequence AS INTEGER) + 1 ELSE {LAST_SEQUENCE + 1} END"
)
"""The place of a record; of one that stands in none, the place behind it."""
MISPLACED: Final = f"""
SELECT {_PLACE} FROM records WHERE chain = ? AND (sequence IS NULL OR +sequence < 1 OR NOT ({IN_PLACE}))
ORDER BY sequence LIMIT 1
"""  # noqa: S608  column names
"""The place behind the first record of a chain that stands in none."""
_BARRED: Final = (
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
"""A head under a number that no chain has and no record: those of a head that somebody deleted are no other chain's."""
DECISIONS: Final = f"""
SELECT {RECORD_COLUMNS} FROM records WHERE chain = :chain AND {_DECIDES}
  AND {_DECIDED} IN (SELECT CAST(value AS BLOB) FROM json_each(:ids)) AND +sequence > 0 AND {IN_PLACE}
UNION ALL
SELECT {RECORD_COLUMNS} FROM records WHERE chain = :chain
  AND amendment_id IN (SELECT value FROM json_each(:ids)) AND +sequence > 0 AND {IN_PLACE}
"""  # noqa: S608  column names
"""Records about corrections, each through an index of its own; one that both name comes twice."""
STRAYS: Final = f"""
WITH RECURSIVE kept (number) AS (
  SELECT min(chain) FROM records
  UNION ALL SELECT (SELECT min(chain) FROM records WHERE chain > number) FROM kept WHERE number IS NOT NULL
)
SELECT {_PLACE}, {RECORD_COLUMNS.partition(", ")[2]} FROM kept JOIN records
  ON chain = number AND sequence = (SELECT min(sequence) FROM records WHERE chain = number)
WHERE instr(CAST(canonical AS BLOB), :genesis) AND number <> :chain
    AND (:chain = 0 OR number NOT IN (SELECT chain FROM chains))
  OR :chain = 0 AND number NOT IN (SELECT chain FROM chains)
ORDER BY sequence
"""  # noqa: S608  column names
"""The earliest records of chains, found by a step for each chain, that may be those of a chain.

They hold its genesis hash and belong to no head, or to another one; where it has no head, all those also that belong
to none.
"""


class RecordPastEndError(Exception):
    """A record stands where the chain would grow past it; it does not go away by trying again."""


def record_from_row(row: Sequence[Any]) -> ChainRecord:
    """Return the record of a row of :data:`RECORD_COLUMNS`, also of one that somebody stored other types in."""
    fields = {name: _text(value) for name, value in zip(PROJECTED, row[4:], strict=True) if value is not None}
    canonical = row[1] if type(row[1]) is bytes else _text(row[1]).encode()
    return ChainRecord(row[0], canonical, _text(row[2]), _text(row[3]), fields)


def chain_number(connection: sqlite3.Connection, key: ChainKey) -> int:
    """Return the number of a chain, 0 without a head."""
    sql = "SELECT chain FROM chains WHERE target = ? AND scope = ?"
    row = connection.execute(sql, (key.target, key.scope_key)).fetchone()
    return 0 if row is None else int(row[0])


def misplaced(connection: sqlite3.Connection, key: ChainKey) -> int | None:
    """Return the place behind the first record that stands in no place, None without one."""
    row = connection.execute(MISPLACED, (chain_number(connection, key),)).fetchone()
    return None if row is None else int(row[0])


def read_tip(connection: sqlite3.Connection, key: ChainKey) -> Tip:
    """Return what the head row says."""
    sql = "SELECT sequence, hash, timestamp FROM chains WHERE target = ? AND scope = ?"
    row = connection.execute(sql, (key.target, key.scope_key)).fetchone()
    return Tip() if row is None else tip_from_row(row)


def tip_from_row(row: Sequence[Any]) -> Tip:
    """Return the tip that a head's sequence, hash and timestamp say; what a forger spoilt counts as missing."""
    sequence = row[0] if type(row[0]) is int and row[0] > 0 else 0
    return Tip(sequence, _text(row[1]), _text(row[2]), str(row[0]))


def forgiving[T](work: Callable[[sqlite3.Connection], T]) -> Callable[[sqlite3.Connection], T]:
    """Return work that is done again when text in the file is no text, with what is none of it replaced."""

    def forgiven(connection: sqlite3.Connection) -> T:
        try:
            return work(connection)
        except sqlite3.OperationalError as error:
            if "decode" not in str(error):
                raise
            # For as long as the connection lives: costly, and only a forged file needs it.
            connection.text_factory = _replaced
            return work(connection)

    return forgiven


def _replaced(text: bytes) -> str:
    return text.decode("utf-8", "replace")


def _text(value: object) -> str:
    """Return a value as text; the column's own type does not keep others out."""
    return value if type(value) is str else "" if value is None else str(value)


def insert(connection: sqlite3.Connection, key: ChainKey, records: Sequence[ChainRecord]) -> Tip:
    """Write records and the head within the caller's transaction.

    Raises:
        sqlite3.IntegrityError: an append id or a decision exists.
        RecordPastEndError: a record stands past the end of the chain, or before its first place.
    """
    last = records[-1]
    tip = Tip(last.sequence, last.hash, last.projection["Timestamp"], str(last.sequence))
    names = {"target": key.target, "scope": key.scope_key, "sequence": tip.sequence, "hash": tip.hash}
    names["timestamp"] = tip.timestamp
    row = connection.execute(_MOVE_HEAD, names).fetchone() or connection.execute(_NEW_HEAD, names).fetchone()
    chain = row[0]
    if connection.execute(_BARRED, {"chain": chain, "last": records[0].sequence - 1}).fetchone()[0]:
        raise RecordPastEndError
    rows = [_row(chain, record) for record in records]
    for some in itertools.batched(rows, _AT_ONCE, strict=False):
        if len(some) == _AT_ONCE:
            connection.execute(_INSERT_MANY, tuple(itertools.chain.from_iterable(some)))
        else:
            connection.executemany(_INSERT_ONE, some)
    return tip


def _row(chain: int, record: ChainRecord) -> tuple[Any, ...]:
    sequence, canonical, hashed, append_id, projection = record
    return (chain, sequence, canonical, hashed, append_id, *map(projection.get, PROJECTED))
