"""Tests of the host's start, failed start and shutdown."""

import json
import os
import pty
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import httpx
import pytest

from shared.backends.embedded import quotas, rate_limits
from shared.backends.embedded.hub import HubReader

ROOT = Path(__file__).parents[4]
APP = """
@app.route(route="settings")
async def settings(req: func.HttpRequest) -> func.HttpResponse:
    names = ("DATA_DIR", "PORT", "KUSTO_URI", "FROM_FILE", "FROM_BOTH")
    return func.HttpResponse(json.dumps({name: os.environ.get(name) for name in names}))

@app.route(route="slow/{seconds}")
async def slow(req: func.HttpRequest) -> func.HttpResponse:
    record("begun")
    await asyncio.sleep(float(req.route_params["seconds"]))
    return func.HttpResponse("finished")

@app.route(route="stuck")
def stuck(req: func.HttpRequest) -> func.HttpResponse:
    import time
    record("stuck")
    time.sleep(60)
    return func.HttpResponse("")
"""


def get_in_background(url: str) -> tuple[threading.Thread, list[httpx.Response | Exception]]:
    answers: list[httpx.Response | Exception] = []

    def request_url() -> None:
        try:
            answers.append(httpx.get(url, timeout=30, trust_env=False))
        except httpx.HTTPError as error:
            answers.append(error)

    thread = threading.Thread(target=request_url)
    thread.start()
    return thread, answers


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_running_requests_complete_before_the_end(start_host: Any, number: int) -> None:
    """After SIGTERM or Ctrl-C, running requests are completed and the host exits with 0."""
    host = start_host(APP)
    thread, answers = get_in_background(f"{host.url}/slow/0.5")
    host.wait_until(lambda: host.read_records() == ["begun"])
    host.process.send_signal(number)
    thread.join(timeout=30)
    assert host.process.wait(timeout=30) == 0
    assert [getattr(answer, "text", answer) for answer in answers] == ["finished"]


@pytest.mark.parametrize("path", ["slow/100", "stuck"])
def test_endless_requests_do_not_prevent_the_end(start_host: Any, path: str) -> None:
    """If a request takes longer than the drain time or blocks a thread, the host still exits with 0."""
    host = start_host(APP)
    thread, answers = get_in_background(f"{host.url}/{path}")
    host.wait_until(lambda: bool(host.read_records()))
    host.process.terminate()
    assert host.process.wait(timeout=10) == 0
    thread.join(timeout=30)
    if path == "slow/100":
        (answer,) = answers
        assert isinstance(answer, httpx.Response), answer
        assert (answer.status_code, answer.json()["code"]) == (503, "HOST_STOPPING")


def test_the_app_has_settings_of_environment_and_file(start_host: Any, http: httpx.Client, tmp_path: Path) -> None:
    """The app's settings come from the environment, or else from local.settings.json."""
    (tmp_path / "app").mkdir()
    values = {"FROM_FILE": "file", "FROM_BOTH": "file"}
    (tmp_path / "app" / "local.settings.json").write_text(json.dumps({"IsEncrypted": False, "Values": values}))
    host = start_host(APP, FROM_BOTH="environment")
    assert http.get(f"{host.url}/settings").json() == {
        "DATA_DIR": str(tmp_path / "data"),
        "PORT": "0",
        "KUSTO_URI": "http://127.0.0.1:1",
        "FROM_FILE": "file",
        "FROM_BOTH": "environment",
    }


SETTINGS = ("FILES_URL", "WEBHOOK_ALLOWED_NETWORKS", "OWN_PORTS", "BACKGROUND_SCHEDULE")
SHOW_SETTINGS = f"""
@app.route(route="settings")
async def settings(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse(json.dumps([os.environ[name] for name in {SETTINGS}]))
"""


def test_an_empty_setting_gets_the_default_of_the_host(start_host: Any, http: httpx.Client) -> None:
    """An empty setting counts as absent, so the host sets its default."""
    host = start_host(SHOW_SETTINGS, **dict.fromkeys(SETTINGS, ""))
    port = host.url.rpartition(":")[2]
    assert http.get(f"{host.url}/settings").json() == [host.url, "127.0.0.0/8,::1/128", port, "*/1 * * * * *"]


