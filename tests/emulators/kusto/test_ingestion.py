"""Tests of the command ``.ingest into table`` with the official client."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from azure.kusto.data import KustoClient, KustoConnectionStringBuilder
from azure.kusto.data.exceptions import KustoServiceError

from emulators.kusto.errors import QueryError
from emulators.kusto.ingestion import parse_ingest_command
from shared.backends.azure.kusto import build_ingest_command
from tests.emulators.kusto.endpoints import Endpoint, end_process, start_emulator


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a file of two rows and a file that the emulator must not read."""
    folder = tmp_path_factory.mktemp("ingestion")
    (folder / "files" / "job's").mkdir(parents=True)
    rows = pa.table(
        {
            "Timestamp": pa.array([datetime(2026, 1, 5, 10, tzinfo=UTC)] * 2, pa.timestamp("us", "UTC")),
            "ConnectionLookup": ["pump"] * 2,
            "SurfaceLookups": ['["hall"]'] * 2,
            "DeviceId": ["d1", "d2"],
            "MessageId": ["m1", "m2"],
            "Payload": ['{"x":1.5}', "{}"],
        }
    )
    pq.write_table(rows, folder / "files" / "job's" / "rows.parquet")
    pq.write_table(rows, folder / "outside.parquet")
    (folder / "files" / "broken.parquet").write_bytes(b"PAR1")
    return folder


@pytest.fixture(scope="module")
def endpoint(folder: Path) -> Iterator[Endpoint]:
    """Return a running emulator that may read the files."""
    running = start_emulator(
        folder / "log",
        *("--data", str(folder / "data"), "--hub", str(folder / "hub.sqlite"), "--files", str(folder / "files")),
    )
    yield running
    end_process(running.process)


def execute_ingest_command(endpoint: Endpoint, command: str) -> None:
    """Execute a management command of the emulator."""
    with KustoClient(KustoConnectionStringBuilder.with_no_authentication(endpoint.url)) as client:
        client.execute_mgmt("Telemetry", command)


def test_a_file_is_ingested_once_for_each_tag(endpoint: Endpoint, folder: Path) -> None:
    """Repeating ``.ingest`` with the same tag adds no rows; with another tag, the rows are added again."""
    file = str(folder / "files" / "job's" / "rows.parquet")
    for tag, rows in (("a-1", 2), ("a-1", 2), ("a-2", 4)):
        execute_ingest_command(endpoint, build_ingest_command(file, tag))
        assert endpoint.query_rows("Telemetry | count") == [[rows]]
    assert endpoint.query_rows("Telemetry | where DeviceId == 'd1' | distinct Timestamp, toreal(Payload.x)") == [
        ["2026-01-05T10:00:00.000000Z", 1.5]
    ]


@pytest.mark.parametrize(
    "command",
    [
        ".drop table Telemetry",
        ".ingest into table Other (h@'{inside}') with (format='parquet', tags='[]', ingestIfNotExists='[]')",
        build_ingest_command("{outside}", "t"),
        build_ingest_command("{inside}/../../outside.parquet", "t"),
        build_ingest_command("{inside}/broken.parquet", "t"),
        build_ingest_command("{inside}/none.parquet", "t"),
        ".ingest into table TelemetryRaw (h@'{inside}/job''s/rows.parquet') with (format='csv')",
        build_ingest_command("{inside}/job's/rows.parquet", "t").replace("ingest-by:", ""),
    ],
)
def test_commands_other_than_ingest_and_unreadable_files_are_rejected(
    endpoint: Endpoint, folder: Path, command: str
) -> None:
    """Commands other than `.ingest`, invalid options, and files that are broken or outside the folder are rejected."""
    before = endpoint.query_rows("Telemetry | count")
    text = command.replace("{inside}", str(folder / "files")).replace("{outside}", str(folder / "outside.parquet"))
    with pytest.raises(KustoServiceError):
        execute_ingest_command(endpoint, text)
    assert endpoint.query_rows("Telemetry | count") == before


@pytest.mark.parametrize(
    "text", ["5", "[]", "[1]", '["ingest-by:t", "u"]', '"t"', '{"t": 1}', "null", "t", "[" * 10_000]
)
@pytest.mark.parametrize("name", ["tags", "ingestIfNotExists"])
def test_the_tags_of_an_ingest_command_must_be_arrays_of_one_string(name: str, text: str) -> None:
    """``tags`` and ``ingestIfNotExists`` must each be a JSON array with one string; the error names the property."""
    properties = {"format": "parquet", "tags": '["ingest-by:t"]', "ingestIfNotExists": '["t"]', name: text}
    listed = ", ".join(f"{key}='{value}'" for key, value in properties.items())
    with pytest.raises(QueryError, match=f"property {name} .* must be a JSON array with one string") as raised:
        parse_ingest_command(f".ingest into table TelemetryRaw (h@'/x.parquet') with ({listed})")
    assert raised.value.status == 400
