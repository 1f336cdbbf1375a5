"""Tests of a service whose disk is nearly full, and of the retention of telemetry."""

from pathlib import Path

import pytest

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_problem, count_rows, wait_until

ROUTE = "/oi-api/telemetry/pump-rig"


@pytest.fixture
def data_dir(tmp_path: Path) -> Path:
    """Return the data directory that the services of one test use one after another."""
    return tmp_path / "data"


def test_a_nearly_full_disk_rejects_telemetry_and_loses_nothing(data_dir: Path) -> None:
    """If free disk space is below the reserve, telemetry gets 507, and telemetry that was accepted before is stored."""
    service = Service(data_dir, WORKSPACE).start()
    editor = service.create_client("editor@t")
    messages = [{"messageId": f"m-{number}", "n": number} for number in range(50)]
    assert editor.post(ROUTE, json=messages).status_code == 202
    service.kill()
    full = Service(data_dir, WORKSPACE, {"DISK_RESERVE_MB": "1000000000000"}).start()
    try:
        editor = full.create_client("editor@t")
        refusal = editor.post(ROUTE, json=messages)
        assert check_problem(refusal, 507, "STORAGE_FULL")["retryAfter"] == 60
        assert refusal.headers["retry-after"] == "60"
        check_problem(editor.post("/oi-api/telemetry/unknown", json={}), 404, "CONNECTION_NOT_FOUND")
        ready = wait_until(
            lambda: full.create_anonymous_client().get("/readyz"), lambda reply: reply.status_code == 200, 60
        )
        assert ready.json()["warnings"] == ["DISK_FULL"]
        wait_until(lambda: count_rows(editor, "pump-rig"), lambda rows: rows == 50, 60)
    finally:
        full.stop()
    # About 0.1 s after their ingestion, messages have expired at the next start.
    short = Service(data_dir, WORKSPACE, {"TELEMETRY_RETENTION_DAYS": "0.000001"}).start()
    try:
        wait_until(lambda: count_rows(short.create_client("editor@t"), "pump-rig"), lambda rows: rows == 0, 60)
        assert "warnings" not in short.create_anonymous_client().get("/readyz").json()
    finally:
        short.stop()
