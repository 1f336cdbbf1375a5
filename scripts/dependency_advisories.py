"""Looks the pinned packages up in the advisories of PyPI and npm; see ``make check-dependencies``.

Ends with 1 where an advisory is known of a pinned package. Where no source of advisories is reached nothing was
checked, and the last line says so; that is 0, since a machine may be cut off, and 2 with ``--required``.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINS = ROOT / "constraints.txt"
LOCKS = ("web", "console", "tests/azurite", "tests/node_suites", "bench/lighthouse")
KNOWN_BAD = "requests==2.32.3"
"""A version that has an advisory; a source that does not know it is none, however friendly its answer."""

SECONDS = 600


@dataclass
class AdvisoryReport:
    """What was found out about one set of packages.

    Attributes:
        name: of the set.
        reached: whether a source of advisories answered.
        found: what it says, a line each.
    """

    name: str
    reached: bool = True
    found: list[str] = field(default_factory=list)


def check_python_packages() -> AdvisoryReport:
    """Return what PyPI says of the pins; asks for one package alone first, since some mirrors keep no advisories."""
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary.txt"
        canary.write_text(f"{KNOWN_BAD}\n")
        if not find_advisories(canary):
            return AdvisoryReport("Python", reached=False)
    return AdvisoryReport("Python", found=find_advisories(PINS))


def find_advisories(pins: Path) -> list[str]:
    """Return the advisories that pip-audit finds for a file of pins, none where it gets no answer."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--no-deps", "--disable-pip"]
    document = _parse_json(_run([*command, "--progress-spinner", "off", "--requirement", str(pins)]))
    found = []
    for package in document.get("dependencies", []):
        found += [f"{package['name']} {package['version']}: {one['id']}" for one in package.get("vulns", [])]
    return found


def check_node_packages(folder: str) -> AdvisoryReport:
    """Return what npm says of a lock file."""
    npm = shutil.which("npm")
    document = _parse_json(_run([npm, "audit", "--package-lock-only", "--json"], ROOT / folder)) if npm else {}
    if "vulnerabilities" not in document:
        return AdvisoryReport(folder, reached=False)
    found = [f"{name}: {one['severity']}" for name, one in document["vulnerabilities"].items()]
    return AdvisoryReport(folder, found=found)


def _run(command: Sequence[str], folder: Path = ROOT) -> str:
    environment = os.environ | {"npm_config_update_notifier": "false"}
    try:
        done = subprocess.run(  # noqa: S603  the commands above
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _parse_json(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def main(arguments: Sequence[str]) -> int:
    """Print what was found, and return how the command ends."""
    outcomes = [check_python_packages(), *(check_node_packages(folder) for folder in LOCKS)]
    for outcome in outcomes:
        told = f"{len(outcome.found)} advisories" if outcome.reached else "NOT CHECKED"
        print(f"{outcome.name}: {told}", *outcome.found, sep="\n  ")  # noqa: T201  what the command is for
    unreached = [outcome.name for outcome in outcomes if not outcome.reached]
    if any(outcome.found for outcome in outcomes):
        return 1
    if unreached:
        line = f"NO ADVISORY SOURCE REACHABLE for {', '.join(unreached)}: nothing is known of these packages"
        print(f"{'!' * 20} {line}", file=sys.stderr)  # noqa: T201  as above
        return 2 if "--required" in arguments else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
