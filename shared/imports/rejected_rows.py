"""CSV file of the rejected rows of an import, with the number, the reason and the text of each row."""

import csv
import hashlib
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from shared.imports.step_rows import RejectedRow
from shared.text_formats.csv_cells import escape_formula

MAX_LISTED: Final = 100_000
"""Maximum number of rows in the file of rejected rows; further rejected rows are only counted."""
MAX_RECORD_CHARACTERS: Final = 4_096
"""Maximum number of characters of a row's text in the file; the rest is cut off."""
_HEADER: Final = b"row,reason,record\r\n"


def format_rejected_rows(rows: Iterable[RejectedRow]) -> bytes:
    """Format rejected rows as CSV lines of the file, without the header."""
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    for row in rows:
        writer.writerow((row.number, escape_formula(row.reason), escape_formula(row.record[:MAX_RECORD_CHARACTERS])))
    return target.getvalue().encode("utf-8", "replace")


def join_rejected_rows(parts: Sequence[bytes], path: Path) -> tuple[int, str]:
    """Join CSV lines to the file of rejected rows; return its size in bytes and its SHA-256 in hexadecimal digits."""
    content = b"".join((_HEADER, *parts))
    path.write_bytes(content)
    return len(content), hashlib.sha256(content).hexdigest()
