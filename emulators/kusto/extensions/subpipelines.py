"""Query operators ``mv-apply`` and ``partition``, which run a pipeline for each group of rows.

The subquery of ``partition by x { T | ... }`` has its own source and runs for each value of x. The generated SQL runs
it only once, over its source's rows for all values; each operator processes the rows of each value separately. In the
subquery, ``toscalar(x)`` is the current value.

The module also replaces the SQL of ``mv-expand x to typeof(string)`` by faster SQL.
"""

import dataclasses
from collections.abc import Callable, Sequence

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.grouped_pipeline import (
    GroupedOperator,
    GroupedRows,
    PipelineSql,
    create_group_column_name,
    create_subquery_name,
    parse_nested_pipeline,
    render_pipeline_per_group,
)
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.sql import Sql, quote_name, quote_text
from emulators.kusto.extensions.tree import (
    IrNode,
    ParseNode,
    get_child_rules,
    get_line_and_column,
    get_rule_name,
    iterate_nodes,
)

MAX_PARTITIONS = 64
"""Maximum number of distinct values of the partition column, as in Kusto."""


@dataclasses.dataclass(frozen=True)
class PartitionWithSource(GroupedOperator):
    """Query operator ``partition`` with a subquery in braces, which has its own source.

    Attributes:
        column: partition column; the subquery runs once for each of its distinct values.
        key: name of the generated column that contains the current value of ``column`` inside the subquery.
    """

    column: str
    key: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the subquery's result rows for each value of the partition column."""
        if self.column not in input_columns:
            raise semantic_error(f"Failed to resolve column named '{self.column[:200]}'")
        known, rows, key = writer.nested_schema(), create_subquery_name("rows"), quote_name(self.key)
        source = ir.Query(self.body.source, [])
        own_columns = list(schema.output_columns(source, known))
        groups = GroupedRows(rows, [*own_columns, self.key], self.key)
        nested, own = render_pipeline_per_group(groups, [], self._replace_partition_column_by_key(own_columns))
        message = quote_text(f"kql:SEM0100:partition: the column has more than {MAX_PARTITIONS} distinct values")
        values = f"SELECT DISTINCT {quote_name(self.column)} AS v FROM {input_sql}"  # noqa: S608  quoted names
        keys = (
            f"SELECT CASE WHEN count(*) OVER () > {MAX_PARTITIONS} THEN error({message}) ELSE v END AS {key} "  # noqa: S608
            f"FROM ({values})"
        )
        crossed = f"SELECT s.*, k.{key} FROM ({translate.to_sql(source, known)}) AS s CROSS JOIN ({keys}) AS k"  # noqa: S608
        return f"WITH {rows} AS ({crossed}) SELECT {', '.join(map(quote_name, own))} FROM ({nested})"  # noqa: S608

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns of the subquery."""
        del input_columns
        return list(schema.output_columns(self.body, writer.nested_schema()))

    def _replace_partition_column_by_key(self, own_columns: Sequence[str]) -> ir.Query:
        """Return the subquery with the generated key column in place of references to the partition column.

        If ``own_columns``, the columns of the subquery's source, contain the name of the partition column, the
        references do not change.
        """
        if self.column in own_columns:
            return self.body
        column, key = ir.ColumnRef(self.column), ir.ColumnRef(self.key)
        operators = [
            _replace_matching_nodes(operator, lambda node: node == column, key) for operator in self.body.operators
        ]
        return ir.Query(self.body.source, operators)


def parse_partition_with_source(node: ParseNode, column: ir.ColumnRef, body_node: ParseNode) -> ir.Operator:
    """Convert the parse tree of a ``partition`` with a subquery in braces to a query operator.

    Args:
        node: parse tree node of the operator.
        column: partition column; the subquery runs once for each of its distinct values.
        body_node: parse tree node of the braces.

    Raises:
        QueryError: the source of the subquery depends on the current value of the column.
    """
    key = f"partition key {node.start.start}"
    query = reader.lower_query_node(get_child_rules(body_node)[0])
    if any(_is_toscalar_of_column(each, column.name) for each in iterate_nodes(query.source)):
        raise unsupported_error(
            "partition with toscalar() in the source of its subquery",
            "use toscalar() only in the operators after the source",
            get_line_and_column(body_node),
        )
    operators = [
        _replace_matching_nodes(operator, lambda node: _is_toscalar_of_column(node, column.name), ir.ColumnRef(key))
        for operator in query.operators
    ]
    return PartitionWithSource(ir.Query(query.source, operators), column.name, key)


def _is_toscalar_of_column(node: IrNode, column_name: str) -> bool:
    """Return whether a node is ``toscalar(column)``, which the library cannot resolve to the current value."""
    if not isinstance(node, ir.ToScalar) or node.query.operators:
        return False
    source = node.query.source
    if isinstance(source, ir.TableRef):
        return source.name == column_name and source.database is None
    return isinstance(source, ir.PrintSource) and [each.expr for each in source.expressions] == [
        ir.ColumnRef(column_name)
    ]


def _replace_matching_nodes(node: IrNode, is_matching: Callable[[IrNode], bool], replacement: ir.Expr) -> IrNode:
    """Return a copy of a node in which each matching node is replaced; subqueries remain unchanged."""
    if is_matching(node):
        return replacement
    if isinstance(node, tuple | list):
        return type(node)(_replace_matching_nodes(each, is_matching, replacement) for each in node)
    if not dataclasses.is_dataclass(node) or isinstance(node, ir.Query | type):
        return node
    parts = {field.name: getattr(node, field.name) for field in dataclasses.fields(node) if field.init}
    changed = {name: _replace_matching_nodes(part, is_matching, replacement) for name, part in parts.items()}
    return dataclasses.replace(node, **changed)


SUPPORTED: tuple[str, ...] = (
    "mv-apply (with_itemindex, to typeof, limit, several columns)",
    "partition by (hint.strategy native, shuffle, legacy; a pipeline, or a subquery in braces)",
)


_EXPANDED = ("MvapplyOperatorExpression", "NamedExpression")


@dataclasses.dataclass(frozen=True)
class MvApply(GroupedOperator):
    """Query operator ``mv-apply``, which expands arrays like ``mv-expand`` and runs a pipeline over their elements.

    The result has the columns of the input row, except the expanded columns, and the columns of the pipeline.

    Attributes:
        computed: arrays that the operator computes before it expands them.
        expansion: the equivalent ``mv-expand``.
    """

    computed: tuple[ir.NamedExpr, ...]
    expansion: ir.MvExpand

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that joins each result row of the pipeline with its input row."""
        count = self._render_count_of_matching_strings(input_sql, input_columns)
        if count is not None:
            return count
        group, rows = create_group_column_name(input_columns), create_subquery_name("rows")
        nested, own = self._render_nested_pipeline(GroupedRows(rows, [*input_columns, group], group, contiguous=True))
        retained = self._list_retained_columns(input_columns)
        key = translate.quote_ident(group)
        numbered = f"SELECT *, row_number() OVER () AS {key} FROM {input_sql}"  # noqa: S608  generated names
        names = [*retained, *(name for name in own if name not in retained)]
        if all(name in own for name in retained):
            selected = ", ".join(map(translate.quote_ident, names))
            return f"WITH {rows} AS ({numbered}) SELECT {selected} FROM ({nested})"  # noqa: S608  quoted names
        selected = ", ".join(f"{'n' if name in own else 'r'}.{translate.quote_ident(name)}" for name in names)
        return (
            f"WITH {rows} AS MATERIALIZED ({numbered}) SELECT {selected} FROM ({nested}) AS n "  # noqa: S608
            f"JOIN {rows} AS r ON r.{key} = n.{key}"
        )

    def _render_count_of_matching_strings(self, input_sql: Sql, input_columns: list[str]) -> Sql | None:
        """Render SQL that counts the strings in an array that satisfy the conditions of the pipeline.

        Return None if the pipeline is not ``where ... | summarize count()`` over strings with simple conditions.
        """
        conditions, target = _list_conditions_before_count(self.body.operators), self.expansion.targets[0]
        if not conditions or len(self.expansion.targets) > 1 or target.to_type != "string" or self.expansion.item_index:
            return None
        element = translate.quote_ident(target.name or target.column)
        found = (
            f"list_transform({_render_array_elements_as_texts(self.expansion, target)}, lambda _e: coalesce(_e, ''))"
        )
        for each in conditions:
            _, _, condition = translate.render_operator(each, "_", input_columns).partition("SELECT * FROM _ WHERE ")
            if not condition:
                return None
            found = f"list_filter({found}, lambda {element}: {condition})"
        (name,) = self._infer_pipeline_columns(input_columns)
        values = {name: f"coalesce(len({found}), 0) AS {translate.quote_ident(name)}"}
        selected = ", ".join(
            values.get(each, translate.quote_ident(each)) for each in self.infer_output_columns(input_columns)
        )
        rows = (
            f"({translate.render_operator(ir.Extend(self.computed), input_sql, input_columns)})"
            if self.computed
            else input_sql
        )
        return f"SELECT {selected} FROM {rows}"  # noqa: S608  quoted names, rendered expressions

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the columns of the input that are not expanded, followed by the columns of the pipeline."""
        own, retained = self._infer_pipeline_columns(input_columns), self._list_retained_columns(input_columns)
        return [*retained, *(name for name in own if name not in retained)]

    def _infer_pipeline_columns(self, input_columns: list[str]) -> list[str]:
        operators = [*self._build_expansion_operators(), *self.body.operators]
        source = ir.CommandSource("", tuple(input_columns), "")
        return list(schema.output_columns(ir.Query(source, operators), None))

    def _render_nested_pipeline(self, groups: GroupedRows) -> PipelineSql:
        return render_pipeline_per_group(groups, self._build_expansion_operators(), self.body)

    def _build_expansion_operators(self) -> list[ir.Operator]:
        return [ir.Extend(self.computed), self.expansion] if self.computed else [self.expansion]

    def _list_retained_columns(self, input_columns: list[str]) -> list[str]:
        replaced = {target.name or target.column for target in self.expansion.targets}
        return [name for name in input_columns if name not in replaced]


_COUNT = ir.FunctionCall("count")
_SIMPLE = (ir.BinaryOp, ir.UnaryOp, ir.ColumnRef, ir.Literal, ir.Parameter)


def _list_conditions_before_count(operators: Sequence[ir.Operator]) -> Sequence[ir.Where]:
    """Return the operators ``where`` of a pipeline ``where ... | summarize count()``; empty for any other pipeline.

    The result is also empty if a condition is not a comparison of columns and constants.
    """
    conditions, last = operators[:-1], operators[-1]
    if not isinstance(last, ir.Summarize) or last.by or [each.expr for each in last.aggregates] != [_COUNT]:
        return ()
    filters = [each for each in conditions if isinstance(each, ir.Where)]
    simple = all(isinstance(node, _SIMPLE) for each in filters for node in iterate_nodes(each.predicate))
    return filters if simple and len(filters) == len(conditions) else ()


def _install_mv_apply() -> None:
    """Add the operator ``mv-apply`` to the KQL translator library."""
    add_operator("MvapplyOperator", _parse_mv_apply)


def _parse_mv_apply(node: ParseNode) -> ir.Operator:
    parts = get_child_rules(node)
    expansions = [part for part in parts[:-1] if get_rule_name(part) != "MvapplyOperatorIdClause"]
    if len(expansions) != len(parts) - 1:
        raise unsupported_error("the clause `id` of mv-apply", "remove the clause", get_line_and_column(node))
    lowered = reader.lower_mv_expand(node, expansions)
    computed, expansion = lowered if isinstance(lowered, list) else (ir.Extend(()), lowered)
    return MvApply(parse_nested_pipeline(parts[-1]), computed.expressions, expansion)


_STRATEGIES = frozenset({"native", "shuffle", "legacy"})
_HINTS = frozenset({"hint.strategy", "hint.shufflekey", "hint.materialized", "hint.concurrency", "hint.spread"})


@dataclasses.dataclass(frozen=True)
class PartitionOperator(GroupedOperator):
    """Query operator ``partition``, which runs a pipeline for each group of rows with one value of ``column``."""

    column: str

    def render(self, input_sql: Sql, input_columns: list[str]) -> Sql:
        """Render the operator as SQL that yields the result rows of the pipeline for all groups."""
        if self.column not in input_columns:
            raise semantic_error(f"Failed to resolve column named '{self.column[:200]}'")
        group, rows = create_group_column_name(input_columns), create_subquery_name("rows")
        nested, own = render_pipeline_per_group(GroupedRows(rows, [*input_columns, group], group), [], self.body)
        key = f"{translate.quote_ident(self.column)} AS {translate.quote_ident(group)}"
        selected = ", ".join(map(translate.quote_ident, own))
        return f"WITH {rows} AS (SELECT *, {key} FROM {input_sql}) SELECT {selected} FROM ({nested})"  # noqa: S608  quoted

    def infer_output_columns(self, input_columns: list[str]) -> list[str]:
        """Return the output columns of the pipeline."""
        return list(
            schema.output_columns(ir.Query(ir.CommandSource("", tuple(input_columns), ""), self.body.operators), None)
        )


def _install_partition() -> None:
    """Add the operator ``partition`` to the KQL translator library."""
    add_operator("PartitionOperator", _parse_partition)


def _parse_partition(node: ParseNode) -> ir.Operator:
    *parameters, by, body = get_child_rules(node)
    for parameter in parameters:
        _check_partition_hint(parameter)
    column = reader.lower_expr(by)
    if not isinstance(column, ir.ColumnRef):
        raise semantic_error("partition by requires the name of a column", position=get_line_and_column(by))
    if get_rule_name(body) == "PartitionOperatorFullExpressionBody":
        return parse_partition_with_source(node, column, body)
    if get_rule_name(body) != "PartitionOperatorSubExpressionBody":
        raise unsupported_error(
            "partition with a body outside of parentheses or braces",
            "write the body in (...) or {...}",
            get_line_and_column(body),
        )
    return PartitionOperator(parse_nested_pipeline(get_child_rules(body)[0]), column.name)


def _check_partition_hint(node: ParseNode) -> None:
    name, _, value = node.getText().partition("=")
    if name not in _HINTS or (name == "hint.strategy" and value not in _STRATEGIES):
        raise unsupported_error(f"partition {node.getText()[:100]}", position=get_line_and_column(node))


def _install_faster_mv_expand() -> None:
    """Make ``mv-expand x to typeof(string)`` faster; the library's SQL would build JSON and parse it again."""
    replace_attribute(translate, "_mv_expand_unnest", _patch_mv_expand_for_strings)


