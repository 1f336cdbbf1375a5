"""A local service for benchmarks, and load generators."""

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
    """A running service.

    Attributes:
        url: address of the service.
        token: token of a member with the rights to query and to send telemetry.
        pid: process id of the host.
        folder: data directory.
    """

    url: str
    token: str
    pid: int
    folder: Path

    @property
    def headers(self) -> dict[str, str]:
        """Headers of an authenticated request."""
        return {"Authorization": f"Bearer {self.token}"}


@contextmanager
def run_service(settings: Mapping[str, str] | None = None, folder: Path | None = None) -> Iterator[RunningService]:
    """Run a service over a new or a given data directory, with additional settings."""
    with ExitStack() as stack:
        directory = str(folder) if folder else stack.enter_context(_temporary_directory())
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
                yield RunningService(url, _request_token(url, Path(directory)), process.pid, Path(directory))
            finally:
                process.terminate()


def _temporary_directory() -> AbstractContextManager[str]:
    return tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True)


def measure_request_rate(url: str, headers: dict[str, str], *, connections: int, seconds: float) -> float:
    """Return the replies per second over a number of connections; any status but 200 is an error."""
    return asyncio.run(_measure_load(url, headers, connections, seconds))


async def _measure_load(url: str, headers: dict[str, str], connections: int, seconds: float) -> float:
    connector = aiohttp.TCPConnector(limit=connections)
    async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
        ends_at = time.perf_counter() + seconds
        started = time.perf_counter()
        counts = await asyncio.gather(*(_repeat_requests(session, url, ends_at) for _ in range(connections)))
        return sum(counts) / (time.perf_counter() - started)


async def _repeat_requests(session: aiohttp.ClientSession, url: str, ends_at: float) -> int:
    count = 0
    while time.perf_counter() < ends_at:
        async with session.get(url) as reply:
            reply.raise_for_status()
            await reply.read()
        count += 1
    return count


def post_all(url: str, headers: dict[str, str], bodies: Sequence[bytes], connections: int) -> float:
    """Post every body over a number of connections and return the seconds."""
    return asyncio.run(_post_all(url, headers, bodies, connections))


async def _post_all(url: str, headers: dict[str, str], bodies: Sequence[bytes], connections: int) -> float:
    waiting = iter(bodies)

    async def work(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(url, data=body) as reply:
                reply.raise_for_status()
                await reply.read()

    async with aiohttp.ClientSession(headers=headers) as session:
        started = time.perf_counter()
        await asyncio.gather(*(work(session) for _ in range(connections)))
        return time.perf_counter() - started


def call(running: RunningService, path: str, body: object = None) -> dict[str, object]:
    """Return the JSON reply to a GET, or to a POST if there is a body."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(running.url + path, data=data, headers=running.headers)  # noqa: S310  our own
    with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310  our own
        value: dict[str, object] = json.load(reply)
    return value


def _request_token(url: str, folder: Path) -> str:
    key = json.loads((folder / "keys.json").read_text())[MEMBER]
    headers = {"Authorization": f"Bearer {key}"}
    request = urllib.request.Request(f"{url}/workspace/api/keys/jwt", headers=headers)  # noqa: S310  our own
    with urllib.request.urlopen(request, timeout=60) as reply:  # noqa: S310  our own
        token: str = json.load(reply)["Token"]
    return token
