"""Command that prints a one-time sign-in link for the web console: ``python -m local.sign_in``."""

import argparse
import asyncio
import os
import sys
from pathlib import Path

from local.host.processes import find_running_host
from local.sign_in.codes import build_sign_in_link, open_sign_in_codes


def main(arguments: list[str] | None = None) -> int:
    """Print a sign-in link and return the exit code: 1 if no host runs on the data directory."""
    parser = argparse.ArgumentParser(
        prog="python -m local.sign_in",
        description="Print a link that signs in to the web console of the local host once, within 15 minutes.",
    )
    parser.add_argument(
        "--as", dest="member", default="", help="id of a team member (default: the first enabled administrator)"
    )
    parser.add_argument("--data-dir", type=Path, help="data directory of the host (DATA_DIR; .data)")
    parsed = parser.parse_args(arguments)
    data_dir = Path(parsed.data_dir or os.environ.get("DATA_DIR") or ".data")
    # The code must not be sent to another process on the port of a stopped host.
    host = find_running_host(data_dir)
    if host is None:
        print(f"no local host runs on the data directory {data_dir}; start it with: make run", file=sys.stderr)
        return 1
    print(build_sign_in_link(host.address, asyncio.run(open_sign_in_codes(data_dir).create(parsed.member))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
