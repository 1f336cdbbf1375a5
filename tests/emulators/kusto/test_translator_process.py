"""Tests of the process that translates queries."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from emulators.kusto.translator_process import _build_reply
from tests.emulators.kusto.endpoints import ROOT, end_process, start_emulator
from tests.service.local_service import wait_until


def test_an_unexpected_exception_of_the_translator_gets_a_client_error(caplog: pytest.LogCaptureFixture) -> None:
    """An unexpected exception of the translator is reported as a client error, and its traceback is logged."""
    no_columns: Any = {"T": 5}
    reply = _build_reply(
        {"text": "T | join kind=inner (T) on a", "schema": no_columns, "found": [], "types": {}, "place": [0, 0]}
    )
    assert reply.is_process_reusable
    assert b'"status":400' in reply.body
    assert b"EMB0005" in reply.body
    assert "Traceback" in caplog.text


def is_running(process: Path) -> bool:
    """Return whether a process runs; one that has ended may remain without a parent that collects its exit status."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.skipif(sys.platform != "linux", reason="the translator process is forked on Linux only")
def test_the_first_translator_process_is_forked(folder: Path, tmp_path: Path) -> None:
    """The first translator process is a fork of the engine, and ends with it, even if the engine is killed."""
    endpoint = start_emulator(tmp_path / "stderr", "--data", str(folder))
    try:
        engine = Path("/proc", str(endpoint.process.pid))
        [child] = (engine / "task" / engine.name / "children").read_text().split()
        translator = Path("/proc", child)
        assert (translator / "cmdline").read_bytes() == (engine / "cmdline").read_bytes()
        assert endpoint.query_rows("print answer = 42") == [[42]]
        endpoint.process.kill()
        wait_until(lambda: is_running(translator), lambda running: not running)
    finally:
        end_process(endpoint.process)


@pytest.mark.skipif(sys.platform != "linux", reason="the translator process is forked on Linux only")
def test_only_a_process_with_one_thread_is_forked() -> None:
    """Before the fork, the engine has one thread and has not loaded the libraries that start threads."""
    code = (
        "import json, os, sys, emulators.kusto.__main__;"
        "print(json.dumps([len(os.listdir('/proc/self/task')), sorted(sys.modules)]))"
    )
    printed = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, check=True).stdout
    threads, modules = json.loads(printed)
    assert threads == 1
    assert {"duckdb", "numpy", "pyarrow", "grpc", "asyncio"} & {*modules} == set()
