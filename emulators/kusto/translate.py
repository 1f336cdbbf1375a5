"""KQL to SQL: one query text becomes one SELECT, or an error that says what is wrong with the text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from antlr4 import InputStream, Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql._antlr.KqlLexer import KqlLexer
from duckdb_kql.control import is_control_command
from duckdb_kql.errors import KqlError, KqlSyntaxError
from duckdb_kql.lower import lower
from duckdb_kql.params import ParameterDeclaration
from duckdb_kql.translate import clock, to_sql

from emulators.kusto.discovery import Rows, known, undiscovered
from emulators.kusto.errors import QueryError, not_read_only, too_complex, unsupported
from emulators.kusto.expansion import check_length
from emulators.kusto.extensions.known_types import known_types
from emulators.kusto.gates import check_sources
from emulators.kusto.nesting import check_nesting
from emulators.kusto.parameters import Declaration
from emulators.kusto.positions import placed
from emulators.kusto.refusals import check_meaning, check_tokens
from emulators.kusto.timespans import timespan_text
from emulators.kusto.translator_errors import reworded


@dataclass(frozen=True, slots=True)
class Translation:
    """A query as DuckDB takes it.

    Attributes:
        sql: one SELECT.
        slots: the placeholders in it, each filled by a query parameter.
        declarations: the query parameters.
        probe: its rows must be known before the text can be translated; see ``emulators.kusto.discovery``.
    """

    sql: str
    slots: frozenset[str]
    declarations: tuple[Declaration, ...]
    probe: bool = False


def translate(
    text: str, schema: Mapping[str, Sequence[str]], found: Sequence[Rows] = (), types: Mapping[str, str] | None = None
) -> Translation:
    """Return the SQL of a query.

    Time and memory grow without bound for some short texts, so this belongs in a process that may be killed.

    Args:
        text: KQL.
        schema: the tables that the query may read, with their columns in order.
        found: the rows of the probes so far.
        types: DuckDB's type of each column that is of one type in every table that has it.

    Raises:
        QueryError: the text does not parse, does not bind, is no query, or uses what is not supported.
    """
    if is_control_command(text):
        raise not_read_only((1, 1))
    try:
        return _translate(text, schema, found, types or {})
    except RecursionError:
        raise too_complex("the query is nested too deeply") from None
    except QueryError as error:
        raise placed(error, text) from error
    except KqlError as error:
        command = _control_command(_tokens(text)) if isinstance(error, KqlSyntaxError) else None
        raise not_read_only(command) if command else placed(reworded(error, text), text) from error


def _translate(
    text: str, schema: Mapping[str, Sequence[str]], found: Sequence[Rows], types: Mapping[str, str]
) -> Translation:
    # A `set query_now` in the text pins this clock while the text is lowered.
    with clock(None) as pinned:
        check_tokens(_tokens(text))
        query = lower(text)
        if pinned.moment is not None:
            raise unsupported("set query_now")
        check_sources(query, schema)
        check_meaning(query)
        check_nesting(query)
        probe = undiscovered(query, found)
        with known(query, found), known_types(query, types):
            sql = to_sql(probe or query, {table: list(columns) for table, columns in schema.items()})
    check_length(sql)
    declarations = tuple(_declaration(each) for each in query.parameters)
    return Translation(str(sql), sql.slots, declarations, probe is not None)


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
