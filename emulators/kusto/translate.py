"""Translation of a KQL query to one SELECT for DuckDB.

The translation also lists those functions of a query whose results can differ from Data Explorer's, because their exact
arithmetic is not documented.
"""

import contextlib
import functools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from antlr4 import InputStream, Token  # type: ignore[import-untyped]  # its stubs are no part of this project
from duckdb_kql import ir
from duckdb_kql._antlr.KqlLexer import KqlLexer
from duckdb_kql.control import is_control_command
from duckdb_kql.errors import KqlError, KqlSyntaxError
from duckdb_kql.lower import lower
from duckdb_kql.params import ParameterDeclaration
from duckdb_kql.schema import output_columns
from duckdb_kql.translate import clock, to_sql

from emulators.kusto.discovery import Rows, bind_rows_and_find_next_query
from emulators.kusto.errors import LineAndColumn, QueryError, not_read_only_error, too_complex_error, unsupported_error
from emulators.kusto.extensions import EXTENSIONS
from emulators.kusto.extensions.known_types import bind_known_types
from emulators.kusto.extensions.pipeline import bind_table_columns
from emulators.kusto.extensions.rendering import check_annotation_columns, collect_annotations
from emulators.kusto.extensions.several_results import bind_selected_result, split_off_result_marker
from emulators.kusto.library_errors import error_from_translator
from emulators.kusto.parameters import Declaration
from emulators.kusto.positions import find_and_add_position
from emulators.kusto.query_checks import (
    check_nesting_depth,
    check_sources,
    check_sql_length,
    reject_mistranslated_constructs,
    reject_mistranslated_tokens,
)
from emulators.kusto.statements import FIRST_RESULT, ResultPlace, blank_other_statements, list_statement_spans
from emulators.kusto.timespans import format_timespan


@dataclass(frozen=True, slots=True)
class Translation:
    """Translated KQL query.

    Attributes:
        sql: SQL text with one SELECT.
        slots: names of the placeholders in the SQL; each represents a query parameter.
        declarations: query parameters that the KQL text declares.
        is_discovery_query: True if the SQL finds the output columns, see ``emulators.kusto.discovery``; False if it is
            the query itself.
        reusable: True if the rows of this discovery query, and of all discovery queries before it, depend only on
            types, not on data, so that a later execution of the query may reuse these rows. False for the query itself.
        visualization: chart properties from the operator ``render``; None if the query has no such operator.
        statements: number of query statements in the text.
        parts: number of results of the translated query statement; more than one for ``fork``, for example.
        name: name of the translated result; empty for the default name.
        approximations: functions whose results can differ from Data Explorer's, each with a note such as
            ``(approximate order)``.
    """

    sql: str
    slots: frozenset[str]
    declarations: tuple[Declaration, ...]
    is_discovery_query: bool = False
    reusable: bool = False
    visualization: Mapping[str, Any] | None = None
    statements: int = 1
    parts: int = 1
    name: str = ""
    approximations: tuple[str, ...] = ()


def translate(
    kql_text: str,
    columns_by_table: Mapping[str, Sequence[str]],
    discovery_rows: Sequence[Rows] = (),
    type_by_column: Mapping[str, str] | None = None,
    result_place: ResultPlace = FIRST_RESULT,
) -> Translation:
    """Translate a KQL query to SQL.

    If its output columns depend on the data, translate a discovery query that finds them instead. The caller runs it,
    adds its rows to ``discovery_rows``, and calls again until the translation is that of the query itself.

    Call this only in a process that can be killed, because some short queries require unlimited time and memory.

    Args:
        kql_text: KQL text of the query.
        columns_by_table: columns, in order, of each table that the query may read.
        discovery_rows: rows of the discovery queries that have run to find output columns (see
            ``emulators.kusto.discovery``).
        type_by_column: DuckDB type by column name; only columns that have the same type in all tables.
        result_place: the result to translate, if the query has several.

    Raises:
        QueryError: the text is not a query, is invalid, or contains an unsupported construct.
    """
    if is_control_command(kql_text):
        raise not_read_only_error((1, 1))
    try:
        return _translate_statement(kql_text, columns_by_table, discovery_rows, type_by_column or {}, result_place)
    except RecursionError:
        raise too_complex_error("the query is nested too deeply") from None
    except QueryError as error:
        raise find_and_add_position(error, kql_text) from error
    except KqlError as error:
        command = _find_position_of_control_command(_tokenize(kql_text)) if isinstance(error, KqlSyntaxError) else None
        raise (
            not_read_only_error(command)
            if command
            else find_and_add_position(error_from_translator(error, kql_text), kql_text)
        ) from error


