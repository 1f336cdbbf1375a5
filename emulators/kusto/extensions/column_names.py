"""Names of columns: ``project-by-names``, ``column_names_of()``, ``assert-schema`` and ``consume``."""

import dataclasses
import json
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, lower, schema

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute, add_operator, get_known_tables
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.sql import SQL_TYPES, quote_name, quote_text
from emulators.kusto.extensions.tabular import ColumnPattern
from emulators.kusto.extensions.tree import find_rules, get_child_rules, get_source_position
from emulators.kusto.extensions.type_guards import render_error

SUPPORTED: tuple[str, ...] = (
    "project-by-names (names, arrays, wildcards)",
    "column_names_of",
    "assert-schema (types only if there is a row)",
    "consume",
)

macros: tuple[str, ...] = ()
PROJECT_BY_NAMES = "project-by-names"


@dataclasses.dataclass(frozen=True)
class ProjectByNames(PipelineOperator):
    """Operator ``project-by-names``: selects columns by names, arrays of names and patterns, in their order."""

    specifiers: tuple[ir.Expr, ...]

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that selects the columns."""
        selected = ", ".join(map(quote_name, self.infer_columns(cols)))
        return f"SELECT {selected} FROM {prev}"  # noqa: S608  quoted names

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns that the specifiers name; names without a column are ignored."""
        found: list[str] = []
        for text in (text for each in self.specifiers for text in _read_names(each)):
            named = ColumnPattern(text).match_columns(cols) if "*" in text else [text]
            found += [name for name in named if name in cols and name not in found]
        if not found:
            raise unsupported_error("a query result without columns")
        return found

    def replace_expressions(self, substitute: Substitute) -> "ProjectByNames":
        """Return a copy in which the function ``substitute`` has replaced the specifiers."""
        return dataclasses.replace(self, specifiers=tuple(map(substitute, self.specifiers)))


def _read_names(expr: ir.Expr) -> Sequence[str]:
    """Read the column names or patterns in one argument of ``project-by-names``."""
    if isinstance(expr, ir.LetRef):
        return _read_names(expr.value)
    if isinstance(expr, ir.ColumnRef):
        return [expr.name]
    if isinstance(expr, ir.FunctionCall) and expr.name == "column_names_of":
        return _find_column_names(expr)
    if isinstance(expr, ir.FunctionCall) and expr.name in ("pack_array", "dynamic", "parse_json", "todynamic"):
        return [name for each in expr.args for name in _read_names(each)]
    if not isinstance(expr, ir.Literal) or not isinstance(expr.value, str | list):
        raise semantic_error("project-by-names: a name must be a constant string or array of strings", inner="SEM0100")
    value = json.loads(expr.value) if expr.kind == "dynamic" and isinstance(expr.value, str) else expr.value
    names = value if isinstance(value, list) else [value]
    if not all(isinstance(name, str) for name in names):
        raise semantic_error("project-by-names: a name must be a constant string or array of strings", inner="SEM0100")
    return names


def _parse_project(node: Any) -> ir.Operator | None:
    if node.getChild(0).getText() != PROJECT_BY_NAMES:
        return None
    return ProjectByNames(tuple(reader.lower_named(each).expr for each in get_child_rules(node)))


def _patch_function_call(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_function_call(node: Any) -> ir.Expr:
        if not node.getText().startswith("column_names_of("):
            return default(node)
        arguments = get_child_rules(node)[1:]
        if len(arguments) != 1:
            raise semantic_error("column_names_of(): function expects 1 argument(s)", inner="SEM0219")
        # As the query of toscalar() the table follows the rules for the scope of names; the query never runs.
        query = reader.lower_query_node(reader.collapse(arguments[0]))
        if isinstance(query.source, ir.PrintSource):
            raise semantic_error("column_names_of(): the argument must be a table", inner="SEM0219")
        return ir.FunctionCall("column_names_of", (ir.ToScalar(query),))

    return lower_function_call


def _find_column_names(call: ir.FunctionCall) -> list[str]:
    table = call.args[0]
    if not isinstance(table, ir.ToScalar):
        raise semantic_error("column_names_of(): the argument must be a table", inner="SEM0219")
    return schema.output_columns(table.query, get_known_tables())


def _render_column_names(call: ir.FunctionCall) -> str:
    return f"CAST({quote_text(json.dumps(_find_column_names(call), ensure_ascii=False))} AS JSON)"


@dataclasses.dataclass(frozen=True)
class AssertSchema(PipelineOperator):
    """Operator ``assert-schema``: returns the input if its columns have the stated names, order and types."""

    declared: tuple[tuple[str, str], ...]

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that fails if a column has an undeclared type; without rows it succeeds."""
        if cols != [name for name, _ in self.declared]:
            listed = ", ".join(f"{name}:{kind}" for name, kind in self.declared)
            raise semantic_error(f"assert-schema: the columns are not ({listed[:500]})")
        wrong = [
            f"WHEN typeof({quote_name(name)}) <> {quote_text(SQL_TYPES[kind])} "
            f"THEN {render_error('SEM0100', f'assert-schema: the column {name[:100]} is not of type {kind}')}"
            for name, kind in self.declared
            if kind not in {"decimal", "dynamic"}
        ]
        if not wrong:
            return f"SELECT * FROM {prev}"  # noqa: S608
        return f"SELECT * FROM {prev} WHERE CASE {' '.join(wrong)} ELSE true END"  # noqa: S608  quoted names

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the operator's input, which are also its output."""
        return cols


def _parse_assert_schema(node: Any) -> ir.Operator:
    declared = []
    for each in find_rules(node, "RowSchemaColumnDeclaration"):
        name, kind = get_child_rules(each)
        if kind.getText() not in SQL_TYPES:
            raise semantic_error(f"Unknown type '{kind.getText()[:50]}'", position=get_source_position(kind))
        declared.append((reader.find_names(name)[0], kind.getText()))
    return AssertSchema(tuple(declared))


@dataclasses.dataclass(frozen=True)
class Consume(PipelineOperator):
    """Operator ``consume``: reads the rows of its input and returns none of them."""

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields no row."""
        del cols
        return self.render_without_columns(prev)

    def render_without_columns(self, prev: str) -> str:
        """Render the operator as SQL that yields no row after it has read its input."""
        return f"SELECT * FROM {prev} WHERE (SELECT count(*) FROM {prev}) < 0"  # noqa: S608


def install() -> None:
    """Add the operators and the function to the KQL translator library."""
    add_operator("ProjectOperator", _parse_project)
    add_operator("AssertSchemaOperator", _parse_assert_schema)
    add_operator("ConsumeOperator", lambda _: Consume())
    replace_attribute(lower, "_lower_function_call", _patch_function_call)
    add_custom_function("column_names_of", (1,), _render_column_names)
