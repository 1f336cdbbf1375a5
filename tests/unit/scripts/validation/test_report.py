"""Tests of the printable report of a validation run."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from scripts.validation.clauses import Clause, TestName
from scripts.validation.environment import Environment
from scripts.validation.report import Validation, render_report
from scripts.validation.results import Outcome, Result

FIRST, SECOND = (TestName("tests/test_a.py", name) for name in ("test_b", "test_c"))
CLAUSES = (
    Clause("Rule 7", "7(a)", "Be <safe>", "It is", (FIRST, SECOND), "—"),
    Clause("Rule 7", "7(b)", "Be wise", "—", (), "Training"),
)
VALIDATION = Validation(
    clauses=CLAUSES,
    results={FIRST: Result(Outcome.PASSED, 3, 1.25), SECOND: Result(Outcome.PASSED, 1, 0.5)},
    rules={FIRST: "One rule.", SECOND: "Other rule."},
    environment=Environment({"Version": "1.2.3", "Commit": "abc"}, {"pytest": "9"}),
    started_at=datetime(2026, 5, 4, 8, 0, tzinfo=UTC),
    ended_at=datetime(2026, 5, 4, 8, 5, tzinfo=UTC),
    performed_by="Ann <Example>",
)


def test_the_report_has_requirement_test_result_version_and_environment() -> None:
    """The report shows each clause with tests, rules and results, and the version, environment and times."""
    text = render_report(VALIDATION)
    for part in (
        *("7(a)", "Be &lt;safe&gt;", "tests/test_a.py::test_b", "One rule.", "3 cases, 1.2 s", "Other rule."),
        *("7(b)", "No test", "The plant adds: Training.", "1.2.3", "abc", "pytest 9"),
        *("2026-05-04 08:00:00 UTC", "2026-05-04 08:05:00 UTC", "Ann &lt;Example&gt;", "Reviewed by"),
        "All tests passed: 2 passed, 0 failed, 0 not run.",
    ):
        assert part in text
    assert "<script" not in text
    assert "<safe>" not in text


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.NOT_RUN])
def test_a_test_that_did_not_run_is_never_passed(outcome: Outcome) -> None:
    """A failed or missing test is named with the reason, and the verdict of the report is negative."""
    results = {**VALIDATION.results, SECOND: Result(outcome, reason="no <browser>")}
    validation = replace(VALIDATION, results=results)
    assert not validation.is_passed()
    text = render_report(validation)
    assert "Not passed: " in text
    assert f"{outcome}</span>" in text
    assert "no &lt;browser&gt;" in text


def test_a_version_that_changed_during_the_run_is_not_passed() -> None:
    """If the code changes during the run, the verdict is negative, because the results are of two versions."""
    validation = replace(VALIDATION, is_unchanged=False)
    assert not validation.is_passed()
    assert "changed during the run" in render_report(validation)


def test_a_validation_without_tests_is_not_passed() -> None:
    """Without any test, the verdict of a report is negative."""
    assert not replace(VALIDATION, results={}).is_passed()
