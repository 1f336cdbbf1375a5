"""Prints a link that signs in to the web console of the local host, once: ``python -m local.sign_in``."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from local.host.running_hosts import find_host
from local.sign_in.codes import SignInCodes

_FOLDER = "sign-in"


def codes(data_dir: Path) -> SignInCodes:
    """Return the sign-in codes of a data directory."""
    return SignInCodes(data_dir / _FOLDER)


def link(address: str, code: str) -> str:
    """Return the link that uses a code; it stands behind the ``#``, which browsers keep to themselves."""
    return f"{address}/console/#sign-in={code}"


def main(arguments: list[str] | None = None) -> int:
    """Print a link and return the exit code: 1 if no host runs over the data directory."""
    parser = argparse.ArgumentParser(
        prog="python -m local.sign_in",
        description="Prints a link that signs in to the web console of the local host, once, within 15 minutes.",
    )
    parser.add_argument("--as", dest="member", default="", help="team member; the first enabled administrator")
    parser.add_argument("--data-dir", type=Path, help="of the host (DATA_DIR; .data)")
    parsed = parser.parse_args(arguments)
    data_dir = Path(parsed.data_dir or os.environ.get("DATA_DIR") or ".data")
    # A code that is good for a session must not lead to a port that a dead host has left to another process.
    host = find_host(data_dir)
    if host is None:
        print(f"no local host runs over {data_dir}; start it with: make run", file=sys.stderr)
        return 1
    print(link(host.address, asyncio.run(codes(data_dir).make(parsed.member))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