def test_standard_output_contains_only_the_ready_line(start_host: Any) -> None:
    """The host prints only its ready line on standard output."""
    host = start_host("print('imported')\n" + APP)
    assert host.terminate() == 0
    assert host.process.stdout.read() == ""
    assert "imported" in host.read_log()


CONSOLE = """
@app.function_name("pages_console")
@app.route(route="console")
def console(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("")
"""


def test_sign_in_link_is_not_printed_into_a_log(start_host: Any, tmp_path: Path) -> None:
    """If standard output is not a terminal, the host prints no sign-in link; the sign-in command still creates one."""
    host = start_host(CONSOLE)
    assert not (tmp_path / "data" / "sign-in").exists()
    command = [sys.executable, "-m", "local.sign_in", "--data-dir", str(host.data_dir)]
    link = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=60).stdout
    assert link.startswith(f"{host.url}/console/#sign-in=")
    assert host.terminate() == 0
    assert host.process.stdout.read() == ""


def test_sign_in_link_is_printed_on_request(start_host: Any) -> None:
    """With --sign-in-link, the second line of standard output is a sign-in link, also in a pipe."""
    host = start_host(CONSOLE, "--sign-in-link")
    assert host.process.stdout.readline().startswith(f"sign in at {host.url}/console/#sign-in=")


def test_sign_in_link_is_printed_to_a_terminal(start_host: Any) -> None:
    """If standard output is a terminal, the host prints the ready line and a sign-in link."""
    terminal, stdout = pty.openpty()
    with os.fdopen(terminal) as lines:
        host = start_host(CONSOLE, ready=False, stdout=stdout)
        os.close(stdout)
        url = lines.readline().removeprefix("ready ").strip()
        assert lines.readline().startswith(f"sign in at {url}/console/#sign-in=")
        assert host.terminate() == 0


def test_log_is_json_lines(start_host: Any, http: httpx.Client) -> None:
    """Each line of the log on standard error is a JSON object."""
    host = start_host('@app.route(route="x")\nasync def x(req: func.HttpRequest) -> str:\n    raise ValueError("no")\n')
    assert http.get(f"{host.url}/x").status_code == 500
    assert host.terminate() == 0
    (line,) = [json.loads(line) for line in host.read_log().splitlines()]
    assert (line["level"], line["function"]) == ("ERROR", "x")


def test_port_in_use_is_reported_in_one_line(start_host: Any) -> None:
    """If the port is in use, the host exits with 1 and prints one line with the port."""
    first = start_host(APP)
    port = int(first.url.rpartition(":")[2])
    second = start_host(APP, port=port, ready=False)
    assert second.process.wait(timeout=30) == 1
    (line,) = second.read_log().splitlines()
    assert f"127.0.0.1:{port}" in line


