"""Queries with several results, from ``fork``, ``facet``, and the plugins ``preview`` and ``funnel_sequence``.

Such a query is translated once for each result. The caller selects the result with `bind_selected_result`. The parser
then replaces the operator, such as ``fork``, by the operators of the selected result and a marker, `EndOfResult`. The
marker states how many results the query has.
"""

import contextlib
import contextvars
import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence

from duckdb_kql import ir

from emulators.kusto.errors import QueryError, semantic_error, unsupported_error
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import PipelineOperator, add_operator
from emulators.kusto.extensions.sql import Sql
from emulators.kusto.extensions.tree import (
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    list_nodes_by_rule,
)

SUPPORTED: tuple[str, ...] = ("fork", "facet", "evaluate preview")

macros: tuple[str, ...] = ()
MAX_RESULTS = 64
_SELECTED: contextvars.ContextVar[int] = contextvars.ContextVar("selected_result", default=0)


type NamedResult = tuple[str, Callable[[], Sequence[ir.Operator]]]
"""Name of a result, and a function that returns the operators of the result; the name can be empty."""


@dataclasses.dataclass(frozen=True)
class EndOfResult(PipelineOperator):
    """Marker after the last operator of the result that is being translated, in a query with several results.

    Attributes:
        count: number of results of the query.
        name: name of the translated result; empty if the result has no name.
    """

    count: int
    name: str = ""

    def render_with_unknown_input_columns(self, input_sql: Sql) -> Sql:
        """Reject the query, because the operator with several results is not its last operator.

        A marker at the end of the query is removed before the query is rendered.
        """
        del input_sql
        raise build_misplaced_results_error()

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Reject the query, because the operator with several results is not its last operator.

        A marker at the end of the query is removed before the query is rendered.
        """
        del input_columns
        return self.render_with_unknown_input_columns(input_sql)


def build_misplaced_results_error() -> QueryError:
    """Build the error for an operator with several results that is not the last operator of a query."""
    return semantic_error(
        "fork, facet and other operators with several results must be the last operator of the query, outside of "
        "mv-apply, partition and other nested queries",
        inner="SEM0100",
    )


@contextlib.contextmanager
def bind_selected_result(result_index: int) -> Iterator[None]:
    """Context manager: translate the result with index ``result_index`` of each query that has several results."""
    token = _SELECTED.set(result_index)
    try:
        yield
    finally:
        _SELECTED.reset(token)


def build_operators_of_selected_result(node: ParseNode, results: Sequence[NamedResult]) -> list[ir.Operator]:
    """Return the operators of the selected result, followed by the marker `EndOfResult`.

    Args:
        node: parse tree node of the operator with several results.
        results: name and operators of each result.
    """
    if len(results) > MAX_RESULTS:
        raise unsupported_error(
            f"an operator, such as fork or facet, with more than {MAX_RESULTS} results",
            "divide the results among several queries",
            get_line_and_column(node),
        )
    name, build = results[min(_SELECTED.get(), len(results) - 1)]
    return [*build(), EndOfResult(len(results), name)]


def split_off_result_marker(query: ir.Query) -> tuple[ir.Query, EndOfResult]:
    """Remove the marker `EndOfResult` from the end of a query; return the query without it, and the marker.

    If the query has no marker, return the query unchanged and a new marker that states one result.
    """
    last = query.operators[-1] if query.operators else None
    if not isinstance(last, EndOfResult):
        return query, EndOfResult(1)
    return dataclasses.replace(query, operators=query.operators[:-1]), last


def _get_branch_operator_nodes(node: ParseNode) -> list[ParseNode]:
    """Return the parse tree nodes of the operators in a branch of ``fork``."""
    first, *piped = get_child_rules(node)
    return [first, *(get_child_rules(each)[0] for each in piped)]


def _parse_fork(node: ParseNode) -> list[ir.Operator]:
    return build_operators_of_selected_result(
        node, [_parse_fork_branch(fork) for fork in list_nodes_by_rule(node, "ForkOperatorFork")]
    )


def _parse_fork_branch(fork_node: ParseNode) -> NamedResult:
    nodes = _get_branch_operator_nodes(get_child_rules(fork_node)[-1])
    names = list_nodes_by_rule(fork_node, "ForkOperatorExpressionName") or [
        each for each in nodes[-1:] if list_nodes_by_rule(each, "AsOperator")
    ]
    name = reader.find_names(names[0])[-1] if names else ""
    return name, lambda: list(reader.lower_operators(nodes))


def _parse_facet(node: ParseNode) -> list[ir.Operator]:
    results: list[NamedResult] = []
    columns = []
    for child in get_child_rules(node):
        kind = get_rule_name(child)
        if kind == "FacetByOperatorWithOperatorClause":
            nodes = get_child_rules(child)
        elif kind == "FacetByOperatorWithExpressionClause":
            nodes = _get_branch_operator_nodes(get_child_rules(child)[0])
        else:
            columns.append(reader.lower_expr(child))
            continue
        results.append(("", functools.partial(reader.lower_operators, nodes)))
    for column in columns:
        if not isinstance(column, ir.ColumnRef):
            raise semantic_error("facet by requires names of columns", position=get_line_and_column(node))
        results.append(("", functools.partial(_build_facet_operators, column)))
    return build_operators_of_selected_result(node, results)


def _build_facet_operators(column: ir.ColumnRef) -> list[ir.Operator]:
    count = ir.NamedExpr(ir.FunctionCall("count"), f"count_{column.name}")
    return [ir.Summarize((count,), (ir.NamedExpr(column),))]


def parse_preview(
    node: ParseNode, arguments: Sequence[ParseNode], schema_clause: ParseNode | None
) -> list[ir.Operator]:
    """Convert the plugin call ``preview(number)`` to two results: the first rows, and the number of all rows."""
    number = reader.lower_expr(arguments[0]) if len(arguments) == 1 else None
    if schema_clause is not None or not isinstance(number, ir.Literal) or not isinstance(number.value, int):
        raise semantic_error(
            "evaluate preview() requires one argument, the number of rows as a whole number, and accepts no schema",
            inner="SEM0219",
            position=get_line_and_column(node),
        )
    limit = max(number.value, 0)
    return build_operators_of_selected_result(node, [("", lambda: [ir.Take(limit)]), ("", lambda: [ir.Count()])])


def install_into_translator() -> None:
    """Add ``fork``, ``facet`` and the plugin ``preview`` to the KQL translator library."""
    add_operator("ForkOperator", _parse_fork)
    add_operator("FacetByOperator", _parse_facet)
