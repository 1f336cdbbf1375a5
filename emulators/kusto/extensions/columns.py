"""Functions that look at which columns there are."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from duckdb_kql import ir, schema

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import replace

SUPPORTED: tuple[str, ...] = ("column_ifexists", "columnifexists", "pack_all")

macros: tuple[str, ...] = ()


def install() -> None:
    """Resolve the functions where the translator resolves names against an operator's input."""
    replace(schema, "resolve_let_refs", _resolving)


def _resolving(default: Callable[..., ir.Operator]) -> Callable[..., ir.Operator]:
    def resolve(op: ir.Operator, cols: list[str] | None) -> ir.Operator:
        resolved: ir.Operator = _Resolution(cols).node(op)
        return default(resolved, cols)

    return resolve


class _Resolution:
    """One pass over an operator; parts that several places share stay shared."""

    def __init__(self, cols: Sequence[str] | None) -> None:
        self._cols = cols
        self._done: dict[int, Any] = {}

    def node(self, node: Any) -> Any:
        if isinstance(node, ir.Query) or not isinstance(node, ir.Node | tuple):
            return node
        if id(node) not in self._done:
            # The original is kept beside its successor: its id must not come to mean another node.
            self._done[id(node)] = node, self._resolved(node)
        return self._done[id(node)][1]

    def _resolved(self, node: Any) -> Any:
        if isinstance(node, tuple):
            parts = tuple(map(self.node, node))
            return node if all(new is old for new, old in zip(parts, node, strict=True)) else parts
        if isinstance(node, ir.NamedExpr) and node.name is None and _is_optional(node.expr):
            raise unsupported("column_ifexists() without a name for the column", "write x = column_ifexists(...)")
        if isinstance(node, ir.FunctionCall) and node.name.lower() in _FUNCTIONS:
            return self._call(node)
        changed = {
            field.name: new
            for field in dataclasses.fields(node)
            if (new := self.node(old := getattr(node, field.name))) is not old
        }
        return dataclasses.replace(node, **changed) if changed else node

    def _call(self, call: ir.FunctionCall) -> ir.Expr:
        if self._cols is None:
            raise unsupported(f"{call.name}()", "the columns before it depend on the data")
        return _FUNCTIONS[call.name.lower()](call, self._cols)


def _is_optional(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.FunctionCall) and expr.name.lower() in ("column_ifexists", "columnifexists")


def _column_ifexists(call: ir.FunctionCall, cols: Sequence[str]) -> ir.Expr:
    if len(call.args) != 2:  # noqa: PLR2004
        raise semantic_error("column_ifexists(): function expects 2 argument(s)", inner="SEM0219")
    name, otherwise = call.args
    text = name.value if isinstance(name, ir.Literal) else name.name if isinstance(name, ir.ColumnRef) else None
    if not isinstance(text, str):
        raise semantic_error("column_ifexists(): the name must be a literal")
    return ir.ColumnRef(text) if text in cols else otherwise


def _pack_all(call: ir.FunctionCall, cols: Sequence[str]) -> ir.Expr:
    if call.args and not (isinstance(call.args[0], ir.Literal) and call.args[0].value is False):
        raise unsupported("pack_all() that leaves out empty values")
    pairs = [part for name in cols for part in (ir.Literal(name, "string"), ir.ColumnRef(name))]
    return ir.FunctionCall("bag_pack", tuple(pairs))


_FUNCTIONS: dict[str, Callable[[ir.FunctionCall, Sequence[str]], ir.Expr]] = {
    "column_ifexists": _column_ifexists,
    "columnifexists": _column_ifexists,
    "pack_all": _pack_all,
}
