"""Tests that acknowledged data survives restarts, kills, retries and load."""

import csv
import math
import os
import random
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from itertools import count as counter
from pathlib import Path
from typing import Any

import httpx
import pandas as pd
import pytest

from tests.plain_http import NO_TLS
from tests.service.local_service import ROOT, Service, count_rows, query_rows, wait_until

COLUMNS = ["Accelerometer1RMS", "Current", "Pressure", "Temperature", "Volume Flow RateRMS"]
ROWS = 9_405
END_MINUTE = "2020-01-01T00:00:00.000000Z"
"""Minute before the recording, in which the message after the second replay was measured."""


@pytest.fixture
def rig_file(tmp_path: Path) -> Path:
    """Return a recording of the pump rig: the file in PUMP_RIG_CSV, or else a generated file of the same size."""
    if recorded := os.environ.get("PUMP_RIG_CSV"):
        return Path(recorded)
    random.seed(20200208)
    times = pd.date_range("2020-02-08 13:30:47", periods=ROWS, freq="1017ms").floor("s")
    path = tmp_path / "rig.csv"
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(["datetime", *COLUMNS])
        for number, instant in enumerate(times):
            values = [f"{math.sin(number / (50 + column)) * 7 + random.gauss(0, 0.3):.6g}" for column in range(5)]
            writer.writerow([f"{instant:%Y-%m-%d %H:%M:%S}", *values])
    return path


def replay_file(service: Service, path: Path) -> None:
    """Replay a file as telemetry of the pump rig."""
    command = [sys.executable, "-m", "oi", "replay", str(path), "--connection", "pump-rig"]
    command += ["--time-column", "datetime", "--delimiter", ";", "--assume-zone", "UTC", "--speed", "0"]
    login = {"OI_URL": service.url, "OI_KEY": service.read_api_key("editor@t"), "NO_PROXY": "127.0.0.1"}
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "client" / "src"), **login}
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"{ROWS} rows read, {ROWS} accepted, 0 repeated, in ")


def query_averages(service: Service) -> list[dict[str, Any]]:
    """Return the averages of each minute, computed by the service."""
    reply = service.create_client("viewer@t").get("/oi-api/warm-queries/per-minute?limit=10000")
    assert reply.status_code == 200, reply.text
    results: list[dict[str, Any]] = reply.json()["results"]
    return results


def assert_equal_to_pandas(service: Service, path: Path) -> None:
    """Check that the averages of each minute are equal in the service and in pandas."""
    recorded = pd.read_csv(path, sep=";", parse_dates=["datetime"], index_col="datetime")
    expected = recorded.groupby(recorded.index.floor("min"))[["Pressure", "Temperature"]].mean()
    sizes = recorded.groupby(recorded.index.floor("min")).size()
    given = [row for row in query_averages(service) if row["Minute"] != END_MINUTE]
    assert [row["Minute"] for row in given] == [f"{minute:%Y-%m-%dT%H:%M:%S.000000Z}" for minute in expected.index]
    assert [row["n"] for row in given] == list(sizes)
    for name in ("Pressure", "Temperature"):
        assert [row[name] for row in given] == pytest.approx(list(expected[name]), rel=1e-9, abs=1e-9)


def test_averages_of_a_recording_equal_pandas(own_service: Service, rig_file: Path) -> None:
    """The service computes the same averages as pandas after a replay, a restart, and a second replay of the rows."""
    service = own_service.start()
    replay_file(service, rig_file)
    wait_until(lambda: count_rows(service.create_client("editor@t"), "pump-rig"), lambda stored: stored >= ROWS, 60)
    assert_equal_to_pandas(service, rig_file)
    assert service.stop() == 0
    service.start()
    assert_equal_to_pandas(service, rig_file)
    replay_file(service, rig_file)
    editor = service.create_client("editor@t")
    # Messages of one connection are stored in their order, so all repeated rows precede this message.
    after = [{"messageId": "after", "ts": END_MINUTE}] * 2
    assert editor.post("/oi-api/telemetry/pump-rig", json=after).status_code == 202
    wait_until(lambda: query_rows(editor, "Telemetry | where MessageId == 'after'"), bool, 60)
    assert count_rows(editor, "pump-rig") == ROWS + 1
    assert_equal_to_pandas(service, rig_file)


