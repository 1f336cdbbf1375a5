"""Tests of the split of a batch into statements."""

import pytest
from antlr4 import InputStream, Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql._antlr.KqlLexer import KqlLexer

from emulators.kusto.errors import QueryError
from emulators.kusto.extensions.several_results import MAX_RESULTS
from emulators.kusto.statements import StatementSpan, blank_other_statements, list_statement_spans


def _find_query_statements(text: str) -> list[str]:
    tokens = KqlLexer(InputStream(text)).getAllTokens()
    shown = [token for token in tokens if token.channel == Token.DEFAULT_CHANNEL]
    return [text[start:end] for start, end in list_statement_spans(shown)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("T", ["T"]),
        ("T; U", ["T;", "U"]),
        ("T;;U;", ["T;", "U;"]),
        ("let x = 1; T | where a == x; U", ["T | where a == x;", "U"]),
        ("set notruncation; LET x = 1; T", ["T"]),
        ("let f = () { T; U }; f()", ["f()"]),
        ("print ';' ; U", ["print ';' ;", "U"]),
        ("", []),
    ],
)
def test_each_query_statement_is_found(text: str, expected: list[str]) -> None:
    """A query statement ends at a semicolon outside of brackets and strings; ``let`` and ``set`` are not counted."""
    assert _find_query_statements(text) == expected


def test_the_number_of_query_statements_is_limited() -> None:
    """A text with more query statements than the maximum number of results is rejected."""
    assert len(_find_query_statements("T;" * MAX_RESULTS)) == MAX_RESULTS
    with pytest.raises(QueryError, match=f"more than {MAX_RESULTS} query statements"):
        _find_query_statements("T;" * (MAX_RESULTS + 1))


def test_blanks_replace_all_statements_except_the_chosen_one() -> None:
    """Blanks replace all query statements except one, so that positions in the text stay the same."""
    text = "let x = 1; T |\n take x; U | take 2"
    statements = [StatementSpan(11, 23), StatementSpan(24, 34)]
    assert blank_other_statements(text, statements, 0) == "let x = 1; T |\n take x;" + " " * 11
    assert blank_other_statements(text, statements, 1) == "let x = 1;    \n         U | take 2"
