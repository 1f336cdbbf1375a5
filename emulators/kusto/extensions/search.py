"""Query operator ``search``, which selects the rows of one or several tables that contain a term in any column."""

import dataclasses
import functools
import re
from collections.abc import Callable

from duckdb_kql import ir, lower, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.functions import call_matching_views
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import (
    ExpressionReplacer,
    PipelineOperator,
    add_operator,
    map_tables_to_columns,
)
from emulators.kusto.extensions.sql import Sql, quote_name, quote_text, render_expression
from emulators.kusto.extensions.tree import (
    IrNode,
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    iterate_nodes,
)

SUPPORTED: tuple[str, ...] = ("search (in, kind, column:term, wildcards, and, or, not)",)

macros: tuple[str, ...] = ()
TABLE_COLUMN = "$table"
_SENSITIVE = {"case_sensitive": True, "case_insensitive": False, "default": False}
_TABLE = f'"{TABLE_COLUMN}"'
_WITH_CASE = {
    **{name: f"{name}_cs" for name in ("has", "contains", "startswith", "endswith", "hasprefix", "hassuffix")},
    **{f"!{name}": f"!{name}_cs" for name in ("has", "contains", "startswith", "endswith", "hasprefix", "hassuffix")},
    "=~": "==",
    "!~": "!=",
}
_LETTERS_BY_TYPE = {
    "BIGINT": "",
    "INTEGER": "",
    "INTERVAL": "",
    "BOOLEAN": "truefals",
    "DOUBLE": "einfaty",
    "TIMESTAMP": "tz",
}
"""Lowercase letters in the text form of values, by DuckDB type; types that are not listed can have any letter."""
_LOGICAL = {"LogicalAndExpression": "and", "LogicalOrExpression": "or"}


@dataclasses.dataclass(frozen=True)
class SearchTerm(ir.Expr):
    """Search term: a text that must occur in a column.

    Attributes:
        text: text of the term, in which ``*`` matches any characters.
        column: name of the column that must contain the text; None for any column.
        sensitive: True if the comparison is case-sensitive.
    """

    text: str
    column: str | None
    sensitive: bool

    def to_condition(self, input_columns: list[str]) -> ir.Expr:
        """Convert the term to a condition that the input columns must meet."""
        tests = [self._build_column_test(name) for name in (input_columns if self.column is None else [self.column])]
        condition = tests[0]
        for test in tests[1:]:
            condition = ir.BinaryOp("or", condition, test)
        return condition

    def _build_column_test(self, column_name: str) -> ir.Expr:
        test = self._build_value_test(ir.FunctionCall("tostring", (ir.ColumnRef(column_name),)))
        letters = set(re.findall("[a-z]", self.text.lower()))
        excluded = [quote_text(kind) for kind, known in _LETTERS_BY_TYPE.items() if not letters <= set(known)]
        if not excluded:
            return test
        # DuckDB evaluates this test when it binds the query, so that words are not searched in numbers and instants.
        can_match = f"typeof({quote_name(column_name)}) NOT IN ({', '.join(excluded)})"
        return ir.BinaryOp("and", ir.RenderedAggregate(can_match), test)

    def _build_value_test(self, value: ir.Expr) -> ir.Expr:
        text = self.text.strip("*")
        if not text:
            return ir.Literal(value=True, kind="bool")
        if "*" in text:
            pattern = r"\b" + ".*".join(map(re.escape, text.split("*"))) + r"\b"
            pattern = pattern if self.sensitive else f"(?i){pattern}"
            return ir.BinaryOp("matches regex", value, ir.Literal(pattern, "string"))
        before, after = self.text.startswith("*"), self.text.endswith("*")
        operator = "contains" if before and after else "hassuffix" if before else "hasprefix" if after else "has"
        return ir.BinaryOp(operator + ("_cs" if self.sensitive else ""), value, ir.Literal(text, "string"))


