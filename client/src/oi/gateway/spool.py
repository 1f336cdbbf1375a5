"""Spool: SQLite file of messages that wait to be sent; stored messages survive a crash and a power failure."""

import sqlite3
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from oi.batches import MAX_BYTES, MAX_MESSAGES, split_into_batches
from oi.gateway.disk_reserve import DiskReserve
from oi.gateway.settings import DROP_OLDEST, SpoolSettings

MAX_REFUSED = 10_000
"""Maximum number of remembered refusals; topics can name connections, so there can be any number of them."""
MAX_MARKS = 4_096
"""Number of transactions whose delivery marks are stored; each transaction stores the marks of several deliveries."""
REJECTED_PART = 4
"""Divisor: rejected messages take at most a fourth of the maximum size of the spool; the oldest are deleted first."""
MAX_TRANSACTION_BYTES = 4 * 2**20
"""Size of the messages that one transaction should store at most; larger ones need more disk space than is reserved."""
RESERVED_BYTES = 16 * 2**20
"""Disk space with which messages can be deleted although the disk is full: the largest write-ahead log, and more."""
_LARGE_LOG_BYTES = 10 * 2**20
"""Size of the write-ahead log that it only reaches if it could not be copied into the file, such as on a full disk."""
REFUSED_PART = 2
"""Divisor: messages of refused connections may take half of the maximum size of a full spool."""
REFUSED_CONNECTION = "refused_connection"
"""Reason that is stored with rejected messages of a connection that the service refuses."""
_REFUSED_DETAIL = "The spool was full, and the service refused all messages of this connection."
_FREE_PAGES = 2_000
_SMALLER_VACUUMS = (200, 20)
"""Numbers of pages that the file shrinks by if the disk has no room for the log of a larger step."""
_FULL_DISK_ERRORS = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC}
"""Error codes of SQLite for a full disk; it reports an exceeded quota as a failed write or synchronisation."""
_Result = TypeVar("_Result")

_SCHEMA = """
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
CREATE TABLE IF NOT EXISTS block (
  id INTEGER PRIMARY KEY AUTOINCREMENT, lookup TEXT NOT NULL, stored_at REAL NOT NULL,
  messages INTEGER NOT NULL, bytes INTEGER NOT NULL, lines BLOB NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS block_by_lookup ON block (lookup, id, messages, bytes);
CREATE TABLE IF NOT EXISTS mark (id INTEGER PRIMARY KEY AUTOINCREMENT, mark BLOB NOT NULL) STRICT;
CREATE TABLE IF NOT EXISTS subscription (
  client_id TEXT NOT NULL, filter TEXT NOT NULL, PRIMARY KEY (client_id, filter)
) STRICT;
CREATE TABLE IF NOT EXISTS rejected (
  id INTEGER PRIMARY KEY AUTOINCREMENT, rejected_at REAL NOT NULL, address TEXT NOT NULL, lookup TEXT,
  reason TEXT NOT NULL, detail TEXT NOT NULL, message BLOB NOT NULL
) STRICT;
"""


class SpoolFullError(OSError):
    """The messages in the spool file have reached the maximum total size."""


class SpoolInUseError(OSError):
    """Another process uses the spool file."""


class DiskFullError(OSError):
    """The spool file cannot be opened, because the disk is full."""


@dataclass(frozen=True, slots=True)
class RejectedMessage:
    """Message that cannot be sent, stored so that an operator can examine it.

    Attributes:
        address: address (MQTT topic) of the message; empty if the service rejected the message.
        lookup: short name of the connection for which the service rejected the message; None if the gateway itself
            rejected it.
        reason: short code of the reason.
        detail: one sentence that explains the reason.
        message: bytes of the message.
    """

    address: str
    lookup: str | None
    reason: str
    detail: str
    message: bytes


