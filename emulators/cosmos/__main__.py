"""Runs a Cosmos test server as a process of its own: `python -m emulators.cosmos --port 0`."""

import argparse
import signal
import sys
import threading

from emulators.cosmos.account import AccountOptions, Consistency
from emulators.cosmos.faults import random_faults, random_read_faults
from emulators.cosmos.server import DEFAULT_KEY, CosmosServer

READS = ("query", "read_item")


def main() -> None:
    """Serves until SIGTERM or SIGINT; says `ready URL` when it answers."""
    options = _options()
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server = CosmosServer(
        key=options.key,
        options=AccountOptions(consistency=options.consistency),
        physical_partitions=options.physical_partitions,
        latency=options.latency_ms / 1000,
        port=options.port,
    )
    delay = options.delay_ms / 1000
    if options.chaos:
        server.faults.add(
            *random_faults(options.chaos, options.seed, lambda it: it.operation in options.operations, seconds=delay)
        )
    if options.read_chaos:
        server.faults.add(
            *random_read_faults(
                options.read_chaos, options.seed + 1_000, lambda it: it.operation in READS, seconds=delay
            )
        )
    with server:
        sys.stdout.write(f"ready {server.endpoint}\n")
        sys.stdout.flush()
        stopped.wait()


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulators.cosmos", description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="the port; 0 for a free one")
    parser.add_argument("--key", default=DEFAULT_KEY, help="the master key, base64")
    parser.add_argument("--consistency", type=Consistency, default=Consistency.BOUNDED_STALENESS)
    parser.add_argument("--physical-partitions", type=int, default=1)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="what every request waits")
    parser.add_argument("--chaos", type=float, default=0.0, help="how likely a fault of any kind strikes a request")
    parser.add_argument("--seed", type=int, default=0, help="seeds the faults")
    parser.add_argument("--operations", nargs="*", default=["batch"], help="the operations that --chaos strikes")
    parser.add_argument("--read-chaos", type=float, default=0.0, help="how likely a fault strikes a read")
    parser.add_argument("--delay-ms", type=float, default=20.0, help="how long the delays of both are")
    return parser.parse_args()


if __name__ == "__main__":
    main()