@dataclasses.dataclass(frozen=True)
class SearchOperator(PipelineOperator):
    """Query operator ``search``, which selects rows by a predicate of search terms and comparisons.

    Attributes:
        predicate: the condition that the rows must meet.
        table: name of the searched table; empty if the input already has a column with table names; None if not yet
            known.
    """

    predicate: ir.Expr
    table: str | None = None

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the matching rows, with the name of their table as first column."""
        label = f"{translate.quote_string(self.table)} AS {_TABLE}, " if self.table else ""
        condition = render_expression(
            _replace_search_terms(self.predicate, [name for name in input_columns if name != TABLE_COLUMN])
        )
        return f"SELECT {label}* FROM {input_sql} WHERE {condition}"  # noqa: S608  a quoted name, a rendered expression

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the column with the name of the table, followed by the columns of the input."""
        return [TABLE_COLUMN, *input_columns] if self.table else input_columns

    def replace_expressions(self, substitute: ExpressionReplacer) -> "SearchOperator":
        """Return a copy of the operator with ``substitute`` applied to the expressions of the predicate."""
        return dataclasses.replace(self, predicate=substitute(self.predicate))


def install_into_translator() -> None:
    """Add the operator ``search``, which may start a query or follow a table, to the KQL translator library."""
    replace_attribute(lower, "_lower_head", _patch_pipeline_conversion_for_search)
    add_operator("SearchOperator", lambda node: SearchOperator(_parse_search_predicate(node)))


def _patch_pipeline_conversion_for_search(
    library_function: Callable[[ParseNode, list[ParseNode]], ir.Query],
) -> Callable[[ParseNode, list[ParseNode]], ir.Query]:
    def convert_search_or_pipeline(first_node: ParseNode, operator_nodes: list[ParseNode]) -> ir.Query:
        inner = reader.collapse(first_node)
        if get_rule_name(inner) == "SearchOperator":
            return _parse_search(inner, operator_nodes)
        query = library_function(first_node, operator_nodes)
        for index, operator in enumerate(query.operators):
            if isinstance(operator, SearchOperator) and operator.table is None:
                query.operators[index] = _set_searched_table(operator, query.source if index == 0 else None)
        return query

    return convert_search_or_pipeline


def _set_searched_table(search: SearchOperator, source: ir.Source | None) -> SearchOperator:
    if not isinstance(source, ir.TableRef):
        raise unsupported_error("search after another operator", "write search directly after the table")
    return dataclasses.replace(search, table=source.name)


def _parse_search(node: ParseNode, operator_nodes: list[ParseNode]) -> ir.Query:
    clauses = [child for child in get_child_rules(node) if get_rule_name(child) == "SearchOperatorInClause"]
    sources = [_parse_search_source(child) for clause in clauses for child in get_child_rules(clause)]
    predicate = _parse_search_predicate(node)
    sources = sources or _list_searched_sources(predicate)
    first, *others = (ir.Query(source) for source in sources)
    union = ir.Union(tuple(others), with_source=TABLE_COLUMN)
    search = SearchOperator(predicate, table="")
    return ir.Query(first.source, [union, search, *reader.lower_operators(operator_nodes)])


def _list_searched_sources(predicate: ir.Expr) -> list[ir.Source]:
    """Return all views, and the tables that ``search`` must read.

    If there are views and every term of the predicate names a column, ``search`` reads only tables that have at least
    one of the named columns. Otherwise it reads all tables.
    """
    nodes = list(iterate_nodes(predicate))
    named = {
        node.name if isinstance(node, ir.ColumnRef) else node.column for node in nodes if _is_reference_to_column(node)
    }
    views = call_matching_views("*")
    everywhere = any(isinstance(node, SearchTerm) and node.column is None for node in nodes)
    if everywhere or not named or not views:
        return [*views, ir.WildcardTableRef("*")]
    tables = map_tables_to_columns()
    return [*views, *(ir.TableRef(name) for name in sorted(tables) if named & set(tables[name]))]


def _is_reference_to_column(node: IrNode) -> bool:
    return isinstance(node, ir.ColumnRef) or (isinstance(node, SearchTerm) and node.column is not None)


