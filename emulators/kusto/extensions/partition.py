"""``partition``: a pipeline over the rows of each value of a column."""

import dataclasses
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.subpipeline import Groups, Nested, body_of, fresh_name, group_name, pipeline
from emulators.kusto.extensions.tree import children, kind_of, position

SUPPORTED: tuple[str, ...] = ("partition by (hint.strategy native, shuffle, legacy; a pipeline without a source)",)

macros: tuple[str, ...] = ()
_STRATEGIES = frozenset({"native", "shuffle", "legacy"})
_HINTS = frozenset({"hint.strategy", "hint.shufflekey", "hint.materialized", "hint.concurrency", "hint.spread"})


@dataclasses.dataclass(frozen=True)
class Partition(Nested):
    """Runs a pipeline over each group of rows and returns all their results."""

    column: str

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the pipeline's rows."""
        if self.column not in cols:
            raise semantic_error(f"Failed to resolve column named '{self.column[:200]}'")
        group, rows = group_name(cols), fresh_name("rows")
        nested, own = pipeline(Groups(rows, [*cols, group], group), [], self.body)
        key = f"{translate.quote_ident(self.column)} AS {translate.quote_ident(group)}"
        chosen = ", ".join(map(translate.quote_ident, own))
        return f"WITH {rows} AS (SELECT *, {key} FROM {prev}) SELECT {chosen} FROM ({nested})"  # noqa: S608  quoted

    def columns(self, cols: list[str]) -> list[str]:
        """Return the pipeline's columns."""
        return list(schema.output_columns(ir.Query(ir.CommandSource("", tuple(cols), ""), self.body.operators), None))


def install() -> None:
    """Teach the translator the operator."""
    add_operator("PartitionOperator", _partition)


def _partition(node: Any) -> ir.Operator:
    *parameters, by, body = children(node)
    for parameter in parameters:
        _check_hint(parameter)
    if kind_of(body) != "PartitionOperatorSubExpressionBody":
        raise unsupported("partition with a source of its own in { }", position=position(body))
    column = reader.lower_expr(by)
    if not isinstance(column, ir.ColumnRef):
        raise semantic_error("partition expects a column", position=position(by))
    return Partition(body_of(children(body)[0]), column.name)


def _check_hint(node: Any) -> None:
    name, _, value = node.getText().partition("=")
    if name not in _HINTS or (name == "hint.strategy" and value not in _STRATEGIES):
        raise unsupported(f"partition {node.getText()[:100]}", position=position(node))
