"""The process that walks windows of chains beside the service: asked and answered in lines of JSON over its pipes."""

import asyncio
import contextlib
import json
import os
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self

from shared.provenance.parallel import VerifierUnavailableError, WindowRequest, WindowResult
from shared.provenance.ports import ChainKey, Target

_MODULE: Final = "shared.backends.embedded.provenance_walker"
_ROOT: Final = Path(__file__).parents[3]
_PLACES: Final = ("LD_LIBRARY_PATH", "SYSTEMROOT")


class WalkProcess:
    """A process that lasts as long as the context, and no longer than this process however that ends.

    Args:
        path: the file of the chains.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._turn = asyncio.Lock()
        self._process: Process | None = None

    @property
    def pid(self) -> int:
        """Its process id, 0 before it is started."""
        return self._process.pid if self._process else 0

    async def __aenter__(self) -> Self:
        """Start it.

        Raises:
            NobodyThereError: the host starts no processes.
        """
        command = (sys.executable, "-P", "-m", _MODULE, str(self._path.absolute()))
        # It needs to find libraries and modules; the service's secrets are none of its business.
        places = {name: os.environ[name] for name in _PLACES if name in os.environ}
        places["PYTHONPATH"] = os.pathsep.join((str(_ROOT), *filter(None, sys.path)))
        try:
            self._process = await asyncio.create_subprocess_exec(
                *command, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, env=places
            )
        except (OSError, NotImplementedError) as error:
            raise VerifierUnavailableError(repr(error)) from error
        return self

    async def __aexit__(self, *_: object) -> None:
        """End it, whatever it is doing: it only reads. A cancellation waits for that."""
        ending = asyncio.ensure_future(self._end())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:
            await ending
            raise

    async def ask(self, question: WindowRequest) -> WindowResult:
        """Have a window walked.

        Raises:
            NobodyThereError: the process is gone.
        """
        process = self._process
        if process is None or process.stdin is None or process.stdout is None:
            raise VerifierUnavailableError("not started")
        process.stdin.write(line_of(question))
        # Answers come in the order of questions, and those who wait for the lock are served in theirs.
        async with self._turn:
            line = await process.stdout.readline()
        if not line.endswith(b"\n"):
            raise VerifierUnavailableError("the process is gone")
        value: dict[str, Any] = json.loads(line)
        return WindowResult(**value | {"nodes": tuple(value["nodes"])})

    async def _end(self) -> None:
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


def line_of(question: WindowRequest) -> bytes:
    """Return a question as a line; a scope key may be any text."""
    return json.dumps(asdict(question)).encode() + b"\n"


def question_of(line: bytes) -> WindowRequest:
    """Return the question of a line."""
    value: dict[str, Any] = json.loads(line)
    target, scope_key = value.pop("chain")
    return WindowRequest(ChainKey(Target(target), scope_key), **value)
