"""``mv-apply``: a pipeline over the elements of each row's arrays."""

import dataclasses
from typing import Any

from duckdb_kql import ir, schema, translate

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import reader
from emulators.kusto.extensions.pipeline import add_operator
from emulators.kusto.extensions.subpipeline import Groups, Nested, body_of, fresh_name, group_name, pipeline
from emulators.kusto.extensions.tree import children, kind_of, position

SUPPORTED: tuple[str, ...] = ("mv-apply (with_itemindex, to typeof, limit, several columns)",)

macros: tuple[str, ...] = ()
_EXPANDED = ("MvapplyOperatorExpression", "NamedExpression")


@dataclasses.dataclass(frozen=True)
class MvApply(Nested):
    """Expands arrays as ``mv-expand`` does, and runs a pipeline over what each row expanded to.

    The result has the row's own columns, but for those replaced by their elements, and the pipeline's.
    """

    computed: tuple[ir.NamedExpr, ...]
    expansion: ir.MvExpand

    def render(self, prev: str, cols: list[str]) -> str:
        """Return the pipeline's rows, each beside the row that it came from."""
        group, rows = group_name(cols), fresh_name("rows")
        nested, own = self._nested(Groups(rows, [*cols, group], group, contiguous=True))
        kept = self._kept(cols)
        key = translate.quote_ident(group)
        numbered = f"SELECT *, row_number() OVER () AS {key} FROM {prev}"  # noqa: S608  generated names
        names = [*kept, *(name for name in own if name not in kept)]
        if all(name in own for name in kept):
            chosen = ", ".join(map(translate.quote_ident, names))
            return f"WITH {rows} AS ({numbered}) SELECT {chosen} FROM ({nested})"  # noqa: S608  quoted names
        chosen = ", ".join(f"{'n' if name in own else 'r'}.{translate.quote_ident(name)}" for name in names)
        return (
            f"WITH {rows} AS MATERIALIZED ({numbered}) SELECT {chosen} FROM ({nested}) AS n "  # noqa: S608
            f"JOIN {rows} AS r ON r.{key} = n.{key}"
        )

    def columns(self, cols: list[str]) -> list[str]:
        """Return the row's columns and the pipeline's."""
        operators = [*self._expanding(), *self.body.operators]
        source = ir.CommandSource("", tuple(cols), "")
        own = schema.output_columns(ir.Query(source, operators), None)
        kept = self._kept(cols)
        return [*kept, *(name for name in own if name not in kept)]

    def _nested(self, groups: Groups) -> tuple[str, list[str]]:
        return pipeline(groups, self._expanding(), self.body)

    def _expanding(self) -> list[ir.Operator]:
        return [ir.Extend(self.computed), self.expansion] if self.computed else [self.expansion]

    def _kept(self, cols: list[str]) -> list[str]:
        replaced = {target.name or target.column for target in self.expansion.targets}
        return [name for name in cols if name not in replaced]


def install() -> None:
    """Teach the translator the operator."""
    add_operator("MvapplyOperator", _mv_apply)


def _mv_apply(node: Any) -> ir.Operator:
    parts = children(node)
    expanding = [part for part in parts[:-1] if kind_of(part) != "MvapplyOperatorIdClause"]
    if len(expanding) != len(parts) - 1:
        raise unsupported("mv-apply with an id", position=position(node))
    lowered = reader.lower_mv_expand(node, expanding)
    computed, expansion = lowered if isinstance(lowered, list) else (ir.Extend(()), lowered)
    return MvApply(body_of(parts[-1]), computed.expressions, expansion)
