"""Tests of the parser of pytest's results."""

from pathlib import Path

import pytest

from scripts.validation.clauses import TestName
from scripts.validation.results import Outcome, Result, read_results, read_test_docstring, run_tests

NAME = TestName("tests/a/test_b.py", "test_c")
CASE = '<testcase classname="tests.a.test_b" name="test_c[{}]" time="{}">{}</testcase>'
PASSED = CASE.format(1, 0.5, "")
FAILED = CASE.format(2, 1, '<failure message="assert 1 == 2">x</failure>')
BROKEN = CASE.format(3, 1, '<error message="no service">x</error>')
SKIPPED = CASE.format(4, 0, '<skipped message="no browser">x</skipped>')
OTHERS = '<testcase classname="tests.a.test_b" name="test_d" time="1" /><testcase classname="a.test_b" name="test_c" />'


@pytest.mark.parametrize(
    ("cases", "expected"),
    [
        (PASSED * 2, Result(Outcome.PASSED, 2, 1.0)),
        (PASSED + FAILED + SKIPPED, Result(Outcome.FAILED, 3, 1.5, "assert 1 == 2")),
        (BROKEN, Result(Outcome.FAILED, 1, 1.0, "no service")),
        (PASSED + SKIPPED, Result(Outcome.NOT_RUN, 1, 0.5, "no browser")),
        ("", Result(Outcome.NOT_RUN, reason="The test is not in the results of pytest.")),
    ],
    ids=["all passed", "one failed", "error", "one skipped", "missing"],
)
def test_a_test_passes_only_if_all_its_cases_pass(tmp_path: Path, cases: str, expected: Result) -> None:
    """A test passes only if it has cases and all of them pass; tests of other modules do not count."""
    report = tmp_path / "report.xml"
    report.write_text(f"<testsuites><testsuite>{OTHERS}{cases}</testsuite></testsuites>")
    assert read_results(report, [NAME]) == {NAME: expected}


@pytest.mark.parametrize("content", [None, "", "<testsuites>"])
def test_a_damaged_report_has_no_results(tmp_path: Path, content: str | None) -> None:
    """If pytest's report is missing or incomplete, for example after pytest was killed, no test counts as run."""
    report = tmp_path / "report.xml"
    if content is not None:
        report.write_text(content)
    assert read_results(report, [NAME])[NAME].outcome is Outcome.NOT_RUN


def test_exactly_the_named_tests_are_run(tmp_path: Path) -> None:
    """Exactly the named tests are run, and each test's docstring is returned as the rule that it proves."""
    folder = tmp_path / "tests"
    folder.mkdir()
    (folder / "test_x.py").write_text(
        'def test_good():\n    """One\n    rule."""\n\ndef test_bad():\n    assert 1 == 2\n\ndef test_z():\n    pass\n'
    )
    good, bad = (TestName("tests/test_x.py", name) for name in ("test_good", "test_bad"))
    report = tmp_path / "report.xml"
    assert run_tests(tmp_path, [good, bad], report, worker_count=0) == 1
    results = read_results(report, [good, bad, TestName("tests/test_x.py", "test_z")])
    assert [result.outcome for result in results.values()] == [Outcome.PASSED, Outcome.FAILED, Outcome.NOT_RUN]
    assert [read_test_docstring(tmp_path, test) for test in (good, bad, NAME)] == ["One rule.", "", ""]
