"""Operators and plugins that select, check or produce column names.

The plugin ``pivot`` converts values to columns, and ``narrow`` converts columns to values. The operator
``project-by-names`` selects columns whose names are values, ``column_names_of()`` returns the column names of a table,
``assert-schema`` checks the columns of its input, and ``consume`` returns no rows.
"""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import ClassVar

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.discovery import PLACEHOLDER_COLUMN, DataDependentOperator, map_texts_to_column_names
from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.names import find_argument_name
from emulators.kusto.extensions.pipeline import (
    ExpressionReplacer,
    PipelineOperator,
    add_operator,
    find_columns_of_readable_tables,
)
from emulators.kusto.extensions.plugins import Schema, add_plugin, check_column_exists, read_output_schema_and_wildcard
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.serialized import UnorderedOutputOperator
from emulators.kusto.extensions.sql import SQL_TYPES, DuckDbType, KustoType, NamePrefix, Sql, quote_name, quote_text
from emulators.kusto.extensions.tabular import ColumnPattern
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_line_and_column, list_nodes_by_rule
from emulators.kusto.extensions.type_checks import render_error
from emulators.kusto.extensions.window_plan import choose_unused_prefix

SUPPORTED: tuple[str, ...] = (
    "evaluate pivot (aggregate, columns, output schema)",
    "evaluate narrow",
    "project-by-names (names, arrays, wildcards)",
    "column_names_of",
    "assert-schema (types only if there is a row)",
    "consume",
)
_PIVOTED = frozenset(
    {
        "min",
        "max",
        "take_any",
        "sum",
        "dcount",
        "avg",
        "stdev",
        "variance",
        "make_list",
        "make_bag",
        "make_set",
        "count",
    }
)


@dataclasses.dataclass(frozen=True)
class PivotValuesDiscovery(UnorderedOutputOperator):
    """Operator of the discovery query for ``pivot``: lists the values that become column names, distinct and sorted."""

    column: str
    reads_input_only: ClassVar[bool] = True

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render SQL that yields the distinct values of the pivoted column; null becomes the empty string."""
        check_column_exists(self.column, input_columns)
        text = _render_pivoted_text(self.column)
        return f"SELECT DISTINCT {text} AS v FROM {input_sql} ORDER BY v"  # noqa: S608  rendered expressions

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the name of the one output column."""
        del input_columns
        return ["v"]


