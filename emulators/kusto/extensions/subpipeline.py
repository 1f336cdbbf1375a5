"""Operators that run a pipeline over each group of rows: ``mv-apply`` and ``partition``.

The pipeline is not run once for each group: every operator in it becomes one over all groups at once, with the group as
a further column that it sorts, counts and aggregates by.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader, replace, writer
from emulators.kusto.extensions.ordering import OrderedSummarize, shows_order
from emulators.kusto.extensions.pipeline import PipelineOperator, Substitute
from emulators.kusto.extensions.ranks import sort_keys
from emulators.kusto.extensions.serialized import (
    NeedsSerialized,
    Order,
    Serialize,
    check_order,
    order_after,
)
from emulators.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows, row_limit
from emulators.kusto.extensions.tree import children, kind_of
from emulators.kusto.extensions.window_plan import Partition, free_prefix
from emulators.kusto.extensions.windows import windowed

macros: tuple[str, ...] = ()
_IN_PLACE = (ir.Where, ir.Extend, ir.Project, ir.MvExpand, ir.Parse, ir.ProjectRename, ir.ProjectAway, Serialize)
_EMPTYING = (ir.Where, ir.MvExpand, ir.Parse, ir.Take, ir.Top, TakeRows)


@dataclasses.dataclass(frozen=True)
class Nested(PipelineOperator):
    """An operator with a pipeline of its own.

    Attributes:
        body: the pipeline; its source only stands for the rows of a group.
    """

    body: ir.Query

    def substituted(self, substitute: Substitute) -> "Nested":
        """Return the operator with the names bound that its pipeline reads, as in any query inside an expression."""
        bound = substitute(ir.ToScalar(self.body))
        return self if not isinstance(bound, ir.ToScalar) else dataclasses.replace(self, body=bound.query)


_UNCHANGED = (ir.Where, ir.Extend, ir.MvExpand, ir.Parse, ir.ProjectRename, ir.ProjectAway, Serialize, Nested)


def install() -> None:
    """Resolve ``in (T)`` inside nested pipelines too."""
    replace(lower, "_resolve_in_subqueries", _resolving)  # it knows the library's operators alone


def _resolving(default: Callable[[ir.Query, set[str]], ir.Query]) -> Callable[[ir.Query, set[str]], ir.Query]:
    def resolve(query: ir.Query, names: set[str]) -> ir.Query:
        resolved = default(query, names)
        operators = [
            dataclasses.replace(each, body=resolve(each.body, names)) if isinstance(each, Nested) else each
            for each in resolved.operators
        ]
        return dataclasses.replace(resolved, operators=operators)

    return resolve


def body_of(node: Any) -> ir.Query:
    """Lower the pipeline of a parenthesised sub-expression."""
    inner = reader.collapse(node)
    nodes = children(inner) if kind_of(inner) == "PipeSubExpression" else [inner]
    return ir.Query(ir.DataTable((), ()), reader.lower_operators(nodes))


@dataclasses.dataclass(frozen=True)
class Groups:
    """The rows that a nested pipeline reads.

    Attributes:
        rows: their name, usable within the statement that is being written.
        cols: their columns, the group's included.
        group: the column that tells the groups apart.
        contiguous: whether the rows of a group follow each other.
    """

    rows: str
    cols: list[str]
    group: str
    contiguous: bool = False


def pipeline(groups: Groups, before: list[ir.Operator], body: ir.Query) -> tuple[str, list[str]]:
    """Return the SELECT of a pipeline over all groups, and its columns without the group.

    Args:
        groups: the rows.
        before: operators that make the rows of each group, to be run ahead of the pipeline.
        body: the pipeline.

    Raises:
        QueryError: it holds an operator that cannot be run group by group.
    """
    operators = [*before, *_lifted(body.operators, groups)]
    source = ir.CommandSource(f"SELECT * FROM {groups.rows}", tuple(groups.cols), "")  # noqa: S608  a generated name
    query = ir.Query(source, operators)
    known = writer.nested_schema()
    columns = schema.output_columns(query, known)
    return str(translate.to_sql(query, known)), [name for name in columns if name != groups.group]


def fresh_name(purpose: str) -> str:
    """Return a name for a subquery that nothing in the statement uses."""
    return str(translate.quote_ident(writer.NAMES_STATE.get().binding_name(purpose)))


def group_name(cols: list[str]) -> str:
    """Return a name for a group's column."""
    return f"{free_prefix(cols)}g"


def _lifted(operators: list[ir.Operator], groups: Groups) -> list[ir.Operator]:
    lifted: list[ir.Operator] = []
    order = Order.NONE
    may_be_empty = False
    contiguous = groups.contiguous
    for operator in operators:
        check_order(operator, order)
        partition = Partition((groups.group,), contiguous)
        each = _lift(operator, groups, partition, may_be_empty=may_be_empty)
        lifted.append(windowed(each, partition))
        contiguous = isinstance(each, ir.Sort | FirstOfEach) or (contiguous and isinstance(each, _IN_PLACE))
        order = order_after(operator, order)
        may_be_empty = isinstance(operator, _EMPTYING) or (may_be_empty and not isinstance(operator, ir.Summarize))
    return lifted


