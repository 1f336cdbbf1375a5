"""Tests of the spool, the file of messages that wait for the service."""

import errno
import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from oi.gateway.settings import DROP_OLDEST, STOP, SpoolSettings
from oi.gateway.spool import RESERVED_BYTES, Batch, GatewaySpool, RejectedMessage, SpoolFullError, SpoolInUseError


def open_spool(folder: Path, *, max_bytes: int = 2**20, when_full: str = STOP) -> GatewaySpool:
    """Open the spool in a folder."""
    return GatewaySpool(SpoolSettings(folder / "spool.db", max_bytes, when_full))


def read_batch(spool: GatewaySpool, lookup: str) -> Batch:
    """Return the oldest messages of a connection in the spool."""
    batch = spool.find_next_batch(lookup)
    assert batch is not None
    return batch


def test_messages_are_read_in_order_after_a_restart(tmp_path: Path) -> None:
    """After a restart, messages that were not removed are read in the order of each connection."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n", b"2\n"], "b": [b"3\n"]}, [], b"m1")
    spool.append_and_count_dropped({"a": [b"4\n"]}, [], b"m2")
    spool.close()
    spool = open_spool(tmp_path)
    assert (spool.lookups_with_messages, spool.waiting.messages, spool.waiting.bytes) == (["a", "b"], 4, 8)
    batch = read_batch(spool, "a")
    assert (batch.blocks, batch.messages, batch.size) == ((b"1\n2\n", b"4\n"), 3, 6)
    spool.remove_batch(batch)
    assert (spool.lookups_with_messages, spool.find_next_batch("a"), spool.waiting.messages) == (["b"], None, 1)
    assert spool.read_marks() == [b"m1", b"m2"]
    spool.clear_marks()
    assert spool.read_marks() == []
    spool.close()


def test_marks_up_to_a_position_are_forgotten(tmp_path: Path) -> None:
    """Marks of deliveries that are not repeated any more are deleted; newer ones stay, also after a restart."""
    spool = open_spool(tmp_path)
    positions = []
    for mark in (b"m1", b"m2", b"", b"m3"):
        spool.append_and_count_dropped({"a": [b"1\n"]}, [], mark)
        positions.append(spool.last_mark_id)
    spool.forget_marks_up_to(positions[2])
    spool.close()
    spool = open_spool(tmp_path)
    assert (spool.read_marks(), spool.last_mark_id) == ([b"m3"], positions[3])
    spool.close()


def test_subscriptions_of_each_client_are_stored(tmp_path: Path) -> None:
    """The subscriptions of a client replace its earlier ones, and stay after a restart."""
    spool = open_spool(tmp_path)
    for client_id, filters in (("one", ["a", "b"]), ("two", ["c"]), ("one", ["d", "b"])):
        spool.write_subscriptions(client_id, filters)
    spool.close()
    spool = open_spool(tmp_path)
    assert [spool.read_subscriptions(each) for each in ("one", "two", "three")] == [["b", "d"], ["c"], []]
    spool.close()


def test_a_batch_has_at_most_5000_messages(tmp_path: Path) -> None:
    """A batch for one request has at most 5,000 messages, however many messages wait."""
    spool = open_spool(tmp_path)
    for _ in range(3):
        spool.append_and_count_dropped({"a": [b"{}\n"] * 4_000}, [], b"")
    sizes = []
    while (batch := spool.find_next_batch("a")) is not None:
        sizes.append(batch.messages)
        spool.remove_batch(batch)
    assert sizes == [4_000] * 3
    spool.append_and_count_dropped({"a": [b"{}\n"] * 12_000}, [], b"")
    assert read_batch(spool, "a").messages == 5_000
    spool.close()


def test_a_spool_in_use_cannot_be_opened_again(tmp_path: Path) -> None:
    """A second process cannot open the spool, because two senders would send messages in the wrong order."""
    spool = open_spool(tmp_path)
    with pytest.raises(SpoolInUseError, match="in use by another gateway"):
        open_spool(tmp_path)
    spool.close()


def test_a_file_that_is_not_a_spool_is_rejected(tmp_path: Path) -> None:
    """The error about a file that is not a spool names the file."""
    (tmp_path / "spool.db").write_bytes(b"x" * 5000)
    with pytest.raises(OSError, match=r"spool\.db cannot be used: file is not a database"):
        open_spool(tmp_path)
    with pytest.raises(OSError, match="cannot be opened"):
        open_spool(tmp_path / "missing")


def test_a_commit_to_a_full_spool_stores_all_messages_or_none(tmp_path: Path) -> None:
    """With the policy `stop`, a commit to a full spool stores all of its messages or none."""
    spool = open_spool(tmp_path)
    line = b"x" * 600_000
    spool.append_and_count_dropped({"a": [line]}, [], b"")
    with pytest.raises(SpoolFullError, match="maxSize"):
        spool.append_and_count_dropped(
            {"a": [b"1"], "b": [line]}, [RejectedMessage("t", None, "r", "d", b"m")], b"mark"
        )
    assert (spool.waiting.messages, spool.lookups_with_messages, spool.read_marks(), spool.list_newest_rejected(9)) == (
        1,
        ["a"],
        [],
        [],
    )
    spool.remove_batch(read_batch(spool, "a"))
    spool.append_and_count_dropped({"b": [line]}, [], b"")
    assert spool.lookups_with_messages == ["b"]
    spool.close()


def test_refused_connections_make_room_in_a_full_spool(tmp_path: Path) -> None:
    """If the spool is full, the oldest messages of refused connections are rejected; half of the spool stays theirs."""
    spool, line = open_spool(tmp_path), b"x" * 99_999 + b"\n"
    for lookup in "bcaaaaaac":
        spool.append_and_count_dropped({lookup: [lookup.encode() + line[1:]]}, [], b"")
    assert spool.reject_refused_connections(200_000) == 0
    spool.set_refused("a", is_refused=True)
    spool.set_refused("b", is_refused=True)
    assert spool.reject_refused_connections(100_000) == 0
    assert spool.reject_refused_connections(200_000) == 1
    [(_, rejected)] = spool.list_newest_rejected(9)
    assert (rejected.lookup, rejected.reason, rejected.message[:2]) == ("a", "refused_connection", b"ax")
    assert spool.reject_refused_connections(2**20) == 1
    assert [read_batch(spool, lookup).messages for lookup in "abc"] == [4, 1, 2]
    spool.close()


def test_an_accepted_connection_is_not_refused_any_more(tmp_path: Path) -> None:
    """After the service has accepted a batch of a refused connection, its messages wait as those of others do."""
    spool, line = open_spool(tmp_path), b"x" * 399_999 + b"\n"
    for _ in range(2):
        spool.append_and_count_dropped({"a": [line]}, [], b"")
    spool.set_refused("a", is_refused=True)
    batch = spool.find_next_batch("a", len(line))
    assert batch is not None
    spool.remove_batch(batch)
    spool.append_and_count_dropped({"a": [line]}, [], b"")
    assert spool.reject_refused_connections(2**20) == 0
    spool.close()


def test_only_the_latest_refusals_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of remembered refusals is limited, because topics can name ever new connections."""
    monkeypatch.setattr("oi.gateway.spool.MAX_REFUSED", 1)
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"x" * 799_999 + b"\n"]}, [], b"")
    spool.set_refused("a", is_refused=True)
    spool.set_refused("b", is_refused=True)
    assert spool.reject_refused_connections(2**20) == 0
    spool.set_refused("a", is_refused=True)
    assert spool.reject_refused_connections(2**20) == 1
    spool.close()


