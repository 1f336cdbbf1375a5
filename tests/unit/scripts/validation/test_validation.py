"""Tests of the command that runs a validation."""

from collections.abc import Iterable
from pathlib import Path

import pytest

from scripts.validation import __main__ as command
from scripts.validation.clauses import TestName


@pytest.mark.parametrize(("left_out", "code"), [(0, 0), (1, 1)])
def test_the_command_writes_a_dated_report(
    tmp_path: Path, left_out: int, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command writes an HTML report and the raw results; if a test did not run, it fails and names the test."""

    def run_tests(_root: Path, names: Iterable[TestName], report: Path, _workers: int) -> int:
        chosen = list(names)[left_out:]
        cases = (
            f'<testcase classname="{each.path[:-3].replace("/", ".")}" name="{each.function}" time="0" />'
            for each in chosen
        )
        report.write_text(f"<testsuite>{''.join(cases)}</testsuite>")
        return 0

    monkeypatch.setattr(command, "run_tests", run_tests)
    assert command.main(["--by", "Ann", "--output", str(tmp_path)]) == code
    shown = capsys.readouterr()
    [report] = tmp_path.glob("validation-20*Z.html")
    assert report.with_suffix(".xml").is_file()
    assert str(report) in shown.out
    assert ("not run: tests/" in shown.err) == bool(left_out)
    assert ("All tests passed" in report.read_text(encoding="utf-8")) == (code == 0)
