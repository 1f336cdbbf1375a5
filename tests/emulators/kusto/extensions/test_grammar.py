"""Tests of the lexer that extends the grammar of the translator library."""

import pytest
from antlr4 import InputStream, Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql._antlr.KqlLexer import KqlLexer

from emulators.kusto.extensions.grammar import NOTHING, RewritingLexer


def _read_tokens(text: str) -> list[Token]:
    tokens = RewritingLexer(InputStream(text)).getAllTokens()
    return [token for token in tokens if token.channel == Token.DEFAULT_CHANNEL]


def _read_texts(text: str) -> list[str]:
    return [token.text for token in _read_tokens(text)]


def _find_type(text: str, word: str) -> int:
    [found] = {token.type for token in _read_tokens(text) if token.text == word}
    kind: int = found
    return kind


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("T | serialize", ["T", "|", "serialize", NOTHING]),
        ("T | serialize | count", ["T", "|", "serialize", NOTHING, "|", "count"]),
        ("T | serialize x = 1", ["T", "|", "serialize", "x", "=", "1"]),
        ("T | serialize // all\n | count", ["T", "|", "serialize", NOTHING, "|", "count"]),
    ],
)
def test_serialize_without_expressions_gets_a_placeholder_expression(query: str, expected: list[str]) -> None:
    """``serialize`` without expressions gets one placeholder; with expressions, it is unchanged."""
    texts = _read_texts(query)
    assert [text for text in texts if text != "<EOF>"] == expected


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("x between (1 .. 2)", "x between ( ( 1 ) .. ( 2 ) )"),
        ("x between ((1 + 2) .. f(3))", "x between ( ( ( 1 + 2 ) ) .. ( f ( 3 ) ) )"),
        ("x !between (1 .. 2) and (y)", "x !between ( ( 1 ) .. ( 2 ) ) and ( y )"),
        ("f(x)", "f ( x )"),
    ],
)
def test_the_lexer_puts_each_bound_of_between_into_parentheses(query: str, expected: str) -> None:
    """Each bound of ``between`` gets parentheses; other parentheses stay the same."""
    assert " ".join(_read_texts(query)) == expected


@pytest.mark.parametrize(
    ("query", "word", "kind"),
    [
        ("T | where title == 1", "title", KqlLexer.IDENTIFIER),
        ("T | render timechart with (title = 'a')", "title", KqlLexer.TITLE),
        ("T | project count", "count", KqlLexer.IDENTIFIER),
        ("T | summarize count()", "count", KqlLexer.COUNT),
        ("T | count", "count", KqlLexer.COUNT),
        ("table('T')", "table", KqlLexer.IDENTIFIER),
    ],
)
def test_keywords_may_be_column_names_between_statements(query: str, word: str, kind: int) -> None:
    """A keyword can be a name at a position where no statement with this keyword is possible."""
    assert _find_type(query, word) == kind


def test_the_words_of_parse_kv_are_keywords_only_in_parse_kv() -> None:
    """The words of ``parse-kv`` are keywords only up to the next pipe."""
    assert _find_type("T | parse-kv x as (a: long) with (quote = '\"')", "quote") == KqlLexer.IDENTIFIER
    assert "as" not in _read_texts("T | parse-kv x as (a: long)")
    assert "as" in _read_texts("T | parse-kv x as (a: long) | as U")


def test_the_star_of_an_output_schema_becomes_a_placeholder_column() -> None:
    """The star in an output schema becomes a placeholder column of type long."""
    assert _read_texts("f:(*, a:long)")[2:6] == ["(", NOTHING, ":", "long"]
    assert "*" in _read_texts("T | where * has 'a'")


def test_the_operator_project_by_names_is_one_token() -> None:
    """``project-by-names`` is one token with the type of ``project``."""
    assert _find_type("T | project-by-names 'a'", "project-by-names") == KqlLexer.PROJECT
    assert _read_texts("T | project -by")[2:] == ["project", "-", "by"]


def test_the_keyword_view_of_a_function_is_removed() -> None:
    """The keyword ``view`` of a function is removed from the query, but a column ``view`` is not."""
    assert "view" not in _read_texts("let f = view () { T }")
    assert "view" in _read_texts("T | project a = view")


def test_pack_all_in_the_project_clause_of_find_becomes_pack() -> None:
    """``pack_all()`` in the ``project`` clause of ``find`` is replaced with ``pack(*)``."""
    texts = _read_texts("find where x == 1 project a, pack_all()")
    assert texts[-4:-1] == ["pack_all", "(", "*"]
    assert texts[-1] == ")"
    assert _read_texts("T | extend pack_all()")[-3:] == ["pack_all", "(", ")"]


def test_original_tokens_keep_their_positions() -> None:
    """The tokens of a query keep their positions although others are added, so that errors have the right position."""
    query = "T | serialize | where x between (1 .. 2)"
    for token in _read_tokens(query):
        if token.text in ("where", "1", "2", "between"):
            assert query[token.start : token.stop + 1] == token.text
