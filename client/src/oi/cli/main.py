"""Entry point of the command ``oi``; each group of commands is imported when it is used."""

import io
import os
import re
import sys
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

if TYPE_CHECKING:
    from oi.errors import ApiError

ExitCode: TypeAlias = int
DONE, REFUSED, WRONG_USAGE, UNREACHABLE = 0, 1, 2, 3
"""Exit codes: 0 done; 1 refused, not found or broken; 2 wrong usage; 3 service not reachable, or outcome unknown."""

_COMMANDS = {
    "alerts": ("oi.cli.items", "List, acknowledge and configure alerts."),
    "amendments": ("oi.cli.amendments", "Create, list, approve and reject amendments."),
    "audit": ("oi.cli.audit", "Append to the audit log, read, export and verify it."),
    "completion": ("oi.cli.session", "Print the shell script that completes commands."),
    "connections": ("oi.cli.items", "Show and change connections."),
    "download": ("oi.cli.telemetry", "Download stored telemetry."),
    "gateway": ("oi.cli.gateway", "Read an MQTT broker and send its messages to the workspace."),
    "keys": ("oi.cli.keys", "List, create and revoke API keys."),
    "kql": ("oi.cli.queries", "Execute KQL text."),
    "login": ("oi.cli.session", "Store the address and the credential of a workspace."),
    "logout": ("oi.cli.session", "Remove the stored login."),
    "query": ("oi.cli.queries", "List, execute, change and approve warm queries."),
    "replay": ("oi.cli.replay", "Send CSV files as telemetry."),
    "send": ("oi.cli.telemetry", "Send telemetry from a file or from standard input."),
    "status": ("oi.cli.session", "Show the workspace and its connections."),
    "surfaces": ("oi.cli.items", "Show and change surfaces."),
    "tail": ("oi.cli.telemetry", "Show live telemetry."),
    "team": ("oi.cli.items", "Show and change members."),
    "verify-file": ("oi.cli.verify", "Verify an export or an audit bundle offline."),
    "webhooks": ("oi.cli.webhooks", "Show and change webhooks."),
    "whoami": ("oi.cli.session", "Show the identity and the access rights of the caller."),
    "workspace": ("oi.cli.document", "Export, plan and apply the workspace document."),
}

_END_OF_SHORTENED_LIST = re.compile(r"(?:\.\.\.|; and [0-9]+ more)\Z")
"""End of a description that the service shortened: a cut text, or the number of further problems of a document."""


class _LazyGroup(click.Group):
    """Group whose commands are imported when they are used, so that the help is shown without delay."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the module of a command, and return the command."""
        if cmd_name not in _COMMANDS:
            return None
        from oi.cli.examples import add_examples_to_help  # noqa: PLC0415  only commands that ran need it

        module = vars(import_module(_COMMANDS[cmd_name][0]))
        command = next(each for each in module.values() if isinstance(each, click.Command) and each.name == cmd_name)
        add_examples_to_help(cmd_name, command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for the help, without importing the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in sorted(_COMMANDS.items())])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="oi-client", prog_name="oi")
def main() -> None:
    """Work with an Industrial Data Workspace.

    The environment variables OI_URL, OI_KEY and OI_TOKEN have priority over the address and key that `oi login` stored.
    Exit codes: 0 done, 1 refused or not found, 2 wrong usage, 3 not reachable.

    \b
    Examples:
      oi login https://plant.example
      oi query run latest-readings --time-range PT1H
      oi audit verify --scope line-1
    """


def run() -> None:
    """Run the command ``oi`` and end the process with the command's exit code."""
    if sys.stdin is None:
        # The caller closed standard input; commands then read an empty one.
        sys.stdin = Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115  open until the process ends
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal or pipe that is not UTF-8 shows escapes, instead of ending the command.
            stream.reconfigure(errors="backslashreplace")
    sys.exit(execute(sys.argv[1:]))


def execute(arguments: list[str]) -> ExitCode:
    """Run the command ``oi`` and return its exit code."""
    try:
        result = main.main(args=arguments, prog_name="oi", standalone_mode=False)
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.Abort:
        click.echo("stopped", err=True)
        return REFUSED
    except click.ClickException as error:
        error.show()
        return WRONG_USAGE
    except Exception as error:  # noqa: BLE001  unknown errors are raised again
        return _print_error_and_get_exit_code(error)
    return result if isinstance(result, int) else DONE


def _print_error_and_get_exit_code(error: Exception) -> ExitCode:
    """Print an expected error for the user, and return the exit code for the command; raise any other error again."""
    from oi.control_characters import escape_controls, escape_controls_except_line_breaks  # noqa: PLC0415  only commands that ran need it
    from oi.errors import ApiError, UnreachableError  # noqa: PLC0415  as above

    if isinstance(error, UnreachableError):
        click.echo(f"error: {escape_controls(str(error))}", err=True)
        return UNREACHABLE
    if isinstance(error, ApiError):
        from oi.requests import is_service_unreachable  # noqa: PLC0415  loads httpx

        description, *fields = _build_error_lines(error)
        click.echo(f"error: {escape_controls(description)}", err=True)
        for line in fields:
            click.echo(f"  {escape_controls(line)}", err=True)
        for note in getattr(error, "__notes__", ()):
            click.echo(escape_controls_except_line_breaks(note), err=True)
        if error.trace_id:
            click.echo(f"  trace id {escape_controls(error.trace_id)}", err=True)
        return UNREACHABLE if error.is_outcome_unknown or is_service_unreachable(error) else REFUSED
    if isinstance(error, (OSError, ValueError)):
        click.echo(f"error: {escape_controls(str(error))}", err=True)
        return REFUSED
    raise error


def _build_error_lines(error: "ApiError") -> list[str]:
    """Return the lines that describe an error to the user: its description, then one line for each invalid field.

    If the only invalid field is in the description already, it gets no line. If the description lists several fields,
    "the request has several errors" replaces the list.
    """
    description = str(error)
    lines = [_format_invalid_field(each) for each in error.errors]
    if not lines or (len(lines) == 1 and lines[0] in description):
        return [description]
    code = f" ({error.code})" if error.code else ""
    prefix, first, rest = description.removesuffix(code).partition(lines[0])
    if first and "; ".join(lines).startswith(first + _END_OF_SHORTENED_LIST.sub("", rest)):
        description = f"{prefix}the request has several errors{code}"
    return [description, *lines]


def _format_invalid_field(field_error: Mapping[str, Any]) -> str:
    """Format an invalid field as ``field: message``; a field of a workspace document has its line and column first."""
    line, column = field_error.get("line"), field_error.get("column")
    place = "" if line is None or column is None else f"line {line}, column {column}: "
    return f"{place}{field_error.get('field')}: {field_error.get('message')}"
