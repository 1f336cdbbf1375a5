"""Queries of the workspace document, held against the embedded engine where the document is applied."""

import os
import subprocess
import sys
from pathlib import Path

from tests.service.conftest import WORKSPACE
from tests.service.local_service import ROOT, Service

DRAFT = 'kql: "Telemetry | count"'


def faulty(folder: Path) -> Path:
    """Write a workspace document with a query that does not parse, and return it."""
    file = folder / "workspace.yaml"
    text = WORKSPACE.read_text(encoding="utf-8")
    assert DRAFT in text
    file.write_text(text.replace(DRAFT, 'kql: "Telemetry | wher x"'), encoding="utf-8")
    return file


def test_apply_beside_a_running_host_refuses_what_does_not_bind(service: Service, tmp_path: Path) -> None:
    """The command finds the host's engine by the data directory, and tells the query's place in the file."""
    command = [sys.executable, "-m", "shared.commands.workspace", "apply", str(faulty(tmp_path))]
    environment = {**os.environ, "DATA_DIR": str(service.data_dir)}
    environment.pop("KUSTO_URI", None)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "warmQueries[2].kql: " in done.stderr
    assert "(line 1, column " in done.stderr


def test_a_first_start_tells_of_a_query_that_does_not_bind(tmp_path: Path) -> None:
    """The host starts, and its log has the query's place in the file."""
    running = Service(tmp_path / "data", faulty(tmp_path)).start()
    try:
        assert "warmQueries[2].kql: " in running.log()
        assert running.caller("editor@t").get("/oi-api/warm-queries").status_code == 200
    finally:
        assert running.stop() == 0
