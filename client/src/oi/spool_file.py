"""SQLite file of telemetry messages that still have to be sent, and of messages that the service has refused."""

import json
import sqlite3
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from oi.batches import MAX_BYTES, split_into_batches

_SCHEMA = """
CREATE TABLE IF NOT EXISTS message (
    id INTEGER PRIMARY KEY AUTOINCREMENT, lookup TEXT NOT NULL, line BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS message_by_lookup ON message (lookup, id);
CREATE TABLE IF NOT EXISTS refused (
    id INTEGER PRIMARY KEY AUTOINCREMENT, lookup TEXT NOT NULL, line BLOB NOT NULL, reason TEXT NOT NULL
) STRICT;
"""

# Each lookup is one search of the index, so that many messages of excluded lookups are not read.
_OLDEST_LOOKUP = """
WITH RECURSIVE stored (lookup) AS (
  SELECT min(lookup) FROM message
  UNION ALL SELECT (SELECT min(lookup) FROM message WHERE lookup > stored.lookup) FROM stored WHERE lookup IS NOT NULL
)
SELECT lookup FROM stored WHERE lookup IS NOT NULL AND lookup NOT IN ({marks})
ORDER BY (SELECT min(id) FROM message WHERE message.lookup = stored.lookup) LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class RefusedMessage:
    """Message that the service has refused.

    Attributes:
        id: number of the message in the spool file.
        lookup: short name of the data connection.
        message: the message, with the id that the client has added.
        reason: the service's description of the error in the message.
    """

    id: int
    lookup: str
    message: dict[str, Any]
    reason: str


class SpooledLine(NamedTuple):
    """Message that still has to be sent.

    Attributes:
        row_id: id of its row in the spool file.
        line: the message as NDJSON line.
    """

    row_id: int
    line: bytes


class SpoolBatch(NamedTuple):
    """Messages of one data connection for one request, oldest first.

    Attributes:
        lookup: short name of the connection.
        rows: the messages; empty if no message is stored.
    """

    lookup: str
    rows: list[SpooledLine]


class SpoolFile:
    """SQLite file of telemetry messages, in the order in which they were added.

    Several threads may add messages at the same time, and one of them may read and remove messages meanwhile.

    Args:
        path: path of the file, created if it is missing.
    """

    def __init__(self, path: Path | str) -> None:
        self._database = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        # A database connection has one transaction, and reads in it see rows that are not committed.
        self._lock = threading.Lock()
        self._database.execute("PRAGMA journal_mode = WAL")
        # A message is on disk when `append_lines` returns, also after a power failure.
        self._database.execute("PRAGMA synchronous = FULL")
        self._database.executescript(_SCHEMA)

    def close(self) -> None:
        """Close the spool file."""
        with self._lock:
            self._database.close()

    def append_lines(self, lookup: str, lines: Sequence[bytes]) -> None:
        """Append messages (NDJSON lines) of a data connection; all are on disk when this function returns.

        Raises:
            sqlite3.OperationalError: the disk is full or fails; no message is stored.
        """
        with self._open_transaction():
            self._database.executemany(
                "INSERT INTO message (lookup, line) VALUES (?, ?)", ((lookup, line) for line in lines)
            )

    def read_oldest_batch(self, excluded_lookups: Collection[str] = (), max_bytes: int = MAX_BYTES) -> SpoolBatch:
        """Return the oldest messages of the connection to which the oldest stored message belongs, for one request.

        Return an empty batch if no message is stored.

        Args:
            excluded_lookups: connections whose messages are left out.
            max_bytes: maximum total size of the messages; a single larger message is a batch of its own.
        """
        marks = ", ".join("?" * len(excluded_lookups))
        with self._lock:
            first = self._database.execute(_OLDEST_LOOKUP.format(marks=marks), tuple(excluded_lookups)).fetchone()
            if first is None:
                return SpoolBatch("", [])
            ids: list[int] = []
            # Rows are read one by one, because the messages of 5,000 rows can have 1.3 GB.
            with closing(
                self._database.execute("SELECT id, line FROM message WHERE lookup = ? ORDER BY id", first)
            ) as rows:
                batch = next(split_into_batches(_iterate_lines_and_collect_ids(rows, ids), max_bytes), [])
        return SpoolBatch(first[0], [SpooledLine(*pair) for pair in zip(ids, batch, strict=False)])

    def remove_accepted(self, row_ids: Sequence[int]) -> None:
        """Remove the messages with these row ids, because the service has accepted them."""
        with self._open_transaction():
            self._database.executemany("DELETE FROM message WHERE id = ?", ((each,) for each in row_ids))

    def mark_refused(self, reasons_by_row_id: Mapping[int, str]) -> None:
        """Mark messages as refused by the service, so that they are not sent again.

        Args:
            reasons_by_row_id: the service's description of the error in each message, by row id of the message.
        """
        copy = "INSERT INTO refused (lookup, line, reason) SELECT lookup, line, ? FROM message WHERE id = ?"
        with self._open_transaction():
            self._database.executemany(copy, ((reason, each) for each, reason in reasons_by_row_id.items()))
            self._database.executemany("DELETE FROM message WHERE id = ?", ((each,) for each in reasons_by_row_id))

    def list_refused(self) -> list[RefusedMessage]:
        """Return the messages that the service has refused, oldest first."""
        with self._lock:
            rows = self._database.execute("SELECT id, lookup, line, reason FROM refused ORDER BY id").fetchall()
        return [RefusedMessage(number, lookup, json.loads(line), reason) for number, lookup, line, reason in rows]

    def remove_refused(self, row_ids: Sequence[int]) -> None:
        """Remove refused messages by their ids."""
        with self._open_transaction():
            self._database.executemany("DELETE FROM refused WHERE id = ?", ((each,) for each in row_ids))

    def __len__(self) -> int:
        """Return the number of messages that still have to be sent."""
        with self._lock:
            (count,) = self._database.execute("SELECT count(*) FROM message").fetchone()
        return int(count)

    @contextmanager
    def _open_transaction(self) -> Iterator[None]:
        with self._lock:
            self._database.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._database.execute("COMMIT")
            except BaseException:
                # After some errors, such as a full disk, SQLite has already rolled the transaction back.
                if self._database.in_transaction:
                    self._database.execute("ROLLBACK")
                raise


def _iterate_lines_and_collect_ids(rows: Iterable[tuple[int, bytes]], collected_ids: list[int]) -> Iterator[bytes]:
    """Yield the messages of rows, and append the id of each row to a list."""
    for number, line in rows:
        collected_ids.append(number)
        yield line