def _lift(operator: ir.Operator, groups: Groups, partition: Partition, *, may_be_empty: bool) -> ir.Operator:
    if isinstance(operator, ir.Summarize):
        return _summarize(operator, groups, may_be_empty=may_be_empty)
    if isinstance(operator, ir.Count):
        counted = ir.Summarize((ir.NamedExpr(ir.FunctionCall("count"), operator.name),))
        return _summarize(counted, groups, may_be_empty=may_be_empty)
    lifted = _beside(operator, groups.group, partition)
    if lifted is None:
        raise unsupported(f"{type(operator).__name__} inside mv-apply or partition")
    return lifted


def _beside(operator: ir.Operator, group: str, partition: Partition) -> ir.Operator | None:
    """Return an operator that does to each group what ``operator`` does to rows, None where there is none."""
    lifted: ir.Operator | None = None
    named = ir.NamedExpr(ir.ColumnRef(group), group)
    match operator:
        case ir.Sort():
            lifted = ir.Sort((ir.SortKey(named.expr, ascending=True), *operator.keys))
        case ir.Take():
            lifted = FirstOfEach(TakeRows(ir.Literal(operator.count, "long")), group)
        case ir.Top():
            lifted = FirstOfEach(TakeRows(ir.Literal(operator.count, "long"), operator.keys), group)
        case TakeRows():
            lifted = FirstOfEach(operator, group)
        case ir.Project() | ir.Distinct():
            lifted = dataclasses.replace(operator, expressions=(*operator.expressions, named))
        case SelectColumns():
            lifted = SelectBeside(operator, group)
        case NeedsSerialized():
            lifted = operator.partitioned(partition)
        case DistinctRows() if operator.named is None:
            lifted = operator
        case _ if isinstance(operator, _UNCHANGED):
            lifted = operator
    return lifted


def _summarize(operator: ir.Summarize, groups: Groups, *, may_be_empty: bool) -> ir.Operator:
    by = ir.NamedExpr(ir.ColumnRef(groups.group), groups.group)
    kind = OrderedSummarize if shows_order(operator) else ir.Summarize
    each = kind(operator.aggregates, (*operator.by, by))
    return SummarizeEach(each, operator, groups) if may_be_empty and not operator.by else each


@dataclasses.dataclass(frozen=True)
class FirstOfEach(PipelineOperator):
    """``take``, ``top`` or ``sample`` within each group."""

    taken: TakeRows
    group: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the first rows of each group, in the order that they have or are given."""
        prefix = free_prefix(cols)
        group, row = translate.quote_ident(self.group), f"{prefix}n"
        keys = sort_keys(self.taken.keys) or [("random()" if self.taken.random else "row_number() OVER ()", "")]
        limit = row_limit(self.taken.count)
        names = [f"{row}{index}" for index in range(len(keys))]
        added = ", ".join(f"{sql} AS {name}" for (sql, _), name in zip(keys, names, strict=True))
        rows = f"(SELECT *, {added} FROM {prev})"  # noqa: S608  generated names
        order = ", ".join(f"{name} {direction}" for name, (_, direction) in zip(names, keys, strict=True))
        return (
            f"SELECT * EXCLUDE ({', '.join(names)}) FROM {rows} "  # noqa: S608  generated names
            f"QUALIFY row_number() OVER (PARTITION BY {group} ORDER BY {order}) <= {limit} "
            f"ORDER BY {group}, {order}"
        )

    def substituted(self, substitute: Substitute) -> "FirstOfEach":
        """Return the operator with its number bound."""
        return dataclasses.replace(self, taken=self.taken.substituted(substitute))


@dataclasses.dataclass(frozen=True)
class SelectBeside(PipelineOperator):
    """A choice of columns by pattern that does not see the group's."""

    chosen: SelectColumns
    group: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the chosen columns and the group's."""
        return f"SELECT {writer.quoted(self.columns(cols))} FROM {prev}"  # noqa: S608  quoted names

    def columns(self, cols: list[str]) -> list[str]:
        """Return the chosen columns and the group's."""
        return [*self.chosen.columns([name for name in cols if name != self.group]), self.group]


@dataclasses.dataclass(frozen=True)
class SummarizeEach(PipelineOperator):
    """A ``summarize`` without keys, which answers a row for a group of no rows, too."""

    each: ir.Summarize
    alone: ir.Summarize
    groups: Groups

    def render(self, prev: str, cols: list[str]) -> str:
        """Return one row for each group that there was before rows were filtered."""
        group = translate.quote_ident(self.groups.group)
        counted, each = translate.render_operator(self.each, prev, cols), f"{free_prefix(cols)}c"
        none = translate.render_operator(self.alone, f"(SELECT * FROM {prev} LIMIT 0)", cols)  # noqa: S608
        missing = (
            f"SELECT g.* FROM (SELECT DISTINCT {group} FROM {self.groups.rows}) AS g "  # noqa: S608  generated names
            f"ANTI JOIN {each} AS p ON g.{group} IS NOT DISTINCT FROM p.{group}"
        )
        first = f"WITH {each} AS MATERIALIZED ({counted}) SELECT * FROM {each}"  # noqa: S608
        return f"{first} UNION ALL BY NAME SELECT * FROM ({missing}), ({none})"  # noqa: S608

    def columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the summarize."""
        return list(schema._operator_columns(self.each, cols, None))  # noqa: SLF001  the library's own rules
