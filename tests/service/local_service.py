"""Run the local host as a separate process, and build clients for it."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import IO, Any

import httpx

from tests.plain_http import NO_TLS
from tests.service.described_replies import check_described_error, check_described_headers

ROOT = Path(__file__).parents[2]
STOP_SECONDS = 20
NO_DAILY_VERIFICATION = {"VERIFY_SCHEDULE": "0 0 0 1 1 *"}
"""A verification at 02:30 would change what tests of that minute assert about chains that are not verified yet."""


class Service:
    """Local host in a separate process, with its own data directory."""

    def __init__(self, data_dir: Path, workspace_file: Path, environment: Mapping[str, str] | None = None) -> None:
        self.data_dir = data_dir
        self._log_path = data_dir.with_name(f"{data_dir.name}.log")
        self._environment = {
            **{name: value for name, value in os.environ.items() if name not in {"KUSTO_URI", "PORT", "HOST"}},
            "DATA_DIR": str(data_dir),
            "WORKSPACE_FILE": str(workspace_file),
            "PORT": "0",
            **(environment or {}),
        }
        self._process: subprocess.Popen[str] | None = None
        self._clients: list[httpx.Client] = []
        self.url = ""
        self.sign_in_link = ""

    def start(self) -> "Service":
        """Start the host and return when it is ready."""
        command = [sys.executable, "-m", "local", "--sign-in-link"]
        with self._log_path.open("a") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self._environment, stdout=subprocess.PIPE, stderr=log, text=True
            )
        assert self._process.stdout is not None
        line = _read_first_line(self._process.stdout)
        assert line.startswith("ready http://127.0.0.1:"), f"{line!r}; the log says: {self.read_log()[-3000:]}"
        self.url = line.removeprefix("ready ").strip()
        self.sign_in_link = _read_first_line(self._process.stdout).removeprefix("sign in at ").strip()
        return self

    def stop(self) -> int:
        """Stop the host with SIGTERM, as a service manager does, and return its exit code."""
        return self._end_process(signal.SIGTERM)

    def kill(self) -> None:
        """Stop the host with SIGKILL, so that it stops without cleaning up, as after a power cut."""
        self._end_process(signal.SIGKILL)

    @property
    def pid(self) -> int:
        """Process id of the host."""
        assert self._process is not None
        return self._process.pid

    def read_memory_bytes(self) -> int:
        """Return the resident memory of the host's process in bytes."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))

    def read_log(self) -> str:
        """Return what the host logged so far."""
        return self._log_path.read_text()

    def read_api_key(self, member: str) -> str:
        """Return the API key that the first start created for a member."""
        keys: dict[str, str] = json.loads((self.data_dir / "keys.json").read_text())
        return keys[member]

    def create_client(self, member: str, scopes: str | None = None) -> httpx.Client:
        """Return a client with a token of a member."""
        query = {} if scopes is None else {"scopes": scopes}
        headers = {"Authorization": f"Bearer {self.read_api_key(member)}"}
        with httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=NO_TLS) as client:
            reply = client.get("/workspace/api/keys/jwt", params=query)
        assert reply.status_code == 200, reply.text
        return self.create_anonymous_client(bearer=reply.json()["Token"])

    def create_anonymous_client(self, bearer: str | None = None) -> httpx.Client:
        """Return a client without a credential, or with the given API key or token."""
        headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
        client = httpx.Client(base_url=self.url, headers=headers, timeout=60, trust_env=False, verify=NO_TLS)
        client.event_hooks = {"response": [check_described_error, check_described_headers]}
        self._clients.append(client)
        return client

    def _end_process(self, number: signal.Signals) -> int:
        while self._clients:
            self._clients.pop().close()
        process, self._process = self._process, None
        if process is None:
            return 0
        process.send_signal(number)
        try:
            return process.wait(STOP_SECONDS)
        finally:
            if process.stdout is not None:
                process.stdout.close()


class SharedService:
    """Service that all tests of a folder share.

    It stops between the folders, because an idle host with simulators uses a tenth of a core.

    Args:
        folder: folder of the tests.
        workspace_file: workspace document of the service.
    """

    def __init__(self, folder: Path, workspace_file: Path) -> None:
        self._folder = folder
        self._workspace_file = workspace_file
        self._running: Service | None = None

    def get(self, create_folder: Callable[[str], Path]) -> Service:
        """Return the service; start it in a new folder if it does not run yet."""
        if self._running is None:
            data_dir = create_folder(self._folder.name) / "data"
            self._running = Service(data_dir, self._workspace_file, NO_DAILY_VERIFICATION).start()
        return self._running

    def stop_before(self, next_test: Path | None) -> None:
        """Stop the service if the next test is outside the folder of the tests that share it."""
        running = self._running
        if running is not None and (next_test is None or self._folder not in next_test.parents):
            self._running = None
            assert running.stop() == 0


def build_range_around_now() -> dict[str, str]:
    """Return the ``dateRange`` of a download that contains the messages of this test run, whatever the date is."""
    today = datetime.now(UTC)
    return {"start": (today - timedelta(days=30)).isoformat(), "end": (today + timedelta(days=30)).isoformat()}


def wait_until[T](read_value: Callable[[], T], is_accepted: Callable[[T], Any], seconds: float = 30) -> T:
    """Call ``read_value`` until ``is_accepted`` accepts its result, and return this result; fail at the timeout."""
    deadline = time.monotonic() + seconds
    while not is_accepted(value := read_value()):
        assert time.monotonic() < deadline, f"still {value!r} after {seconds} s"
        time.sleep(0.05)
    return value


def query_rows(client: httpx.Client, kql: str, limit: int = 10_000) -> list[dict[str, Any]]:
    """Return the rows of an ad-hoc query."""
    reply = client.post("/oi-api/warm-queries", json={"query": kql, "limit": limit})
    assert reply.status_code == 200, reply.text
    results: list[dict[str, Any]] = reply.json()["results"]
    return results


def check_problem(reply: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """Check that a reply is a problem document with this status and code, and return the document."""
    assert (reply.status_code, reply.json().get("code")) == (status, code), reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    assert set(reply.json()) >= {"type", "title", "status", "detail", "code", "traceId"}
    return dict(reply.json())


def check_failing_fields(reply: httpx.Response, status: int = 400, code: str = "INVALID_REQUEST") -> list[str]:
    """Check that the reply is an error with a message for each failing field, and return the names of these fields."""
    errors = check_problem(reply, status, code)["errors"]
    assert all(error["message"] for error in errors)
    return [error["field"] for error in errors]


def verify_chain(client: httpx.Client, target: str, scope_key: str | None = None) -> dict[str, Any]:
    """Verify an audit chain through the service, check that the chain is valid, and return the verdict."""
    path = "/oi-api/provenance/events/verify"
    reply = client.post(path, params={"target": target}, json={"ScopeKey": scope_key})
    verdict: dict[str, Any] = reply.json()
    assert (verdict.get("Target"), verdict.get("ChainValid")) == (target, True), reply.text
    return verdict


def count_rows(client: httpx.Client, connection: str) -> int:
    """Return the number of rows of a connection in the table Telemetry."""
    [row] = query_rows(client, f"Telemetry | where ConnectionLookup == '{connection}' | count")
    return int(row["Count"])


def _read_first_line(stream: IO[str]) -> str:
    # The host prints one line or exits, so this call always returns.
    return stream.readline()