@dataclasses.dataclass(frozen=True)
class PivotOperator(UnorderedOutputOperator, DataDependentOperator):
    """Plugin ``evaluate pivot(column, aggregate, keys...)``: makes a column for each value of a column.

    Attributes:
        offset: position of the operator in the query text.
        column: name of the column whose values become columns.
        aggregate: aggregate whose results these columns contain.
        keys: names of the columns to group by; if empty, all columns that the other arguments do not use.
        schema: name and SQL type of each output column; None if the query states no output schema.
    """

    offset: int
    column: str
    aggregate: ir.FunctionCall
    keys: tuple[str, ...]
    schema: Schema | None
    reads_input_only: ClassVar[bool] = True

    def build_column_discovery_operator(self) -> ir.Operator:
        """Return the query operator that lists the values of the pivoted column."""
        return PivotValuesDiscovery(self.column)

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields one row for each combination of keys.

        A cell without input rows contains the result of the aggregate for an empty input.
        """
        check_column_exists(self.column, input_columns)
        keys = self._list_pivot_key_columns(input_columns)
        for name in keys:
            check_column_exists(name, input_columns)
        p = choose_unused_prefix([*input_columns, *self.infer_output_columns(input_columns)])
        text = _render_pivoted_text(self.column)
        cell = translate.render_aggregate(ir.NamedExpr(self.aggregate))
        key_list = ", ".join(map(quote_name, keys))
        rows = f"(SELECT *, {text} AS {p}v FROM {input_sql})"  # noqa: S608  generated names, rendered expressions
        cells = f"(SELECT {key_list}{', ' if keys else ''}{p}v, {cell} AS {p}a FROM {rows} GROUP BY ALL)"  # noqa: S608
        none = f"(SELECT {cell} AS {p}n FROM (SELECT * FROM {input_sql} LIMIT 0))"  # noqa: S608
        typed = dict(self.schema or ())
        values = self._map_output_columns_to_values(keys)
        if not keys and not values:
            # SQL requires a column.
            return f"SELECT '' AS {quote_name(PLACEHOLDER_COLUMN)} FROM {input_sql} LIMIT 0"  # noqa: S608  a quoted name
        chosen = [
            self._render_pivot_output_column(name, values[name], p, typed.get(name))
            if name in values
            else quote_name(name)
            for name in self.infer_output_columns(input_columns)
        ]
        row = f"SELECT {key_list}{', ' if keys else ''}map(list({p}v), list({p}a)) AS {p}m FROM {cells}"  # noqa: S608
        grouping = f" GROUP BY {key_list}" if keys else ""
        return f"SELECT {', '.join(chosen)} FROM ({row}{grouping}), {none}"  # noqa: S608

    @staticmethod
    def _render_pivot_output_column(
        column_name: str, pivoted_value: str, prefix: NamePrefix, sql_type: DuckDbType | None
    ) -> Sql:
        value = f"coalesce({prefix}m[{quote_text(pivoted_value)}], {prefix}n)"
        return f"{value if sql_type is None else f'CAST({value} AS {sql_type})'} AS {quote_name(column_name)}"

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the key columns, followed by one column for each value of the pivoted column."""
        if self.schema is not None:
            return [name for name, _ in self.schema]
        keys = self._list_pivot_key_columns(input_columns)
        return [*keys, *self._map_output_columns_to_values(keys)] or [PLACEHOLDER_COLUMN]

    def _list_pivot_key_columns(self, input_columns: list[str]) -> list[str]:
        if self.keys:
            return list(self.keys)
        read_columns = writer.referenced_columns(self.aggregate)
        keys = [name for name in input_columns if name != self.column and name not in read_columns]
        return keys if self.schema is None else [name for name in keys if name in dict(self.schema)]

    def _map_output_columns_to_values(self, key_columns: Sequence[str]) -> dict[str, str]:
        """Return, by output column, the value of the pivoted column to which the output column belongs."""
        if self.schema is not None:
            return {name: name for name, _ in self.schema if name not in key_columns}
        names = map_texts_to_column_names((row[0] for row in self.discovery_rows), key_columns)
        for name in names.values():
            if name in key_columns:
                raise semantic_error(
                    f"evaluate pivot(): the value '{name[:100]}' cannot become a column: another column has this name"
                )
        return {name: value for value, name in names.items()}

    def replace_expressions(self, substitute: ExpressionReplacer) -> "PivotOperator":
        """Return a copy of the plugin with ``substitute`` applied to the expressions in the aggregate."""
        aggregate = substitute(self.aggregate)
        return dataclasses.replace(self, aggregate=aggregate) if isinstance(aggregate, ir.FunctionCall) else self


def _render_pivoted_text(column_name: str) -> Sql:
    """Return SQL for a value of the pivoted column as a string; it is empty for null."""
    text = str(translate.render_kql_tostring(ir.ColumnRef(column_name)))
    return text if infer_type(ir.ColumnRef(column_name)) == "string" else f"coalesce({text}, '')"


@dataclasses.dataclass(frozen=True)
class NarrowOperator(UnorderedOutputOperator):
    """Plugin ``evaluate narrow()``: returns one row for each cell of the input: row number, column name and value."""

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields row number, column name and value (as a string) of each cell."""
        values = [
            f"{{'c': {quote_text(name)}, 'v': {translate.render_kql_tostring(ir.ColumnRef(name))}}}"
            for name in input_columns
        ]
        row = f"{choose_unused_prefix(input_columns)}r"
        pairs = f"unnest([{', '.join(values)}])"
        numbered = f"SELECT *, row_number() OVER () - 1 AS {row} FROM {input_sql}"  # noqa: S608  generated names
        paired = f"(SELECT {row}, {pairs} AS e FROM ({numbered}))"  # noqa: S608
        return f'SELECT {row} AS "Row", e.c AS "Column", e.v AS "Value" FROM {paired}'  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the names of the three output columns: row number, column name and value."""
        del input_columns
        return ["Row", "Column", "Value"]


