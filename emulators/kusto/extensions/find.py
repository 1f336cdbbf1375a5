"""Query operator ``find``, which selects the rows of several tables that meet a condition.

Each table is translated to a query with the operator `FindRows`, which selects the table's rows and columns. A
``union`` combines these queries. If a column has different types in several tables, the result has one column for each
type.
"""

import dataclasses
import fnmatch
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from duckdb_kql import ir, lower, schema

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.conversions import CONVERSIONS
from emulators.kusto.extensions.functions import call_matching_views
from emulators.kusto.extensions.library import reader, replace_attribute
from emulators.kusto.extensions.pipeline import (
    ExpressionReplacer,
    PipelineOperator,
    find_columns_of_readable_tables,
    get_table_names,
    unwrap_operator_node,
)
from emulators.kusto.extensions.search import SearchTerm, parse_search_condition
from emulators.kusto.extensions.sources import TypedUnion
from emulators.kusto.extensions.sql import Sql, quote_name, quote_text, render_expression
from emulators.kusto.extensions.star_conditions import StarCondition, replace_nodes
from emulators.kusto.extensions.tabular import find_name_given_by_as
from emulators.kusto.extensions.tree import (
    IrNode,
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    iterate_nodes,
    list_nodes_by_rule,
)

SUPPORTED: tuple[str, ...] = ("find (in, withsource, project, project-smart, pack, wildcards)",)

macros: tuple[str, ...] = ()
PACK = "pack_"
_SOURCE = "source_"

type ProjectedColumns = tuple[tuple[str, str | None], ...]
"""Name and type of each column of a ``project`` clause; the type is None without a conversion."""


class _SearchedTable(NamedTuple):
    """Name of a table, and a query that returns its rows."""

    name: str
    query: ir.Query


@dataclasses.dataclass(frozen=True)
class FindRows(PipelineOperator):
    """Operator that selects the matching rows of one table of ``find``; there is one `FindRows` for each table.

    Attributes:
        predicate: the condition of ``find``.
        label: name of this operator's table.
        label_column: name of the result column that contains the name of the table.
        branches: queries for the rows of all tables of ``find``, because their columns determine the result columns.
        projected: columns of the ``project`` clause; None without this clause (``project-smart``).
        packs: True if the ``project`` clause contains ``pack(*)``.
    """

    predicate: ir.Expr
    label: str
    label_column: str
    branches: tuple[ir.Query, ...]
    projected: ProjectedColumns | None
    packs: bool

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the matching rows with the columns of the result."""
        label = f"{quote_text(self.label)} AS {quote_name(self.label_column)}"
        self._check_column_names_exist()
        if not self._is_table_searched(input_columns):
            return f"SELECT {label} FROM {input_sql} WHERE false"  # noqa: S608  quoted names
        missing = [
            f"CAST(NULL AS JSON) AS {quote_name(name)}"
            for name in self._list_condition_columns()
            if name not in input_columns
        ]
        rows = f"(SELECT {', '.join(['*', *missing])} FROM {input_sql})" if missing else input_sql  # noqa: S608
        condition = render_expression(
            replace_nodes(self.predicate, lambda node: _replace_star_or_search_term(node, input_columns))
        )
        chosen = ", ".join([label, *self._iterate_result_column_sql(input_columns)])
        return f"SELECT {chosen} FROM {rows} WHERE {condition}"  # noqa: S608  quoted names, rendered expressions

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns that this table contributes to the result."""
        if not self._is_table_searched(input_columns):
            return [self.label_column]
        names = [name for name, _ in self._choose_result_columns_and_types(input_columns)]
        return [self.label_column, *names, *([PACK] if self._has_pack_column() else [])]

    def replace_expressions(self, substitute: ExpressionReplacer) -> "FindRows":
        """Return a copy of the operator with ``substitute`` applied to the expressions of the condition."""
        return dataclasses.replace(self, predicate=substitute(self.predicate))

    def _iterate_result_column_sql(self, input_columns: list[str]) -> Iterator[Sql]:
        chosen = self._choose_result_columns_and_types(input_columns)
        for name, kind in chosen:
            column: ir.Expr = ir.ColumnRef(name)
            if kind is not None and CONVERSIONS[kind] is not None:
                column = ir.FunctionCall(str(CONVERSIONS[kind]), (column,))
            elif kind == "string":
                column = ir.FunctionCall("tostring", (column,))
            yield f"{render_expression(column)} AS {quote_name(name)}"
        if self._has_pack_column():
            shown = {name for name, _ in chosen}
            pairs = [
                part
                for name in input_columns
                if name not in shown
                for part in (ir.Literal(name, "string"), ir.ColumnRef(name))
            ]
            yield f"{render_expression(ir.FunctionCall('bag_pack', tuple(pairs)))} AS {quote_name(PACK)}"

    def _choose_result_columns_and_types(self, input_columns: Sequence[str]) -> ProjectedColumns:
        if self.projected is not None:
            return tuple((name, kind) for name, kind in self.projected if name in input_columns)
        searched = [each for each in self._list_columns_per_table() if self._is_table_searched(each)]
        named = self._list_condition_columns()
        return tuple(
            (name, None) for name in input_columns if name in named or all(name in columns for columns in searched)
        )

    def _has_pack_column(self) -> bool:
        if self.projected is not None:
            return self.packs
        searched = [each for each in self._list_columns_per_table() if self._is_table_searched(each)]
        return any(len(self._choose_result_columns_and_types(columns)) < len(columns) for columns in searched)

    def _is_table_searched(self, input_columns: Sequence[str]) -> bool:
        """Return whether ``find`` must search a table that has these columns.

        If the condition tests only named columns, ``find`` searches the tables that have at least one of them.
        Otherwise it searches all tables.
        """
        nodes = list(iterate_nodes(self.predicate))
        if any(isinstance(node, StarCondition) or (isinstance(node, SearchTerm) and not node.column) for node in nodes):
            return True
        if not any(_is_reference_to_column(node) for node in nodes):
            return True
        return bool(set(self._list_condition_columns()) & set(input_columns))

    def _list_condition_columns(self) -> list[str]:
        """Return the columns that the condition of ``find`` names and that at least one table has."""
        nodes = iterate_nodes(self.predicate)
        named = [
            node.name if isinstance(node, ir.ColumnRef) else node.column
            for node in nodes
            if _is_reference_to_column(node)
        ]
        existing = {name for columns in self._list_columns_per_table() for name in columns}
        return [name for name in dict.fromkeys(named) if name in existing]

    def _check_column_names_exist(self) -> None:
        existing = {name for columns in self._list_columns_per_table() for name in columns}
        named = [node.name for node in iterate_nodes(self.predicate) if isinstance(node, ir.ColumnRef)]
        for name in [*named, *(name for name, _ in self.projected or ())]:
            if name not in existing:
                raise semantic_error(f"Failed to resolve column named '{name[:200]}'", subject=name)

    def _list_columns_per_table(self) -> list[list[str]]:
        known = find_columns_of_readable_tables()
        return [schema.output_columns(branch, known) for branch in self.branches]


