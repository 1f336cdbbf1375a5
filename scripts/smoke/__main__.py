"""The tour that smoke.sh takes."""

import json
import sys
from pathlib import Path

from scripts.smoke.calls import Absent, Failed, Tour
from scripts.smoke.checks import CHECKS, FIRST

DONE, FAILED, MISUSED = 0, 1, 2


def run(tour: Tour) -> int:
    """Take the tour and return the exit code."""
    failed = absent = 0
    for check in CHECKS:
        try:
            outcome, told = "ok", check(tour)
        except Absent as reason:
            absent, outcome, told = absent + 1, "--", str(reason)
        except (Failed, KeyError, TypeError, ValueError, IndexError) as error:
            failed, outcome, told = failed + 1, "FAIL", f"{type(error).__name__}: {error}"
        print(f"{outcome:4} {check.__name__.replace('_', ' '):14} {told}", flush=True)
        if outcome == "FAIL" and check in FIRST:
            break
    print(f"{len(CHECKS)} checks, {failed} failed, {absent} not there", flush=True)
    return FAILED if failed else DONE


def main(arguments: list[str]) -> int:
    """Take the tour that the command line asks for."""
    if len(arguments) != len(("BASE_URL", "KEYS_FILE")):
        print("usage: smoke.sh BASE_URL KEYS_FILE", file=sys.stderr)
        return MISUSED
    try:
        keys = json.loads(Path(arguments[1]).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        print(f"{arguments[1]}: {error}", file=sys.stderr)
        return MISUSED
    return run(Tour(arguments[0].rstrip("/"), keys))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