def _parse_pivot(node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None) -> ir.Operator:
    _reject_named_arguments("pivot", arguments)
    lowered = [reader.lower_expr(each) for each in arguments]
    if not lowered or not isinstance(lowered[0], ir.ColumnRef):
        raise semantic_error(
            "evaluate pivot(): the first argument must be a column", position=get_line_and_column(node)
        )
    aggregate: ir.Expr = ir.FunctionCall("count")
    if len(lowered) > 1 and isinstance(lowered[1], ir.FunctionCall):
        aggregate = lowered.pop(1)
    if not isinstance(aggregate, ir.FunctionCall) or aggregate.name.lower() not in _PIVOTED:
        raise unsupported_error(
            "evaluate pivot with this aggregate",
            f"use one of {', '.join(sorted(_PIVOTED))}",
            position=get_line_and_column(node),
        )
    keys = []
    for each in lowered[1:]:
        if not isinstance(each, ir.ColumnRef):
            raise semantic_error(
                "evaluate pivot(): the arguments after the aggregate must be columns",
                position=get_line_and_column(node),
            )
        keys.append(each.name)
    schema, star = read_output_schema_and_wildcard(schema_clause)
    if star:
        raise unsupported_error(
            "evaluate pivot with * in its output schema", "declare each output column", get_line_and_column(node)
        )
    typed = None if schema is None else tuple((name, SQL_TYPES[kind]) for name, kind in schema)
    return PivotOperator(node.start.start, lowered[0].name, aggregate, tuple(keys), typed)


def _reject_named_arguments(plugin_name: str, arguments: Sequence[ParseNode]) -> None:
    if any(find_argument_name(each) for each in arguments):
        raise unsupported_error(
            f"evaluate {plugin_name} with named arguments",
            "write the arguments without names",
            get_line_and_column(arguments[0]),
        )


def _parse_narrow(node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None) -> ir.Operator:
    if arguments or schema_clause is not None:
        raise unsupported_error(
            "evaluate narrow with arguments or an output schema", "write evaluate narrow()", get_line_and_column(node)
        )
    return NarrowOperator()


macros: tuple[str, ...] = ()
PROJECT_BY_NAMES = "project-by-names"


@dataclasses.dataclass(frozen=True)
class ProjectByNames(PipelineOperator):
    """Operator ``project-by-names``: selects columns by names, arrays of names or patterns, in the order stated."""

    specifiers: tuple[ir.Expr, ...]

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that selects the columns."""
        selected = ", ".join(map(quote_name, self.infer_output_columns(input_columns)))
        return f"SELECT {selected} FROM {input_sql}"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns that the arguments select; ignore names of columns that do not exist."""
        found: list[str] = []
        for text in (text for each in self.specifiers for text in _read_name_patterns(each)):
            named = ColumnPattern(text).list_matching_columns(input_columns) if "*" in text else [text]
            found += [name for name in named if name in input_columns and name not in found]
        if not found:
            raise unsupported_error("project-by-names that selects no column", "select a column of the input")
        return found

    def replace_expressions(self, substitute: ExpressionReplacer) -> "ProjectByNames":
        """Return a copy of the operator with ``substitute`` applied to its arguments."""
        return dataclasses.replace(self, specifiers=tuple(map(substitute, self.specifiers)))


def _read_name_patterns(expr: ir.Expr) -> Sequence[str]:
    """Return the column names or patterns in one argument of ``project-by-names``."""
    if isinstance(expr, ir.LetRef):
        return _read_name_patterns(expr.value)
    if isinstance(expr, ir.ColumnRef):
        return [expr.name]
    if isinstance(expr, ir.FunctionCall) and expr.name == "column_names_of":
        return _list_columns_of_argument_table(expr)
    if isinstance(expr, ir.FunctionCall) and expr.name in ("pack_array", "dynamic", "parse_json", "todynamic"):
        return [name for each in expr.args for name in _read_name_patterns(each)]
    if not isinstance(expr, ir.Literal) or not isinstance(expr.value, str | list):
        raise semantic_error("project-by-names: a name must be a constant string or array of strings", inner="SEM0100")
    value = json.loads(expr.value) if expr.kind == "dynamic" and isinstance(expr.value, str) else expr.value
    names = value if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in names):
        raise semantic_error("project-by-names: a name must be a constant string or array of strings", inner="SEM0100")
    return names


def _parse_project_by_names(node: ParseNode) -> ir.Operator | None:
    if node.getChild(0).getText() != PROJECT_BY_NAMES:
        return None
    return ProjectByNames(tuple(reader.lower_named(each).expr for each in get_child_rules(node)))