def _is_reference_to_column(node: IrNode) -> bool:
    return isinstance(node, ir.ColumnRef) or (isinstance(node, SearchTerm) and node.column is not None)


def _replace_star_or_search_term(node: ir.Expr, input_columns: list[str]) -> ir.Expr:
    """Replace ``*`` or a search term in the condition of ``find`` by a condition on the columns of one table.

    A search term for a column that the table does not have becomes false; other expressions are returned unchanged.
    """
    if isinstance(node, SearchTerm) and node.column is not None and node.column not in input_columns:
        return ir.Literal(value=False, kind="bool")
    return node.to_condition(input_columns) if isinstance(node, StarCondition | SearchTerm) else node


@dataclasses.dataclass(frozen=True)
class OrderFindColumns(PipelineOperator):
    """Operator that puts the result columns of ``find`` into the documented order.

    ``projected`` are the columns of the ``project`` clause; None without this clause.
    """

    projected: tuple[str, ...] | None

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that selects all columns in the order of the result."""
        return f"SELECT {', '.join(map(quote_name, self.infer_output_columns(input_columns)))} FROM {input_sql}"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the result columns: first the table name, then the columns in the order of the ``project`` clause.

        The column ``pack_``, a JSON object with all remaining values, is last.
        """
        source, *rest = input_columns
        order = {name: index for index, name in enumerate(self.projected or ())}
        return [source, *sorted(rest, key=lambda name: len(order) + 1 if name == PACK else order.get(name, len(order)))]


def install_into_translator() -> None:
    """Add the operator ``find``, which can only start a query, to the KQL translator library."""
    replace_attribute(lower, "_lower_head", _patch_pipeline_conversion_for_find)
    replace_attribute(lower, "_is_tabular_value", _patch_is_tabular_for_find)


def _patch_is_tabular_for_find(library_function: Callable[..., bool]) -> Callable[..., bool]:
    """Patch the test for expressions that yield rows, so that it is also true for the operator ``find``."""

    def is_find_or_tabular(node: ParseNode, scalars: dict[str, ir.Expr]) -> bool:
        return get_rule_name(reader.unparenthesize(node)) == "FindOperator" or library_function(node, scalars)

    return is_find_or_tabular