class StoredRejection(NamedTuple):
    """Rejected message, and the time of its rejection in seconds since 1970."""

    rejected_at: float
    rejected: RejectedMessage


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages of one connection that are sent in one request.

    Attributes:
        lookup: short name of the connection.
        ids: row ids of the blocks that contain the messages; a block is one row with messages stored together.
        messages: total number of messages.
        size: total size of the messages in bytes.
        blocks: NDJSON lines of each block.
        rest: further lines of the last block, which do not belong to the batch.
    """

    lookup: str
    ids: tuple[int, ...]
    messages: int
    size: int
    blocks: tuple[bytes, ...]
    rest: tuple[bytes, ...] = ()

    @property
    def lines(self) -> list[bytes]:
        """Messages as NDJSON lines; only a line feed ends a line, as in the service."""
        return _split_into_lines(b"".join(self.blocks))


@dataclass(slots=True)
class WaitingTotals:
    """Number and total size in bytes of the messages that wait in the spool file."""

    messages: int = 0
    bytes: int = 0


class GatewaySpool:
    """SQLite file of waiting messages, rejected messages, marks that identify deliveries, and subscriptions.

    The waiting messages of a connection that are stored together are one row, called a block. All methods must be
    called from the same thread.

    Args:
        settings: path and maximum size of the file, and the policy for a full file.

    Attributes:
        waiting: number and size of the messages that wait to be sent.
        rejected_bytes: total size of the rejected messages.
        deleted_rejected_messages: number of rejected messages that were deleted since the start to limit their size.
        last_mark_id: id of the newest row of marks, which identify deliveries; 0 if there is none.

    Raises:
        SpoolInUseError: another process uses the file.
        DiskFullError: the disk is full, and no space is reserved that can be released.
        OSError: the file cannot be opened.
    """

    def __init__(self, settings: SpoolSettings) -> None:
        self._settings = settings
        # SQLite follows symbolic links, too, so its log is next to the target.
        path = settings.path.resolve()
        self._log_path = path.with_name(f"{path.name}-wal")
        self._reserve = DiskReserve(path.with_name(f"{path.name}-reserve"), RESERVED_BYTES)
        try:
            self._database = _open_spool_database(settings)
        except DiskFullError:
            self._reserve.release()
            self._database = _open_spool_database(settings)
            self._free_disk_space()
        else:
            self._reserve.discard_if_sparse()
        self.waiting = WaitingTotals()
        self.rejected_bytes = 0
        self.deleted_rejected_messages = 0
        self._bytes_by_lookup: dict[str, int] = {}
        self._refused = dict[str, None]()
        self.last_mark_id: int = self._database.execute("SELECT coalesce(max(id), 0) FROM mark").fetchone()[0]
        self._load_counters()

    def close(self) -> None:
        """Close the spool file."""
        self._database.close()

    @property
    def lookups_with_messages(self) -> list[str]:
        """Short names of the connections with messages that wait to be sent."""
        return list(self._bytes_by_lookup)

    @property
    def appendable_bytes(self) -> int:
        """Maximum total size in bytes of the messages that one transaction can store now."""
        limit = self._settings.max_bytes
        return limit if self._settings.when_full == DROP_OLDEST else limit - self.waiting.bytes

    def append_and_count_dropped(
        self, lines_by_lookup: Mapping[str, Sequence[bytes]], rejected: Sequence[RejectedMessage], joined_marks: bytes
    ) -> int:
        """Store messages in one transaction; when this method returns, all are on disk.

        Args:
            lines_by_lookup: new messages as NDJSON lines, by connection, in the order of their receipt.
            rejected: received messages that cannot be sent.
            joined_marks: marks that identify the deliveries, stored for :meth:`read_marks`; empty to store none.

        Returns:
            Number of waiting messages that were deleted to make room (policy ``dropOldest``).

        Raises:
            SpoolFullError: the messages do not fit into the file (policy ``stop``).
            OSError: the disk has no room for the reserve file, which is needed to delete messages on a full disk.
            sqlite3.Error: the disk is full or fails.
        """
        size = sum(len(line) for each in lines_by_lookup.values() for line in each)
        self._check_has_room_for(size)
        if not self._reserve.is_present or self._get_log_bytes() > _LARGE_LOG_BYTES:
            self._free_disk_space_if_useful()
        self._reserve.create_if_missing()

        def store_messages() -> tuple[int, int]:
            dropped = self._drop_oldest_blocks_and_count_messages(size)
            now = time.time()
            for lookup, own in lines_by_lookup.items():
                for block in split_into_batches(own):
                    self._insert_block(lookup, block, now)
            self._store_rejected(rejected, now)
            return dropped, self._store_marks_and_get_id(joined_marks) if joined_marks else self.last_mark_id

        dropped, self.last_mark_id = self._run_transaction(store_messages, may_use_reserve=False)
        return dropped

    def find_next_batch(self, lookup: str, max_bytes: int = MAX_BYTES) -> Batch | None:
        """Return the oldest messages of a connection that fit into one request; None if no messages wait.

        Args:
            lookup: short name of the connection.
            max_bytes: maximum total size of the messages; a single larger message is a batch of its own.
        """
        ids: list[int] = []
        messages = size = 0
        rows = self._database.execute("SELECT id, messages, bytes FROM block WHERE lookup = ? ORDER BY id", (lookup,))
        for each, own_messages, own_size in rows:
            if ids and (messages + own_messages > MAX_MESSAGES or size + own_size > max_bytes):
                break
            ids.append(each)
            messages, size = messages + own_messages, size + own_size
        rows.close()
        blocks = [self._database.execute("SELECT lines FROM block WHERE id = ?", (each,)).fetchone()[0] for each in ids]
        if not ids:
            return None
        batch = Batch(lookup, tuple(ids), messages, size, tuple(blocks))
        return _cut_batch(batch, max_bytes) if size > max_bytes and messages > 1 else batch

    def remove_batch(self, batch: Batch) -> None:
        """Delete the messages of a batch that the service has accepted."""
        self._run_transaction(lambda: self._replace_batch(batch, []))
        self._refused.pop(batch.lookup, None)
        if not self._reserve.is_present:
            self._free_disk_space()
        elif self._count_free_pages() > _FREE_PAGES:
            self._shrink_file()

    def set_refused(self, lookup: str, *, is_refused: bool) -> None:
        """Record whether the last reply refused the connection itself, for instance because it is disabled.

        The latest ``MAX_REFUSED`` refusals are remembered.
        """
        self._refused.pop(lookup, None)
        if is_refused:
            self._refused[lookup] = None
            if len(self._refused) > MAX_REFUSED:
                del self._refused[next(iter(self._refused))]

    def reject_refused_connections(self, needed_bytes: int) -> int:
        """Move messages of refused connections to the rejected messages until ``needed_bytes`` fit into the file.

        A connection is refused if the service refuses all its messages. The method moves the oldest messages of the
        refused connection with the most bytes in the file first. It stops when the waiting messages of all refused
        connections take at most half of the file. With the policy ``dropOldest``, it does nothing.

        Returns:
            Number of messages that were moved.
        """

        def reject_oldest_messages() -> int:
            rejected = 0
            # Only as many as necessary: a large transaction would stop the intake.
            while self._settings.when_full != DROP_OLDEST and needed_bytes > self.appendable_bytes:
                lookup = self._find_refused_lookup_above_limit()
                if lookup is None:
                    break
                rejected += self._reject_oldest_block_and_count_messages(lookup)
            return rejected

        return self._run_transaction(reject_oldest_messages, may_use_reserve=False)

    def reject_messages(
        self, batch: Batch, sendable_lines: Sequence[bytes], rejected: Sequence[RejectedMessage]
    ) -> None:
        """Store some messages of a batch as rejected; the other messages of the batch stay and can be sent again.

        Args:
            batch: batch that the service has refused.
            sendable_lines: messages of the batch that can still be sent, as NDJSON lines.
            rejected: all other messages of the batch.
        """

        def replace_messages() -> None:
            self._replace_batch(batch, sendable_lines)
            self._store_rejected(rejected, time.time())

        self._run_transaction(replace_messages)

    def read_marks(self) -> list[bytes]:
        """Return the marks that identify the newest deliveries, oldest first."""
        return [row[0] for row in self._database.execute("SELECT mark FROM mark ORDER BY id")]

    def clear_marks(self) -> None:
        """Delete all marks of deliveries, because the source has begun a new session."""
        self._run_transaction(lambda: self._database.execute("DELETE FROM mark"))

    def forget_marks_up_to(self, mark_id: int) -> None:
        """Delete the rows of marks with ids up to ``mark_id``, because their deliveries are not repeated any more."""
        self._run_transaction(lambda: self._database.execute("DELETE FROM mark WHERE id <= ?", (mark_id,)))

    def read_subscriptions(self, client_id: str) -> list[str]:
        """Return the filters that :meth:`write_subscriptions` has stored for a client, sorted."""
        rows = self._database.execute(
            "SELECT filter FROM subscription WHERE client_id = ? ORDER BY filter", (client_id,)
        )
        return [row[0] for row in rows]

    def write_subscriptions(self, client_id: str, filters: Sequence[str]) -> None:
        """Replace the stored filters to which a client of the source is subscribed."""

        def replace_filters() -> None:
            self._database.execute("DELETE FROM subscription WHERE client_id = ?", (client_id,))
            self._database.executemany(
                "INSERT INTO subscription (client_id, filter) VALUES (?, ?)", ((client_id, each) for each in filters)
            )

        self._run_transaction(replace_filters)

    def list_newest_rejected(self, limit: int) -> list[StoredRejection]:
        """Return the newest rejected messages, with the times of their rejection, newest first."""
        rows = self._database.execute(
            "SELECT rejected_at, address, lookup, reason, detail, message FROM rejected ORDER BY id DESC LIMIT ?",
            (limit,),
        )
        return [StoredRejection(row[0], RejectedMessage(*row[1:])) for row in rows]

    def _run_transaction(self, change: Callable[[], _Result], *, may_use_reserve: bool = True) -> _Result:
        """Run a function as a transaction; if the disk is full, free disk space and run the function once more.

        ``may_use_reserve`` is False for a function that stores messages: it must not use the space of the reserve file,
        which is needed to delete messages.
        """
        try:
            with self._open_spool_transaction():
                return change()
        except sqlite3.OperationalError as error:
            if not _is_disk_full(error):
                raise
        if not may_use_reserve:
            self._free_disk_space_if_useful()
            self._reserve.create_if_missing()
            with self._open_spool_transaction():
                return change()
        self._reserve.release()
        try:
            self._try_copy_log_into_file()
            with self._open_spool_transaction():
                return change()
        finally:
            self._free_disk_space()

    def _free_disk_space_if_useful(self) -> None:
        """Free the disk space of the write-ahead log and, if there are any, of removed messages.

        The reserve file is deleted and created again only if the free disk space is not enough for the log, or if there
        are removed messages.
        """
        # Another program that fills the disk could take the space of a released reserve.
        if not self._try_copy_log_into_file() or self._count_free_pages():
            self._free_disk_space()

    def _free_disk_space(self) -> None:
        """Free the disk space of the write-ahead log and of removed messages.

        The method deletes the reserve file first, because these steps need free disk space, and creates it again last.
        """
        self._reserve.release()
        # The vacuum needs space in the log, so the log is emptied before it and after it.
        self._try_copy_log_into_file()
        self._shrink_file()
        self._try_copy_log_into_file()
        # Before messages are stored, this is tried again.
        with suppress(OSError):
            self._reserve.create_if_missing()

    def _count_free_pages(self) -> int:
        (pages,) = self._database.execute("PRAGMA freelist_count").fetchone()
        return int(pages)

    def _get_log_bytes(self) -> int:
        with suppress(FileNotFoundError):
            return self._log_path.stat().st_size
        return 0

    def _try_copy_log_into_file(self) -> bool:
        """Copy the write-ahead log into the spool file and empty the log; return False if the disk is too full."""
        with suppress(sqlite3.OperationalError):
            self._database.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
            return True
        return False

    def _shrink_file(self) -> None:
        # On a full disk, a later call does this.
        for pages in (_FREE_PAGES, *_SMALLER_VACUUMS):
            with suppress(sqlite3.OperationalError):
                # The file shrinks in steps after an outage; a whole vacuum would stop the intake.
                self._database.execute(f"PRAGMA incremental_vacuum({pages})").fetchall()
                return

    @contextmanager
    def _open_spool_transaction(self) -> Iterator[None]:
        """Run the ``with`` block as a transaction; after an error, roll it back and restore the counters."""
        # To count the blocks of a large spool again would take seconds, during which nothing can be sent.
        counters = (
            replace(self.waiting),
            dict(self._bytes_by_lookup),
            self.rejected_bytes,
            self.deleted_rejected_messages,
        )
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            self.waiting, self._bytes_by_lookup, self.rejected_bytes, self.deleted_rejected_messages = counters
            raise

    def _load_counters(self) -> None:
        (self.rejected_bytes,) = self._database.execute(
            "SELECT coalesce(sum(length(message)), 0) FROM rejected"
        ).fetchone()
        rows = self._database.execute("SELECT lookup, sum(messages), sum(bytes) FROM block GROUP BY lookup")
        for lookup, messages, size in rows:
            self._bytes_by_lookup[lookup] = size
            self.waiting.messages += messages
            self.waiting.bytes += size

    def _insert_block(self, lookup: str, lines: Sequence[bytes], stored_at: float, block_id: int | None = None) -> None:
        text = b"".join(lines)
        self._database.execute(
            "INSERT INTO block (id, lookup, stored_at, messages, bytes, lines) VALUES (?, ?, ?, ?, ?, ?)",
            (block_id, lookup, stored_at, len(lines), len(text), text),
        )
        self._bytes_by_lookup[lookup] = self._bytes_by_lookup.get(lookup, 0) + len(text)
        self.waiting.messages += len(lines)
        self.waiting.bytes += len(text)

    def _replace_batch(self, batch: Batch, remaining_lines: Sequence[bytes]) -> None:
        """Delete the messages of a batch except ``remaining_lines``, which remain the next ones to be sent."""
        self._delete_blocks_and_count_messages(batch.ids[:-1])
        # Messages of a block that was deleted to make room are not stored again.
        left = [*remaining_lines, *batch.rest] if self._delete_blocks_and_count_messages(batch.ids[-1:]) else []
        if left:
            self._insert_block(batch.lookup, left, time.time(), block_id=batch.ids[0])

    def _delete_blocks_and_count_messages(self, block_ids: Iterable[int]) -> int:
        """Delete blocks by row id; return the number of messages that they contained."""
        deleted = 0
        for each in block_ids:
            # A block may be gone already, deleted to make room.
            row = self._database.execute(
                "DELETE FROM block WHERE id = ? RETURNING lookup, messages, bytes", (each,)
            ).fetchone()
            if row is None:
                continue
            lookup, messages, size = row
            deleted += messages
            self.waiting.messages -= messages
            self.waiting.bytes -= size
            self._bytes_by_lookup[lookup] -= size
            if not self._bytes_by_lookup[lookup]:
                del self._bytes_by_lookup[lookup]
        return deleted

    def _check_has_room_for(self, size_bytes: int) -> None:
        """Raise an error if ``size_bytes`` do not fit into the file and no messages may be deleted."""
        if self._settings.when_full != DROP_OLDEST and size_bytes > self.appendable_bytes:
            raise SpoolFullError(
                f"The spool is full: {self.waiting.bytes:,} bytes of messages wait, and `spool.maxSize` is "
                f"{self._settings.max_bytes:,}. Restore the connection to the service, or increase `spool.maxSize`."
            )

    def _drop_oldest_blocks_and_count_messages(self, needed_bytes: int) -> int:
        """Delete the oldest blocks until ``needed_bytes`` fit into the file; return the number of deleted messages."""
        dropped = 0
        while self.waiting.bytes and self.waiting.bytes + needed_bytes > self._settings.max_bytes:
            row = self._database.execute("SELECT id FROM block ORDER BY id LIMIT 1").fetchone()
            dropped += self._delete_blocks_and_count_messages(row)
        return dropped

    def _find_refused_lookup_above_limit(self) -> str | None:
        """Return the lookup of the refused connection whose messages take the most bytes in the spool.

        A connection is refused if the service refuses all its messages. Return None if the messages of all refused
        connections together take at most half of the spool's maximum size.
        """
        sizes = {each: self._bytes_by_lookup[each] for each in self._refused if each in self._bytes_by_lookup}
        if sum(sizes.values()) <= self._settings.max_bytes // REFUSED_PART:
            return None
        return max(sizes, key=sizes.__getitem__)

    def _reject_oldest_block_and_count_messages(self, lookup: str) -> int:
        """Move the messages of a connection's oldest block (row) to the rejected messages; return their number."""
        block_id, text = self._database.execute(
            "SELECT id, lines FROM block WHERE lookup = ? ORDER BY id LIMIT 1", (lookup,)
        ).fetchone()
        rejected = (
            RejectedMessage("", lookup, REFUSED_CONNECTION, _REFUSED_DETAIL, line) for line in _split_into_lines(text)
        )
        self._store_rejected(rejected, time.time())
        return self._delete_blocks_and_count_messages([block_id])

    def _store_marks_and_get_id(self, joined_marks: bytes) -> int:
        """Store the marks of some deliveries in a new row; return its id. Keep only the newest MAX_MARKS rows."""
        (mark_id,) = self._database.execute(
            "INSERT INTO mark (mark) VALUES (?) RETURNING id", (joined_marks,)
        ).fetchone()
        self._database.execute("DELETE FROM mark WHERE id <= ?", (mark_id - MAX_MARKS,))
        return int(mark_id)

    def _store_rejected(self, rejected: Iterable[RejectedMessage], rejected_at: float) -> None:
        for each in rejected:
            self._database.execute(
                "INSERT INTO rejected (rejected_at, address, lookup, reason, detail, message) "
                "VALUES (?, ?, ?, ?, ?, ?)",
                (rejected_at, each.address, each.lookup, each.reason, each.detail, each.message),
            )
            self.rejected_bytes += len(each.message)
        # Messages that are never sent must not fill the disk.
        while self.rejected_bytes > self._settings.max_bytes // REJECTED_PART:
            (size,) = self._database.execute(
                "DELETE FROM rejected WHERE id = (SELECT min(id) FROM rejected) RETURNING length(message)"
            ).fetchone()
            self.rejected_bytes -= size
            self.deleted_rejected_messages += 1


