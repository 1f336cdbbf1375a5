"""Tests that the embedded engine validates the queries of the workspace document."""

import os
import subprocess
import sys
from pathlib import Path

from tests.service.conftest import WORKSPACE
from tests.service.local_service import ROOT, Service

DRAFT = 'kql: "Telemetry | count"'


def write_invalid_document(folder: Path) -> Path:
    """Write a workspace document with a query that cannot be parsed, and return its path."""
    file = folder / "workspace.yaml"
    text = WORKSPACE.read_text(encoding="utf-8")
    assert DRAFT in text
    file.write_text(text.replace(DRAFT, 'kql: "Telemetry | wher x"'), encoding="utf-8")
    return file


def test_apply_rejects_invalid_queries(service: Service, tmp_path: Path) -> None:
    """`apply` validates queries with the engine of the running host, and reports the line of an invalid query."""
    command = [sys.executable, "-m", "shared.commands.workspace", "apply", str(write_invalid_document(tmp_path))]
    environment = {**os.environ, "DATA_DIR": str(service.data_dir)}
    environment.pop("KUSTO_URI", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "warmQueries[2].kql: " in done.stderr
    assert "(line 1, column " in done.stderr


def test_the_first_start_logs_invalid_queries(tmp_path: Path) -> None:
    """If a declared query is invalid, the host starts and logs the line of the query in the workspace document."""
    running = Service(tmp_path / "data", write_invalid_document(tmp_path)).start()
    try:
        assert "warmQueries[2].kql: " in running.read_log()
        assert running.create_client("editor@t").get("/oi-api/warm-queries").status_code == 200
    finally:
        assert running.stop() == 0
