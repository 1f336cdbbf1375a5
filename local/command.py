"""Command line of the local host, its settings, and the addresses that it prints.

This module is separate from ``__main__``, which must set options of the interpreter before the libraries are loaded.
"""

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import uvloop
from pydantic import ValidationError

from local.errors import StartError
from local.host.life_cycle import Host, HostOptions
from local.host.triggers import load_local_settings
from shared.observability import exporters
from shared.observability.logs import configure_json_logs, parse_log_level
from shared.settings import Settings
from shared.validation.validation_messages import reword_pydantic_error

_APP = Path(__file__).parent.parent
_LAST_PORT = 65535
_STANDARD_OUTPUT = 1
"""File descriptor of standard output; unlike ``sys.stdout``, it can be checked after standard output was closed."""


def main(arguments: list[str] | None = None) -> int:
    """Run the host and return its exit code: 0 after SIGTERM or Ctrl-C, 1 after a failed start or a fatal error."""
    parsed = _build_parser().parse_args(arguments)
    # Other users of the machine must not read the state.
    os.umask(os.umask(0o077) | 0o077)
    # Output of functions must not mix with the ready line that scripts parse.
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        load_local_settings(parsed.app)
        _configure_log()
        _reject_unknown_telemetry_exporters()
        options = _build_options_and_set_environment(
            parsed, with_sign_in_link=parsed.sign_in_link or os.isatty(_STANDARD_OUTPUT)
        )
        host = Host(options, lambda *values: print(_build_ready_text(*values), file=out, flush=True))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return 0 if runner.run(host.run_and_return_success()) else 1
    except StartError as error:
        print(f"the local host does not start: {error}", file=sys.stderr)
        return 1


def _configure_log() -> None:
    try:
        configure_json_logs(parse_log_level(os.environ.get("LOG_LEVEL") or "INFO"))
    except ValueError as error:
        raise StartError(f"LOG_LEVEL {error}") from None


def _reject_unknown_telemetry_exporters() -> None:
    faults = exporters.describe_unsupported_otel_variables(os.environ)
    if faults:
        raise StartError("; ".join(faults))


def _build_ready_text(address: str, sign_in_link: str) -> str:
    """Build the text that the host prints after its start: its address, and the sign-in link, if any.

    The text is one string, because a program that reads standard output can close the pipe after the first line.
    """
    return f"ready {address}\nsign in at {sign_in_link}" if sign_in_link else f"ready {address}"


def _build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local",
        description="Run the function app on this machine and print a line, 'ready http://HOST:PORT', when it "
        "serves. On a terminal, also print a link that signs in to the web console. Standard error receives the log "
        "as JSON lines. "
        "SIGTERM or Ctrl-C stops it within five seconds without data loss. A setting is read from its option, else "
        "from the environment variable with its name, else from local.settings.json, else the default applies.",
    )
    parser.add_argument("--host", help="address to listen on (HOST; 127.0.0.1)")
    parser.add_argument("--port", type=_parse_port, help="port to listen on, 0 for any free one (PORT; 7071)")
    parser.add_argument("--data-dir", type=Path, help="folder of all state, created if missing (DATA_DIR; .data)")
    parser.add_argument(
        "--workspace-file",
        help="workspace document for a new data directory; empty for none (WORKSPACE_FILE; samples/workspace.yaml)",
    )
    parser.add_argument(
        "--sign-in-link",
        action="store_true",
        help="also print the sign-in link if standard output is not a terminal; every reader of it can sign in as an "
        "administrator (python -m local.sign_in prints a link at any time)",
    )
    parser.add_argument("--app", type=Path, default=_APP, help=f"folder of function_app.py ({_APP})")
    return parser


def _build_options_and_set_environment(parsed: argparse.Namespace, *, with_sign_in_link: bool) -> HostOptions:
    """Build the host's options from command line and environment, and set the environment variables of the app."""
    environment = os.environ
    workspace_file = parsed.workspace_file
    if workspace_file is None:
        workspace_file = environment.get("WORKSPACE_FILE", "samples/workspace.yaml")
    settings = _read_settings_from_environment()
    options = HostOptions(
        host=parsed.host or environment.get("HOST") or "127.0.0.1",
        port=_read_port(parsed, environment),
        data_dir=Path(parsed.data_dir or environment.get("DATA_DIR") or ".data").absolute(),
        workspace_file=Path(workspace_file).absolute() if workspace_file else None,
        app=parsed.app.absolute(),
        with_sign_in_link=with_sign_in_link,
        telemetry_retention_days=settings.telemetry_retention_days,
        hub_retention_hours=settings.hub_retention_hours,
    )
    environment["HOST"], environment["PORT"] = options.host, str(options.port)
    environment["DATA_DIR"] = str(options.data_dir)
    environment["WORKSPACE_FILE"] = str(options.workspace_file or "")
    # Binding expressions are resolved from the environment only.
    environment["BACKGROUND_SCHEDULE"] = settings.background_schedule
    return options


def _read_settings_from_environment() -> Settings:
    try:
        return Settings.read(os.environ)
    except ValidationError as error:
        rules = (f"{each['loc'][0]} {reword_pydantic_error(each['type'], each['msg'])}" for each in error.errors())
        raise StartError("; ".join(rules)) from None


def _read_port(parsed: argparse.Namespace, environment: Mapping[str, str]) -> int:
    """Return the port of the command line, else that of the environment, else 7071."""
    if parsed.port is not None:
        return int(parsed.port)
    try:
        return _parse_port(environment.get("PORT") or "7071")
    except argparse.ArgumentTypeError as error:
        raise StartError(f"PORT {error}") from None


def _parse_port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= len(str(_LAST_PORT)) and int(text) <= _LAST_PORT):
        raise argparse.ArgumentTypeError(f"must be a number from 0 to {_LAST_PORT}, not {text!r}")
    return int(text)