def test_with_drop_oldest_refused_connections_are_not_preferred(tmp_path: Path) -> None:
    """With the policy `dropOldest`, the oldest messages are deleted, whether or not their connection is refused."""
    spool = open_spool(tmp_path, when_full=DROP_OLDEST)
    spool.append_and_count_dropped({"a": [b"x" * 999_999 + b"\n"]}, [], b"")
    spool.set_refused("a", is_refused=True)
    assert spool.reject_refused_connections(2**21) == 0
    spool.close()


def test_with_drop_oldest_a_full_spool_deletes_its_oldest_messages(tmp_path: Path) -> None:
    """With the policy `dropOldest`, the oldest messages of a full spool are deleted and counted."""
    spool = open_spool(tmp_path, when_full=DROP_OLDEST)
    line = b"x" * 400_000
    assert [spool.append_and_count_dropped({name: [line]}, [], b"") for name in "abcd"] == [0, 0, 1, 1]
    assert spool.lookups_with_messages == ["c", "d"]
    spool.close()


def test_a_commit_to_a_full_disk_stores_nothing(tmp_path: Path) -> None:
    """If a commit fails because the disk is full, nothing is stored; later commits succeed."""
    spool = open_spool(tmp_path, max_bytes=2**30)
    spool.append_and_count_dropped({"a": [b"1\n"]}, [], b"")
    (pages,) = spool._database.execute("PRAGMA page_count").fetchone()
    spool._database.execute(f"PRAGMA max_page_count = {pages + 2}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        spool.append_and_count_dropped({"a": [b"x" * 100_000], "b": [b"2\n"]}, [], b"mark")
    assert (spool.waiting.messages, spool.waiting.bytes, spool.lookups_with_messages, spool.read_marks()) == (
        1,
        2,
        ["a"],
        [],
    )
    spool._database.execute("PRAGMA max_page_count = 1000000")
    spool.append_and_count_dropped({"b": [b"2\n"]}, [], b"")
    assert spool.waiting.messages == 2
    spool.close()


class FullDisk:
    """Database on a disk that is full while the reserve of the spool occupies it."""

    def __init__(self, database: sqlite3.Connection, folder: Path, error_code: int = sqlite3.SQLITE_FULL) -> None:
        self._database = database
        self._error_code = error_code
        self._reserve = folder / "spool.db-reserve"

    def __getattr__(self, name: str) -> Any:
        return getattr(self._database, name)

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement; raise the error of a full disk for a change."""
        if statement.startswith(("DELETE", "INSERT")) and self._reserve.exists():
            raise build_full_disk_error(self._error_code)
        return self._database.execute(statement, *arguments)


class DiskFilledByLog(FullDisk):
    """Database on a disk that is full until the log of the spool is copied with the space of the reserve."""

    is_log_copied = False

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement; raise the error of a full disk for a change before the log is copied."""
        if "wal_checkpoint" in statement and not self.is_log_copied:
            if self._reserve.exists():
                raise build_full_disk_error()
            self.is_log_copied = True
        if self.is_log_copied:
            return self._database.execute(statement, *arguments)
        return super().execute(statement, *arguments)


class FullDiskWithFreePages(FullDisk):
    """Database whose removed messages fill the disk, which has room for the log of a small vacuum only."""

    def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
        """Execute a statement; raise the error of a full disk for a large vacuum."""
        if "incremental_vacuum(2000)" in statement:
            raise build_full_disk_error()
        return self._database.execute(statement, *arguments)

    def allocate(self, *_: int) -> None:
        """Reserve space; raise the error of a full disk before the vacuum."""
        if self._database.execute("PRAGMA freelist_count").fetchone()[0]:
            raise_disk_full()


class FullDiskOnOpen(sqlite3.Connection):
    """Database that cannot be opened while the reserve of the spool occupies the disk."""

    def __init__(self, path: Path, **options: Any) -> None:
        super().__init__(path, **options)
        self._disk: Any = FullDisk(self, path.parent)

    def executescript(self, script: str) -> sqlite3.Cursor:
        """Execute the first statements of the spool as a change."""
        self._disk.execute("INSERT INTO mark (id, mark) SELECT id, mark FROM mark WHERE FALSE")
        return super().executescript(script)


def build_full_disk_error(code: int = sqlite3.SQLITE_FULL) -> sqlite3.OperationalError:
    error = sqlite3.OperationalError("database or disk is full")
    error.sqlite_errorcode = code
    return error


def raise_disk_full(*_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def test_accepted_messages_are_removed_from_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a full disk, accepted messages are removed with reserved space; nothing is stored until it is reserved again.

    A file that cannot be opened on a full disk uses the reserve, too.
    """
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n"], "b": [b"2\n"]}, [], b"mark")
    full_disk: Any = FullDisk(spool._database, tmp_path)
    spool._database = full_disk
    with pytest.raises(sqlite3.OperationalError, match="full"):
        spool.append_and_count_dropped({"a": [b"3\n"]}, [], b"")
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", raise_disk_full)
        spool.remove_batch(read_batch(spool, "a"))
        spool.clear_marks()
        with pytest.raises(OSError, match="16 MiB of disk space cannot be reserved"):
            spool.append_and_count_dropped({"a": [b"3\n"]}, [], b"")
    assert (spool.lookups_with_messages, spool.read_marks()) == (["b"], [])
    spool._database = full_disk._database
    spool.append_and_count_dropped({"a": [b"3\n"]}, [], b"")
    spool.close()
    assert (tmp_path / "spool.db-reserve").exists()
    monkeypatch.setattr(sqlite3, "connect", lambda *_, **options: FullDiskOnOpen(tmp_path / "spool.db", **options))
    spool = open_spool(tmp_path)
    assert (spool.waiting.messages, (tmp_path / "spool.db-reserve").exists()) == (2, True)
    spool.close()


def test_another_program_cannot_take_the_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages that find no room release no reserve, whose space another program could take; removing returns it."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n"]}, [], b"")
    full_disk: Any = FullDisk(spool._database, tmp_path)
    spool._database = full_disk
    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", raise_disk_full)
        with pytest.raises(sqlite3.OperationalError, match="full"):
            spool.append_and_count_dropped({"a": [b"2\n"]}, [], b"")
    spool.remove_batch(read_batch(spool, "a"))
    assert (spool.waiting.messages, (tmp_path / "spool.db-reserve").exists()) == (0, True)
    spool.close()


@pytest.mark.parametrize("code", [sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_WRITE, sqlite3.SQLITE_IOERR_FSYNC])
def test_a_removal_takes_its_reserve_back(tmp_path: Path, code: int) -> None:
    """After a removal from a full disk or at an exceeded quota, the space is reserved again at once."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({}, [], b"mark")
    full_disk: Any = FullDisk(spool._database, tmp_path, code)
    spool._database = full_disk
    spool.clear_marks()
    assert (spool.read_marks(), (tmp_path / "spool.db-reserve").exists()) == ([], True)
    spool.close()


def test_removed_messages_make_room_without_a_reserve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a reserve, the file shrinks before space is reserved, in small steps if the disk has little room."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"x" * 100_000]}, [], b"")
    spool.remove_batch(read_batch(spool, "a"))
    (tmp_path / "spool.db-reserve").unlink()
    disk: Any = FullDiskWithFreePages(spool._database, tmp_path)
    spool._database = disk
    monkeypatch.setattr(os, "posix_fallocate", disk.allocate)
    spool.append_and_count_dropped({"a": [b"2\n"]}, [], b"")
    assert spool.waiting.messages == 1
    spool.close()


def test_a_spool_behind_a_symbolic_link_stores_messages(tmp_path: Path) -> None:
    """If the path is a symbolic link to a file, messages are stored, and space is reserved on the disk of that file."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "spool.db").symlink_to(tmp_path / "disk" / "target.db")
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n"]}, [], b"")
    assert (spool.waiting.messages, (tmp_path / "disk" / "target.db-reserve").exists()) == (1, True)
    (tmp_path / "disk" / "target.db-wal").unlink()
    spool.append_and_count_dropped({"a": [b"2\n"]}, [], b"")
    spool.close()


def test_a_sparse_reserve_is_replaced_after_a_start(tmp_path: Path) -> None:
    """A reserve that was restored as a sparse file is created again before messages are stored."""
    reserve = tmp_path / "spool.db-reserve"
    reserve.touch()
    os.truncate(reserve, RESERVED_BYTES)
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n"]}, [], b"")
    assert reserve.stat().st_blocks * 512 >= RESERVED_BYTES
    spool.close()


def test_a_disk_that_is_full_of_removed_messages_stores_new_ones(tmp_path: Path) -> None:
    """If the disk is full, but only of the log and of removed messages, new messages are stored after its reserve."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n"]}, [], b"")
    disk: Any = DiskFilledByLog(spool._database, tmp_path)
    spool._database = disk
    spool.append_and_count_dropped({"a": [b"2\n"]}, [], b"")
    assert (spool.waiting.messages, (tmp_path / "spool.db-reserve").exists()) == (2, True)
    spool.close()


