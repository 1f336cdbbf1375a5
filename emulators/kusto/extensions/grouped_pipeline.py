"""SQL of the pipelines (sequences of query operators) that ``mv-apply`` and ``partition`` run for each group.

The SQL runs the pipeline once for all groups. Each operator of the pipeline is converted to an operator over all rows,
which uses an additional group column for sorting, counting and aggregation. The module `subpipelines` adds the two
operators themselves.
"""

import dataclasses
import re
from collections.abc import Callable
from typing import NamedTuple

from duckdb_kql import ir, lower, schema, translate

from emulators.kusto.errors import unsupported_error
from emulators.kusto.extensions.aggregates import OrderedSummarize, is_order_sensitive
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.pipeline import ExpressionReplacer, PipelineOperator, replace_query_expressions
from emulators.kusto.extensions.ranks import render_sort_keys_and_directions
from emulators.kusto.extensions.serialized import (
    RowOrder,
    Serialize,
    SerializedInputOperator,
    check_input_order,
    infer_output_order,
)
from emulators.kusto.extensions.several_results import EndOfResult, build_misplaced_results_error
from emulators.kusto.extensions.sql import Sql
from emulators.kusto.extensions.tabular import DistinctRows, SelectColumns, TakeRows, render_row_limit
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_rule_name
from emulators.kusto.extensions.window_plan import RowPartition, choose_unused_prefix
from emulators.kusto.extensions.windows import wrap_window_functions

macros: tuple[str, ...] = ()
_IN_PLACE = (ir.Where, ir.Extend, ir.Project, ir.MvExpand, ir.Parse, ir.ProjectRename, ir.ProjectAway, Serialize)
_EMPTYING = (ir.Where, ir.MvExpand, ir.Parse, ir.Take, ir.Top, TakeRows)


@dataclasses.dataclass(frozen=True)
class GroupedOperator(PipelineOperator):
    """Query operator with a nested pipeline that runs for each group of rows.

    Attributes:
        body: nested pipeline as a query; the source of the query is a placeholder for the rows of a group.
    """

    body: ir.Query

    def replace_expressions(self, substitute: ExpressionReplacer) -> "GroupedOperator":
        """Return a copy of the operator with ``substitute`` applied to the expressions of the nested pipeline."""
        return dataclasses.replace(self, body=replace_query_expressions(self.body, substitute))


_UNCHANGED = (ir.Where, ir.Extend, ir.MvExpand, ir.Parse, ir.ProjectRename, ir.ProjectAway, Serialize, GroupedOperator)


def install_into_translator() -> None:
    """Make the translator library also resolve table names in conditions like ``x in (T)`` inside nested pipelines."""
    replace_attribute(
        lower, "_resolve_in_subqueries", _patch_table_names_in_nested_pipelines
    )  # the library supports only its own operators


def _patch_table_names_in_nested_pipelines(
    library_function: Callable[[ir.Query, set[str]], ir.Query],
) -> Callable[[ir.Query, set[str]], ir.Query]:
    """Patch the resolution of table names in conditions such as ``x in (T)`` to include nested pipelines."""

    def resolve_table_names(query: ir.Query, table_names: set[str]) -> ir.Query:
        resolved = library_function(query, table_names)
        operators = [
            dataclasses.replace(each, body=resolve_table_names(each.body, table_names))
            if isinstance(each, GroupedOperator)
            else each
            for each in resolved.operators
        ]
        return dataclasses.replace(resolved, operators=operators)

    return resolve_table_names


def parse_nested_pipeline(node: ParseNode) -> ir.Query:
    """Convert the parse tree of a nested pipeline to a query, whose source is a placeholder for the group's rows."""
    inner = reader.collapse(node)
    nodes = get_child_rules(inner) if get_rule_name(inner) == "PipeSubExpression" else [inner]
    return ir.Query(ir.DataTable((), ()), reader.lower_operators(nodes))


@dataclasses.dataclass(frozen=True)
class GroupedRows:
    """Input rows of a nested pipeline, with a column that identifies their group.

    Attributes:
        rows: name of the SQL subquery that yields the rows.
        input_columns: names of the columns of the rows, including the group column.
        group: name of the column that identifies the group.
        contiguous: True if the rows of each group are adjacent.
    """

    rows: str
    input_columns: list[str]
    group: str
    contiguous: bool = False


