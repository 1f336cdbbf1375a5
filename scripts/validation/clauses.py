"""Clauses of regulations and their tests, read from the tables of docs/explanation/regulated-plants.md."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

PAGE: Final = "docs/explanation/regulated-plants.md"
_COLUMNS: Final = 5
_TEST: Final = re.compile(r"`(tests/[\w/]+\.py)::(\w+)`")
_LINK: Final = re.compile(r"\[([^\]]+)\]\([^)]+\)")


@dataclass(frozen=True, slots=True)
class TestName:
    """Name and file of a test function.

    Attributes:
        path: file of the test, relative to the root of the project.
        function: name of the function.
    """

    __test__ = False  # pytest collects classes whose names begin with Test

    path: str
    function: str

    def __str__(self) -> str:
        """Return the test's name as pytest writes it."""
        return f"{self.path}::{self.function}"


@dataclass(frozen=True, slots=True)
class Clause:
    """Clause of a regulation, with the behaviour of the service that helps to meet it.

    Attributes:
        regulation: name of the regulation, for instance ``21 CFR Part 11``.
        number: number of the clause, for instance ``11.10(e)``.
        requirement: short text of the requirement.
        behaviour: behaviour of the service that helps to meet it.
        tests: tests of this behaviour; empty if only the plant itself can meet the clause.
        procedures: procedures that the plant must add.
    """

    regulation: str
    number: str
    requirement: str
    behaviour: str
    tests: tuple[TestName, ...]
    procedures: str


def parse_clauses(markdown: str) -> tuple[Clause, ...]:
    """Parse the clauses from the page's tables, in the order of the page.

    Args:
        markdown: the page, as Markdown.

    Raises:
        ValueError: a row has the wrong number of columns, or a test has no valid name.
    """
    return tuple(_iterate_clauses(markdown))


def _iterate_clauses(markdown: str) -> Iterator[Clause]:
    regulation, in_table = "", False
    for line in markdown.splitlines():
        if line.startswith("## "):
            regulation = line.removeprefix("## ").strip()
        if not line.startswith("|"):
            in_table = False
        elif line.startswith("| Clause |"):
            in_table = True
        elif in_table and not line.startswith("|-"):
            yield _parse_clause_row(regulation, line)


def _parse_clause_row(regulation: str, line: str) -> Clause:
    cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
    if len(cells) != _COLUMNS:
        raise ValueError(f"A row of a clause needs {_COLUMNS} columns: {line}")
    number, requirement, behaviour, tests, procedures = (_LINK.sub(r"\1", cell) for cell in cells)
    names = tuple(TestName(*found) for found in _TEST.findall(tests))
    if _TEST.sub("", tests).strip(", ") not in {"", "—"} or (not names and tests != "—"):
        raise ValueError(f"Tests of clause {number} must be names such as `tests/test_x.py::test_y`, or — for none.")
    return Clause(regulation, number, requirement, behaviour, names, procedures)


def list_tests_of_clauses(clauses: tuple[Clause, ...]) -> tuple[TestName, ...]:
    """Return the tests of all clauses without duplicates, in the order of the page."""
    return tuple(dict.fromkeys(test for clause in clauses for test in clause.tests))