def test_an_unwritable_data_directory_is_reported_in_one_line(start_host: Any, tmp_path: Path) -> None:
    """If a file of the data directory cannot be written, the host exits with 1 and prints one line with the reason."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "hosts").touch()
    host = start_host(APP, ready=False)
    assert host.process.wait(timeout=30) == 1
    (line,) = host.read_log().splitlines()
    assert line.startswith("the local host does not start: ")
    assert str(tmp_path / "data" / "hosts") in line


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("import missing_module", "No module named 'missing_module'"),
        ("raise KeyError('own fault')", "own fault"),
        ("app = None", "Could not find top level function app"),
        ('@app.route(route="{id:int}")\nasync def x(req: func.HttpRequest) -> str: ...', "{id:int}"),
        ('@app.timer_trigger(arg_name="t", schedule="@daily")\nasync def x(t: func.TimerRequest): ...', "@daily"),
    ],
)
def test_an_invalid_function_app_stops_the_start(start_host: Any, source: str, reason: str) -> None:
    """If the function app is invalid, the host exits with 1 and the reason."""
    host = start_host(source, ready=False)
    assert host.process.wait(timeout=30) == 1
    assert reason in host.read_log()
    assert host.process.stdout.read() == ""


def test_failed_start_ends_the_query_engine_in_order(tmp_path: Path) -> None:
    """If the workspace file is unreadable, the host exits with 1 and the query engine ends without an error."""
    missing = tmp_path / "missing.yaml"
    command = [sys.executable, "-m", "local", "--port", "0", "--data-dir", str(tmp_path / "data")]
    environment = {name: value for name, value in os.environ.items() if name != "KUSTO_URI"}
    ended = subprocess.run(
        [*command, "--workspace-file", str(missing)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (ended.returncode, ended.stdout) == (1, "")
    *log, reason = ended.stderr.splitlines()
    assert str(missing) in reason
    assert [line for line in log if json.loads(line)["level"] in {"ERROR", "CRITICAL"}] == []


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL=grpc", "OTEL_TRACES_EXPORTER=zipkin"])
def test_an_unsupported_exporter_ends_the_start(tmp_path: Path, variable: str) -> None:
    """An unsupported telemetry exporter ends the start with exit code 1, the variable and its value."""
    name, value = variable.split("=")
    environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", name: value}
    command = [sys.executable, "-m", "local", "--port", "0", "--data-dir", str(tmp_path / "data")]
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert variable in ended.stderr
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize(("module", "is_stdin_closed"), [("emulators.kusto", True), ("local.kusto", False)])
def test_the_query_engine_exits_with_code_0(
    tmp_path: Path,
    module: str,
    is_stdin_closed: bool,  # noqa: FBT001  a case
) -> None:
    """The query engine exits with 0 after SIGTERM or when its parent process ends, and logs JSON lines."""
    command = [sys.executable, "-m", module, "--data", str(tmp_path / "kusto"), "--port", "0"]
    with subprocess.Popen(
        [*command, "--hub", str(tmp_path / "hub.sqlite"), "--exit-with-parent"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        address = process.stdout.readline().removeprefix("ready http://").strip()
        with socket.create_connection((address.partition(":")[0], int(address.partition(":")[2]))) as connection:
            connection.sendall(b"nonsense\r\n\r\n")
            assert connection.recv(100).startswith(b"HTTP/1.1 400")
        if is_stdin_closed:
            process.stdin.close()
        else:
            process.terminate()
        assert process.wait(timeout=30) == 0
        lines = [json.loads(line) for line in process.stderr.read().splitlines()]
    assert "uvicorn.error" in {line["logger"] for line in lines}


def test_server_logs_json(start_host: Any) -> None:
    """The HTTP server logs JSON lines."""
    host = start_host(APP)
    thread, _ = get_in_background(f"{host.url}/slow/100")
    host.wait_until(lambda: host.read_records() == ["begun"])
    assert host.terminate() == 0
    thread.join(timeout=30)
    loggers = {json.loads(line)["logger"] for line in host.read_log().splitlines()}
    assert "uvicorn.error" in loggers


def test_help_lists_every_option() -> None:
    """--help lists every option with its environment variable and default."""
    command = [sys.executable, "-m", "local", "--help"]
    text = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True, timeout=30).stdout
    # argparse wraps the lines at the width of the terminal.
    unwrapped = " ".join(text.split())
    for word in ("HOST; 127.0.0.1", "PORT; 7071", "DATA_DIR; .data", "WORKSPACE_FILE;", "--app", "--sign-in-link"):
        assert word in unwrapped


def test_a_host_without_event_hub_functions_has_a_hub_file(start_host: Any) -> None:
    """The hub file exists after the start even if no function uses Event Hubs, so that other processes can read it."""
    host = start_host(APP)
    host.wait_until((host.data_dir / "hub.sqlite").exists)
    reader = HubReader(host.data_dir / "hub.sqlite")
    assert reader.read("telemetry", "0", 0, 1) == []
    reader.close()


def test_a_damaged_file_of_rate_limits_is_replaced(start_host: Any, tmp_path: Path) -> None:
    """A host starts although the file with the counts of requests and streams is damaged; it deletes the file."""
    path = tmp_path / "data" / "rate-limits.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"no database" * 1000)
    host = start_host(APP)
    assert not path.exists()
    assert f"{path} was damaged and is deleted" in host.read_log()


def test_a_locked_file_of_rate_limits_does_not_prevent_the_start(start_host: Any, tmp_path: Path) -> None:
    """A host starts although another process locks the file with the counts of requests and streams; it logs this."""
    path = tmp_path / "data" / "rate-limits.sqlite"
    path.parent.mkdir()
    connection = sqlite3.connect(path, autocommit=True)
    connection.executescript(f"PRAGMA journal_mode=WAL; {rate_limits.SCHEMA} {quotas.SCHEMA} BEGIN IMMEDIATE")
    host = start_host(APP)
    connection.close()
    assert path.exists()
    assert "the quota reservations of earlier live streams cannot be removed: database is locked" in host.read_log()
