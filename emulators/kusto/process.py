"""Process of the Data Explorer emulator: its command line, startup and shutdown.

This module is separate from ``__main__``, which must configure the memory allocator before this module loads DuckDB.
"""

import argparse
import asyncio
import contextlib
import logging
import os
import re
import signal
import socket
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import duckdb
import uvicorn
import uvloop

from emulators.kusto.engine import Engine
from emulators.kusto.extensions import create_functions_and_macros
from emulators.kusto.ingest import HubConsumer
from emulators.kusto.ingestion import FileIngestion
from emulators.kusto.monitoring import EndpointMonitor
from emulators.kusto.sandbox import limit_process_memory, open_database, restrict_database
from emulators.kusto.schema import TABLE, create_or_upgrade_tables
from emulators.kusto.server import Application
from emulators.kusto.tables import (
    UnusableFolderError,
    create_parquet_views_and_list_files,
    load_tables_into_memory,
    read_columns_by_table,
    read_type_by_column,
)
from emulators.kusto.translator import Translator
from emulators.kusto.translator_process import ForkedTranslator
from shared.observability.logs import configure_json_logs, parse_log_level

DATABASE_FILE = "telemetry.duckdb"
_GRACE_SECONDS = 5
_MAX_DAYS = 36_500
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Arguments:
    """Command-line arguments of the emulator.

    Attributes:
        data: folder of Parquet files or, if ``hub`` is given, of the database file.
        port: port on 127.0.0.1; 0 selects a free port.
        database: name of the only database.
        hub: SQLite file of the event hub whose events are ingested; None to serve Parquet files.
        retention: time after ingestion at which rows from the hub are deleted; None to delete no rows.
        files: folder of the files that ``.ingest`` commands may read; None to reject these commands.
        exit_with_parent: True to exit when the parent process closes standard input. Until then, each byte that the
            parent process writes means that the hub has new events.
        memory_bytes: memory limit of DuckDB's buffers.
        threads: number of threads that DuckDB uses.
    """

    data: Path
    port: int
    database: str
    hub: Path | None
    retention: timedelta | None
    files: Path | None
    exit_with_parent: bool
    memory_bytes: int
    threads: int


def run_emulator(arguments: Arguments, forked_translator: ForkedTranslator | None = None) -> None:
    """Run the emulator until SIGTERM, SIGINT or, if requested, the end of standard input.

    Args:
        arguments: command-line arguments.
        forked_translator: first translator process; None to start one.

    Raises:
        duckdb.Error: the database cannot be opened.
        UnusableFolderError: the data folder contains no usable table.
        OSError: the port is in use.
    """
    limit_process_memory(arguments.memory_bytes)
    with _open_listener(arguments.port) as listener, _open_database_and_tables(arguments) as (connection, tables):
        asyncio.run(
            _run_server(arguments, connection, tables, listener, forked_translator), loop_factory=uvloop.new_event_loop
        )


class _OpenDatabase(NamedTuple):
    """Open database, and the names of its tables."""

    connection: duckdb.DuckDBPyConnection
    table_names: tuple[str, ...]


async def _run_server(
    arguments: Arguments,
    connection: duckdb.DuckDBPyConnection,
    table_names: tuple[str, ...],
    listener: socket.socket,
    forked_translator: ForkedTranslator | None,
) -> None:
    columns, types = read_columns_by_table(connection, table_names), read_type_by_column(connection, table_names)
    translator = Translator(columns, types, forked=forked_translator)
    ingestion = FileIngestion(connection, arguments.files) if arguments.files and arguments.hub else None
    consumer: HubConsumer | None = None

    def is_ingesting() -> bool:
        return (ingestion is not None and ingestion.is_running) or (consumer is not None and consumer.is_using_memory)

    engine = Engine(connection, translator, arguments.memory_bytes, is_ingesting)
    if arguments.hub:
        consumer = HubConsumer(
            connection,
            arguments.hub,
            retention=arguments.retention,
            is_woken=arguments.exit_with_parent,
            has_leaked_memory=engine.has_leaked_memory,
        )
    monitor = EndpointMonitor(connection, table_names, engine, translator, consumer)
    server = _EndpointServer(Application(engine, arguments.database, monitor, ingestion), listener)
    # After shutdown uvicorn raises the handled signal again, which must not end the process with an error.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda _number, _frame: None)
    await translator.start()
    if consumer is not None:
        consumer.start()
    if arguments.exit_with_parent:
        threading.Thread(target=_stop_at_end_of_input, args=(server, consumer), daemon=True).start()
    try:
        await server.serve(sockets=[listener])
    finally:
        await engine.close()
        await translator.close()
        if consumer is not None:
            await asyncio.to_thread(consumer.stop)