def _patch_calls_for_column_names_of(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    def convert_function_call(node: ParseNode) -> ir.Expr:
        if not node.getText().startswith("column_names_of("):
            return library_function(node)
        arguments = get_child_rules(node)[1:]
        if len(arguments) != 1:
            raise semantic_error("column_names_of(): function expects 1 argument(s)", inner="SEM0219")
        # As the query of toscalar() the table follows the rules for the scope of names; the query never runs.
        query = reader.lower_query_node(reader.collapse(arguments[0]))
        if isinstance(query.source, ir.PrintSource):
            raise semantic_error("column_names_of(): the argument must be a table", inner="SEM0219")
        return ir.FunctionCall("column_names_of", (ir.ToScalar(query),))

    return convert_function_call


def _list_columns_of_argument_table(call: ir.FunctionCall) -> list[str]:
    table = call.args[0]
    if not isinstance(table, ir.ToScalar):
        raise semantic_error("column_names_of(): the argument must be a table", inner="SEM0219")
    return schema.output_columns(table.query, find_columns_of_readable_tables())


def _render_column_names_array(call: ir.FunctionCall) -> Sql:
    return f"CAST({quote_text(json.dumps(_list_columns_of_argument_table(call), ensure_ascii=False))} AS JSON)"


@dataclasses.dataclass(frozen=True)
class AssertSchema(PipelineOperator):
    """Operator ``assert-schema``: returns its input if the columns have the ``declared`` names, order and types."""

    declared: tuple[tuple[str, str], ...]

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that fails if a column does not have its declared type.

        The SQL checks the types in each row, so that it succeeds if the input has no rows. A column that is declared
        as dynamic may have any type.

        Raises:
            QueryError: the names or the order of the columns differ from the declaration.
        """
        if input_columns != [name for name, _ in self.declared]:
            listed = ", ".join(f"{name}:{kind}" for name, kind in self.declared)
            raise semantic_error(f"assert-schema: the input must have the columns ({listed[:500]})")
        wrong = [
            f"WHEN {_render_type_mismatch_condition(name, kind)} "
            f"THEN {render_error('SEM0100', f'assert-schema: the column {name[:100]} is not of type {kind}')}"
            for name, kind in self.declared
            if kind != "dynamic"
        ]
        if not wrong:
            return f"SELECT * FROM {input_sql}"  # noqa: S608
        return f"SELECT * FROM {input_sql} WHERE CASE {' '.join(wrong)} ELSE true END"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the input, which are also the output columns."""
        return input_columns


def _render_type_mismatch_condition(column_name: str, expected_type: KustoType) -> Sql:
    """Return the SQL condition that a column does not have a Kusto type."""
    actual = f"typeof({quote_name(column_name)})"
    if expected_type == "decimal":
        return f"{actual} NOT LIKE 'DECIMAL%'"
    if expected_type == "long":
        # DuckDB's sums of whole numbers are HUGEINT.
        return f"{actual} NOT IN ('BIGINT', 'HUGEINT')"
    return f"{actual} <> {quote_text(SQL_TYPES[expected_type])}"


def _parse_assert_schema(node: ParseNode) -> ir.Operator:
    declared = []
    for each in list_nodes_by_rule(node, "RowSchemaColumnDeclaration"):
        name, kind = get_child_rules(each)
        if kind.getText() not in {*SQL_TYPES, "decimal"}:
            raise semantic_error(
                f"assert-schema: unknown type '{kind.getText()[:50]}'", position=get_line_and_column(kind)
            )
        declared.append((reader.find_names(name)[0], kind.getText()))
    return AssertSchema(tuple(declared))


@dataclasses.dataclass(frozen=True)
class Consume(PipelineOperator):
    """Operator ``consume``: reads the rows of its input and returns none of them."""

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields no row."""
        del input_columns
        return self.render_with_unknown_input_columns(input_sql)

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Render the operator as SQL that reads its whole input and yields no row."""
        return f"SELECT * FROM {input_sql} WHERE (SELECT count(*) FROM {input_sql}) < 0"  # noqa: S608


def install_into_translator() -> None:
    """Add ``pivot``, ``narrow``, ``project-by-names``, ``column_names_of()``, ``assert-schema`` and ``consume``."""
    add_plugin("pivot", _parse_pivot)
    add_plugin("narrow", _parse_narrow)
    add_operator("ProjectOperator", _parse_project_by_names)
    add_operator("AssertSchemaOperator", _parse_assert_schema)
    add_operator("ConsumeOperator", lambda _: Consume())
    replace_attribute(lower, "_lower_function_call", _patch_calls_for_column_names_of)
    add_custom_function("column_names_of", (1,), _render_column_names_array)
