"""Query operators ``mv-apply`` and ``partition``, which run a pipeline per group of rows.

The module also replaces the SQL of ``mv-expand x to typeof(string)``.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import semantic_error, unsupported_error
from emulators.kusto.extensions.grouped_pipeline import (
    GroupedOperator,
    GroupedRows,
    create_group_column_name,
    create_subquery_name,
    parse_nested_pipeline,
    render_grouped,
)
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.partition_sources import parse_partition_with_source
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.tree import get_child_rules, get_rule_name, get_source_position

SUPPORTED: tuple[str, ...] = (
    "mv-apply (with_itemindex, to typeof, limit, several columns)",
    "partition by (hint.strategy native, shuffle, legacy; a pipeline, or a subquery in braces)",
)


_EXPANDED = ("MvapplyOperatorExpression", "NamedExpression")


@dataclasses.dataclass(frozen=True)
class MvApply(GroupedOperator):
    """Query operator ``mv-apply``: expands arrays like ``mv-expand``, and runs a pipeline over each row's elements.

    The result has the columns of the input row, except the expanded columns, and the columns of the pipeline.
    """

    computed: tuple[ir.NamedExpr, ...]
    expansion: ir.MvExpand

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that joins each result row of the pipeline with its input row."""
        group, rows = create_group_column_name(cols), create_subquery_name("rows")
        nested, own = self._render_nested(GroupedRows(rows, [*cols, group], group, contiguous=True))
        retained = self._find_retained_columns(cols)
        key = translate.quote_ident(group)
        numbered = f"SELECT *, row_number() OVER () AS {key} FROM {prev}"  # noqa: S608  generated names
        names = [*retained, *(name for name in own if name not in retained)]
        if all(name in own for name in retained):
            selected = ", ".join(map(translate.quote_ident, names))
            return f"WITH {rows} AS ({numbered}) SELECT {selected} FROM ({nested})"  # noqa: S608  quoted names
        selected = ", ".join(f"{'n' if name in own else 'r'}.{translate.quote_ident(name)}" for name in names)
        return (
            f"WITH {rows} AS MATERIALIZED ({numbered}) SELECT {selected} FROM ({nested}) AS n "  # noqa: S608
            f"JOIN {rows} AS r ON r.{key} = n.{key}"
        )

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the columns of the input that are not expanded, followed by the columns of the pipeline."""
        operators = [*self._build_expansion_operators(), *self.body.operators]
        source = ir.CommandSource("", tuple(cols), "")
        own = schema.output_columns(ir.Query(source, operators), None)
        retained = self._find_retained_columns(cols)
        return [*retained, *(name for name in own if name not in retained)]

    def _render_nested(self, groups: GroupedRows) -> tuple[str, list[str]]:
        return render_grouped(groups, self._build_expansion_operators(), self.body)

    def _build_expansion_operators(self) -> list[ir.Operator]:
        return [ir.Extend(self.computed), self.expansion] if self.computed else [self.expansion]

    def _find_retained_columns(self, cols: list[str]) -> list[str]:
        replaced = {target.name or target.column for target in self.expansion.targets}
        return [name for name in cols if name not in replaced]


def _install_mv_apply() -> None:
    """Add the operator ``mv-apply`` to the KQL translator library."""
    add_operator("MvapplyOperator", _parse_mv_apply)


def _parse_mv_apply(node: Any) -> ir.Operator:
    parts = get_child_rules(node)
    expansions = [part for part in parts[:-1] if get_rule_name(part) != "MvapplyOperatorIdClause"]
    if len(expansions) != len(parts) - 1:
        raise unsupported_error("mv-apply with an id", position=get_source_position(node))
    lowered = reader.lower_mv_expand(node, expansions)
    computed, expansion = lowered if isinstance(lowered, list) else (ir.Extend(()), lowered)
    return MvApply(parse_nested_pipeline(parts[-1]), computed.expressions, expansion)


_STRATEGIES = frozenset({"native", "shuffle", "legacy"})
_HINTS = frozenset({"hint.strategy", "hint.shufflekey", "hint.materialized", "hint.concurrency", "hint.spread"})


@dataclasses.dataclass(frozen=True)
class PartitionOperator(GroupedOperator):
    """Query operator ``partition``: runs a pipeline over each group of rows and returns all results."""

    column: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Render the operator as SQL that yields the result rows of the pipeline for all groups."""
        if self.column not in cols:
            raise semantic_error(f"Failed to resolve column named '{self.column[:200]}'")
        group, rows = create_group_column_name(cols), create_subquery_name("rows")
        nested, own = render_grouped(GroupedRows(rows, [*cols, group], group), [], self.body)
        key = f"{translate.quote_ident(self.column)} AS {translate.quote_ident(group)}"
        selected = ", ".join(map(translate.quote_ident, own))
        return f"WITH {rows} AS (SELECT *, {key} FROM {prev}) SELECT {selected} FROM ({nested})"  # noqa: S608  quoted

    def infer_columns(self, cols: list[str]) -> list[str]:
        """Return the output columns of the pipeline."""
        return list(schema.output_columns(ir.Query(ir.CommandSource("", tuple(cols), ""), self.body.operators), None))


