"""Run the stand-in for Azure Web PubSub alone: ``python -m emulators.web_pubsub --access-key KEY``."""

import argparse
import os
import sys

from emulators.web_pubsub.process import serve
from emulators.web_pubsub.settings import SYSTEM_EVENTS, AnyEvent, HubSettings, ServiceSettings
from emulators.web_pubsub.upstream import HttpUpstream
from shared.observability.logs import configure

_MIN_KEY_BYTES = 32


def main() -> int:
    """Parse the command line and serve; return 1 when the port is taken."""
    arguments = _parser().parse_args()
    configure(os.environ.get("LOG_LEVEL") or "INFO")
    hubs = HubSettings(anonymous=arguments.anonymous)
    if arguments.upstream:
        hubs = HubSettings(
            upstream=HttpUpstream(arguments.upstream),
            system_events=frozenset(arguments.events),
            user_events=AnyEvent() if arguments.user_events else frozenset(),
            anonymous=arguments.anonymous,
        )
    try:
        serve(ServiceSettings(arguments.access_key, other_hubs=hubs), arguments.port)
    except OSError as error:
        print(f"the stand-in does not start: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m emulators.web_pubsub", description=__doc__)
    parser.add_argument("--port", type=int, default=8089, help="on 127.0.0.1; 0 picks a free one")
    parser.add_argument(
        "--access-key",
        type=_key,
        default=os.environ.get("WEB_PUBSUB_ACCESS_KEY"),
        required="WEB_PUBSUB_ACCESS_KEY" not in os.environ,
        help="signs access tokens and events, at least 32 bytes (WEB_PUBSUB_ACCESS_KEY)",
    )
    parser.add_argument("--upstream", help="address of the event handler; {event} stands for the event's name")
    parser.add_argument(
        "--events",
        nargs="*",
        default=sorted(SYSTEM_EVENTS),
        choices=sorted(SYSTEM_EVENTS),
        help="system events that the handler is told (all)",
    )
    parser.add_argument("--user-events", action="store_true", help="tell the handler what clients send, too")
    parser.add_argument("--anonymous", action="store_true", help="let clients connect without access token")
    return parser


def _key(text: str) -> str:
    if len(text.encode()) < _MIN_KEY_BYTES:
        raise argparse.ArgumentTypeError(f"at least {_MIN_KEY_BYTES} bytes are expected")
    return text


if __name__ == "__main__":
    sys.exit(main())
