"""Commands for warm queries (saved KQL queries) and for ad-hoc KQL."""

import sys
from pathlib import Path
from typing import IO, TYPE_CHECKING

import click

from oi.cli.output import (
    JSON_FILE,
    Command,
    add_json_option,
    add_output_option,
    format_rows_as_table,
    open_workspace,
    print_json,
    print_rows,
    read_json,
    read_text_from_standard_input,
    write_output_file,
)
from oi.cli.signing import add_signature_options, send_decision
from oi.control_characters import escape_controls_except_line_breaks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from oi.models import QueryDefinition
    from oi.results import QueryResult

_RIGHT = "Workspace.WarmQuery.Approve"
_MEDIA_TYPES = {
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
_SUFFIXES = {".json": "json", ".csv": "csv", ".parquet": "parquet", ".arrow": "arrow"}
_BINARY = frozenset({"parquet", "arrow"})


def _add_time_and_limit_options(command: Command) -> Command:
    for option in (
        click.option("--limit", type=click.IntRange(1, 10_000), help="Maximum number of rows."),
        click.option("end", "--to", metavar="TIME", help="End of the time range, exclusive; RFC 3339."),
        click.option("start", "--from", metavar="TIME", help="Start of the time range, inclusive; RFC 3339."),
        click.option("--time-range", metavar="DURATION", help="Rows of the last ISO 8601 duration, such as PT1H."),
    ):
        command = option(command)
    return command


@click.group("query")
def query_commands() -> None:
    """List, execute, change and approve warm queries."""


@query_commands.command("list")
@add_json_option
def list_queries(as_json: bool) -> None:
    """List the warm queries."""
    with open_workspace() as workspace:
        found = workspace.queries.list()
    if as_json:
        print_json({"warmQueries": found})
        return
    rows = [{**each, "state": _describe_approval_state(each)} for each in found]
    print_rows(rows, ["lookup", "name", "surface", "state"], empty_text="no warm queries")


def _describe_approval_state(definition: "QueryDefinition") -> str:
    if approval := definition["approval"]:
        return f"approved by {approval['approvedBy']}"
    return "rejected draft" if definition.get("rejection") else "draft"


@query_commands.command("show")
@click.argument("lookup")
@add_json_option
def show_query(lookup: str, as_json: bool) -> None:
    """Show the definition of a warm query."""
    with open_workspace() as workspace:
        found = workspace.queries.get(lookup)
    if as_json:
        print_json(found)
        return
    _print_definition(found)


def _print_definition(definition: "QueryDefinition", *, is_error_output: bool = False) -> None:
    parameters = (
        f"  parameter {each['name']}: {each['type']}, default {each.get('default')!r}"
        for each in definition.get("parameters") or ()
    )
    state = _describe_approval_state(definition)
    lines = (
        f"{definition['name']} ({definition['lookup']}), surface {definition['surface']}, {state}",
        *parameters,
        f"  ETag {definition['etag']}",
        escape_controls_except_line_breaks(definition["kql"]),
    )
    click.echo("\n".join(lines), err=is_error_output)


@query_commands.command("run")
@click.argument("lookup")
@click.option("parameters", "-p", "--parameter", metavar="NAME=VALUE", multiple=True, help="Value of a parameter.")
@_add_time_and_limit_options
@click.option(
    "output_format",
    "--format",
    type=click.Choice(["table", "json", *_MEDIA_TYPES]),
    help="Format of the rows; that of the file's suffix if omitted, else a table.",
)
@add_output_option
@add_json_option
def run_query(
    lookup: str,
    parameters: tuple[str, ...],
    time_range: str | None,
    start: str | None,
    end: str | None,
    limit: int | None,
    output_format: str | None,
    output_path: Path | None,
    as_json: bool,
) -> None:
    """Execute an approved warm query.

    \b
    Examples:
      oi query run latest-readings -p connection=chiller-sim --time-range PT1H
      oi query run latest-readings -o readings.parquet
      oi query run latest-readings --format csv
    """
    from oi._sync.queries import build_execution_parameters  # noqa: PLC0415  loads httpx

    values = _parse_query_parameters(parameters)
    form = (
        "json"
        if as_json
        else output_format or (_SUFFIXES.get(output_path.suffix.lower()) if output_path else None) or "table"
    )
    if form in _BINARY and output_path is None and sys.stdout.isatty():
        raise click.UsageError(f"The format {form} is binary; pass an output file with -o.")
    with open_workspace() as workspace:
        if form == "table":
            result = workspace.queries.run(
                lookup, parameters=values, time_range=time_range, start=start, end=end, limit=limit
            )
            _print_or_write_result(result, output_path)
            return
        media_type = _MEDIA_TYPES.get(form, "application/json")
        chosen = build_execution_parameters(values, time_range, start, end, limit)
        content, headers = workspace.queries.run_raw(lookup, media_type, chosen)
    if output_path is not None:
        write_output_file(output_path, content)
    else:
        sys.stdout.buffer.write(content + (b"\n" if form == "json" else b""))
    _print_note_if_truncated(is_truncated=headers.get("x-query-truncated") == "true")


def _parse_query_parameters(name_value_texts: "Iterable[str]") -> dict[str, str]:
    """Return the values of the options ``--parameter``, by name.

    Raises:
        UsageError: an option does not have the form NAME=VALUE, or two options have the same name.
    """
    values: dict[str, str] = {}
    for text in name_value_texts:
        name, found, value = text.partition("=")
        if not found or not name:
            raise click.UsageError(f"The parameter {text!r} must have the form NAME=VALUE.")
        if name in values:
            raise click.UsageError(f"The parameter {name!r} has several values; pass it once.")
        values[name] = value
    return values


def _print_or_write_result(result: "QueryResult", output_path: Path | None = None) -> None:
    columns = [column.name for column in result.columns]
    if output_path is None:
        print_rows(result.rows, columns, empty_text="no rows")
    else:
        write_output_file(output_path, f"{format_rows_as_table(result.rows, columns)}\n".encode())
    _print_note_if_truncated(is_truncated=result.truncated)


def _print_note_if_truncated(*, is_truncated: bool) -> None:
    if is_truncated:
        click.echo("the query has more rows; raise --limit to see them", err=True)


@query_commands.command("put")
@click.argument("lookup")
@click.argument("file", type=JSON_FILE)
@click.option("--if-match", "etag", help="Replace the query only if it still has this ETag.")
@add_json_option
def put_query(lookup: str, file: IO[str], etag: str | None, as_json: bool) -> None:
    """Create or replace a warm query from a JSON file with name, surface and kql; it is a draft until approved."""
    definition = read_json(file)
    with open_workspace() as workspace:
        stored = workspace.queries.put(lookup, definition, etag=etag)
    print_json(stored) if as_json else click.echo(f"{lookup} is saved as a draft and waits for approval")


@query_commands.command("approve")
@click.argument("lookup")
@click.option("--if-match", "etag", help="Approve without a question, only if the query still has this ETag.")
@add_signature_options
@add_json_option
def approve_query(lookup: str, etag: str | None, meaning: str | None, statement: str | None, as_json: bool) -> None:
    """Approve a draft that another user edited; --meaning signs the approval.

    In a terminal, without --if-match, the command shows the draft, which needs the right Workspace.Catalog.Read, and
    asks for a confirmation. If the query has no draft that waits for approval, the command says so and does not ask.
    An approved query cannot be signed again: with --meaning, the command fails, unless it repeats your signature.
    A script should pass the ETag of the draft that was read; `oi query show` prints it.

    If the signature needs a more recent sign-in, the command asks for the API key, or reads it from standard input.
    """
    known_etag = etag or (_confirm_draft_and_get_etag(lookup) if sys.stdin.isatty() else None)
    stored = send_decision(
        _RIGHT,
        meaning,
        statement,
        lambda workspace: workspace.queries.approve(lookup, meaning=meaning, statement=statement, etag=known_etag),
    )
    print_json(stored) if as_json else click.echo(f"{lookup} is approved")


def _confirm_draft_and_get_etag(lookup: str) -> str:
    """Show the draft of a query, let the user confirm its approval, and return the ETag of the query.

    If no draft waits for approval, show the state of the query instead, and do not ask.

    Raises:
        Abort: the user does not confirm.
    """
    with open_workspace() as workspace:
        found = workspace.queries.get(lookup)
    if found["approval"] or found.get("rejection"):
        # The service decides the exit code: it accepts a repeated approval without another signature, and refuses a
        # rejected draft.
        click.echo(f"{lookup} has no draft that waits for approval: {_describe_approval_state(found)}", err=True)
    else:
        _print_definition(found, is_error_output=True)
        click.confirm("Approve this draft?", abort=True, err=True)
    return found["etag"]


@query_commands.command("reject")
@click.argument("lookup")
@click.option("--comment", required=True, help="What the editor should change.")
@click.option("--if-match", "etag", help="Reject the query only if it still has this ETag.")
@add_signature_options
@add_json_option
def reject_query(
    lookup: str, comment: str, etag: str | None, meaning: str | None, statement: str | None, as_json: bool
) -> None:
    """Reject a draft with a comment; --meaning rejection signs the rejection.

    If the signature needs a more recent sign-in, the command asks for the API key, or reads it from standard input.
    """
    stored = send_decision(
        _RIGHT,
        meaning,
        statement,
        lambda workspace: workspace.queries.reject(lookup, comment, meaning=meaning, statement=statement, etag=etag),
    )
    print_json(stored) if as_json else click.echo(f"{lookup} is rejected")


@click.command("kql")
@click.argument("text")
@_add_time_and_limit_options
@add_json_option
def run_kql_text(
    text: str, time_range: str | None, start: str | None, end: str | None, limit: int | None, as_json: bool
) -> None:
    """Execute the text of a KQL query; ``-`` reads the text from standard input.

    \b
    Example:
      oi kql "Telemetry | summarize count() by ConnectionLookup" --time-range P1D
    """
    from oi._sync.queries import build_execution_parameters  # noqa: PLC0415  loads httpx

    written = read_text_from_standard_input() if text == "-" else text
    with open_workspace() as workspace:
        if as_json:
            body = {"query": written, **build_execution_parameters(None, time_range, start, end, limit)}
            reply = workspace.request("POST", "/oi-api/warm-queries", json=body, reads=True, is_slow=True)
            print_json(reply)
            _print_note_if_truncated(is_truncated=reply["truncated"])
            return
        _print_or_write_result(workspace.kql(written, time_range=time_range, start=start, end=end, limit=limit))
