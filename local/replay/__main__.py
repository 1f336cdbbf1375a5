"""Command that replays CSV files as telemetry: ``python -m local.replay FILE.csv ... --connection LOOKUP``.

All files are checked before the first row is sent. The message id is derived from connection, device, time and content
of a row, so that a second replay of the same rows adds nothing.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from pathlib import Path

from rich.console import Console
from rich.progress import Progress

from local.replay.client import TelemetryClient
from local.replay.errors import ReplayError
from local.replay.rows import TIMESTAMP, CsvFile, CsvRow, RepeatFilter, ReplayTarget, parse_zone
from local.replay.service import LocalService, RemoteService, TargetService, checked_session, declared_connection
from shared.catalog.models import Source, TimestampFormat
from shared.telemetry.layout import layout_from_source
from shared.telemetry.pointers import compile_pointer

MAX_BATCH = 500
MAX_BATCH_BYTES = 900_000
"""Below the limit of the service, 1 MiB."""

PACE_SECONDS = 0.1
"""Rows that are due within this time are sent together."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Batch size, speed and concurrency of a replay.

    Attributes:
        batch: most rows in one request.
        speed: factor of the original speed; 0 for as fast as possible.
        concurrency: most concurrent requests.
    """

    batch: int = MAX_BATCH
    speed: float = 0.0
    concurrency: int = 4


async def replay(rows: Iterable[CsvRow], client: TelemetryClient, pace: Pace, progress: "AcceptedRows") -> int:
    """Send rows and return the number of accepted ones.

    Raises:
        ReplayError: a file or the service rejects a row; earlier rows remain stored.
    """
    queue: asyncio.Queue[list[CsvRow] | None] = asyncio.Queue(pace.concurrency)
    try:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(pace.concurrency):
                tasks.create_task(_send(queue, client, progress))
            async for batch in collect_batches(rows, pace):
                await queue.put(batch)
            for _ in range(pace.concurrency):
                await queue.put(None)
    except* ReplayError as group:
        raise _first_error(group) from None
    return progress.accepted


async def collect_batches(rows: Iterable[CsvRow], pace: Pace) -> AsyncIterator[list[CsvRow]]:
    """Yield the rows in batches, each at its due time."""
    clock = _Clock(pace.speed)
    batch: list[CsvRow] = []
    size = 0
    for row in rows:
        wait = clock.wait(row)
        if batch and (len(batch) == pace.batch or size + len(row.message) > MAX_BATCH_BYTES or wait > PACE_SECONDS):
            yield batch
            batch, size = [], 0
            wait = clock.wait(row)
        if wait > PACE_SECONDS:
            await asyncio.sleep(wait)
        batch.append(row)
        size += len(row.message) + 1
    if batch:
        yield batch


class AcceptedRows:
    """Counter of accepted rows, with an optional progress bar.

    Args:
        bar: progress bar, if any.
        total: expected number of rows.
    """

    def __init__(self, bar: Progress | None = None, total: int = 0) -> None:
        self.accepted = 0
        self._bar = bar
        self._task = bar.add_task("rows", total=total) if bar else None

    def add(self, rows: int) -> None:
        """Add accepted rows."""
        self.accepted += rows
        if self._bar is not None and self._task is not None:
            self._bar.update(self._task, completed=self.accepted)


class _Clock:
    """Clock for the due times of rows; the first row is due immediately."""

    def __init__(self, speed: float) -> None:
        self._speed = speed
        self._start: tuple[float, datetime] | None = None

    def wait(self, row: CsvRow) -> float:
        """Return the seconds until a row is due, 0 or less if it is due."""
        if not self._speed:
            return 0.0
        if self._start is None:
            self._start = (time.monotonic(), row.moment)
        started, first = self._start
        return started + (row.moment - first).total_seconds() / self._speed - time.monotonic()


async def _send(queue: "asyncio.Queue[list[CsvRow] | None]", client: TelemetryClient, progress: AcceptedRows) -> None:
    while (batch := await queue.get()) is not None:
        progress.add(await client.post(batch))


def _first_error(group: BaseExceptionGroup[ReplayError]) -> ReplayError:
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error if isinstance(error, ReplayError) else ReplayError(str(error))


def read_api_key(key_file: Path, principal: str) -> str:
    """Return the API key of the environment variable ``OI_API_KEY``, else the principal's in the key file.

    Raises:
        ReplayError: the key does not exist.
    """
    given = os.environ.get("OI_API_KEY", "")
    if given:
        return given
    try:
        keys = json.loads(key_file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ReplayError(f"{key_file} cannot be read; start the local host once, or set OI_API_KEY") from None
    key = keys.get(principal) if isinstance(keys, dict) else None
    if not isinstance(key, str):
        raise ReplayError(f"{key_file} has no key of {principal}")
    return key


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """Return the options of the command line; exit with 2 if they are invalid."""
    parser = argparse.ArgumentParser(prog="python -m local.replay", description=__doc__)
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="CSV file, UTF-8, with a header")
    parser.add_argument("--connection", required=True, help="lookup of the connection that receives the rows")
    parser.add_argument("--time-column", default=TIMESTAMP, help="column of the time (default: timestamp)")
    parser.add_argument("--delimiter", default=",", type=_character, help="separator of cells (default: a comma)")
    parser.add_argument(
        "--speed", default=0.0, type=_speed, help="0: as fast as possible, 1: as measured, 60: 60 times"
    )
    parser.add_argument("--batch", default=MAX_BATCH, type=_integer_up_to(MAX_BATCH), help="most rows in one request")
    parser.add_argument("--device", default="", help="device id of rows without a column deviceId")
    parser.add_argument("--data-dir", type=Path, help="data directory of the local host (DATA_DIR; .data)")
    parser.add_argument("--url", default="", help="base address of another service")
    parser.add_argument("--key-file", type=Path, help="API keys by principal (keys.json in the data directory)")
    parser.add_argument(
        "--as", dest="principal", default="editor@plant-a.example", help="principal of the key in the key file"
    )
    parser.add_argument("--concurrency", default=4, type=_integer_up_to(64), help="most concurrent requests")
    parser.add_argument("--assume-zone", default=None, type=_zone, help="zone of times without one, such as UTC")
    declared = parser.add_argument_group(
        "source of the connection", "for --url, if they differ from the defaults; known for the local host"
    )
    declared.add_argument("--timestamp-pointer", type=_pointer, help="(/timestamp)")
    declared.add_argument("--device-id-pointer", type=_pointer, help="(/deviceId)")
    declared.add_argument("--message-id-pointer", type=_pointer, help="(/messageId)")
    declared.add_argument("--timestamp-format", type=TimestampFormat, choices=list(TimestampFormat), help="(rfc3339)")
    options = parser.parse_args(arguments)
    options.data_dir = Path(options.data_dir or os.environ.get("DATA_DIR") or ".data")
    options.key_file = options.key_file or options.data_dir / "keys.json"
    return options


def _character(text: str) -> str:
    character = {"\\t": "\t", "tab": "\t"}.get(text, text)
    if len(character) != 1 or character in '\r\n"':
        raise argparse.ArgumentTypeError("must be one character, or tab")
    return character


def _speed(text: str) -> float:
    speed = float(text)
    if not 0 <= speed < float("inf"):
        raise argparse.ArgumentTypeError("must be 0 or a positive number")
    return speed


def _zone(text: str) -> tzinfo:
    try:
        return parse_zone(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _pointer(text: str) -> str:
    try:
        compile_pointer(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def _integer_up_to(most: int) -> Callable[[str], int]:
    def number(text: str) -> int:
        if not 1 <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"must be a number from 1 to {most}")
        return int(text)

    return number


async def run(options: argparse.Namespace) -> str:
    """Replay the files of the command line and return the summary line.

    Raises:
        ReplayError: no service responds, a file is invalid, or the service rejects a row.
    """
    service: TargetService = RemoteService(options.url) if options.url else LocalService(options.data_dir)
    key = read_api_key(options.key_file, options.principal)
    started = time.monotonic()
    async with checked_session() as session:
        client = TelemetryClient(session, service, options.connection, key)
        await client.probe()
        files = await _files(options)
        total = check_files(files)
        rows = RepeatFilter()
        pace = Pace(options.batch, options.speed, options.concurrency)
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            accepted = await replay(rows.unique_rows(_rows(files)), client, pace, AcceptedRows(bar, total))
    seconds = time.monotonic() - started
    return f"{rows.read} rows read, {accepted} accepted, {rows.repeated} repeated, in {seconds:.1f} s"


def check_files(files: Sequence[CsvFile]) -> int:
    """Check all files and return the number of rows to send.

    Raises:
        ReplayError: a row of any file cannot be sent.
    """
    return sum(1 for _ in RepeatFilter().unique_rows(_rows(files)))


def _rows(files: Sequence[CsvFile]) -> Iterator[CsvRow]:
    for file in files:
        yield from file.rows()


async def _files(options: argparse.Namespace) -> list[CsvFile]:
    local = None if options.url else (await declared_connection(options.data_dir, options.connection)).source
    named = {
        "timestamp_pointer": options.timestamp_pointer,
        "device_id_pointer": options.device_id_pointer,
        "message_id_pointer": options.message_id_pointer,
        "timestamp_format": options.timestamp_format,
    }
    source = (local or Source()).model_copy(update={name: each for name, each in named.items() if each is not None})
    target = ReplayTarget(options.connection, layout_from_source(source))
    return [
        CsvFile(path, target, options.delimiter, options.time_column, options.assume_zone, options.device)
        for path in options.files
    ]


def main(arguments: Sequence[str]) -> int:
    """Run the command; return 0 if all rows were accepted, else 1."""
    options = parse(arguments)
    try:
        print(asyncio.run(run(options)))
    except ReplayError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
