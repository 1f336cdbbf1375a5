"""The endpoint's process: what it opens, in which order, and how it ends."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import duckdb
import uvicorn
import uvloop

from emulators.kusto.engine import Engine
from emulators.kusto.extensions import EXTENSIONS
from emulators.kusto.figures import Figures
from emulators.kusto.ingest import Ingest
from emulators.kusto.loading import load
from emulators.kusto.sandbox import close_sandbox, limit_memory, open_database
from emulators.kusto.server import Application
from emulators.kusto.store import TABLE, TelemetryStore
from emulators.kusto.tables import column_types, columns_of, create_views
from emulators.kusto.translator import Translator

DATABASE_FILE = "telemetry.duckdb"
_GRACE_SECONDS = 5
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arguments:
    """What the command line says.

    Attributes:
        data: folder of Parquet files, or of the database file when there is a hub.
        port: on 127.0.0.1; 0 picks a free one.
        database: name under which the tables are served.
        hub: file of the event hub that feeds the table; None to serve Parquet files.
        exit_with_parent: end when standard input ends.
        memory_bytes: what DuckDB's buffers may take.
        threads: of DuckDB.
    """

    data: Path
    port: int
    database: str
    hub: Path | None
    exit_with_parent: bool
    memory_bytes: int
    threads: int


def serve(arguments: Arguments) -> None:
    """Serve until SIGTERM or SIGINT, or until standard input ends where that was asked for.

    Raises:
        duckdb.Error: the database cannot be opened.
        UnusableFolderError: the folder holds no table.
        OSError: the port is taken.
    """
    limit_memory(arguments.memory_bytes)
    with _listening(arguments.port) as listener, _opened(arguments) as (connection, tables):
        asyncio.run(_serve(arguments, connection, tables, listener), loop_factory=uvloop.new_event_loop)


async def _serve(
    arguments: Arguments, connection: duckdb.DuckDBPyConnection, tables: tuple[str, ...], listener: socket.socket
) -> None:
    translator = Translator(columns_of(connection, tables), column_types(connection, tables))
    engine = Engine(connection, translator)
    ingest = Ingest(connection, arguments.hub) if arguments.hub else None
    figures = Figures(connection, tables, engine, translator, ingest)
    server = _Server(Application(engine, arguments.database, figures), listener)
    # uvicorn raises a signal that it handled once more when it is done; by then there is nothing left to end.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    await translator.start()
    if ingest is not None:
        ingest.start()
    if arguments.exit_with_parent:
        threading.Thread(target=_end_with_input, args=(server,), daemon=True).start()
    try:
        await server.serve(sockets=[listener])
    finally:
        await engine.close()
        await translator.close()
        if ingest is not None:
            await asyncio.to_thread(ingest.stop)


@contextlib.contextmanager
def _opened(arguments: Arguments) -> Iterator[tuple[duckdb.DuckDBPyConnection, tuple[str, ...]]]:
    arguments.data.mkdir(parents=True, exist_ok=True)
    connection = open_database(arguments.data / DATABASE_FILE if arguments.hub else None)
    try:
        files: list[Path] = []
        tables: tuple[str, ...] = (TABLE,)
        if arguments.hub:
            TelemetryStore.create(connection)
        else:
            files = create_views(connection, arguments.data)
            load(connection, files, arguments.memory_bytes)
            tables = tuple(file.stem for file in files)
        for extension in EXTENSIONS:
            for macro in extension.macros:
                connection.execute(macro)
        close_sandbox(connection, memory_bytes=arguments.memory_bytes, threads=arguments.threads, files=files)
        yield connection, tables
    finally:
        _close(connection)


def _close(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.close()
    except duckdb.Error as error:
        # A query that does not let itself be interrupted. What was committed is durable without a last checkpoint.
        _LOGGER.warning("the database was not closed: %s", error)


@contextlib.contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        yield listener
    finally:
        listener.close()


class _Server(uvicorn.Server):
    """uvicorn, saying on standard output when it serves."""

    def __init__(self, application: Application, listener: socket.socket) -> None:
        super().__init__(
            uvicorn.Config(
                application,
                loop="uvloop",
                http="httptools",
                lifespan="off",
                access_log=False,
                log_config=None,
                timeout_keep_alive=75,
                timeout_graceful_shutdown=_GRACE_SECONDS,
            )
        )
        self._listener = listener

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"ready http://127.0.0.1:{self._listener.getsockname()[1]}", flush=True)


def _end_with_input(server: uvicorn.Server) -> None:
    """Wait for standard input to end, then end the process, gently first."""
    # Not sys.stdin: its lock, held by this thread, breaks the interpreter's end.
    while os.read(0, 4096):
        pass
    _LOGGER.warning("the parent process is gone; ending")
    server.should_exit = True
    threading.Event().wait(2 * _GRACE_SECONDS)
    os._exit(1)  # a process that hangs here would keep the database file from its successor