@pytest.mark.parametrize("max_bytes", [6, 2**30], ids=["full spool", "full disk"])
def test_a_failing_commit_never_hides_the_waiting_messages(tmp_path: Path, max_bytes: int) -> None:
    """While messages cannot be stored, the counters still contain the messages that wait, so that they are sent."""
    spool = open_spool(tmp_path, max_bytes=max_bytes)
    spool.append_and_count_dropped({"a": [b"1\n", b"2\n"], "b": [b"3\n"]}, [], b"")
    (pages,) = spool._database.execute("PRAGMA page_count").fetchone()
    spool._database.execute(f"PRAGMA max_page_count = {pages}")
    seen = []

    def record_counters() -> None:
        seen.append((set(spool.lookups_with_messages), spool.waiting.messages >= 3))

    # SQLite calls the function after each step of its virtual machine, as another thread can read between the steps.
    spool._database.set_progress_handler(record_counters, 1)
    with pytest.raises((SpoolFullError, sqlite3.OperationalError), match="full"):
        spool.append_and_count_dropped({"a": [b"x" * 100_000]}, [], b"")
    record_counters()
    assert [each for each in seen if each != ({"a", "b"}, True)] == []
    spool.close()


def test_rejected_messages_are_stored_separately(tmp_path: Path) -> None:
    """Messages that the service rejects are stored separately, with the reason."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped(
        {"a": [b"1\n", b"2\n"]}, [RejectedMessage("t/1", None, "not_json", "No.", b"\xff")], b""
    )
    spool.append_and_count_dropped({"a": [b"3\n"]}, [], b"")
    batch = read_batch(spool, "a")
    spool.append_and_count_dropped({"a": [b"4\n"]}, [], b"")
    spool.reject_messages(batch, [b"1\n", b"3\n"], [RejectedMessage("", "a", "service", "Why.", b"2\n")])
    assert b"".join(read_batch(spool, "a").blocks) == b"1\n3\n4\n"
    assert [each for _, each in spool.list_newest_rejected(9)] == [
        RejectedMessage("", "a", "service", "Why.", b"2\n"),
        RejectedMessage("t/1", None, "not_json", "No.", b"\xff"),
    ]
    spool.close()


def test_a_batch_can_be_smaller_than_a_block(tmp_path: Path) -> None:
    """A batch of limited size takes the first messages of a block; the others stay in the spool in their order."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n", b"22\n", b"3\n", b"4444\n", b"5\n"]}, [], b"")
    spool.append_and_count_dropped({"a": [b"6\n"], "b": [b"7\n"]}, [], b"")
    taken = []
    while (batch := spool.find_next_batch("a", 5)) is not None:
        assert batch.size == sum(map(len, batch.lines))
        taken.append((batch.lines, batch.messages))
        spool.remove_batch(batch)
    assert taken == [([b"1\n", b"22\n"], 2), ([b"3\n"], 1), ([b"4444\n"], 1), ([b"5\n", b"6\n"], 2)]
    assert (spool.lookups_with_messages, spool.waiting.messages, spool.waiting.bytes) == (["b"], 1, 2)
    spool.close()


