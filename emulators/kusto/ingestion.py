"""The command ``.ingest into table``, for Parquet files in one folder.

In Data Explorer the command reads a blob; this emulator, like Microsoft's, reads a local file. If an earlier command
already had the tag in ``ingestIfNotExists``, and its rows have not expired, the file is not ingested again.
"""

import json
import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import duckdb
import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from emulators.kusto.errors import QueryError, bad_request_error, not_read_only_error
from emulators.kusto.sandbox import abort_process
from emulators.kusto.store import TelemetryStore

_COMMAND = re.compile(
    r"\s*+\.ingest\s++into\s++table\s++TelemetryRaw\s*+\(\s*+h?@'(?P<path>(?:[^']|'')++)'\s*+\)"
    r"\s*+with\s*+\((?P<properties>(?:[^'()]|'(?:[^'\\]|\\.)*+')*+)\)\s*+",
    re.DOTALL,
)
_PROPERTY = re.compile(r"\s*+(\w++)\s*+=\s*+'((?:[^'\\]|\\.)*+)'\s*+(?:,|\Z)")
_BATCH_ROWS = 65_536
_REPEATING = ["ConnectionLookup", "SurfaceLookups", "DeviceId"]
_TAG_PREFIX = "ingest-by:"
_REPLY_COLUMNS = (("ExtentId", "Guid"), ("ItemLoaded", "String"), ("Duration", "String"), ("HasErrors", "SByte"))


@dataclass(frozen=True, slots=True)
class IngestCommand:
    """Parsed command ``.ingest``, which inserts the rows of a file.

    Attributes:
        path: path of the Parquet file.
        tag: text that identifies the rows; a second command with the same tag inserts nothing.
    """

    path: Path
    tag: str


class FileIngestion:
    """Executes ``.ingest`` commands, which insert the rows of a file into the table ``Telemetry``.

    Args:
        connection: connection to the database that queries read; each command opens its own cursor.
        folder: folder that may contain the files; files outside of this folder are rejected.
    """

    def __init__(self, connection: duckdb.DuckDBPyConnection, folder: Path) -> None:
        self._connection = connection
        self._folder = folder.resolve()
        self._lock = threading.Lock()
        self._running = 0

    @property
    def is_running(self) -> bool:
        """True while a command inserts rows, which takes memory."""
        return self._running > 0

    def execute_ingest_command(self, command_text: str) -> bytes:
        """Execute an ``.ingest`` command and return the reply; blocks until the rows are stored.

        Raises:
            QueryError: the command is not supported, or the file cannot be ingested.
        """
        command = parse_ingest_command(command_text)
        path = command.path.resolve()
        if self._folder not in path.parents:
            raise bad_request_error("the file is not in the folder that .ingest commands may read")
        cursor = self._connection.cursor()
        self._change_running_count(1)
        try:
            self._ingest_file(cursor, path, command.tag)
        except duckdb.FatalException as error:
            abort_process(error)
        except (OSError, pa.ArrowException, duckdb.Error) as error:
            raise _to_ingestion_error(error) from error
        finally:
            cursor.close()
            self._change_running_count(-1)
        return render_ingest_reply(str(path))

    def _change_running_count(self, change: int) -> None:
        with self._lock:
            self._running += change

    def _ingest_file(self, cursor: duckdb.DuckDBPyConnection, path: Path, tag: str) -> None:
        # Values of these columns repeat in most rows; without copies of them, the insertion takes a sixth less time.
        with pq.ParquetFile(path, read_dictionary=_REPEATING) as file:
            rows = pa.RecordBatchReader.from_batches(file.schema_arrow, file.iter_batches(_BATCH_ROWS))
            TelemetryStore(cursor).try_ingest_file_rows(tag, rows, datetime.now(UTC).replace(tzinfo=None))


def parse_ingest_command(command_text: str) -> IngestCommand:
    """Parse an ``.ingest`` command.

    Raises:
        QueryError: the text is not an ``.ingest`` command, or it lacks a required property or has an unsupported one.
    """
    found = _COMMAND.fullmatch(command_text)
    if found is None:
        raise not_read_only_error()
    properties = _parse_properties(found["properties"])
    if properties.keys() != {"format", "tags", "ingestIfNotExists"} or properties["format"] != "parquet":
        raise bad_request_error(
            "the .ingest command must have the properties format='parquet', tags and ingestIfNotExists, and no others"
        )
    tag, condition = (_parse_only_string_in_array(properties, name) for name in ("tags", "ingestIfNotExists"))
    if tag != _TAG_PREFIX + condition:
        raise bad_request_error("the tag must be 'ingest-by:' followed by the value of ingestIfNotExists")
    return IngestCommand(Path(found["path"].replace("''", "'")), condition)


def _parse_only_string_in_array(properties: Mapping[str, str], property_name: str) -> str:
    try:
        array = json.loads(properties[property_name])
    except (ValueError, RecursionError):
        array = None
    match array:
        case [str() as text]:
            return text
    raise bad_request_error(f"property {property_name} of the .ingest command must be a JSON array with one string")


def _parse_properties(properties_text: str) -> dict[str, str]:
    properties: dict[str, str] = {}
    position = 0
    while position < len(properties_text.rstrip()):
        found = _PROPERTY.match(properties_text, position)
        if found is None:
            raise bad_request_error("each property of the command must be a string in single quotes")
        properties[found[1]] = re.sub(r"\\(.)", r"\1", found[2])
        position = found.end()
    return properties


def render_ingest_reply(file_path: str) -> bytes:
    """Render the reply to an ``.ingest`` command for the file ``file_path``, in the format of REST API version 1."""
    columns = [{"ColumnName": name, "DataType": kind, "ColumnType": kind.lower()} for name, kind in _REPLY_COLUMNS]
    row: list[Any] = ["00000000-0000-0000-0000-000000000000", file_path, "00:00:00", 0]
    return orjson.dumps({"Tables": [{"TableName": "Table_0", "Columns": columns, "Rows": [row]}]})


def _to_ingestion_error(error: Exception) -> QueryError:
    return QueryError(
        status=400,
        code="BadRequest_IngestionFailed",
        type_name="KustoBadRequestException",
        message=f"The file cannot be ingested: {str(error).partition(chr(10))[0][:300]}",
    )
