"""Look up security advisories about the pinned Python and npm packages (``make check-dependencies``).

The exit code is 1 if a pinned package has an advisory. Otherwise, if packages could not be looked up, the last line of
the output names their sets. The exit code is then 0, because the machine may be offline, or 2 with ``--required``.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PINS = ROOT / "requirements" / "constraints.txt"
LOCKS = ("web", "console", "tests/azurite", "tests/node_suites", "bench/lighthouse")
KNOWN_BAD = "requests==2.32.3"
"""Package version with an advisory. A package index that reports no advisory for this version provides none at all."""

SECONDS = 600


@dataclass
class AdvisoryReport:
    """Security advisories about one set of packages.

    Attributes:
        name: name of the set: ``Python``, or the folder of a lock file of npm.
        reached: True if a source of advisories replied for every package; if False, some or all were not checked.
        found: one line for each advisory about a Python package, or for each npm package with advisories.
    """

    name: str
    reached: bool = True
    found: list[str] = field(default_factory=list)


def build_python_advisory_report() -> AdvisoryReport:
    """Look up the pinned Python packages in the advisories of PyPI, and report the advisories that were found.

    The function first looks up a package that is known to have an advisory, because some mirrors of PyPI provide no
    advisories.
    """
    with tempfile.TemporaryDirectory() as folder:
        canary = Path(folder) / "canary.txt"
        canary.write_text(f"{KNOWN_BAD}\n")
        if not list_advisories(run_pip_audit(canary)):
            return AdvisoryReport("Python", reached=False)
    checked = run_pip_audit(PINS)
    is_complete = len(checked) == len(PINS.read_text().split())
    return AdvisoryReport("Python", reached=is_complete, found=list_advisories(checked))


def run_pip_audit(requirements_file: Path) -> list[dict[str, Any]]:
    """Run pip-audit on a file of pinned packages; return its result for each package that it could look up.

    The list is empty if pip-audit fails or gets no reply.
    """
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--no-deps", "--disable-pip"]
    document = _parse_json_object_or_empty(
        _run_command_and_get_output([*command, "--progress-spinner", "off", "--requirement", str(requirements_file)])
    )
    # The result of a package that the index does not know has no list of advisories.
    return [package for package in document.get("dependencies", []) if "vulns" in package]


def list_advisories(packages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return one line for each advisory in the results of :func:`run_pip_audit`."""
    return [f"{package['name']} {package['version']}: {one['id']}" for package in packages for one in package["vulns"]]


def build_npm_advisory_report(lock_file_folder: str) -> AdvisoryReport:
    """Look up the packages of a folder's lock file in the advisories of npm, and report the advisories found."""
    npm = shutil.which("npm")
    document = (
        _parse_json_object_or_empty(
            _run_command_and_get_output([npm, "audit", "--package-lock-only", "--json"], ROOT / lock_file_folder)
        )
        if npm
        else {}
    )
    if "vulnerabilities" not in document:
        return AdvisoryReport(lock_file_folder, reached=False)
    found = [f"{name}: {one['severity']}" for name, one in document["vulnerabilities"].items()]
    return AdvisoryReport(lock_file_folder, found=found)


def _run_command_and_get_output(command: Sequence[str], folder: Path = ROOT) -> str:
    environment = os.environ | {"npm_config_update_notifier": "false"}
    try:
        done = subprocess.run(  # noqa: S603  the commands above
            command, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return ""
    return done.stdout


def _parse_json_object_or_empty(text: str) -> dict[str, Any]:
    try:
        document = json.loads(text)
    except ValueError:
        return {}
    return document if isinstance(document, dict) else {}


def main(arguments: Sequence[str]) -> int:
    """Look up all packages, print the advisories and return the exit code."""
    outcomes = [build_python_advisory_report(), *(build_npm_advisory_report(folder) for folder in LOCKS)]
    for outcome in outcomes:
        result = f"{len(outcome.found)} advisories" if outcome.reached else "NOT COMPLETELY CHECKED"
        print(f"{outcome.name}: {result}", *outcome.found, sep="\n  ")  # noqa: T201  the output of the command
    unreached = [outcome.name for outcome in outcomes if not outcome.reached]
    if any(outcome.found for outcome in outcomes):
        return 1
    if unreached:
        line = f"NO ADVISORY SOURCE REACHABLE for {', '.join(unreached)}: these packages were not all checked"
        print(f"{'!' * 20} {line}", file=sys.stderr)  # noqa: T201  as above
        return 2 if "--required" in arguments else 0
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
