"""KQL to SQL: one query text becomes one SELECT, or an error that says what is wrong with the text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from antlr4 import InputStream, Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql._antlr.KqlLexer import KqlLexer
from duckdb_kql.control import is_control_command
from duckdb_kql.errors import KqlError, KqlSchemaError, KqlSyntaxError, KqlUnsupportedError, SourceSpan
from duckdb_kql.lower import lower
from duckdb_kql.params import ParameterDeclaration
from duckdb_kql.translate import clock, to_sql

from local.kusto.errors import QueryError, not_read_only, semantic_error, syntax_error, too_complex, unsupported
from local.kusto.expansion import check_length
from local.kusto.gates import check_sources
from local.kusto.parameters import Declaration
from local.kusto.refusals import check_meaning, check_tokens
from local.kusto.timespans import timespan_text

_DETAIL = 300


@dataclass(frozen=True, slots=True)
class Translation:
    """A query as DuckDB takes it.

    Attributes:
        sql: one SELECT.
        slots: the placeholders in it, each filled by a query parameter.
        declarations: the query parameters.
    """

    sql: str
    slots: frozenset[str]
    declarations: tuple[Declaration, ...]


def translate(text: str, schema: Mapping[str, Sequence[str]]) -> Translation:
    """Return the SQL of a query.

    Time and memory grow without bound for some short texts, so this belongs in a process that may be killed.

    Args:
        text: KQL.
        schema: the tables that the query may read, with their columns in order.

    Raises:
        QueryError: the text does not parse, does not bind, is no query, or uses what is not supported.
    """
    if is_control_command(text):
        raise not_read_only((1, 1))
    try:
        return _translate(text, schema)
    except RecursionError:
        raise too_complex("the query is nested too deeply") from None
    except KqlError as error:
        raise _error(error, text) from error


def _translate(text: str, schema: Mapping[str, Sequence[str]]) -> Translation:
    # A `set query_now` in the text pins this clock while the text is lowered.
    with clock(None) as pinned:
        query = lower(text)
        if pinned.moment is not None:
            raise unsupported("set query_now")
        check_tokens(_tokens(text))
        check_sources(query, schema)
        check_meaning(query)
        sql = to_sql(query, {table: list(columns) for table, columns in schema.items()})
    check_length(sql)
    return Translation(str(sql), sql.slots, tuple(_declaration(each) for each in query.parameters))


def _declaration(declared: ParameterDeclaration) -> Declaration:
    return Declaration(declared.name, declared.type, declared.slot, _wire_text(declared.default))


def _wire_text(default: Any) -> str | None:
    """Return a declaration's default as the text that a request would carry for it."""
    if default is None:
        return None
    if isinstance(default, datetime):
        return default.isoformat()
    if isinstance(default, timedelta):
        return timespan_text(default)
    return str(default)


def _error(error: KqlError, text: str) -> QueryError:
    if isinstance(error, KqlSyntaxError):
        return _syntax(error, text)
    if isinstance(error, KqlUnsupportedError):
        return unsupported(error.construct[:_DETAIL], (error.hint or "")[:_DETAIL], _position(error.span))
    if isinstance(error, KqlSchemaError):
        return semantic_error(f"{error.name}: {error.hint}"[:_DETAIL] if error.hint else error.name[:_DETAIL])
    return semantic_error(str(error)[:_DETAIL])


def _syntax(error: KqlSyntaxError, text: str) -> QueryError:
    command = _control_command(_tokens(text))
    if command is not None:
        return not_read_only(command)
    if not error.diagnostics:
        return syntax_error(str(error)[:_DETAIL])
    first = error.diagnostics[0]
    return syntax_error(first.message[:_DETAIL], _position(first.span))


def _position(span: SourceSpan | None) -> tuple[int, int] | None:
    return None if span is None else (span.line, span.column + 1)


def _tokens(text: str) -> list[Token]:
    """Return the tokens that the grammar sees: comments and white space are gone, literals are whole."""
    lexer = KqlLexer(InputStream(text))
    lexer.removeErrorListeners()
    return [token for token in lexer.getAllTokens() if token.channel == Token.DEFAULT_CHANNEL]


def _control_command(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return where a statement begins with a dot; the query grammar has none such, so these texts never parse."""
    begins = True
    for token in tokens:
        if begins and token.text.startswith("."):
            return token.line, token.column + 1
        begins = token.text == ";"
    return None
