"""Tests of the file with the rejected rows of an import."""

import csv
import hashlib
from pathlib import Path

from shared.imports.step_rows import MAX_RECORD_CHARACTERS, RejectedRow, format_rejected_rows, write_rejected_rows_file


def test_rejected_rows_are_listed_with_reasons(tmp_path: Path) -> None:
    """Each rejected row has number, reason and text; formulas are escaped, and long text is cut."""
    parts = [
        format_rejected_rows([RejectedRow(2, 'no "time"', "=cmd()")]),
        format_rejected_rows([RejectedRow(7, "too long", "x" * (MAX_RECORD_CHARACTERS + 1))]),
    ]
    path = tmp_path / "rejected.csv"
    size, digest = write_rejected_rows_file(parts, path)
    content = path.read_bytes()
    assert (size, digest) == (len(content), hashlib.sha256(content).hexdigest())
    header, first, second = csv.reader(content.decode().splitlines())
    assert header == ["row", "reason", "record"]
    assert first == ["2", 'no "time"', "'=cmd()"]
    assert second == ["7", "too long", "x" * MAX_RECORD_CHARACTERS]
