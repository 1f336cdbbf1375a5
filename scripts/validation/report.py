"""Printable HTML report of a validation: each clause with its tests and their results."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import escape
from itertools import groupby
from typing import Final

from scripts.validation.clauses import PAGE, Clause, TestName
from scripts.validation.environment import Environment
from scripts.validation.results import Outcome, Result

type Html = str
_STYLE: Final = """
body{font:11pt/1.4 system-ui,sans-serif;margin:2rem;color:#111;max-width:75rem}
h1,h2,h3{line-height:1.2}table{border-collapse:collapse;width:100%;margin:.5rem 0 1.5rem}
th,td{border:1px solid #999;padding:.3rem .5rem;text-align:left;vertical-align:top;overflow-wrap:anywhere}
th{background:#eee}thead{display:table-header-group}tr{break-inside:avoid}
.passed{color:#075}.failed{color:#a00;font-weight:bold}.not-run{color:#850;font-weight:bold}
.verdict{font-size:1.3em;font-weight:bold}code{font-size:.9em}.soft{color:#555}
.sign td{height:3rem}
.clauses{table-layout:fixed}.clauses th:nth-child(1){width:6.5em}.clauses th:nth-child(2){width:28%}
.clauses th:nth-child(3){width:26%}.clauses th:nth-child(5){width:16%}
@media print{body{margin:0;font-size:9pt;max-width:none}}
"""


@dataclass(frozen=True, slots=True)
class Validation:
    """Results of one run of the tests of all clauses, with the environment in which they ran.

    Attributes:
        clauses: clauses of the page.
        results: result of each test.
        rules: docstring of each test, which states the rule that the test checks.
        environment: version and environment at the start of the run.
        is_unchanged: whether version and environment were the same at the end of the run.
        started_at: start of the run, with zone.
        ended_at: end of the run, with zone.
        performed_by: name of the person who ran the validation; if empty, the report has a line for the name.
    """

    clauses: Sequence[Clause]
    results: Mapping[TestName, Result]
    rules: Mapping[TestName, str]
    environment: Environment
    started_at: datetime
    ended_at: datetime
    performed_by: str = ""
    is_unchanged: bool = True

    def is_passed(self) -> bool:
        """Return whether all tests passed, at least one test exists, and the version did not change during the run."""
        has_passed = all(each.outcome is Outcome.PASSED for each in self.results.values())
        return bool(self.results) and has_passed and self.is_unchanged


def render_report(validation: Validation) -> Html:
    """Render the report as one HTML page that contains no scripts and loads no other files."""
    title = f"Validation report {escape(validation.environment.facts['Version'])}"
    parts = (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>',
        f"<style>{_STYLE}</style></head><body><h1>{title}</h1>",
        *_render_summary(validation),
        *_render_version_and_environment(validation),
        *_render_clauses(validation),
        *_render_packages(validation.environment),
        "</body></html>",
    )
    return "\n".join(parts) + "\n"


def _render_summary(validation: Validation) -> Iterator[Html]:
    counts = Counter(result.outcome for result in validation.results.values())
    verdict = "All tests passed" if validation.is_passed() else "Not passed"
    numbers = ", ".join(f"{counts[outcome]} {outcome}" for outcome in Outcome)
    css = "passed" if validation.is_passed() else "failed"
    yield f'<p class="verdict {css}">{verdict}: {numbers}.</p>'
    if not validation.is_unchanged:
        yield '<p class="failed">The version or the environment changed during the run. Run the tests again.</p>'
    yield (
        f"<p>This report shows which tests ran for the clauses that <code>{PAGE}</code> lists, and their results. It "
        "is evidence for a validation; it does not certify that a plant complies with a regulation.</p>"
    )


def _render_version_and_environment(validation: Validation) -> Iterator[Html]:
    facts = {
        "Started": _format_time(validation.started_at),
        "Ended": _format_time(validation.ended_at),
        **validation.environment.facts,
    }
    yield "<h2>Version and environment</h2><table><tbody>"
    for name, value in facts.items():
        yield f"<tr><th scope=row>{escape(name)}</th><td>{escape(value)}</td></tr>"
    yield "</tbody></table>"
    yield '<table class="sign"><thead><tr><th></th><th>Name</th><th>Date</th><th>Signature</th></tr></thead><tbody>'
    yield f"<tr><th scope=row>Performed by</th><td>{escape(validation.performed_by)}</td><td></td><td></td></tr>"
    yield "<tr><th scope=row>Reviewed by</th><td></td><td></td><td></td></tr></tbody></table>"


def _format_time(instant: datetime) -> str:
    return f"{instant:%Y-%m-%d %H:%M:%S %Z}"


def _render_clauses(validation: Validation) -> Iterator[Html]:
    for regulation, clauses in groupby(validation.clauses, key=lambda clause: clause.regulation):
        yield f'<h2>{escape(regulation)}</h2><table class="clauses"><thead><tr>'
        yield from (f"<th>{name}</th>" for name in ("Clause", "Requirement", "Test", "Rule that it checks", "Result"))
        yield "</tr></thead><tbody>"
        for clause in clauses:
            yield from _render_clause(clause, validation)
        yield "</tbody></table>"


def _render_clause(clause: Clause, validation: Validation) -> Iterator[Html]:
    rows = max(1, len(clause.tests))
    yield f"<tr><td rowspan={rows}>{escape(clause.number)}</td><td rowspan={rows}>{escape(clause.requirement)}"
    yield f'<p class="soft">The service: {_format_clause_text(clause.behaviour)}</p>'
    yield f'<p class="soft">The plant adds: {_format_clause_text(clause.procedures)}</p></td>'
    if not clause.tests:
        yield '<td colspan=3 class="soft">No test: this clause is met by the plant\'s procedures.</td></tr>'
    for place, test in enumerate(clause.tests):
        yield f"{'<tr>' if place else ''}<td><code>{escape(str(test))}</code></td>"
        yield f"<td>{escape(validation.rules.get(test, ''))}</td>{_render_result(validation.results[test])}</tr>"


def _format_clause_text(text: str) -> Html:
    return "nothing." if text == "—" else escape(text.replace("`", "")) + "."


def _render_result(result: Result) -> Html:
    detail = f"{result.cases} cases, " if result.cases > 1 else ""
    shown = f"{detail}{result.seconds:.1f} s" if result.outcome is Outcome.PASSED else escape(result.reason)
    css = result.outcome.replace(" ", "-")
    return f'<td><span class="{css}">{result.outcome}</span><br><span class="soft">{shown}</span></td>'


def _render_packages(environment: Environment) -> Iterator[Html]:
    yield "<h2>Installed Python packages</h2><p>"
    yield ", ".join(f"{escape(name)} {escape(version)}" for name, version in environment.packages.items())
    yield "</p>"
