"""Run the tests listed for clauses of regulations and write the report (``make validation``)."""

import argparse
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from scripts.validation.clauses import PAGE, list_tests_of_clauses, parse_clauses
from scripts.validation.environment import describe_environment
from scripts.validation.report import Validation, render_report
from scripts.validation.results import ExitCode, Outcome, read_results, read_test_docstring, run_tests

ROOT: Final = Path(__file__).parents[2]


def main(arguments: list[str]) -> ExitCode:
    """Run the tests, write the report and print its path; return 0 if the validation passed, else 1.

    The validation fails if a test failed or did not run, or if the version or the environment changed during the run.
    """
    options = _parse_options(arguments)
    clauses = parse_clauses((ROOT / PAGE).read_text(encoding="utf-8"))
    tests = list_tests_of_clauses(clauses)
    # Before the tests, because the report names the version that they began with.
    environment = describe_environment(ROOT)
    started_at = datetime.now(UTC)
    options.output.mkdir(parents=True, exist_ok=True)
    report = options.output / f"validation-{started_at:%Y-%m-%dT%H%M%SZ}.html"
    run_tests(ROOT, tests, report.with_suffix(".xml").resolve(), options.workers)
    validation = Validation(
        clauses=clauses,
        results=read_results(report.with_suffix(".xml"), tests),
        rules={test: read_test_docstring(ROOT, test) for test in tests},
        environment=environment,
        is_unchanged=describe_environment(ROOT) == environment,
        started_at=started_at,
        ended_at=datetime.now(UTC),
        performed_by=options.by,
    )
    report.write_text(render_report(validation), encoding="utf-8")
    return _print_summary(validation, report)


def _parse_options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts.validation", description=__doc__)
    parser.add_argument("--by", default="", metavar="NAME", help="name of the person who runs the validation")
    parser.add_argument("--output", type=Path, default=ROOT / "dist" / "validation", help="folder of the report")
    parser.add_argument("--workers", type=int, default=2, help="number of processes that run tests")
    return parser.parse_args(arguments)


def _print_summary(validation: Validation, report: Path) -> ExitCode:
    for test, result in validation.results.items():
        if result.outcome is not Outcome.PASSED:
            sys.stderr.write(f"{result.outcome}: {test}: {result.reason}\n")
    sys.stdout.write(f"{report}\n")
    return 0 if validation.is_passed() else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