def _translate_statement(
    kql_text: str,
    columns_by_table: Mapping[str, Sequence[str]],
    discovery_rows: Sequence[Rows],
    type_by_column: Mapping[str, str],
    result_place: ResultPlace,
) -> Translation:
    tokens = _tokenize(kql_text)
    reject_mistranslated_tokens(tokens)
    statements = list_statement_spans(tokens)
    if len(statements) > 1:
        command = _find_position_of_control_command(tokens)
        if command is not None:
            raise not_read_only_error(command)
        kql_text = blank_other_statements(kql_text, statements, result_place.statement)
    with bind_selected_result(result_place.part):
        translation = _translate_query(kql_text, columns_by_table, discovery_rows, type_by_column)
    return replace(translation, statements=max(1, len(statements)), approximations=list_approximate_functions(tokens))


def _translate_query(
    kql_text: str,
    columns_by_table: Mapping[str, Sequence[str]],
    discovery_rows: Sequence[Rows],
    type_by_column: Mapping[str, str],
) -> Translation:
    # Lowering a `set query_now` statement sets this clock.
    with clock(None) as pinned:
        with collect_annotations() as rendered, bind_table_columns(columns_by_table):
            query, end = split_off_result_marker(lower(kql_text))
        if pinned.moment is not None:
            raise unsupported_error("set query_now")
        check_sources(query, columns_by_table)
        reject_mistranslated_constructs(query)
        check_nesting_depth(query)
        with (
            bind_known_types(query, type_by_column),
            bind_rows_and_find_next_query(query, discovery_rows, columns_by_table) as next_discovery,
        ):
            tables = {table: list(columns) for table, columns in columns_by_table.items()}
            sql = to_sql(next_discovery.query if next_discovery else query, tables)
            if rendered and next_discovery is None:
                _check_visualization(rendered[-1], query, tables)
    check_sql_length(sql)
    declarations = tuple(_to_declaration(each) for each in query.parameters)
    return Translation(
        str(sql),
        sql.slots,
        declarations,
        next_discovery is not None,
        next_discovery is not None and next_discovery.reusable,
        rendered[-1] if rendered else None,
        parts=end.count,
        name=end.name,
    )


def _check_visualization(
    chart_properties: Mapping[str, Any], query: ir.Query, columns_by_table: dict[str, list[str]]
) -> None:
    with contextlib.suppress(KqlError):  # the library does not know the columns, so that nothing can be checked
        check_annotation_columns(chart_properties, output_columns(query, columns_by_table))


def _to_declaration(declared: ParameterDeclaration) -> Declaration:
    return Declaration(declared.name, declared.type, declared.slot, _format_default_value(declared.default))


def _format_default_value(default: Any) -> str | None:
    """Convert the default value of a query parameter to the text in which a request would send the value."""
    if default is None:
        return None
    if isinstance(default, datetime):
        return default.isoformat()
    if isinstance(default, timedelta):
        return format_timespan(default)
    return str(default)


def _tokenize(kql_text: str) -> list[Token]:
    """Return the tokens of a KQL text, without comments and white space."""
    lexer = KqlLexer(InputStream(kql_text))
    lexer.removeErrorListeners()
    return [token for token in lexer.getAllTokens() if token.channel == Token.DEFAULT_CHANNEL]


def _find_position_of_control_command(tokens: Sequence[Token]) -> LineAndColumn | None:
    """Return line and column of the first control command (statement that starts with a dot); None if there is none."""
    begins = True
    for token in tokens:
        if begins and token.text.startswith("."):
            return token.line, token.column + 1
        begins = token.text == ";"
    return None


_MARK = re.compile(r"(?:evaluate )?(\w+)(?: by)? \((approximate[^)]*)\)")


@functools.cache
def _map_names_to_approximation_notes() -> Mapping[str, str]:
    """Return the note of each approximate function, plugin and operator by name, such as ``approximate order``."""
    listed = (entry for extension in EXTENSIONS for entry in getattr(extension, "SUPPORTED", ()))
    return {found[1]: found[2] for entry in listed if (found := _MARK.fullmatch(entry))}


def list_approximate_functions(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return the approximate functions of a query, sorted, each with a note such as ``(approximate order)``.

    Args:
        tokens: tokens of the query without comments and white space.
    """
    marks = _map_names_to_approximation_notes()
    names = [token.text.lower() for token in tokens]
    found = {
        name
        for before, name, after in zip(["", *names], names, [*names[1:], ""], strict=False)
        if name in marks and (after == "(" or before == "|")
    }
    return tuple(f"{name} ({marks[name]})" for name in sorted(found))
