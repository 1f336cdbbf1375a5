"""Runs named tests with pytest, and reads their results from pytest's JUnit report."""

import ast
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from scripts.validation.clauses import TestName

type ExitCode = int
_REASON_LENGTH: Final = 300


class Outcome(StrEnum):
    """Outcome of a named test; a test passes only if all of its cases pass."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_RUN = "not run"


@dataclass(frozen=True, slots=True)
class Result:
    """Result of a test function that is evidence for a clause of a regulation.

    Attributes:
        outcome: outcome of all cases of the test together.
        cases: number of cases that ran; a parametrised test has several.
        seconds: duration of all cases in seconds.
        reason: why the test failed or did not run; empty if it passed.
    """

    outcome: Outcome
    cases: int = 0
    seconds: float = 0.0
    reason: str = ""


def run_tests(root: Path, names: Iterable[TestName], junit_report: Path, worker_count: int) -> ExitCode:
    """Run tests with pytest and return its exit code.

    Args:
        root: folder of the project.
        names: tests to run.
        junit_report: file for the results, in the JUnit format.
        worker_count: number of processes that run tests.
    """
    options = ["-n", str(worker_count), "--dist", "loadfile", "--no-loadscope-reorder", f"--junit-xml={junit_report}"]
    command = [sys.executable, "-m", "pytest", *options, *(str(name) for name in names)]
    return subprocess.run(command, cwd=root, check=False).returncode  # noqa: S603  names from our own page


def read_results(junit_report: Path, names: Iterable[TestName]) -> Mapping[TestName, Result]:
    """Return the result of each named test; a test without a case in the report did not run.

    Args:
        junit_report: results in the JUnit format; if the file is missing or damaged, no test ran.
        names: tests whose results are read.
    """
    found: dict[tuple[str, str], list[ET.Element]] = {}
    for case in _read_junit_test_cases(junit_report):
        function = case.get("name", "").partition("[")[0]
        found.setdefault((case.get("classname", ""), function), []).append(case)
    return {
        name: _combine_test_case_results(found.get((_to_module_name(name.path), name.function), [])) for name in names
    }


def _read_junit_test_cases(junit_report: Path) -> list[ET.Element]:
    try:
        return list(ET.parse(junit_report).iter("testcase"))  # noqa: S314  the file is written by our own pytest
    except (OSError, ET.ParseError):
        return []


def _to_module_name(path: str) -> str:
    return path.removesuffix(".py").replace("/", ".")


def _combine_test_case_results(cases: list[ET.Element]) -> Result:
    if not cases:
        return Result(Outcome.NOT_RUN, reason="The test is not in the results of pytest.")
    seconds = sum(float(case.get("time", "0")) for case in cases)
    failed = [each for case in cases for tag in ("failure", "error") for each in case.findall(tag)]
    if failed:
        return Result(Outcome.FAILED, len(cases), seconds, _read_failure_or_skip_reason(failed[0]))
    skipped = [each for case in cases for each in case.findall("skipped")]
    if skipped:
        return Result(Outcome.NOT_RUN, len(cases) - len(skipped), seconds, _read_failure_or_skip_reason(skipped[0]))
    return Result(Outcome.PASSED, len(cases), seconds)


def _read_failure_or_skip_reason(element: ET.Element) -> str:
    return (element.get("message") or element.text or "no reason given").strip()[:_REASON_LENGTH]


def read_test_docstring(root: Path, test_name: TestName) -> str:
    """Return the docstring of a test, which states the rule that the test checks; empty if the test does not exist."""
    try:
        tree = ast.parse((root / test_name.path).read_text(encoding="utf-8"))
    except OSError:
        return ""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name == test_name.function:
            return " ".join((ast.get_docstring(node) or "").split())
    return ""