def test_rejecting_messages_of_a_smaller_batch_keeps_the_rest_of_its_block(tmp_path: Path) -> None:
    """If a message of a batch is rejected that ends within a block, the rest of the block stays in its order."""
    spool = open_spool(tmp_path)
    spool.append_and_count_dropped({"a": [b"1\n", b"2\n", b"3\n", b"4\n"]}, [], b"")
    batch = spool.find_next_batch("a", 4)
    assert batch is not None
    spool.reject_messages(batch, [b"2\n"], [RejectedMessage("", "a", "service", "Why.", b"1\n")])
    assert read_batch(spool, "a").lines == [b"2\n", b"3\n", b"4\n"]
    spool.close()


@pytest.mark.parametrize("is_rejected", [False, True])
def test_messages_that_were_deleted_to_make_room_do_not_return(tmp_path: Path, *, is_rejected: bool) -> None:
    """If a block is deleted to make room while a part of it is sent, its other messages are not stored again."""
    spool = open_spool(tmp_path, max_bytes=10, when_full=DROP_OLDEST)
    spool.append_and_count_dropped({"a": [b"1\n", b"2\n", b"3\n", b"4\n"]}, [], b"")
    batch = spool.find_next_batch("a", 4)
    assert batch is not None
    assert spool.append_and_count_dropped({"a": [b"5\n"] * 5}, [], b"") == 4
    if is_rejected:
        spool.reject_messages(batch, [b"2\n"], [RejectedMessage("", "a", "service", "Why.", b"1\n")])
    else:
        spool.remove_batch(batch)
    assert (read_batch(spool, "a").lines, spool.waiting.bytes) == ([b"5\n"] * 5, 10)
    spool.close()


