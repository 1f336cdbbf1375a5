"""Run the smoke test against a running service; ``smoke.sh`` calls this module."""

import argparse
import json
import sys
from collections.abc import Collection
from pathlib import Path
from typing import NoReturn

from scripts.smoke.calls import CheckFailedError, FeatureMissingError, SmokeContext
from scripts.smoke.checks import CHECKS, FIRST

type ExitCode = int
DONE, FAILED, MISUSED = 0, 1, 2


def run_checks(context: SmokeContext, skipped_checks: Collection[str] = ()) -> ExitCode:
    """Run all checks, print a line for each check, and return the exit code.

    Args:
        context: URL of the service to check, and API keys.
        skipped_checks: names of checks to skip.
    """
    failed = absent = 0
    for name, check in CHECKS.items():
        try:
            outcome, message = "ok", (_raise_check_skipped if name in skipped_checks else check)(context)
        except FeatureMissingError as reason:
            absent, outcome, message = absent + 1, "--", str(reason)
        except (CheckFailedError, KeyError, TypeError, ValueError, IndexError) as error:
            failed, outcome, message = failed + 1, "FAIL", f"{type(error).__name__}: {error}"
        print(f"{outcome:4} {name.replace('_', ' '):14} {message}", flush=True)
        if outcome == "FAIL" and name in FIRST:
            break
    print(f"{len(CHECKS)} checks, {failed} failed, {absent} not available", flush=True)
    return FAILED if failed else DONE


def _raise_check_skipped(_: SmokeContext) -> NoReturn:
    raise FeatureMissingError("the check was skipped because of --without")


def main(arguments: list[str]) -> ExitCode:
    """Run the smoke test with the given command-line options, and return the exit code."""
    parser = argparse.ArgumentParser(prog="smoke.sh", description="Test a running service once from end to end.")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        metavar="CHECK",
        choices=[name for name in CHECKS if name not in FIRST],
        help="skip this check, for instance download from outside a closed network; may be repeated",
    )
    parser.add_argument(
        "--connection",
        default="",
        metavar="LOOKUP",
        help="send the telemetry message to this connection instead of the first one that accepts it",
    )
    parser.add_argument("base_url", metavar="BASE_URL")
    parser.add_argument("keys_file", metavar="KEYS_FILE", help='JSON, {"member": "API key", ...}')
    options = parser.parse_args(arguments)
    try:
        keys = json.loads(Path(options.keys_file).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"{options.keys_file}: {error}", file=sys.stderr)
        return MISUSED
    return run_checks(SmokeContext(options.base_url.rstrip("/"), keys, options.connection), options.without)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
