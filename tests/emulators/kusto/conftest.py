"""Fixtures: an emulator with a small folder of Parquet files, for tests that do not change the data."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.emulators.kusto.endpoints import Endpoint, end_process, start_emulator

START = datetime(2026, 1, 1)  # noqa: DTZ001  Parquet stores instants without a zone
ROWS = 2000


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with Parquet files for the tables Telemetry and Devices."""
    path = tmp_path_factory.mktemp("parquet")
    index = range(ROWS)
    payloads = [f'{{"temp": {20 + i % 10}.5, "motor": {{"rpm": {1000 + i}}}, "tags": ["t{i % 3}"]}}' for i in index]
    telemetry = {
        "Timestamp": pa.array([START + timedelta(minutes=i) for i in index], pa.timestamp("us")),
        "DeviceId": [f"dev-{i % 20:02d}" for i in index],
        "Number": pa.array(index, pa.int64()),
        "Value": pa.array([None if i % 100 == 0 else i / 4 for i in index], pa.float64()),
        "Running": [i % 2 == 0 for i in index],
        "Payload": payloads,
        "Note": ["{not json" if i == ROWS - 1 else "{}" for i in index],
    }
    pq.write_table(pa.table(telemetry), path / "Telemetry.parquet")
    devices = {"DeviceId": [f"dev-{i:02d}" for i in range(5)], "Model": ["A", "B", "A", "B", "A"]}
    pq.write_table(pa.table(devices), path / "Devices.parquet")
    (path / "secret.txt").write_text("hidden")
    return path


@pytest.fixture(scope="module")
def endpoint(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Return an emulator over the folder for the tests of one module."""
    running = start_emulator(
        tmp_path_factory.mktemp("log") / "stderr", "--data", str(folder), "--memory-limit", "500MB"
    )
    yield running
    assert end_process(running.process) == 0, running.read_log()


@pytest.fixture(scope="session")
def shared_endpoint(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """Return one emulator that all modules share if they only send queries, because starting an emulator is slow."""
    running = start_emulator(
        tmp_path_factory.mktemp("log") / "stderr", "--data", str(folder), "--memory-limit", "500MB"
    )
    yield running
    assert end_process(running.process) == 0, running.read_log()