def test_rejected_messages_use_at_most_a_quarter_of_the_spool(tmp_path: Path) -> None:
    """Rejected messages use at most a quarter of the spool's size; the oldest of them are deleted and counted.

    Deletions that are rolled back do not count.
    """
    spool = open_spool(tmp_path)
    for number in range(10):
        spool.append_and_count_dropped({}, [RejectedMessage(str(number), None, "r", "d", b"x" * 100_000)], b"")
    assert [each.address for _, each in spool.list_newest_rejected(99)] == ["9", "8"]
    assert spool.deleted_rejected_messages == 8
    (pages,) = spool._database.execute("PRAGMA page_count").fetchone()
    spool._database.execute(f"PRAGMA max_page_count = {pages + 30}")
    with pytest.raises(sqlite3.OperationalError, match="full"):
        spool.append_and_count_dropped({}, [RejectedMessage("t", None, "r", "d", b"x" * 100_000)], b"mark" * 100_000)
    assert (spool.deleted_rejected_messages, spool.rejected_bytes) == (8, 200_000)
    spool.close()


def test_the_spool_file_shrinks_after_an_outage(tmp_path: Path) -> None:
    """After the messages of an outage have been sent, the spool file becomes smaller again."""
    spool = open_spool(tmp_path, max_bytes=2**30)
    for _ in range(30):
        spool.append_and_count_dropped({"a": [b"x" * 2**20]}, [], b"")
    while (batch := spool.find_next_batch("a")) is not None:
        spool.remove_batch(batch)
    (pages,) = spool._database.execute("PRAGMA page_count").fetchone()
    spool.close()
    assert pages < 4_000
