"""Translation of a KQL query into one SELECT for DuckDB."""

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

from emulators.kusto.discovery import Rows, bind_probe_rows, find_next_probe
from emulators.kusto.errors import QueryError, not_read_only_error, too_complex_error, unsupported_error
from emulators.kusto.extensions.known_types import bind_known_types
from emulators.kusto.library_errors import error_from_translator
from emulators.kusto.parameters import Declaration
from emulators.kusto.positions import add_position
from emulators.kusto.query_checks import check_length, check_meaning, check_nesting, check_sources, check_tokens
from emulators.kusto.timespans import format_timespan


@dataclass(frozen=True, slots=True)
class Translation:
    """Translated query.

    Attributes:
        sql: one SELECT.
        slots: names of the placeholders in the SQL, each for a query parameter.
        declarations: query parameters that the KQL text declares.
        probe: whether the SQL is a probe query (see ``emulators.kusto.discovery``) instead of the query itself.
    """

    sql: str
    slots: frozenset[str]
    declarations: tuple[Declaration, ...]
    probe: bool = False


def translate(
    text: str, schema: Mapping[str, Sequence[str]], found: Sequence[Rows] = (), types: Mapping[str, str] | None = None
) -> Translation:
    """Translate a KQL query into SQL, or into the next probe query that it requires.

    Call this only in a process that may be killed, because some short queries require unlimited time and memory.

    Args:
        text: KQL text of the query.
        schema: the tables that the query may read, with their columns in order.
        found: the rows of the previous probe queries (see ``emulators.kusto.discovery``).
        types: DuckDB's type of each column that has the same type in all tables.

    Raises:
        QueryError: the text is not a query, is invalid, or contains an unsupported construct.
    """
    if is_control_command(text):
        raise not_read_only_error((1, 1))
    try:
        return _translate(text, schema, found, types or {})
    except RecursionError:
        raise too_complex_error("the query is nested too deeply") from None
    except QueryError as error:
        raise add_position(error, text) from error
    except KqlError as error:
        command = _find_control_command(_tokenize(text)) if isinstance(error, KqlSyntaxError) else None
        raise (
            not_read_only_error(command) if command else add_position(error_from_translator(error, text), text)
        ) from error


def _translate(
    text: str, schema: Mapping[str, Sequence[str]], found: Sequence[Rows], types: Mapping[str, str]
) -> Translation:
    # Lowering a `set query_now` statement sets this clock.
    with clock(None) as pinned:
        check_tokens(_tokenize(text))
        query = lower(text)
        if pinned.moment is not None:
            raise unsupported_error("set query_now")
        check_sources(query, schema)
        check_meaning(query)
        check_nesting(query)
        probe = find_next_probe(query, found)
        with bind_probe_rows(query, found), bind_known_types(query, types):
            sql = to_sql(probe or query, {table: list(columns) for table, columns in schema.items()})
    check_length(sql)
    declarations = tuple(_to_declaration(each) for each in query.parameters)
    return Translation(str(sql), sql.slots, declarations, probe is not None)


def _to_declaration(declared: ParameterDeclaration) -> Declaration:
    return Declaration(declared.name, declared.type, declared.slot, _to_wire_text(declared.default))


def _to_wire_text(default: Any) -> str | None:
    """Convert the default value of a query parameter to the text that a request would contain."""
    if default is None:
        return None
    if isinstance(default, datetime):
        return default.isoformat()
    if isinstance(default, timedelta):
        return format_timespan(default)
    return str(default)


def _tokenize(text: str) -> list[Token]:
    """Return the tokens of a KQL text, without comments and white space."""
    lexer = KqlLexer(InputStream(text))
    lexer.removeErrorListeners()
    return [token for token in lexer.getAllTokens() if token.channel == Token.DEFAULT_CHANNEL]


def _find_control_command(tokens: Sequence[Token]) -> tuple[int, int] | None:
    """Return the position of the first control command (a statement that starts with a dot), None if there is none."""
    begins = True
    for token in tokens:
        if begins and token.text.startswith("."):
            return token.line, token.column + 1
        begins = token.text == ";"
    return None