def _patch_pipeline_conversion_for_find(
    library_function: Callable[[ParseNode, list[ParseNode]], ir.Query],
) -> Callable[[ParseNode, list[ParseNode]], ir.Query]:
    def convert_find_or_pipeline(first_node: ParseNode, operator_nodes: list[ParseNode]) -> ir.Query:
        inner = reader.collapse(first_node)
        if get_rule_name(inner) == "FindOperator":
            return _parse_find(inner, operator_nodes)
        if operator_nodes and get_rule_name(unwrap_operator_node(operator_nodes[0])) == "FindOperator":
            raise unsupported_error(
                "find after a pipe", "write find in (...) where", get_line_and_column(operator_nodes[0])
            )
        return library_function(first_node, operator_nodes)

    return convert_find_or_pipeline


def _parse_find(node: ParseNode, operator_nodes: list[ParseNode]) -> ir.Query:
    branches, label_column = list(_iterate_searched_tables(node)), _read_withsource_column(node)
    if not branches:
        raise semantic_error("find requires a table", position=get_line_and_column(node))
    predicate = parse_search_condition(_get_predicate_node(node))
    projected, packs = _parse_projection_and_pack_flag(node)
    queries = tuple(query for _, query in branches)
    first, *others = (
        ir.Query(
            query.source,
            [*query.operators, FindRows(predicate, label, label_column, queries, projected, packs)],
        )
        for label, query in branches
    )
    names = None if projected is None else tuple(name for name, _ in projected)
    operators = [TypedUnion(tuple(others), offset=node.start.start)] if others else []
    return ir.Query(
        first.source, [*first.operators, *operators, OrderFindColumns(names), *reader.lower_operators(operator_nodes)]
    )


def _get_predicate_node(node: ParseNode) -> ParseNode:
    # The condition follows the clause with the tables, and precedes the clause with the columns.
    return next(
        child for child in get_child_rules(node) if not get_rule_name(child).startswith(("FindOperator", "Data"))
    )


def _iterate_searched_tables(node: ParseNode) -> Iterator[_SearchedTable]:
    """Yield each table that ``find`` searches."""
    clauses = list_nodes_by_rule(node, "FindOperatorInClause")
    if not clauses:
        yield from _iterate_matching_tables("*")
    for index, child in enumerate(each for clause in clauses for each in get_child_rules(clause)):
        inner = reader.collapse(child)
        if get_rule_name(inner) == "WildcardedName":
            yield from _iterate_matching_tables(inner.getText())
            continue
        query = reader.lower_query_node(inner)
        is_table = isinstance(query.source, ir.TableRef) and not query.operators
        name = find_name_given_by_as(child) or (inner.getText() if is_table else f"union_arg{index}")
        yield _SearchedTable(name, query)


def _iterate_matching_tables(name_pattern: str) -> Iterator[_SearchedTable]:
    for view in call_matching_views(name_pattern):
        yield _SearchedTable(view.name.partition("(")[0], ir.Query(view))
    for name in get_table_names():
        if fnmatch.fnmatchcase(name, name_pattern):
            yield _SearchedTable(name, ir.Query(ir.TableRef(name)))


def _read_withsource_column(node: ParseNode) -> str:
    column: str | None = None
    for clause in list_nodes_by_rule(node, "FindOperatorParametersWhereClause"):
        for parameter in get_child_rules(clause):
            name, _, value = parameter.getText().partition("=")
            if name == "withsource" and column is None:
                column = value
            elif get_rule_name(parameter) != "FindOperatorInClause" and name != "datascope":
                raise unsupported_error(
                    f"find {parameter.getText()[:100]}",
                    "the supported parameters are withsource, datascope and in (...)",
                    get_line_and_column(parameter),
                )
    return _SOURCE if column is None else column


def _parse_projection_and_pack_flag(node: ParseNode) -> tuple[ProjectedColumns | None, bool]:
    if list_nodes_by_rule(node, "FindOperatorProjectAwayClause"):
        raise unsupported_error(
            "find with project-away", "list the result columns with project", get_line_and_column(node)
        )
    clauses = list_nodes_by_rule(node, "FindOperatorProjectClause")
    if not clauses:
        return None, False
    columns = []
    for each in list_nodes_by_rule(clauses[0], "FindOperatorColumnExpression"):
        name, *kinds = get_child_rules(each)
        kind = kinds[0].getText().lstrip(":") if kinds else None
        if kind is not None and kind not in CONVERSIONS:
            raise semantic_error(f"find: unknown type '{kind[:50]}'", position=get_line_and_column(each))
        columns.append((reader.find_names(name)[0], kind))
    return tuple(columns), bool(list_nodes_by_rule(clauses[0], "FindOperatorPackExpression"))
