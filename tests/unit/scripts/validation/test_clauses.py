"""Tests of the parser of the tables of regulation clauses in docs/explanation/regulated-plants.md."""

import pytest

from scripts.validation.clauses import Clause, TestName, list_tests_of_clauses, parse_clauses

HEAD = "## Rule 7\n\n| Clause | Requirement | The service | Tests | The plant |\n|---|---|---|---|---|\n"


def test_rows_of_clause_tables_are_parsed() -> None:
    """A clause has the regulation in the heading, its text without links, and its tests; other tables are ignored."""
    text = (
        "## Other\n\n| Part | Rule |\n|---|---|\n| a | b |\n\n"
        f"{HEAD}| 7(a) | Be safe | See [it](it.md) | `tests/test_a.py::test_b`, `tests/c/test_d.py::test_e` | Care |\n"
        "| 7(b) | Be wise | — | — | Care |\n"
    )
    tests = (TestName("tests/test_a.py", "test_b"), TestName("tests/c/test_d.py", "test_e"))
    assert parse_clauses(text) == (
        Clause("Rule 7", "7(a)", "Be safe", "See it", tests, "Care"),
        Clause("Rule 7", "7(b)", "Be wise", "—", (), "Care"),
    )


@pytest.mark.parametrize("tests", ["", "later", "`tests/test_a.py`", "`tests/test_a.py::test_b`, soon"])
def test_test_cells_without_test_names_are_rejected(tests: str) -> None:
    """The cell for tests must contain a dash or names of tests, so that no test is overlooked."""
    with pytest.raises(ValueError, match=r"Tests of clause 7\(a\)"):
        parse_clauses(f"{HEAD}| 7(a) | Be safe | It is | {tests} | Care |\n")


def test_a_row_with_a_missing_column_is_rejected() -> None:
    """A row of a clause table without all columns is rejected."""
    with pytest.raises(ValueError, match="5 columns"):
        parse_clauses(f"{HEAD}| 7(a) | Be safe | — | Care |\n")


def test_a_test_of_several_clauses_is_listed_once() -> None:
    """A test that two clauses name is listed once."""
    row = "| 7 | Be safe | It is | `tests/test_a.py::test_b` | Care |\n"
    assert list_tests_of_clauses(parse_clauses(f"{HEAD}{row}{row}")) == (TestName("tests/test_a.py", "test_b"),)