def _parse_search_source(node: ParseNode) -> ir.Source:
    node = reader.collapse(node)
    if get_rule_name(node) == "WildcardedName":
        return ir.WildcardTableRef(node.getText())
    source = reader.lower_source(node)
    if not isinstance(source, ir.TableRef):
        raise unsupported_error(
            "search in (...) with a source that is not a table", "list only names of tables", get_line_and_column(node)
        )
    return source


def _parse_search_predicate(node: ParseNode) -> ir.Expr:
    sensitive = False
    for parameter in get_child_rules(node)[:-1]:
        name, _, value = parameter.getText().partition("=")
        if get_rule_name(parameter) == "SearchOperatorInClause":
            continue
        if name != "kind" or value not in _SENSITIVE:
            raise unsupported_error(
                f"search {parameter.getText()[:100]}",
                f"the only supported parameter is kind, with one of {', '.join(_SENSITIVE)}",
                get_line_and_column(parameter),
            )
        sensitive = _SENSITIVE[value]
    return parse_search_condition(get_child_rules(node)[-1], case_sensitive=sensitive)


def parse_search_condition(node: ParseNode, *, case_sensitive: bool = False) -> ir.Expr:
    """Convert a parse tree node with search terms and comparisons to a condition."""
    node = reader.collapse(node)
    kind, parts = get_rule_name(node), get_child_rules(node)
    if kind in _LOGICAL:
        conditions = [parse_search_condition(parts[0], case_sensitive=case_sensitive)]
        conditions += [
            parse_search_condition(get_child_rules(operation)[-1], case_sensitive=case_sensitive)
            for operation in parts[1:]
        ]
        return functools.reduce(functools.partial(ir.BinaryOp, _LOGICAL[kind]), conditions)
    if kind == "ParenthesizedExpression":
        return parse_search_condition(parts[0], case_sensitive=case_sensitive)
    if kind == "NamedFunctionCallExpression" and parts[0].getText() == "not":
        return ir.FunctionCall("not", (parse_search_condition(parts[1], case_sensitive=case_sensitive),))
    if kind in ("StarExpression", "StringLiteralExpression"):
        return SearchTerm(reader.literal_string(node) or "*", None, case_sensitive)
    if kind == "StringBinaryOperatorExpression" and parts[1].getText().startswith(":"):
        return _parse_column_term(node, parts, case_sensitive=case_sensitive)
    lowered: ir.Expr = reader.lower_expr(node)
    return _make_comparison_case_sensitive(lowered) if case_sensitive else lowered


def _parse_column_term(node: ParseNode, child_nodes: list[ParseNode], *, case_sensitive: bool) -> ir.Expr:
    column, text = reader.lower_expr(child_nodes[0]), reader.literal_string(get_child_rules(child_nodes[1])[-1])
    if not isinstance(column, ir.ColumnRef) or text is None:
        raise unsupported_error(
            "search with ':' between other operands than a column and a string", position=get_line_and_column(node)
        )
    return SearchTerm(text, column.name, case_sensitive)


def _make_comparison_case_sensitive(expr: ir.Expr) -> ir.Expr:
    if isinstance(expr, ir.BinaryOp) and expr.op in _WITH_CASE:
        return dataclasses.replace(expr, op=_WITH_CASE[expr.op])
    return expr


def _replace_search_terms(expr: ir.Expr, input_columns: list[str]) -> ir.Expr:
    """Return a copy of a predicate in which a condition on the input columns replaces each search term."""
    if isinstance(expr, SearchTerm):
        return expr.to_condition(input_columns)
    if isinstance(expr, ir.BinaryOp):
        return dataclasses.replace(
            expr,
            left=_replace_search_terms(expr.left, input_columns),
            right=_replace_search_terms(expr.right, input_columns),
        )
    if isinstance(expr, ir.FunctionCall):
        return dataclasses.replace(expr, args=tuple(_replace_search_terms(arg, input_columns) for arg in expr.args))
    return expr
