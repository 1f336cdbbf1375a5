"""Commands of the edge gateway."""

import asyncio
import logging
import signal
import sys
from collections.abc import Coroutine
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from oi.cli.main import DONE, REFUSED, ExitCode

if TYPE_CHECKING:
    from oi.gateway.settings import GatewaySettings

_FILE = click.argument("file", type=click.Path(path_type=Path, dir_okay=False, exists=True))


@click.group("gateway")
def gateway_commands() -> None:
    """Read an MQTT broker, store the messages on disk, and send them to the workspace.

    \b
    Examples:
      oi gateway check gateway.yaml
      oi gateway run gateway.yaml
    """
    missing = [package for package, module in (("paho-mqtt", "paho"), ("PyYAML", "yaml")) if not find_spec(module)]
    if missing:
        raise click.UsageError(
            f"The gateway needs {' and '.join(missing)}. Install the client with its extra `mqtt`, for instance: "
            "pip install './client[mqtt]'"
        )


@gateway_commands.command("run")
@_FILE
def run_edge_gateway(file: Path) -> ExitCode:
    """Run the gateway until SIGTERM or Ctrl-C; messages that were not sent stay in the spool file."""
    from oi.gateway.gateway import run_gateway  # noqa: PLC0415  needs the extra
    from oi.gateway.sections import SettingsError  # noqa: PLC0415

    settings = _load_settings(file)
    logging.basicConfig(level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(message)s")
    logging.getLogger("httpx").setLevel(logging.WARNING)
    try:
        asyncio.run(_run_until_signal(run_gateway(settings)))
    except* SettingsError as errors:
        raise click.UsageError(str(errors.exceptions[0])) from None
    return DONE


@gateway_commands.command("check")
@_FILE
@click.option(
    "max_messages", "--count", type=click.IntRange(1, 1000), default=20, show_default=True, help="Messages to show."
)
@click.option(
    "max_seconds",
    "--seconds",
    type=click.IntRange(1, 3600),
    default=30,
    show_default=True,
    help="Maximum time to wait.",
)
def check_configuration(file: Path, max_messages: int, max_seconds: int) -> ExitCode:
    """Connect to the service and the MQTT broker, and show messages as they would be sent; nothing is sent.

    The exit code is 1 if the API key lacks a right, or if the service would not accept a message.
    """
    from oi.control_characters import escape_controls  # noqa: PLC0415  only commands that ran need it
    from oi.gateway.check import try_gateway_configuration  # noqa: PLC0415  needs the extra
    from oi.gateway.sections import SettingsError  # noqa: PLC0415
    from oi.gateway.sources.mqtt_connection import BrokerError  # noqa: PLC0415

    settings = _load_settings(file)

    def print_escaped(text: str) -> None:
        click.echo(escape_controls(text))

    try:
        is_good = asyncio.run(
            try_gateway_configuration(settings, max_messages=max_messages, max_seconds=max_seconds, show=print_escaped)
        )
    except SettingsError as error:
        raise click.UsageError(str(error)) from None
    except BrokerError as error:
        raise ConnectionError(str(error)) from None
    return DONE if is_good else REFUSED


@gateway_commands.command("rejected")
@_FILE
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True, help="Messages to show.")
@click.option("as_json", "--json", is_flag=True, help="Print a JSON object a line, with the whole message.")
def show_rejected_messages(file: Path, limit: int, as_json: bool) -> None:
    """Show the newest messages that cannot be sent, with the reasons; stop the gateway first."""
    from oi.control_characters import escape_controls  # noqa: PLC0415  only commands that ran need it
    from oi.gateway.rejected import describe_rejected_messages  # noqa: PLC0415  needs the extra

    lines = describe_rejected_messages(_load_settings(file).spool, limit, as_json=as_json)
    if not lines and not as_json:
        click.echo("no rejected messages")
    for line in lines:
        click.echo(escape_controls(line))


def _load_settings(file: Path) -> "GatewaySettings":
    from oi.gateway.sections import SettingsError  # noqa: PLC0415
    from oi.gateway.settings import load_gateway_settings  # noqa: PLC0415

    try:
        return load_gateway_settings(file)
    except SettingsError as error:
        raise click.UsageError(f"{file}: {error}") from None


async def _run_until_signal(coroutine: Coroutine[Any, Any, None]) -> None:
    task = asyncio.ensure_future(coroutine)
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, task.cancel)
    with suppress(asyncio.CancelledError):
        await task
