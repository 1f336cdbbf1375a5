"""Process that verifies windows (ranges of records) of audit chains; requests and results are lines of JSON.

Verification is CPU-bound, and Python runs one thread at a time. A separate process therefore keeps the service's event
loop free. Start it with ``python -m shared.backends.embedded.provenance_verifier FILE``.
"""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from shared.provenance.ports import ChainKey, Target
from shared.provenance.window_verification import VerifierUnavailableError, WindowRequest, WindowResult, verify_window
from shared.runtime import SYSTEM_RUNTIME

_MODULE: Final = "shared.backends.embedded.provenance_verifier"
_ROOT: Final = Path(__file__).parents[3]
_INHERITED_VARIABLES: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT")
_NICENESS: Final = 5
"""Increment of the process's nice value, so that requests to the service are served first on a busy machine."""


class VerifierProcess:
    """Context manager that runs a process for verifying windows (ranges of records) of audit chains.

    The process ends when the ``async with`` block or the service ends.

    Args:
        path: SQLite file of the chains.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Id of the process; 0 before it is started."""
        return self._process.pid if self._process else 0

    async def __aenter__(self) -> Self:
        """Start the process.

        Raises:
            VerifierUnavailableError: the host cannot start processes.
        """
        command = (sys.executable, "-P", "-m", _MODULE, str(self._path.absolute()))
        # The process needs the paths of libraries and modules, but none of the service's secrets.
        environment = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        environment["PYTHONPATH"] = os.pathsep.join((str(_ROOT), *filter(None, sys.path)))
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=environment
            )
        except (OSError, NotImplementedError) as error:
            raise VerifierUnavailableError(f"the verification process cannot be started: {error!r}") from error
        return self

    async def __aexit__(self, *_: object) -> None:
        """Kill the process, which only reads, and wait for its end."""
        ending = asyncio.ensure_future(self._kill_process())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def verify(self, request: WindowRequest) -> WindowResult:
        """Verify a window (range of records) of a chain in the process.

        Raises:
            VerifierUnavailableError: the process was not started, or it exited before it returned a result.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise VerifierUnavailableError("the verification process is not started")
        process.stdin.write(request_to_json_line(request))
        # Results arrive in the order of the requests, and the lock is granted in the order of its callers.
        async with self._turn:
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise VerifierUnavailableError("the verification process exited before it returned a result")
        value: dict[str, Any] = json.loads(line)
        return WindowResult(**value | {"nodes": tuple(value["nodes"]), "signed": tuple(value["signed"])})

    async def _kill_process(self) -> None:
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            return
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        process.stdin.close()
        with contextlib.suppress(ConnectionError):
            await process.stdin.wait_closed()
        await process.stdout.read()
        await process.wait()


def request_to_json_line(request: WindowRequest) -> bytes:
    """Serialise a request to verify a window (range of records) as a line of JSON."""
    return json.dumps(asdict(request)).encode() + b"\n"


def request_from_json_line(line: bytes) -> WindowRequest:
    """Parse a request to verify a window (range of records) from a line of JSON."""
    value: dict[str, Any] = json.loads(line)
    target, scope_key = value.pop("chain")
    return WindowRequest(ChainKey(Target(target), scope_key), **value)


async def main(database_path: Path) -> None:
    """Verify the windows (ranges of records) that standard input requests, until the input is closed."""
    # The module of the store imports this one.
    from shared.backends.embedded.provenance import SqliteChainStore  # noqa: PLC0415

    store = SqliteChainStore(database_path, runtime=SYSTEM_RUNTIME)
    for line in sys.stdin.buffer:
        result = await verify_window(store, request_from_json_line(line), SYSTEM_RUNTIME)
        sys.stdout.buffer.write(json.dumps(asdict(result)).encode() + b"\n")
        sys.stdout.buffer.flush()
    await store.close()


if __name__ == "__main__":
    os.nice(_NICENESS)
    asyncio.run(main(Path(sys.argv[1])))