def _patch_mv_expand_for_strings(
    library_function: Callable[[ir.MvExpand, ir.MvExpandTarget], Sql],
) -> Callable[[ir.MvExpand, ir.MvExpandTarget], Sql]:
    def render_unnest(op: ir.MvExpand, target: ir.MvExpandTarget) -> Sql:
        if target.to_type != "string":
            return library_function(op, target)
        name = translate.quote_ident(target.name or target.column)
        return f"coalesce(UNNEST({_render_array_elements_as_texts(op, target)}), '') AS {name}"

    return render_unnest


def _render_array_elements_as_texts(op: ir.MvExpand, target: ir.MvExpandTarget) -> Sql:
    column = translate.quote_ident(target.column)
    elements = writer.mv_expand_elements(op, target)
    limit = None if op.limit is None else max(op.limit, 0)
    array = f"json_extract_string({column}, '$[*]')"
    if limit is not None:
        array = f"list_slice({array}, 1, {limit})"
    rest = f"list_transform({elements}, lambda _e: _e ->> '$')"
    # Cheaper than json_type, which parses the value. An array after white space is read by the general expression.
    return f"CASE WHEN starts_with(CAST({column} AS VARCHAR), '[') THEN {array} ELSE {rest} END"


macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Add ``mv-apply``, ``partition`` and ``mv-expand x to typeof(string)`` to the KQL translator library."""
    _install_mv_apply()
    _install_partition()
    _install_faster_mv_expand()