def _install_partition() -> None:
    """Add the operator ``partition`` to the KQL translator library."""
    add_operator("PartitionOperator", _parse_partition)


def _parse_partition(node: Any) -> ir.Operator:
    *parameters, by, body = get_child_rules(node)
    for parameter in parameters:
        _check_hint(parameter)
    column = reader.lower_expr(by)
    if not isinstance(column, ir.ColumnRef):
        raise semantic_error("partition by requires the name of a column", position=get_source_position(by))
    if get_rule_name(body) == "PartitionOperatorFullExpressionBody":
        return parse_partition_with_source(node, column, body)
    if get_rule_name(body) != "PartitionOperatorSubExpressionBody":
        raise unsupported_error("partition with this body", position=get_source_position(body))
    return PartitionOperator(parse_nested_pipeline(get_child_rules(body)[0]), column.name)


def _check_hint(node: Any) -> None:
    name, _, value = node.getText().partition("=")
    if name not in _HINTS or (name == "hint.strategy" and value not in _STRATEGIES):
        raise unsupported_error(f"partition {node.getText()[:100]}", position=get_source_position(node))


def _install_mv_expand() -> None:
    """Make ``mv-expand x to typeof(string)`` faster; the SQL of the translator library would create and parse JSON."""
    replace_attribute(translate, "_mv_expand_unnest", _patch_mv_expand_unnest)


def _patch_mv_expand_unnest(default: Callable[[ir.MvExpand, ir.MvExpandTarget], str]) -> Callable[..., str]:
    def render_unnest(op: ir.MvExpand, target: ir.MvExpandTarget) -> str:
        if target.to_type != "string":
            return default(op, target)
        name = translate.quote_ident(target.name or target.column)
        return f"coalesce(UNNEST({_render_texts(op, target)}), '') AS {name}"

    return render_unnest


def _render_texts(op: ir.MvExpand, target: ir.MvExpandTarget) -> str:
    column = translate.quote_ident(target.column)
    elements = writer.mv_expand_elements(op, target)
    limit = None if op.limit is None else max(op.limit, 0)
    array = f"json_extract_string({column}, '$[*]')"
    if limit is not None:
        array = f"list_slice({array}, 1, {limit})"
    rest = f"list_transform({elements}, lambda _e: _e ->> '$')"
    return f"CASE json_type({column}) WHEN 'ARRAY' THEN {array} ELSE {rest} END"


macros: tuple[str, ...] = ()


def install() -> None:
    """Add ``mv-apply``, ``partition`` and ``mv-expand x to typeof(string)`` to the KQL translator library."""
    _install_mv_apply()
    _install_partition()
    _install_mv_expand()