class PipelineSql(NamedTuple):
    """SQL of a nested pipeline, and the names of its output columns without the group column."""

    sql: Sql
    columns: list[str]


def render_pipeline_per_group(groups: GroupedRows, operators_before: list[ir.Operator], body: ir.Query) -> PipelineSql:
    """Return one SELECT that runs a pipeline for all groups, and the names of its output columns.

    Args:
        groups: input rows with the column that identifies their group.
        operators_before: query operators that run before the pipeline and create the rows of each group.
        body: the nested pipeline.

    Raises:
        QueryError: the emulator does not support an operator of the pipeline inside a group.
    """
    operators = [*operators_before, *_convert_operators_for_groups(body.operators, groups)]
    source = ir.CommandSource(f"SELECT * FROM {groups.rows}", tuple(groups.input_columns), "")  # noqa: S608  a generated name
    query = ir.Query(source, operators)
    known = writer.nested_schema()
    columns = schema.output_columns(query, known)
    return PipelineSql(str(translate.to_sql(query, known)), [name for name in columns if name != groups.group])


def create_subquery_name(purpose: str) -> Sql:
    """Return a quoted SQL name for a subquery; the name ends with ``purpose``, and the SQL does not use it yet."""
    return str(translate.quote_ident(writer.NAMES_STATE.get().binding_name(purpose)))


def create_group_column_name(input_columns: list[str]) -> str:
    """Return a name for the group column that differs from the names of all input columns."""
    return f"{choose_unused_prefix(input_columns)}g"


def _convert_operators_for_groups(operators: list[ir.Operator], groups: GroupedRows) -> list[ir.Operator]:
    lifted: list[ir.Operator] = []
    order = RowOrder.NONE
    may_be_empty = False
    contiguous = groups.contiguous
    for operator in operators:
        check_input_order(operator, order)
        partition = RowPartition((groups.group,), contiguous)
        each = _convert_operator_for_groups(operator, groups, partition, may_be_empty=may_be_empty)
        lifted.append(wrap_window_functions(each, partition))
        contiguous = isinstance(each, ir.Sort | TakePerGroup) or (contiguous and isinstance(each, _IN_PLACE))
        order = infer_output_order(operator, order)
        may_be_empty = isinstance(operator, _EMPTYING) or (may_be_empty and not isinstance(operator, ir.Summarize))
    return lifted


def _convert_operator_for_groups(
    operator: ir.Operator, groups: GroupedRows, partition: RowPartition, *, may_be_empty: bool
) -> ir.Operator:
    if isinstance(operator, ir.Summarize):
        return _build_summarize_per_group(operator, groups, may_be_empty=may_be_empty)
    if isinstance(operator, ir.Count):
        counted = ir.Summarize((ir.NamedExpr(ir.FunctionCall("count"), operator.name),))
        return _build_summarize_per_group(counted, groups, may_be_empty=may_be_empty)
    lifted = _build_operator_per_group_if_supported(operator, groups.group, partition)
    if isinstance(operator, EndOfResult):
        raise build_misplaced_results_error()
    if lifted is None:
        name = re.sub(r"\B(?=[A-Z])", "-", type(operator).__name__).lower()
        raise unsupported_error(f"{name} inside mv-apply or partition", "move it out of the nested pipeline")
    return lifted


def _build_operator_per_group_if_supported(
    operator: ir.Operator, group_column: str, partition: RowPartition
) -> ir.Operator | None:
    """Return an operator that applies ``operator`` to each group separately; None if this is not supported."""
    lifted: ir.Operator | None = None
    named = ir.NamedExpr(ir.ColumnRef(group_column), group_column)
    match operator:
        case ir.Sort():
            lifted = ir.Sort((ir.SortKey(named.expr, ascending=True), *operator.keys))
        case ir.Take():
            lifted = TakePerGroup(TakeRows(ir.Literal(operator.count, "long")), group_column)
        case ir.Top():
            lifted = TakePerGroup(TakeRows(ir.Literal(operator.count, "long"), operator.keys), group_column)
        case TakeRows():
            lifted = TakePerGroup(operator, group_column)
        case ir.Project() | ir.Distinct():
            lifted = dataclasses.replace(operator, expressions=(*operator.expressions, named))
        case SelectColumns():
            lifted = SelectWithGroup(operator, group_column)
        case SerializedInputOperator():
            lifted = operator.copy_with_partition(partition)
        case DistinctRows() if operator.named is None:
            lifted = operator
        case _ if isinstance(operator, _UNCHANGED):
            lifted = operator
    return lifted


