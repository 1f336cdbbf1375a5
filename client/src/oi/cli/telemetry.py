"""Commands for telemetry: send, tail, download."""

import re
import sys
from collections.abc import Iterator
from functools import cache
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import click

from oi.batches import MESSAGE_ID_POINTER
from oi.cli.live_views import LiveChart, LiveTable
from oi.cli.output import JSON_FILE, add_json_option, format_cell, format_json, open_workspace, print_json
from oi.control_characters import escape_controls
from oi.counts import format_count
from oi.errors import ApiError, ForbiddenError, NotFoundError
from oi.json_text import JsonTextError, encode_json, parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from oi import Workspace


_CHUNK = 5_000
"""Number of messages that are read from the input before they are sent together."""
_LINE = re.compile(r"\b[Ll]ine ([0-9]{1,6})\b")


class _MessageWithPosition(NamedTuple):
    """Message, with its position in the input, such as ``line 7``."""

    position: str
    message: dict[str, Any]


@click.command("send")
@click.argument("lookup")
@click.argument("file", type=JSON_FILE, default="-")
@add_json_option
def send_telemetry(lookup: str, file: IO[str], as_json: bool) -> None:
    """Send telemetry of a connection: one JSON message, a JSON array, or one JSON message per line.

    Lines are sent in groups of 5,000 while the input is read; the rest is sent when it ends. An array is sent when the
    input has ended.

    \b
    Example:
      echo '{"Temperature": 21.5}' | oi send pump-rig
    """
    accepted = 0
    messages = _iterate_messages(file)
    try:
        with open_workspace() as workspace:
            pointer = _load_message_id_pointer(workspace, lookup)
            while chunk := list(islice(messages, _CHUNK)):
                accepted += _send_and_count_messages(workspace, lookup, chunk, pointer)
    except (click.UsageError, ApiError, UnicodeDecodeError) as error:
        accepted += getattr(error, "accepted", 0)
        if accepted:
            click.echo(f"{format_count(accepted, 'message')} accepted before the error", err=True)
        if isinstance(error, UnicodeDecodeError):
            raise click.UsageError("the input is not UTF-8 text") from None
        raise
    print_json({"accepted": accepted}) if as_json else click.echo(f"{format_count(accepted, 'message')} accepted")


def _load_message_id_pointer(workspace: "Workspace", lookup: str) -> str:
    """Return the JSON pointer to the id in a connection's messages.

    Return the default pointer if the connection states none or is unknown, or if the key may not read the connection.
    """
    try:
        connection, _ = workspace.connections.get(lookup)
    except (ForbiddenError, NotFoundError):
        # Telemetry for an unknown connection is refused with a better error.
        return MESSAGE_ID_POINTER
    return (connection.get("source") or {}).get("messageIdPointer") or MESSAGE_ID_POINTER


def _send_and_count_messages(
    workspace: "Workspace", lookup: str, chunk: "Sequence[_MessageWithPosition]", message_id_pointer: str
) -> int:
    """Send messages and return their number.

    Raises:
        ApiError: a message is rejected, or some were possibly stored; the error states their positions in the input.
    """
    try:
        return workspace.telemetry.send(lookup, [each.message for each in chunk], message_id_pointer=message_id_pointer)
    except ApiError as error:
        positions = [each.position for each in chunk[error.accepted :]]

        def replace_line_by_position(match: "re.Match[str]") -> str:
            number = int(match[1])
            return positions[number - 1] if 0 < number <= len(positions) else match[0]

        text = _LINE.sub(replace_line_by_position, str(error))
        if error.is_outcome_unknown:
            text = f"{_format_position_range(positions[: error.attempted])}: {text}"
        error.args = (text,)
        error.errors = [
            {**each, "field": _LINE.sub(replace_line_by_position, str(each.get("field")))} for each in error.errors
        ]
        raise


def _format_position_range(positions: "Sequence[str]") -> str:
    return " to ".join(dict.fromkeys((positions[0], positions[-1])))


def _iterate_messages(file: IO[str]) -> Iterator[_MessageWithPosition]:
    """Yield the messages of a file with their positions; NDJSON is read line by line, other JSON as a whole.

    Raises:
        UsageError: the input is not JSON, or a message is not a JSON object; the error states the position.
    """
    lines = ((number, line) for number, line in enumerate(file, 1) if line.strip())
    start, first = next(lines, (1, ""))
    try:
        value = parse_json(first)
    except JsonTextError as fault:
        # The first line is wrong, or the text is indented JSON: parse the text as a whole to find out.
        rest = file.read()
        try:
            value = parse_json("\n" * (start - 1) + first + rest)
        except JsonTextError as error:
            is_line = _is_json_object(rest.partition("\n")[0])
            described = f"line {start}: {fault}" if is_line else f"the input is not valid JSON: {error}"
            raise click.UsageError(described) from None
    if isinstance(value, list):
        if following := next(lines, None):
            raise click.UsageError(f"line {following[0]}: text follows the array of line {start}")
        for number, each in enumerate(value, 1):
            yield _require_json_object_at(each, f"element {number}")
        return
    yield _require_json_object_at(value, f"line {start}")
    for number, line in lines:
        try:
            parsed = parse_json(line)
        except JsonTextError as error:
            raise click.UsageError(f"line {number}: {error}") from None
        yield _require_json_object_at(parsed, f"line {number}")


