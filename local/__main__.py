"""Runs the function app on a desk: ``python -m local``.

One process and one event loop drive the worker library that runs in the cloud, over the same function_app.py, with
embedded stand-ins for what Azure hosts. It is not Azure and not Core Tools; docs/local-host.md says what it leaves out.
"""

import argparse
import asyncio
import os
import signal
import sys
from pathlib import Path

import uvloop

from local.errors import StartError
from local.host.environment import load_local_settings
from local.host.life_cycle import Host, HostOptions
from shared.observability import exporters
from shared.observability.logs import configure
from shared.settings import Settings

_APP = Path(__file__).parent.parent
_STANDARD_OUTPUT = 1
"""The file descriptor: unlike ``sys.stdout`` it can be asked also where standard output is closed."""


def main(arguments: list[str] | None = None) -> int:
    """Run the host and return its exit code: 0 after SIGTERM or Ctrl-C, 1 when it cannot start or breaks."""
    parsed = _parser().parse_args(arguments)
    # State is the operator's own: no other user of the machine reads it.
    os.umask(os.umask(0o077) | 0o077)
    # What functions print must not mix with the line that scripts wait for.
    out, sys.stdout = sys.stdout, sys.stderr
    try:
        load_local_settings(parsed.app)
        configure(os.environ.get("LOG_LEVEL") or "INFO")
        _refuse_unknown_exporters()
        options = _options(parsed, with_sign_in_link=parsed.sign_in_link or os.isatty(_STANDARD_OUTPUT))
        host = Host(options, lambda *said: print(_ready(*said), file=out, flush=True))
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return 0 if runner.run(host.run()) else 1
    except StartError as error:
        print(f"the local host does not start: {error}", file=sys.stderr)
        return 1


def _refuse_unknown_exporters() -> None:
    faults = exporters.find_unsupported_values(os.environ)
    if faults:
        raise StartError("; ".join(faults))


def _ready(address: str, sign_in_link: str) -> str:
    """Return what is printed at once, so that nobody who leaves after the first line breaks the pipe."""
    return f"ready {address}\nsign in at {sign_in_link}" if sign_in_link else f"ready {address}"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m local",
        description="Runs the function app on this machine and prints a line, 'ready http://HOST:PORT', once it "
        "serves. To a terminal it also prints a link that signs in to the web console. The log goes to standard error "
        "as JSON lines. "
        "SIGTERM or Ctrl-C ends it within five seconds and loses nothing. A setting is taken from its option, else "
        "from the environment variable of its name, else from local.settings.json, else it has the default given here.",
    )
    parser.add_argument("--host", help="address to listen on (HOST; 127.0.0.1)")
    parser.add_argument("--port", type=int, help="port to listen on, 0 for any free one (PORT; 7071)")
    parser.add_argument("--data-dir", type=Path, help="folder of all state, made if missing (DATA_DIR; .data)")
    parser.add_argument(
        "--workspace-file",
        help="workspace document that a new data directory is seeded from; empty: none (WORKSPACE_FILE; "
        "samples/workspace.yaml)",
    )
    parser.add_argument(
        "--sign-in-link",
        action="store_true",
        help="print the sign-in link also where standard output is no terminal; whoever reads it can sign in as an "
        "administrator (python -m local.sign_in prints one at any time)",
    )
    parser.add_argument("--app", type=Path, default=_APP, help=f"folder of function_app.py ({_APP})")
    return parser


def _options(parsed: argparse.Namespace, *, with_sign_in_link: bool) -> HostOptions:
    """Return the host's options, and put them into the environment, where the app reads its settings."""
    environment = os.environ
    workspace_file = parsed.workspace_file
    if workspace_file is None:
        workspace_file = environment.get("WORKSPACE_FILE", "samples/workspace.yaml")
    options = HostOptions(
        host=parsed.host or environment.get("HOST") or "127.0.0.1",
        port=parsed.port if parsed.port is not None else _port(environment.get("PORT") or "7071"),
        data_dir=Path(parsed.data_dir or environment.get("DATA_DIR") or ".data").absolute(),
        workspace_file=Path(workspace_file).absolute() if workspace_file else None,
        app=parsed.app.absolute(),
        with_sign_in_link=with_sign_in_link,
    )
    environment["HOST"], environment["PORT"] = options.host, str(options.port)
    environment["DATA_DIR"] = str(options.data_dir)
    environment["WORKSPACE_FILE"] = str(options.workspace_file or "")
    # The host resolves binding expressions from the environment only.
    environment.setdefault("BACKGROUND_SCHEDULE", Settings().background_schedule)
    return options


def _port(text: str) -> int:
    if not text.isdecimal():
        raise StartError(f"PORT is {text!r}; a number is expected")
    return int(text)


if __name__ == "__main__":
    # Before the host has its own handlers, a signal ends the process as cleanly.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    sys.exit(main())
