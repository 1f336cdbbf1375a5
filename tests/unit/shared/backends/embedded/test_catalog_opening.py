"""Tests that many processes can open a new SQLite file at once."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

from shared.backends.embedded.catalog import SCHEMA
from shared.backends.embedded.sqlite import connect

OPENERS = 6
ROUNDS = 40


def test_concurrent_processes_open_a_new_catalog_file(tmp_path: Path) -> None:
    """A process that opens a file while another creates it waits, and then finds tables and WAL mode."""

    def open_after_barrier(path: Path, barrier: Barrier) -> tuple[str, int]:
        barrier.wait()
        connection = connect(path)
        connection.executescript(SCHEMA)
        mode = connection.execute("PRAGMA journal_mode").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name LIKE 'catalog_%'").fetchone()[0]
        connection.close()
        return mode, tables

    with ThreadPoolExecutor(OPENERS) as pool:
        for number in range(ROUNDS):
            barrier = Barrier(OPENERS)
            found = pool.map(lambda _: open_after_barrier(tmp_path / f"{number}.sqlite", barrier), range(OPENERS))  # noqa: B023  used within the round
            assert set(found) == {("wal", 3)}
