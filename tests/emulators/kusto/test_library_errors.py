"""Tests of the conversion of library exceptions to query errors."""

import duckdb
import pytest
from duckdb_kql.errors import Diagnostic, KqlSchemaError, KqlSyntaxError, KqlUnsupportedError, SourceSpan

from emulators.kusto import library_errors
from emulators.kusto.library_errors import error_from_duckdb, error_from_translator


@pytest.mark.parametrize(
    ("error", "code", "sentence"),
    [
        (duckdb.InvalidInputException("Invalid Input Error: kql:SEM0001:a reason"), "SEM0001", "a reason"),
        (
            duckdb.InvalidInputException(
                "Invalid Input Error: Python exception occurred while executing the UDF: ValueError: kql:EMB0001:why"
            ),
            "EMB0001",
            "why",
        ),
        (duckdb.BinderException('Binder Error: Referenced column "x" not found in FROM clause'), "SEM0100", "'x'"),
        (duckdb.BinderException("Binder Error: Max expression depth limit of 1000 exceeded"), "EMB0003", "too deeply"),
        (
            duckdb.BinderException("Binder Error: Cannot compare values of type VARCHAR and type INTEGER_LITERAL"),
            "SEM0001",
            "values of types string and long cannot be compared",
        ),
        (
            duckdb.BinderException("Binder Error: No function matches argument types '+(VARCHAR, BIGINT)'"),
            "SEM0001",
            "operator '+' does not accept operands of types (string, long)",
        ),
        (
            duckdb.BinderException("Binder Error: Macro kql_quotient() does not support these arguments"),
            "SEM0001",
            "operator '/' does not accept",
        ),
    ],
)
def test_duckdb_errors_of_a_query_have_their_code(error: duckdb.Error, code: str, sentence: str) -> None:
    """An error that DuckDB finds in a query is reported with its code and in KQL's terms."""
    found = error_from_duckdb(error)
    assert found.inner == code
    assert sentence in found.sentence


def test_conversion_errors_contain_kusto_types() -> None:
    """The error about a value that cannot be converted contains the Kusto type."""
    error = duckdb.ConversionException("Conversion Error: Could not convert string 'abc' to INT64")
    assert error_from_duckdb(error).sentence == "'abc' is not a valid long"


def test_error_messages_contain_no_sql() -> None:
    """If an error message of DuckDB quotes SQL, a general sentence replaces the message."""
    error = duckdb.InvalidInputException("Invalid Input Error: bad value in SELECT secret FROM t")
    assert "secret" not in error_from_duckdb(error).message


def test_interruption_and_lack_of_memory_have_separate_errors() -> None:
    """An interrupted query is reported as a timeout; a query that runs out of memory has a separate error."""
    interrupted = error_from_duckdb(duckdb.InterruptException("INTERRUPT Error: Interrupted!"))
    exhausted = error_from_duckdb(duckdb.OutOfMemoryException("Out of Memory Error: failed"))
    in_python = error_from_duckdb(duckdb.InvalidInputException("executing the UDF: MemoryError: "))
    assert "timed out" in interrupted.message.lower() or "timeout" in interrupted.type_name.lower()
    assert exhausted.to_constructor_arguments() == in_python.to_constructor_arguments()
    assert exhausted.to_constructor_arguments() != interrupted.to_constructor_arguments()


def test_a_fatal_error_ends_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a fatal error of DuckDB the process ends, because the database is invalid."""
    ended: list[object] = []
    monkeypatch.setattr(library_errors, "abort_process", ended.append)
    error = duckdb.FatalException("FATAL Error: database invalidated")
    error_from_duckdb(error)
    assert ended == [error]


@pytest.mark.parametrize(
    ("message", "span", "expected"),
    [
        ("mismatched input '?' expecting ')'", SourceSpan(2, 4), "unexpected '?'; expected ')'"),
        ("no viable alternative at input", SourceSpan(2, 2), "unexpected 'x'"),
        ("no viable alternative at input", SourceSpan(9, 0), "unexpected end of the query"),
        ("token recognition error at: ''abc'", SourceSpan(2, 4), "a string literal is not closed"),
        ("token recognition error at: '$'", SourceSpan(2, 4), "unexpected '$'"),
    ],
)
def test_syntax_errors_name_the_unexpected_text(message: str, span: SourceSpan, expected: str) -> None:
    """A syntax error contains the unexpected text, its position, and a few alternatives."""
    error = error_from_translator(KqlSyntaxError("?", [Diagnostic(span, message)]), "T\n| x ?")
    assert error.sentence.startswith(expected)
    assert error.position == (span.line, span.column + 1)


def test_the_error_about_a_wrong_number_of_arguments_lists_the_accepted_numbers() -> None:
    """The error about a wrong number of arguments lists the accepted numbers."""
    error = error_from_translator(
        KqlUnsupportedError("function:f", SourceSpan(1, 6), "f() takes (1, 2) arguments, not 3"), "print f()"
    )
    assert (error.inner, error.sentence) == ("SEM0219", "f(): function expects 1 or 2 argument(s).")


@pytest.mark.parametrize(
    ("construct", "expected"),
    [
        ("function:f", "'f()'"),
        ("let:x", "'let x'"),
        ("literal:guid", "'this guid literal'"),
        ("fooBarOperator", "'foo'"),
        ("expression:SomeRule", "'some rule'"),
    ],
)
def test_unsupported_constructs_have_their_kql_name(construct: str, expected: str) -> None:
    """The error about an unsupported construct names the construct in the terms of KQL."""
    error = error_from_translator(KqlUnsupportedError(construct, SourceSpan(1, 4)), "T | foo x")
    assert error.sentence.startswith(f"{expected} is not supported")


def test_error_messages_hide_reasons_about_internals() -> None:
    """Users see the reasons of the translator library that concern their query; reasons about internals are hidden."""
    shown = error_from_translator(KqlUnsupportedError("let:x", None, "use DuckDB instead"), "")
    hidden = error_from_translator(KqlUnsupportedError("let:x", None, "see translate/functions"), "")
    assert "(use the engine instead)" in shown.sentence
    assert "translate" not in hidden.sentence


def test_a_default_value_of_a_wrong_type_has_its_own_error_code() -> None:
    """A query parameter whose default value has a wrong type is rejected with a separate error code."""
    assert error_from_translator(KqlSchemaError("<default>"), "").inner == "SEM0219"
    assert error_from_translator(KqlSchemaError("Col", "does not exist"), "").sentence == "Col: does not exist"
