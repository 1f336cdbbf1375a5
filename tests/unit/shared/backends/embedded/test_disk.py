"""Tests of returning free space of SQLite files to the disk."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path

import pytest

from shared.backends.embedded.disk import (
    STEP_PAGES,
    convert_small_file_to_incremental_vacuum,
    enable_incremental_vacuum,
    release_free_pages,
)

ROWS = 3_000


@pytest.fixture
def database_path(tmp_path: Path) -> Path:
    """Return the path of a SQLite file that does not exist yet."""
    return tmp_path / "a.sqlite"


def insert_and_delete_rows(connection: sqlite3.Connection) -> None:
    """Insert rows of about one page each, and delete all of them."""
    connection.execute("CREATE TABLE t (b BLOB)")
    connection.executemany("INSERT INTO t VALUES (?)", [(b"x" * 3_500,)] * ROWS)
    connection.commit()
    connection.execute("DELETE FROM t")
    connection.commit()


def count_pages(connection: sqlite3.Connection) -> int:
    """Return the number of pages of a file."""
    (count,) = connection.execute("PRAGMA page_count").fetchone()
    return int(count)


@pytest.fixture
def connection(database_path: Path) -> Iterator[sqlite3.Connection]:
    """Return a connection to a new file whose free space can be returned."""
    with closing(sqlite3.connect(database_path)) as opened:
        enable_incremental_vacuum(opened)
        insert_and_delete_rows(opened)
        yield opened


def test_free_space_is_returned_to_the_disk_in_steps(connection: sqlite3.Connection) -> None:
    """Free space is returned in steps, between which other connections can write; a quarter of the file stays free."""
    steps: list[int] = []

    def run(step: object) -> None:
        step()  # type: ignore[operator]
        connection.commit()
        steps.append(count_pages(connection))

    assert count_pages(connection) >= ROWS
    release_free_pages(connection, run)
    assert len(steps) >= ROWS // STEP_PAGES
    assert all(earlier - later <= STEP_PAGES + 8 for earlier, later in pairwise(steps))
    assert count_pages(connection) < 10


def test_a_file_of_an_earlier_version_is_converted(database_path: Path) -> None:
    """A file of an earlier version is converted, so that its free pages can be returned to the disk."""
    with closing(sqlite3.connect(database_path)) as opened:
        insert_and_delete_rows(opened)
        release_free_pages(opened, lambda step: step())
        assert count_pages(opened) >= ROWS
        convert_small_file_to_incremental_vacuum(opened)
        assert count_pages(opened) < ROWS
        assert opened.execute("PRAGMA auto_vacuum").fetchone() == (2,)
