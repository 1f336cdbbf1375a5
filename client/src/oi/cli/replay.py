"""Command that replays CSV files as telemetry."""

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import tzinfo
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

import click

from oi.cli.output import add_json_option, open_async_workspace, print_json
from oi.counts import format_count
from oi.replay.csv_rows import TIMESTAMP, CsvFile, CsvRow
from oi.replay.layout import TIMESTAMP_FORMATS, build_replay_target, parse_json_pointer
from oi.replay.message_ids import parse_time_zone
from oi.replay.repeat_filter import RepeatFilter

if TYPE_CHECKING:
    from oi import AsyncWorkspace


class _DelimiterType(click.ParamType[str]):
    name = "CHARACTER"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept one character, or the word ``tab`` for the tab character."""
        character = {"\\t": "\t", "tab": "\t"}.get(value, value)
        if len(character) != 1 or character in '\r\n"':
            self.fail(
                "the delimiter must be one character other than a quotation mark or a line break, or the word tab",
                param,
                ctx,
            )
        return character


class _TimeZoneType(click.ParamType[tzinfo]):
    name = "ZONE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tzinfo:
        """Accept the name of a time zone, such as Europe/Berlin."""
        try:
            return parse_time_zone(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class _JsonPointerType(click.ParamType[str]):
    name = "POINTER"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Accept a JSON pointer (RFC 6901)."""
        try:
            parse_json_pointer(value)
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return value


_FILE = click.Path(path_type=Path, exists=True)
_MEMBERS = {
    "timestamp_pointer": "timestampPointer",
    "device_id_pointer": "deviceIdPointer",
    "message_id_pointer": "messageIdPointer",
    "timestamp_format": "timestampFormat",
}


@click.command("replay")
@click.argument("files", type=_FILE, nargs=-1, required=True, metavar="FILE...")
@click.option("--connection", required=True, metavar="LOOKUP", help="Connection that receives the rows.")
@click.option("--time-column", default=TIMESTAMP, show_default=True, help="Column of the time.")
@click.option("--delimiter", type=_DelimiterType(), default=",", show_default=True, help="Separator of cells.")
@click.option("--assume-zone", "zone", type=_TimeZoneType(), help="Zone of times without one, such as Europe/Berlin.")
@click.option("--device", default="", help="Device id of rows without a column deviceId.")
@click.option(
    "--speed", type=click.FloatRange(0, 1e9), default=0.0, help="0: as fast as possible, 1: as measured, 60: 60 times."
)
@click.option("--batch", type=click.IntRange(1, 5_000), default=1_000, show_default=True, help="Rows in one request.")
@click.option("--concurrency", type=click.IntRange(1, 64), default=4, show_default=True, help="Concurrent requests.")
@click.option(
    "--timestamp-pointer", type=_JsonPointerType(), help="Place of the time, if not as the connection declares."
)
@click.option("--device-id-pointer", type=_JsonPointerType(), help="Place of the device id, likewise.")
@click.option("--message-id-pointer", type=_JsonPointerType(), help="Place of the message id, likewise.")
@click.option("--timestamp-format", type=click.Choice(TIMESTAMP_FORMATS), help="Format of the time, likewise.")
@add_json_option
def replay_csv_files(as_json: bool, **options: Any) -> None:
    """Send CSV files as telemetry of a connection.

    All files are checked before the first row is sent. The message id of a row is derived from connection, device, time
    and content, so that a second replay of the same rows adds nothing. Ids in the columns messageId and deviceId are
    sent unchanged.

    \b
    Examples:
      oi replay rig.csv --connection pump-rig
      oi replay rig.csv --connection pump-rig --time-column datetime --delimiter ';' --assume-zone UTC
      oi replay day1.csv day2.csv --connection pump-rig --speed 60
    """
    started = time.monotonic()
    counts = asyncio.run(_replay_files_and_count_rows(options))
    if as_json:
        print_json(counts)
        return
    click.echo(
        f"{format_count(counts['read'], 'row')} read, {counts['accepted']} accepted, {counts['repeated']} repeated, "
        f"in {time.monotonic() - started:.1f} s"
    )


class _RowCounts(TypedDict):
    """Counts of the rows that were read, that the service accepted, and that were skipped as repetitions."""

    read: int
    accepted: int
    repeated: int


async def _replay_files_and_count_rows(options: Mapping[str, Any]) -> _RowCounts:
    from rich.console import Console  # noqa: PLC0415  slow to load
    from rich.progress import Progress  # noqa: PLC0415

    from oi.replay.sending import Pace, send_rows  # noqa: PLC0415  loads httpx

    async with open_async_workspace() as workspace:
        files = await _build_csv_file_objects(workspace, options)
        total = sum(1 for _ in RepeatFilter().iterate_unique_rows(_iterate_rows_of_files(files)))
        rows, accepted = RepeatFilter(), 0
        console = Console(stderr=True)
        with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("rows", total=total)

            def report_accepted(row_count: int) -> None:
                nonlocal accepted
                accepted += row_count
                bar.update(task, completed=accepted)

            pace = Pace(options["batch"], options["speed"], options["concurrency"])
            unique = rows.iterate_unique_rows(_iterate_rows_of_files(files))
            await send_rows(unique, workspace.telemetry, options["connection"], pace, report_accepted)
    return {"read": rows.read, "accepted": accepted, "repeated": rows.repeated}


async def _build_csv_file_objects(workspace: "AsyncWorkspace", options: Mapping[str, Any]) -> list[CsvFile]:
    declared = await _load_connection_source(workspace, options["connection"])
    named = {member: options[option] for option, member in _MEMBERS.items() if options[option] is not None}
    target = build_replay_target(options["connection"], {**declared, **named})
    return [
        CsvFile(path, target, options["delimiter"], options["time_column"], options["zone"], options["device"])
        for path in options["files"]
    ]


async def _load_connection_source(workspace: "AsyncWorkspace", lookup: str) -> Mapping[str, Any]:
    """Return the property ``source`` of a connection, which contains the JSON pointers to the metadata in its messages.

    The result is empty if the API key may only send telemetry.
    """
    from oi.errors import ForbiddenError  # noqa: PLC0415  only commands that ran need it

    try:
        connection, _ = await workspace.connections.get(lookup)
    except ForbiddenError:
        click.echo("the key may not read the connection: its pointers are taken from the options", err=True)
        return {}
    return {name: value for name, value in (connection.get("source") or {}).items() if value is not None}


def _iterate_rows_of_files(files: Sequence[CsvFile]) -> Iterator[CsvRow]:
    for file in files:
        yield from file.iterate_rows()
