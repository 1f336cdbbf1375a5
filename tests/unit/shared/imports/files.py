"""Uploaded files in memory, and mappers for their rows."""

from datetime import UTC, datetime, timedelta
from typing import Any

from shared.catalog.models import Connection, TelemetryPolicy
from shared.downloads.import_request import ImportFormat, ImportMapping
from shared.imports.csv_reader import CsvReader
from shared.imports.row_mapping import RowMapper
from shared.imports.step_rows import StepReader, StepRows

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)


class MemorySource:
    """RangeSource implementation over bytes in memory."""

    def __init__(self, content: bytes) -> None:
        self.content = content

    @property
    def size(self) -> int:
        """Size in bytes."""
        return len(self.content)

    def read(self, start: int, size: int) -> bytes:
        """Return a range of the bytes."""
        return self.content[start : start + size]


def build_row_mapper(file_format: ImportFormat = ImportFormat.CSV, **mapping: Any) -> RowMapper:
    """Return a row mapper for the connection ``pump``; by default, the times are in the column ``time``."""
    connection = Connection.model_validate(
        {"lookup": "pump", "name": "Pump", "type": "CLOUD_EVENT_HUB", "source": {"devices": ["d*"]}}
    )
    policy = TelemetryPolicy.model_validate({"requireDeclaredDevices": mapping.pop("declared", False)})
    values = ImportMapping(**{"timestamp": "time", **mapping})
    return RowMapper(connection, file_format, values, policy, NOW + timedelta(seconds=300))


def open_csv(content: bytes, **mapping: Any) -> CsvReader:
    """Return a reader of a CSV file with the given content."""
    return CsvReader(MemorySource(content), build_row_mapper(**mapping))


def read_all_steps(reader: StepReader) -> list[StepRows]:
    """Return the results of all steps of reading a file."""
    steps: list[StepRows] = []
    position, row = 0, 1
    while (step := reader.read_step(position, row)) is not None:
        steps.append(step)
        position, row = step.next_position, row + step.rows
    return steps


def list_messages(reader: StepReader) -> list[dict[str, Any]]:
    """Return all messages of a file."""
    return [message for step in read_all_steps(reader) for message in step.messages.to_pylist()]


def list_rejected_rows(reader: StepReader) -> list[tuple[int, str]]:
    """Return the numbers and reasons of the rejected rows of a file."""
    return [(each.number, each.reason) for step in read_all_steps(reader) for each in step.rejected]
