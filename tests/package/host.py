"""Runs the local host with an unpacked package: ``python -m tests.package.host OPTIONS ARGUMENTS``.

OPTIONS are the worker's options as JSON; ARGUMENTS are those of ``python -m local``. The process replaces the Functions
host: HTTP, timers, Event Hub triggers and orchestrations. Every function runs in the worker.
"""

import asyncio
import contextlib
import itertools
import json
import pickle
import socket
import subprocess
import sys
from functools import partialmethod
from pathlib import Path
from typing import Any

from local import command as local_host
from local.host import worker
from local.host import worker_protocol as protos
from tests.package.worker import SIZE, register_pickling, unpickle_object

WORKER = Path(__file__).with_name("worker.py")
PYTHON = Path(sys.base_prefix) / "bin" / "python3.13"
_WORKER_SECONDS = 10


class RemoteRuntime:
    """Worker library of an unpacked package in another process, which starts at the first request."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: socket.socket | None = None
        self._writer: asyncio.StreamWriter | None = None
        self._numbers = itertools.count()
        self._awaited: dict[int, asyncio.Future[Any]] = {}
        self._reading: asyncio.Task[None] | None = None

    def start_threadpool_executor(self) -> None:
        """Do nothing, because the worker process starts its own executor."""

    async def _send(self, name: str, request: protos.WorkerRequest) -> Any:
        if self._writer is None:
            self._writer = await self._start()
        number = next(self._numbers)
        answer = self._awaited[number] = asyncio.get_running_loop().create_future()
        data = pickle.dumps((number, name, request.request))
        self._writer.write(SIZE.pack(len(data)) + data)
        try:
            return await answer
        finally:
            del self._awaited[number]

    worker_init_request = partialmethod(_send, "worker_init_request")
    functions_metadata_request = partialmethod(_send, "functions_metadata_request")
    function_load_request = partialmethod(_send, "function_load_request")
    invocation_request = partialmethod(_send, "invocation_request")

    def close(self) -> None:
        """Close the connection and wait until the worker has ended."""
        if self._connection is not None and self._process is not None:
            with contextlib.suppress(OSError):
                self._connection.shutdown(socket.SHUT_RDWR)
            self._process.wait(_WORKER_SECONDS)

    async def _start(self) -> asyncio.StreamWriter:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = self._start_worker(theirs)
        self._connection = ours
        reader, writer = await asyncio.open_connection(sock=ours)
        self._reading = asyncio.create_task(self._read(reader))
        return writer

    def _start_worker(self, connection: socket.socket) -> "subprocess.Popen[bytes]":
        options = self._options | {"protocol": protos.__file__, "socket": connection.fileno()}
        # Without -S the interpreter's own site-packages could be imported; without -B it would write into the package,
        # which is read-only in the cloud.
        command = [str(PYTHON), "-I", "-S", "-B", str(WORKER), json.dumps(options)]
        return subprocess.Popen(command, cwd=self._options["folder"], pass_fds=[connection.fileno()])

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                (size,) = SIZE.unpack(await reader.readexactly(SIZE.size))
                number, value, error = unpickle_object(await reader.readexactly(size), protos)
                answer = self._awaited.get(number)
                if answer is None or answer.done():
                    continue
                if error:
                    answer.set_exception(RuntimeError(error))
                else:
                    answer.set_result(value)
        except (asyncio.IncompleteReadError, ConnectionError):
            for answer in self._awaited.values():
                if not answer.done():
                    answer.set_exception(RuntimeError("the worker ended"))


def main() -> int:
    """Run the host and return its exit code."""
    register_pickling(protos)
    remote = RemoteRuntime(json.loads(sys.argv[1]))
    vars(worker)["runtime"] = remote
    try:
        return local_host.main(sys.argv[2:])
    finally:
        remote.close()


if __name__ == "__main__":
    sys.exit(main())