def _is_json_object(line: str) -> bool:
    try:
        return isinstance(parse_json(line), dict)
    except JsonTextError:
        return False


def _require_json_object_at(value: Any, position: str) -> _MessageWithPosition:
    """Return the value as a message with its position; raise a UsageError if the value is not a JSON object."""
    if not isinstance(value, dict):
        raise click.UsageError(f"{position} is not a JSON object")
    try:
        encode_json(value)
    except JsonTextError as error:
        raise click.UsageError(f"{position}: {error}") from None
    return _MessageWithPosition(position, value)


@click.command("tail")
@click.option("--connection", metavar="LOOKUP", help="Messages of one connection.")
@click.option("--surface", metavar="LOOKUP", help="Messages of one surface.")
@click.option("--since", metavar="TIME", help="Begin with the messages since this time; RFC 3339.")
@click.option("max_messages", "--count", type=click.IntRange(1), help="Stop after this number of messages.")
@click.option(
    "chart_field",
    "--chart",
    metavar="FIELD",
    help="Draw the last values of this field of the payload, for each device.",
)
@click.option("as_lines", "--lines", is_flag=True, help="Print each message as a line, also in a terminal.")
@add_json_option
def show_live_telemetry(
    connection: str | None,
    surface: str | None,
    since: str | None,
    max_messages: int | None,
    chart_field: str | None,
    as_lines: bool,
    as_json: bool,
) -> None:
    """Show live telemetry until Ctrl-C.

    In a terminal, a table shows the newest values of each device; with --chart, a chart shows the last values of one
    field. Elsewhere, and with --lines, each message is one line. With --json, each message is one line of JSON.

    \b
    Examples:
      oi tail --surface cooling
      oi tail --surface cooling --chart temperature
      oi tail --connection chiller-sim --count 10 --json
    """
    with open_workspace("Workspace.LiveStream.Read") as workspace:
        # The cache prints each reason once, although the client tries again.
        stream = workspace.stream(
            connection=connection,
            surface=surface,
            since=since,
            on_failure=cache(_print_stream_failure),
        )
        messages = islice(stream, max_messages)
        try:
            if sys.stdout.isatty() and not (as_lines or as_json):
                _show_live_view(messages, LiveChart(chart_field) if chart_field else LiveTable())
                return
            for message in messages:
                click.echo(format_json(message) if as_json else format_message_as_line(message))
                sys.stdout.flush()
        except KeyboardInterrupt:
            return


def _print_stream_failure(reason: str) -> None:
    click.echo(escape_controls(f"note: the service closed the stream, which is tried again: {reason}"), err=True)


def format_message_as_line(message: "Mapping[str, Any]") -> str:
    """Format a telemetry message as one line: time, connection, device, values."""
    values = (f"{escape_controls(name)} {format_cell(value)}" for name, value in message["Payload"].items())
    device = escape_controls(message["Subject"])
    return "  ".join((message["Timestamp"], message["Metadata"]["ConnectionLookup"], device, *values))


def _show_live_view(messages: "Iterable[Mapping[str, Any]]", view: LiveTable | LiveChart) -> None:
    from rich.live import Live  # noqa: PLC0415  slow to load

    with Live(view.build(), refresh_per_second=4) as live:
        for message in messages:
            view.add(message)
            live.update(view.build())


@click.command("download")
@click.argument("kind", type=click.Choice(["connection", "surface"]))
@click.argument("lookup")
@click.option("start", "--from", metavar="TIME", required=True, help="Start of the time range, inclusive; RFC 3339.")
@click.option("end", "--to", metavar="TIME", required=True, help="End of the time range, exclusive; RFC 3339.")
@click.option("file_format", "--format", type=click.Choice(["csv", "jsonl", "parquet"]), default="csv")
@click.option("folder", "-o", "--output", type=click.Path(path_type=Path), default=Path(), help="Folder of the files.")
@add_json_option
def download_telemetry(
    kind: str, lookup: str, start: str, end: str, file_format: str, folder: Path, as_json: bool
) -> None:
    """Download stored telemetry and check each file's SHA-256.

    \b
    Example:
      oi download connection chiller-sim --from 2026-01-05T00:00:00Z --to 2026-01-06T00:00:00Z -o chiller
    """
    with open_workspace("Workspace.ColdData.Export") as workspace:
        begin = workspace.downloads.connection if kind == "connection" else workspace.downloads.surface
        job = begin(lookup, start=start, end=end, format=file_format)
        job.wait(on_progress=_print_download_progress)
        paths = job.save(folder)
    if as_json:
        print_json(job.job)
        return
    for path, file in zip(paths, job.job["files"], strict=True):
        rows = format_count(file["rows"], "row", separator=",")
        size = format_count(file["bytes"], "byte", separator=",")
        click.echo(f"{path}  {rows}, {size}, SHA-256 verified")


def _print_download_progress(job: "Mapping[str, Any]") -> None:
    progress = job["progress"]
    done, rows = progress["connectionsDone"], progress["rows"]
    connections = format_count(progress["connectionsTotal"], "connection")
    click.echo(f"{job['status']}: {done} of {connections}, {format_count(rows, 'row', separator=',')}", err=True)