@pytest.mark.parametrize(("kills", "messages"), [(2, 1000), pytest.param(8, 3000, marks=pytest.mark.soak)])
def test_acknowledged_messages_survive_kills(own_service: Service, kills: int, messages: int) -> None:
    """A service that is killed repeatedly under load stores each acknowledged message exactly once."""
    numbers = counter()
    acknowledged: set[str] = set()
    for _ in range(kills):
        service = own_service.start()
        stop = threading.Event()
        token = service.create_client("editor@t").headers["Authorization"]
        with ThreadPoolExecutor(4) as pool:
            posting = [
                pool.submit(_post_messages_until_stopped, stop, service.url, token, numbers, acknowledged)
                for _ in range(4)
            ]
            before = len(acknowledged)
            wait_until(lambda: len(acknowledged), lambda now, before=before: now > before + messages)  # type: ignore[misc]
            service.kill()
            stop.set()
            for future in posting:
                future.result()
    service = own_service.start()
    editor = service.create_client("editor@t")
    assert editor.post("/oi-api/telemetry/press", json={"messageId": "last"}).status_code == 202
    wait_until(lambda: count_rows(editor, "press"), lambda stored: stored == 1, 60)
    kql = "Telemetry | where ConnectionLookup == 'pump-rig' | summarize n = count() by Mark = tostring(Payload.mark)"

    def count_stored_messages() -> dict[str, int]:
        found = {}
        for decile in range(10):
            part = f"{kql} | where Mark endswith '{decile}'"
            found.update({row["Mark"]: row["n"] for row in query_rows(editor, part)})
        return found

    found = wait_until(count_stored_messages, lambda marks: acknowledged <= set(marks), 60)
    assert set(found.values()) == {1}


def _post_messages_until_stopped(
    stop: threading.Event, url: str, token: str, numbers: "counter[int]", acknowledged: set[str]
) -> None:
    with httpx.Client(
        base_url=url, headers={"Authorization": token}, trust_env=False, verify=NO_TLS, timeout=30
    ) as client:
        while not stop.is_set():
            marks = [f"k{next(numbers)}" for _ in range(20)]
            try:
                reply = client.post("/oi-api/telemetry/pump-rig", json=[{"messageId": m, "mark": m} for m in marks])
            except httpx.TransportError:
                return
            if reply.status_code == 202:
                acknowledged.update(marks)


@pytest.mark.parametrize("queries", [10, pytest.param(500, marks=pytest.mark.soak)])
def test_queries_succeed_during_ingestion(own_service: Service, queries: int) -> None:
    """While messages are stored, 24 concurrent clients get correct query results and no errors."""
    service = own_service.start()
    sent = counter(1)
    done = threading.Event()
    writer = service.create_client("editor@t")
    readers = [service.create_client("viewer@t") for _ in range(24)]

    def write_repeatedly() -> None:
        while not done.is_set():
            batch = [{"messageId": f"v{number}", "value": number} for number in (next(sent) for _ in range(50))]
            reply = writer.post("/oi-api/telemetry/lathe", json=batch)
            assert reply.status_code == 202, reply.text

    def read_repeatedly(client: httpx.Client) -> None:
        seen = 0
        for _ in range(queries):
            reply = client.get("/oi-api/warm-queries/newest", params={"p.connection": "lathe", "limit": "20"})
            assert reply.status_code == 200, reply.text
            for row in reply.json()["results"]:
                assert row["MessageId"] == f"v{row['Payload']['value']}"
            newest = max((row["Payload"]["value"] for row in reply.json()["results"]), default=0)
            assert newest >= seen, "rows were lost"
            seen = newest

    with ThreadPoolExecutor(25) as pool:
        writing = pool.submit(write_repeatedly)
        try:
            for reading in [pool.submit(read_repeatedly, reader) for reader in readers]:
                reading.result()
        finally:
            done.set()
        writing.result()
    editor = service.create_client("editor@t")
    total = next(sent) - 1
    wait_until(lambda: count_rows(editor, "lathe"), lambda stored: stored == total, 60)
