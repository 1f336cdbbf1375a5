"""Tests that the tables of docs/explanation/regulated-plants.md are complete and name existing tests."""

import ast
from functools import cache
from pathlib import Path

import pytest

from scripts.validation.clauses import PAGE, TestName, list_tests_of_clauses, parse_clauses

ROOT = Path(__file__).parents[2]
CLAUSES = parse_clauses((ROOT / PAGE).read_text(encoding="utf-8"))
PART_11 = [
    *(f"11.10({letter})" for letter in "abcdefghijk"),
    "11.30",
    "11.50(a)",
    "11.50(b)",
    "11.70",
    *(f"11.100({letter})" for letter in "abc"),
    *("11.200(a)(1)", "11.200(a)(2)", "11.200(a)(3)", "11.200(b)"),
    *(f"11.300({letter})" for letter in "abcde"),
]
ANNEX_11 = [
    *("Principle", "1", "2", "3"),
    *(f"4.{number}" for number in range(1, 9)),
    *("5", "6", "7.1", "7.2", "8.1", "8.2", "9", "10", "11"),
    *(f"12.{number}" for number in range(1, 5)),
    *("13", "14(a)", "14(b)", "14(c)", "15", "16", "17"),
]


@cache
def read_test_names(path: str) -> frozenset[str]:
    """Return the names of the test functions of a file; none if the file does not exist."""
    if not (ROOT / path).is_file():
        return frozenset()
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return frozenset(function.name for function in functions if function.name.startswith("test_"))


@pytest.mark.parametrize("test", list_tests_of_clauses(CLAUSES), ids=str)
def test_each_named_test_exists(test: TestName) -> None:
    """Each test that the tables name exists."""
    assert test.function in read_test_names(test.path)


@pytest.mark.parametrize(("regulation", "numbers"), [("21 CFR Part 11", PART_11), ("EU GMP Annex 11", ANNEX_11)])
def test_each_clause_has_one_row(regulation: str, numbers: list[str]) -> None:
    """Each clause of a regulation has one row, in the order of the regulation."""
    assert [clause.number for clause in CLAUSES if clause.regulation == regulation] == numbers


def test_no_other_regulation_is_listed() -> None:
    """The tables of clauses contain only clauses of 21 CFR Part 11 and of EU GMP Annex 11."""
    assert len(CLAUSES) == len(PART_11) + len(ANNEX_11)


def test_each_row_states_requirement_and_measure() -> None:
    """Each row states the requirement of its clause and what the service does or the plant must add."""
    for clause in CLAUSES:
        assert len(clause.requirement) > len("Training"), clause
        assert (clause.behaviour, clause.procedures) != ("—", "—"), clause
        assert clause.behaviour != "—" or not clause.tests, clause


def test_each_row_names_a_test_once() -> None:
    """No row lists a test twice."""
    for clause in CLAUSES:
        assert len(clause.tests) == len(set(clause.tests)), clause.number