def _build_summarize_per_group(operator: ir.Summarize, groups: GroupedRows, *, may_be_empty: bool) -> ir.Operator:
    by = ir.NamedExpr(ir.ColumnRef(groups.group), groups.group)
    kind = OrderedSummarize if is_order_sensitive(operator) else ir.Summarize
    each = kind(operator.aggregates, (*operator.by, by))
    return SummarizePerGroup(each, operator, groups) if may_be_empty and not operator.by else each


@dataclasses.dataclass(frozen=True)
class TakePerGroup(PipelineOperator):
    """Query operator that applies ``take``, ``top`` or ``sample`` to each group separately."""

    taken: TakeRows
    group: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields some rows of each group.

        These are the first rows in the order of the sort keys (``top``) or in the current order (``take``), or random
        rows (``sample``).
        """
        prefix = choose_unused_prefix(input_columns)
        group, row = translate.quote_ident(self.group), f"{prefix}n"
        keys = render_sort_keys_and_directions(self.taken.keys) or [
            ("random()" if self.taken.random else "row_number() OVER ()", "")
        ]
        limit = render_row_limit(self.taken.count)
        names = [f"{row}{index}" for index in range(len(keys))]
        added = ", ".join(f"{sql} AS {name}" for (sql, _), name in zip(keys, names, strict=True))
        rows = f"(SELECT *, {added} FROM {input_sql})"  # noqa: S608  generated names
        order = ", ".join(f"{name} {direction}" for name, (_, direction) in zip(names, keys, strict=True))
        return (
            f"SELECT * EXCLUDE ({', '.join(names)}) FROM {rows} "  # noqa: S608  generated names
            f"QUALIFY row_number() OVER (PARTITION BY {group} ORDER BY {order}) <= {limit} "
            f"ORDER BY {group}, {order}"
        )

    def replace_expressions(self, substitute: ExpressionReplacer) -> "TakePerGroup":
        """Return a copy of the operator with ``substitute`` applied to the number of rows and the sort keys."""
        return dataclasses.replace(self, taken=self.taken.replace_expressions(substitute))


@dataclasses.dataclass(frozen=True)
class SelectWithGroup(PipelineOperator):
    """Query operator that selects columns by pattern, and always includes the group column."""

    chosen: SelectColumns
    group: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that selects the columns and the group column."""
        return f"SELECT {writer.quoted(self.infer_output_columns(input_columns))} FROM {input_sql}"  # noqa: S608  quoted names

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the selected columns and the group column."""
        return [*self.chosen.infer_output_columns([name for name in input_columns if name != self.group]), self.group]


@dataclasses.dataclass(frozen=True)
class SummarizePerGroup(PipelineOperator):
    """Query operator ``summarize`` without keys, applied to each group; it yields a row even for an empty group.

    Attributes:
        each: the ``summarize`` with the group column as its key.
        alone: the ``summarize`` without keys, which computes the row of an empty group.
        groups: input rows of the nested pipeline, in which every group has rows.
    """

    each: ir.Summarize
    alone: ir.Summarize
    groups: GroupedRows

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields one row for each group, even if earlier operators removed its rows."""
        group = translate.quote_ident(self.groups.group)
        counted, each = (
            translate.render_operator(self.each, input_sql, input_columns),
            f"{choose_unused_prefix(input_columns)}c",
        )
        none = translate.render_operator(self.alone, f"(SELECT * FROM {input_sql} LIMIT 0)", input_columns)  # noqa: S608
        missing = (
            f"SELECT g.* FROM (SELECT DISTINCT {group} FROM {self.groups.rows}) AS g "  # noqa: S608  generated names
            f"ANTI JOIN {each} AS p ON g.{group} IS NOT DISTINCT FROM p.{group}"
        )
        first = f"WITH {each} AS MATERIALIZED ({counted}) SELECT * FROM {each}"  # noqa: S608
        return f"{first} UNION ALL BY NAME SELECT * FROM ({missing}), ({none})"  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns of the ``summarize``."""
        return list(schema._operator_columns(self.each, input_columns, None))  # noqa: SLF001  the library's own rules
