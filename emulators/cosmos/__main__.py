"""Command that runs the Cosmos DB test server alone: `python -m emulators.cosmos --port 0`."""

import argparse
import signal
import sys
import threading

from emulators.cosmos.account import AccountOptions, Consistency
from emulators.cosmos.faults import build_random_faults, build_random_read_faults
from emulators.cosmos.server import CosmosServer
from emulators.cosmos.service import DEFAULT_KEY

READS = ("query", "read_item")


def main() -> None:
    """Run the Cosmos DB test server until SIGTERM or SIGINT; print `ready URL` when clients can connect."""
    options = _parse_options()
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server = CosmosServer(
        key=options.key,
        options=AccountOptions(consistency=options.consistency, request_units=options.request_units),
        physical_partitions=options.physical_partitions,
        latency=options.latency_ms / 1000,
        port=options.port,
    )
    delay = options.delay_ms / 1000
    if options.chaos:
        server.faults.add_all(
            build_random_faults(
                options.chaos,
                options.seed,
                lambda request: request.operation in options.operations,
                delay_seconds=delay,
            )
        )
    if options.read_chaos:
        server.faults.add_all(
            build_random_read_faults(
                options.read_chaos,
                options.seed + 1_000,
                lambda request: request.operation in READS,
                delay_seconds=delay,
            )
        )
    with server:
        sys.stdout.write(f"ready {server.endpoint}\n")
        sys.stdout.flush()
        stopped.wait()


def _parse_options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m emulators.cosmos", description="Run the Cosmos DB test server.")
    parser.add_argument("--port", type=int, default=0, help="port on 127.0.0.1; 0 selects a free one")
    parser.add_argument("--key", default=DEFAULT_KEY, help="master key, base64")
    parser.add_argument("--consistency", type=Consistency, default=Consistency.BOUNDED_STALENESS)
    parser.add_argument("--physical-partitions", type=int, default=1)
    parser.add_argument("--latency-ms", type=float, default=0.0, help="delay of every request")
    parser.add_argument("--request-units", type=float, help="request units per second of each container")
    parser.add_argument("--chaos", type=float, default=0.0, help="probability of a random fault for each request")
    parser.add_argument("--seed", type=int, default=0, help="seed of the random faults")
    parser.add_argument("--operations", nargs="*", default=["batch"], help="operations with --chaos")
    parser.add_argument("--read-chaos", type=float, default=0.0, help="probability of a random fault for each read")
    parser.add_argument("--delay-ms", type=float, default=20.0, help="length of random delays")
    return parser.parse_args()


if __name__ == "__main__":
    main()
