"""Commands for telemetry: send, tail, download."""

import json
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from oi.cli.live_views import LiveChart, LiveTable
from oi.cli.output import format_cell, json_option, open_workspace, print_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@click.command()
@click.argument("lookup")
@click.argument("file", type=click.File("r", encoding="utf-8"), default="-")
@json_option
def send(lookup: str, file: IO[str], as_json: bool) -> None:
    """Send telemetry of a connection: one JSON message, a JSON array, or one JSON message per line.

    \b
    Example:
      echo '{"Temperature": 21.5}' | oi send pump-rig
    """
    with open_workspace() as workspace:
        accepted = workspace.telemetry.send(lookup, _read_messages(file))
    print_json({"accepted": accepted}) if as_json else click.echo(f"{accepted} message{'s'[: accepted != 1]} accepted")


def _read_messages(file: IO[str]) -> Iterator[dict[str, Any]]:
    """Yield the messages of a file; NDJSON is read line by line, other JSON as a whole.

    Raises:
        UsageError: a line is not a JSON object; the message contains the number of the first such line.
    """
    first = file.readline()
    try:
        value = json.loads(first)
    except ValueError:
        # Indented JSON, or a first line that is wrong: the whole text decides.
        try:
            value = json.loads(first + file.read())
        except ValueError as error:
            raise click.UsageError(f"the input is not JSON: {error}") from None
    if isinstance(value, list):
        for index, each in enumerate(value):
            yield _check_message(each, f"element {index}")
        return
    yield _check_message(value, "line 1")
    for number, line in enumerate(file, 2):
        if line.strip():
            try:
                parsed = json.loads(line)
            except ValueError as error:
                raise click.UsageError(f"line {number} is not JSON: {error}") from None
            yield _check_message(parsed, f"line {number}")


def _check_message(value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise click.UsageError(f"{place} is not a JSON object")
    return value


@click.command()
@click.option("--connection", metavar="LOOKUP", help="Messages of one connection.")
@click.option("--surface", metavar="LOOKUP", help="Messages of one surface.")
@click.option("--since", metavar="TIME", help="Begin with the messages since this time; RFC 3339.")
@click.option("--count", type=click.IntRange(1), help="Stop after this number of messages.")
@click.option("--chart", metavar="FIELD", help="Draw the last values of this field of the payload, for each device.")
@click.option("--lines", is_flag=True, help="Print each message as a line, also in a terminal.")
@json_option
def tail(
    connection: str | None,
    surface: str | None,
    since: str | None,
    count: int | None,
    chart: str | None,
    lines: bool,
    as_json: bool,
) -> None:
    """Show live telemetry until Ctrl-C.

    In a terminal, a table shows the newest values of each device; with --chart, it draws the last values of one
    field. Elsewhere, and with --lines, each message is one line. With --json, each message is one line of JSON.

    \b
    Examples:
      oi tail --surface cooling
      oi tail --surface cooling --chart temperature
      oi tail --connection chiller-sim --count 10 --json
    """
    with open_workspace("Workspace.LiveStream.Read") as workspace:
        messages = islice(workspace.stream(connection=connection, surface=surface, since=since), count)
        try:
            if sys.stdout.isatty() and not (lines or as_json):
                _show_live(messages, LiveChart(chart) if chart else LiveTable())
                return
            for message in messages:
                click.echo(json.dumps(message, ensure_ascii=False) if as_json else format_message(message))
                sys.stdout.flush()
        except KeyboardInterrupt:
            return


def format_message(message: "Mapping[str, Any]") -> str:
    """Format a telemetry message as one line: time, connection, device, values."""
    values = "  ".join(f"{name} {format_cell(value)}" for name, value in message["Payload"].items())
    return f"{message['Timestamp']}  {message['Metadata']['ConnectionLookup']}  {message['Subject']}  {values}"


def _show_live(messages: "Iterable[Mapping[str, Any]]", view: LiveTable | LiveChart) -> None:
    from rich.live import Live  # noqa: PLC0415  slow to load

    with Live(view.build(), refresh_per_second=4) as live:
        for message in messages:
            view.add(message)
            live.update(view.build())


@click.command()
@click.argument("kind", type=click.Choice(["connection", "surface"]))
@click.argument("lookup")
@click.option("start", "--from", metavar="TIME", required=True, help="Start of the time range, inclusive; RFC 3339.")
@click.option("end", "--to", metavar="TIME", required=True, help="End of the time range, exclusive; RFC 3339.")
@click.option("form", "--format", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv")
@click.option("folder", "-o", "--output", type=click.Path(path_type=Path), default=Path(), help="Folder of the files.")
@json_option
def download(kind: str, lookup: str, start: str, end: str, form: str, folder: Path, as_json: bool) -> None:
    """Download stored telemetry and check each file's SHA-256.

    \b
    Example:
      oi download connection chiller-sim --from 2026-01-05T00:00:00Z --to 2026-01-06T00:00:00Z -o chiller
    """
    with open_workspace("Workspace.ColdData.Export") as workspace:
        begin = workspace.downloads.connection if kind == "connection" else workspace.downloads.surface
        job = begin(lookup, start=start, end=end, format=form)
        job.wait(on_progress=_show_progress)
        paths = job.save(folder)
    if as_json:
        print_json(job.job)
        return
    for path, file in zip(paths, job.job["files"], strict=True):
        click.echo(f"{path}  {file['rows']:,} rows, {file['bytes']:,} bytes, SHA-256 verified")


def _show_progress(job: "Mapping[str, Any]") -> None:
    progress = job["progress"]
    done, total, rows = (progress[name] for name in ("connectionsDone", "connectionsTotal", "rows"))
    click.echo(f"{job['status']}: {done} of {total} connections, {rows:,} rows", err=True)
