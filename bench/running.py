"""Local service for benchmarks, and functions that send load to it."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import aiohttp

ROOT = Path(__file__).parents[1]
WORKSPACE = Path(__file__).with_name("workspace.yaml")
MEMBER = "editor@bench"


@dataclass(frozen=True, slots=True)
class RunningService:
    """Service process that was started for a benchmark.

    Attributes:
        url: base URL of the service.
        token: access token of a team member who may query and send telemetry.
        pid: process id of the service.
        folder: data directory of the service.
    """

    url: str
    token: str
    pid: int
    folder: Path

    @property
    def headers(self) -> dict[str, str]:
        """Request headers that authenticate the team member, by name."""
        return {"Authorization": f"Bearer {self.token}"}


@contextmanager
def run_service(settings: Mapping[str, str] | None = None, folder: Path | None = None) -> Iterator[RunningService]:
    """Context manager: run the service locally; yield its address, process id and an access token.

    Args:
        settings: environment variables to add.
        folder: data directory; None for a new directory, which is deleted at the end.
    """
    with ExitStack() as stack:
        directory = str(folder) if folder else stack.enter_context(_create_temporary_directory())
        environment = {
            **{name: value for name, value in os.environ.items() if name != "KUSTO_URI"},
            "DATA_DIR": directory,
            "PORT": "0",
            "WORKSPACE_FILE": str(WORKSPACE),
            "LOG_LEVEL": "WARNING",
            **(settings or {}),
        }
        command = [sys.executable, "-m", "local"]
        with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
            try:
                assert process.stdout is not None  # noqa: S101  it is a pipe
                url = process.stdout.readline().removeprefix("ready ").strip()
                yield RunningService(url, request_token(url, Path(directory), MEMBER), process.pid, Path(directory))
            finally:
                process.terminate()


def _create_temporary_directory() -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)


def measure_replies_per_second(
    url: str, headers: dict[str, str], *, connection_count: int, duration_seconds: float
) -> float:
    """Send GET requests over several connections; return the replies per second. An error status raises an error."""
    return asyncio.run(_measure_replies_per_second(url, headers, connection_count, duration_seconds))


async def _measure_replies_per_second(
    url: str, headers: dict[str, str], connection_count: int, duration_seconds: float
) -> float:
    connector = aiohttp.TCPConnector(limit=connection_count)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        ends_at = time.perf_counter() + duration_seconds
        started = time.perf_counter()
        counts = await asyncio.gather(
            *(_repeat_and_count_requests(session, url, ends_at) for _ in range(connection_count))
        )
        return sum(counts) / (time.perf_counter() - started)


async def _repeat_and_count_requests(session: aiohttp.ClientSession, url: str, ends_at: float) -> int:
    count = 0
    while time.perf_counter() < ends_at:
        async with session.get(url) as reply:
            reply.raise_for_status()
            await reply.read()
        count += 1
    return count


def post_bodies_and_measure_seconds(
    url: str, headers: dict[str, str], bodies: Sequence[bytes], connection_count: int
) -> float:
    """Send each body in a POST request, with several connections at the same time; return the total time in seconds."""
    return asyncio.run(_post_bodies_and_measure_seconds(url, headers, bodies, connection_count))


async def _post_bodies_and_measure_seconds(
    url: str, headers: dict[str, str], bodies: Sequence[bytes], connection_count: int
) -> float:
    waiting = iter(bodies)

    async def post_waiting_bodies(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(url, data=body) as reply:
                reply.raise_for_status()
                await reply.read()

    async with aiohttp.ClientSession(headers=headers) as session:
        started = time.perf_counter()
        await asyncio.gather(*(post_waiting_bodies(session) for _ in range(connection_count)))
        return time.perf_counter() - started


def call_service(running: RunningService, path: str, body: object = None) -> dict[str, object]:
    """Send a GET request, or a POST request if there is a body; return the JSON of the reply."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(running.url + path, data=data, headers=running.headers)  # noqa: S310  our own
    with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310  our own
        value: dict[str, object] = json.load(reply)
    return value


def request_token(url: str, data_dir: Path, member_id: str) -> str:
    """Exchange the API key of a team member for an access token; the key is read from the data directory."""
    key = json.loads((data_dir / "keys.json").read_text())[member_id]
    headers = {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{url}/workspace/api/keys/jwt", headers=headers)  # noqa: S310  our own
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310  our own
        token: str = json.load(reply)["Token"]
    return token