@contextlib.contextmanager
def _open_database_and_tables(arguments: Arguments) -> Iterator[_OpenDatabase]:
    arguments.data.mkdir(parents=True, exist_ok=True)
    connection = open_database(arguments.data / DATABASE_FILE if arguments.hub else None)
    try:
        files: list[Path] = []
        tables: tuple[str, ...] = (TABLE,)
        if arguments.hub:
            create_or_upgrade_tables(connection, datetime.now(UTC).replace(tzinfo=None))
        else:
            files = create_parquet_views_and_list_files(connection, arguments.data)
            load_tables_into_memory(connection, files, arguments.memory_bytes)
            tables = tuple(file.stem for file in files)
        create_functions_and_macros(connection, arguments.database)
        restrict_database(
            connection, memory_bytes=arguments.memory_bytes, threads=arguments.threads, readable_files=files
        )
        yield _OpenDatabase(connection, tables)
    finally:
        _close_database(connection)


def _close_database(connection: duckdb.DuckDBPyConnection) -> None:
    try:
        connection.close()
    except duckdb.Error as error:
        # A query could not be interrupted. Committed data is durable without a final checkpoint.
        _LOGGER.warning("the database was not closed: %s", error)


@contextlib.contextmanager
def _open_listener(port: int) -> Iterator[socket.socket]:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        yield listener
    finally:
        listener.close()


class _EndpointServer(uvicorn.Server):
    """uvicorn server that prints ``ready URL`` once it accepts requests; a parent process waits for this line."""

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


def _stop_at_end_of_input(server: uvicorn.Server, consumer: HubConsumer | None) -> None:
    """Shut the server down at the end of standard input; if this takes too long, kill the process.

    Before the end, each byte of input means that the event hub has new events.
    """
    # Not sys.stdin: this thread would hold its lock, which breaks the shutdown of the interpreter.
    while os.read(0, 4096):
        if consumer is not None:
            consumer.wake()
    _LOGGER.info("standard input has ended, because the parent process stops or was killed; shutting down")
    server.should_exit = True
    threading.Event().wait(2 * _GRACE_SECONDS)
    os._exit(1)  # a process that hangs would block the database file for its successor


_PACKAGE_LOGGER = logging.getLogger("emulators.kusto")
"""Parent of the loggers of this package."""


def main(forked_translator: ForkedTranslator | None) -> None:
    """Parse the command line, run the emulator until it is stopped, and end this process.

    Args:
        forked_translator: first translator process; None to start one.
    """
    arguments = _parse_arguments()
    try:
        level = parse_log_level(os.environ.get("LOG_LEVEL") or "INFO")
    except ValueError as error:
        sys.exit(f"LOG_LEVEL {error}")
    configure_json_logs(level)
    _PACKAGE_LOGGER.setLevel(level)
    code = 0
    try:
        run_emulator(arguments, forked_translator)
    except (duckdb.Error, UnusableFolderError, OSError) as error:
        _PACKAGE_LOGGER.error("cannot serve: %s", error)  # noqa: TRY400  the message is sufficient
        code = 1
    except Exception:
        _PACKAGE_LOGGER.exception("the emulator failed")
        code = 1
    logging.shutdown()
    # Python would wait for the threads of queries that cannot be interrupted.
    os._exit(code)


def _parse_arguments() -> Arguments:
    parser = argparse.ArgumentParser(
        prog="python -m emulators.kusto", description="Run the emulator of the query endpoint of Azure Data Explorer."
    )
    data_help = "folder of the *.parquet tables or, with --hub, of the database file"
    parser.add_argument("--data", type=Path, required=True, help=data_help)
    parser.add_argument("--port", type=int, default=8088, help="port on 127.0.0.1; 0 selects a free one")
    parser.add_argument("--database", default="Telemetry", help="name of the database")
    parser.add_argument("--hub", type=Path, help="file of the event hub to ingest into the table Telemetry")
    retention_help = "days after their ingestion at which rows from the hub are deleted; default: never"
    parser.add_argument(
        "--retention-days", type=_parse_retention_days, metavar="N", dest="retention", help=retention_help
    )
    files_help = "folder of the Parquet files that the command .ingest may add to the table Telemetry"
    parser.add_argument("--files", type=Path, help=files_help)
    parser.add_argument("--exit-with-parent", action="store_true", help="exit at the end of standard input")
    memory_help = "memory limit of the query engine"
    parser.add_argument(
        "--memory-limit", type=_parse_memory_bytes, default="1GB", dest="memory_bytes", help=memory_help
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1, help="threads of the query engine")
    return Arguments(**vars(parser.parse_args()))


def _parse_retention_days(text: str) -> timedelta:
    try:
        days = float(text)
    except ValueError:
        days = 0
    if not 0 < days <= _MAX_DAYS:
        raise argparse.ArgumentTypeError(f"must be a number of days above 0 and at most {_MAX_DAYS}")
    return timedelta(days=days)


def _parse_memory_bytes(text: str) -> int:
    match = re.fullmatch(r"(\d+)(KB|MB|GB)", text)
    if match is None:
        raise argparse.ArgumentTypeError("must be a size such as 1GB or 512MB")
    return int(match[1]) * {"KB": 1000, "MB": 1000**2, "GB": 1000**3}[match[2]]
