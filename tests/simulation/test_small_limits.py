"""Tests of the small limits of simulated worlds."""

import re
from pathlib import Path

from tests.simulation.crash_points import ROOT
from tests.simulation.small_limits import COPIES, LIMITS


def find_copies(module: str, limit: str) -> set[Path]:
    """Return the files of the service that import a limit from a module by its name."""
    pattern = re.compile(rf"^ *from {re.escape(module)} import [^\n]*\b{limit}\b", re.MULTILINE)
    files = (path for folder in ("shared", "functions") for path in (ROOT / folder).rglob("*.py"))
    return {path for path in files if pattern.search(path.read_text(encoding="utf-8"))}


def test_modules_with_copies_of_small_limits_are_imported_before_the_first_world() -> None:
    """Each module that imports a limit by its name is imported before a world replaces the limit."""
    found = {path for module, limits in LIMITS for limit in limits for path in find_copies(module.__name__, limit)}
    assert found == {Path(str(module.__file__)) for module in COPIES}
