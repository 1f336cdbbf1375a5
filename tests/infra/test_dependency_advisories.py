"""Tests of the check for security advisories, with recorded output of its tools."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from scripts import dependency_advisories

type Print = Callable[[Sequence[str], Path], str]

SKIPPED = {"dependencies": [{"name": "requests", "skip_reason": "not found on PyPI"}], "fixes": []}
KNOWN = {"dependencies": [{"name": "requests", "version": "2.32.3", "vulns": [{"id": "PYSEC-0"}]}]}
CLEAN = {"dependencies": [{"name": "requests", "version": "2.33.0", "vulns": []}]}
NO_NODE: dict[str, Any] = {"vulnerabilities": {}}


def build_tool_substitute(bad_version_report: Any, pinned_report: Any, npm_report: Any) -> Print:
    """Return a fake of pip-audit and npm that prints the given reports."""

    def run(command: Sequence[str], _: Path = dependency_advisories.ROOT) -> str:
        if "pip_audit" not in command:
            return json.dumps(npm_report)
        return json.dumps(pinned_report if str(dependency_advisories.PINS) in command else bad_version_report)

    return run


@pytest.mark.parametrize(
    ("bad_version_report", "pinned_report", "npm_report", "arguments", "exit_code", "has_warning"),
    [
        (KNOWN, CLEAN, NO_NODE, (), 0, False),
        (KNOWN, KNOWN, NO_NODE, (), 1, False),
        (KNOWN, CLEAN, {"vulnerabilities": {"left-pad": {"severity": "high"}}}, (), 1, False),
        (SKIPPED, SKIPPED, NO_NODE, (), 0, True),
        (SKIPPED, SKIPPED, NO_NODE, ("--required",), 2, True),
        (KNOWN, CLEAN, {"message": "405 Method Not Allowed"}, ("--required",), 2, True),
        ("", "", "", ("--required",), 2, True),
        (KNOWN, "", NO_NODE, (), 0, True),
        (KNOWN, "", NO_NODE, ("--required",), 2, True),
        (KNOWN, SKIPPED, NO_NODE, ("--required",), 2, True),
    ],
)
def test_unreachable_source_is_reported(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    bad_version_report: Any,
    pinned_report: Any,
    npm_report: Any,
    arguments: Sequence[str],
    exit_code: int,
    has_warning: bool,  # noqa: FBT001  a parameter
) -> None:
    """An advisory causes exit code 1; a source that lacks a known bad version or a pin counts as unreachable."""
    pins = tmp_path / "constraints.txt"
    pins.write_text("requests==2.33.0\n")
    monkeypatch.setattr(dependency_advisories, "PINS", pins)
    monkeypatch.setattr(
        dependency_advisories,
        "_run_command_and_get_output",
        build_tool_substitute(bad_version_report, pinned_report, npm_report),
    )
    monkeypatch.setattr("shutil.which", lambda name: name)
    assert dependency_advisories.main(arguments) == exit_code
    assert ("NO ADVISORY SOURCE REACHABLE" in capsys.readouterr().err) is has_warning


def test_every_lock_file_is_checked() -> None:
    """The check reads each package-lock.json of the project."""
    found = dependency_advisories.ROOT.glob("**/package-lock.json")
    mine = {
        path.parent.relative_to(dependency_advisories.ROOT).as_posix()
        for path in found
        if "node_modules" not in path.parts
    }
    assert mine == set(dependency_advisories.LOCKS)
