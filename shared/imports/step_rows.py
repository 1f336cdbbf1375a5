"""Rows of one import step (a range of the uploaded file): the messages, and the CSV file of rejected rows."""

import csv
import hashlib
import io
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import pyarrow as pa

from shared.imports.row_mapping import ImportedMessage
from shared.telemetry.message_parser import MAX_MESSAGE_BYTES
from shared.text_formats.csv_cells import escape_csv_formula
from shared.timestamps import to_unix_microseconds

SCHEMA = pa.schema(
    [
        ("number", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("device_id", pa.string()),
        ("message_id", pa.string()),
        ("payload", pa.string()),
    ]
)
"""Columns of messages; ``number`` is the number of the row in the file, from 1."""


MAX_ROW_BYTES: Final = 2 * MAX_MESSAGE_BYTES
"""Maximum size of a row of a text file, as UTF-8; escapes, and columns that are not used, can exceed the message."""
MAX_STEP_MESSAGE_BYTES: Final = 64 * 1024**2
"""Size of the payloads of a step after which it ends; each payload repeats the names of the file's columns."""
ROW_TOO_LONG: Final = f"The row has more than {MAX_ROW_BYTES:,} bytes."


MAX_RECORD_CHARACTERS: Final = 4_096
"""Maximum number of characters of a rejected row's text; the rest is cut off."""


class RejectedRow(NamedTuple):
    """Row of an imported file that is not a valid message.

    Attributes:
        number: number of the row in the file, from 1.
        reason: the rule that the row breaks, a sentence for the caller.
        record: text of the row, up to ``MAX_RECORD_CHARACTERS``.
    """

    number: int
    reason: str
    record: str


@dataclass(frozen=True, slots=True)
class StepRows:
    """Rows of an import step, converted to messages or rejected.

    Attributes:
        next_position: position in the file at which the next step starts.
        rows: number of rows that were read.
        messages: valid messages with the columns :data:`SCHEMA`, in any order.
        rejected: rows that are not valid messages.
    """

    next_position: int
    rows: int
    messages: pa.Table
    rejected: Sequence[RejectedRow]


@dataclass(slots=True)
class RowCollector:
    """Collects the converted and the rejected rows of one import step.

    Attributes:
        number: number of the current row in the file.
        numbers: numbers of the rows with messages.
        messages: messages that were added.
        rejected: rows that are not valid messages.
        message_bytes: size of the payloads of the messages.
    """

    number: int
    numbers: list[int] = field(default_factory=list)
    messages: list[ImportedMessage] = field(default_factory=list)
    rejected: list[RejectedRow] = field(default_factory=list)
    message_bytes: int = 0

    @property
    def is_full(self) -> bool:
        """True if the messages are so large that the step must end."""
        return self.message_bytes >= MAX_STEP_MESSAGE_BYTES

    def add_message(self, message: ImportedMessage) -> None:
        """Add the telemetry message to which the current row was converted."""
        self.numbers.append(self.number)
        self.messages.append(message)
        self.message_bytes += len(message.payload)

    def reject_row(self, reason: str, record_text: str) -> None:
        """Add the current row to the rejected rows, with the reason and the start of its text."""
        self.rejected.append(RejectedRow(self.number, reason, record_text[:MAX_RECORD_CHARACTERS]))

    def reject_next_row_as_too_long(self, row_start: bytes) -> None:
        """Make the next row the current one, and reject it as too long.

        Args:
            row_start: start of the row's text in UTF-8.
        """
        self.number += 1
        self.reject_row(ROW_TOO_LONG, row_start[:MAX_ROW_BYTES].decode(errors="replace"))

    def build_message_table(self) -> pa.Table:
        """Return the added messages as a table with the columns :data:`SCHEMA`."""
        return pa.Table.from_arrays(
            [
                pa.array(self.numbers, pa.int64()),
                pa.array([to_unix_microseconds(each.timestamp) for each in self.messages], pa.int64()).view(
                    SCHEMA.field("timestamp").type
                ),
                pa.array([each.device_id for each in self.messages], pa.string()),
                pa.array([each.message_id for each in self.messages], pa.string()),
                pa.array([each.payload.decode() for each in self.messages], pa.string()),
            ],
            schema=SCHEMA,
        )


class StepReader(Protocol):
    """Reads an uploaded file in steps of a limited number of rows. The methods block; call them in a worker thread."""

    @property
    def columns(self) -> Sequence[str]:
        """Names of the file's columns; for NDJSON, names of the properties in the rows read with ``max_rows``."""
        ...

    @property
    def end_position(self) -> int:
        """Position of the end of the file; the ``next_position`` of the last step is at most this."""
        ...

    def read_step(self, position: int, first_row_number: int, max_rows: int | None = None) -> StepRows | None:
        """Read the step that starts at a position, and convert its rows; return None at the end of the file.

        Args:
            position: position in the file at which the step starts: 0, or the ``next_position`` of the previous step.
            first_row_number: number of the step's first row in the file, from 1.
            max_rows: maximum number of rows; None for the usual size of a step. With a maximum, the step does not
                search for the end of a row that is too long: the ``next_position`` is the start of this row.

        Raises:
            FileRejectedError: the file cannot be imported.
            WorkspaceError: UNAVAILABLE ``BLOB_STORE_UNAVAILABLE``.
        """
        ...


class RangeSource(Protocol):
    """Uploaded file whose byte ranges a worker thread can read."""

    @property
    def size(self) -> int:
        """Size of the uploaded file in bytes."""
        ...

    def read(self, start: int, size: int) -> bytes:
        """Return ``size`` bytes from the byte position ``start`` on; fewer at the end of the file."""
        ...


MAX_LISTED: Final = 100_000
"""Maximum number of rows in the file of rejected rows; further rejected rows are only counted."""
_HEADER: Final = b"row,reason,record\r\n"


def format_rejected_rows_as_csv(rows: Iterable[RejectedRow]) -> bytes:
    """Format rejected rows as CSV lines, without a header line."""
    target = io.StringIO(newline="")
    writer = csv.writer(target)
    for row in rows:
        writer.writerow((row.number, escape_csv_formula(row.reason), escape_csv_formula(row.record)))
    return target.getvalue().encode("utf-8", "replace")


def create_rejected_rows_file(path: Path) -> None:
    """Create the file of rejected rows with its header line."""
    path.write_bytes(_HEADER)


def append_rejected_rows(part_path: Path, target_path: Path) -> None:
    """Append a file with the CSV lines of a step to the file of rejected rows.

    The lines are copied from file to file, because the rejected rows of all steps can be larger than the memory.
    """
    with part_path.open("rb") as lines, target_path.open("ab") as file:
        shutil.copyfileobj(lines, file)


class FileMeasures(NamedTuple):
    """Size of a file in bytes, and its SHA-256 as hexadecimal digits."""

    size: int
    sha256: str


def measure_file(path: Path) -> FileMeasures:
    """Return the size and the SHA-256 of a file."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return FileMeasures(file.tell(), digest)
