"""Tests of the file with the rejected rows of an import."""

import csv
import hashlib
import tracemalloc
from collections.abc import Iterable
from pathlib import Path

from shared.imports.step_rows import (
    MAX_RECORD_CHARACTERS,
    RejectedRow,
    RowCollector,
    append_rejected_rows,
    create_rejected_rows_file,
    format_rejected_rows_as_csv,
    measure_file,
)


def write_rejected_rows_file(folder: Path, parts: Iterable[bytes]) -> Path:
    """Write the file of rejected rows from the CSV lines of several steps; return its path."""
    part_path, path = folder / "part.csv", folder / "rejected.csv"
    create_rejected_rows_file(path)
    for part in parts:
        part_path.write_bytes(part)
        append_rejected_rows(part_path, path)
    return path


def test_rejected_rows_are_listed_with_reasons(tmp_path: Path) -> None:
    """Each rejected row has number, reason and text; formulas are escaped, and long text is cut."""
    collector = RowCollector(2)
    collector.reject_row('no "time"', "=cmd()")
    collector.number = 7
    collector.reject_row("too long", "x" * (MAX_RECORD_CHARACTERS + 1))
    path = write_rejected_rows_file(tmp_path, [format_rejected_rows_as_csv([row]) for row in collector.rejected])
    content = path.read_bytes()
    assert measure_file(path) == (len(content), hashlib.sha256(content).hexdigest())
    header, first, second = csv.reader(content.decode().splitlines())
    assert header == ["row", "reason", "record"]
    assert first == ["2", 'no "time"', "'=cmd()"]
    assert second == ["7", "too long", "x" * MAX_RECORD_CHARACTERS]


def test_the_file_of_rejected_rows_is_larger_than_the_memory_to_write_it(tmp_path: Path) -> None:
    """The file of rejected rows is written and measured part by part, because it can have gigabytes."""
    part = format_rejected_rows_as_csv([RejectedRow(1, "too long", "x" * MAX_RECORD_CHARACTERS)] * 100)
    tracemalloc.start()
    try:
        path = write_rejected_rows_file(tmp_path, [part] * 40)
        size, _ = measure_file(path)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size > 40 * 100 * MAX_RECORD_CHARACTERS
    assert most < size / 10