def _split_into_lines(text: bytes) -> list[bytes]:
    """Split NDJSON text at each line feed, as the service does; each line includes its line feed."""
    # A carriage return is permitted white space within a message, so `bytes.splitlines` would count other lines.
    return [line + b"\n" for line in text.split(b"\n")[:-1]]


def _cut_batch(batch: Batch, max_bytes: int) -> Batch:
    """Shorten a batch of one block to its first messages, as many as fit into ``max_bytes``; at least one."""
    lines = batch.lines
    count, size = 1, len(lines[0])
    while count < len(lines) and size + len(lines[count]) <= max_bytes:
        size += len(lines[count])
        count += 1
    return replace(batch, messages=count, size=size, blocks=tuple(lines[:count]), rest=tuple(lines[count:]))


def _open_spool_database(settings: SpoolSettings) -> sqlite3.Connection:
    """Open the spool file exclusively for this process."""
    try:
        database = sqlite3.connect(settings.path, check_same_thread=False, isolation_level=None, timeout=1)
    except sqlite3.Error as error:
        raise OSError(f"The spool {settings.path} cannot be opened: {error}") from None
    try:
        # One process sends the messages. A second one would send them again and out of order.
        database.execute("PRAGMA locking_mode = EXCLUSIVE")
        database.executescript(_SCHEMA)
        # Messages are on disk when `append_and_count_dropped` returns, also after a power failure.
        database.execute("PRAGMA synchronous = FULL")
        database.execute("BEGIN IMMEDIATE")
        database.execute("COMMIT")
    except sqlite3.DatabaseError as error:
        database.close()
        if "locked" in str(error):
            raise SpoolInUseError(f"The spool {settings.path} is in use by another gateway; stop it.") from None
        kind = DiskFullError if _is_disk_full(error) else OSError
        raise kind(f"The spool {settings.path} cannot be used: {error}") from None
    return database


def _is_disk_full(error: sqlite3.Error) -> bool:
    # Errors that Python itself raises have no code.
    return getattr(error, "sqlite_errorcode", None) in _FULL_DISK_ERRORS
