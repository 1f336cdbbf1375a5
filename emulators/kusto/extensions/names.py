"""Names on the left of ``=``: lists of them, and names inside calls."""

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any

from duckdb_kql import ir, lower
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.errors import semantic_error, unsupported
from emulators.kusto.extensions.library import reader, replace
from emulators.kusto.extensions.tree import children, find, kind_of, position

macros: tuple[str, ...] = ()

type Expansion = Callable[["NamesExpr"], list[ir.NamedExpr]]
TUPLES: dict[str, Expansion] = {}
"""Scalar functions of several results: how ``(a, b) = f(x)`` becomes one named expression for each name."""


@dataclasses.dataclass(frozen=True)
class NamesExpr(ir.NamedExpr):
    """``(a, b) = expression``; ``name`` is the first of the names."""

    names: tuple[str, ...] = ()


def install() -> None:
    """Lower lists of names, and refuse names where the translator would drop them."""
    replace(lower, "_lower_named", _lower_named)
    replace(lower, "_lower_operator", _lower_operator)
    replace(lower, "_lower_source", _lower_source)
    replace(lower, "_lower_function_call", _lower_function_call)


def _lower_named(default: Callable[[Any], ir.NamedExpr]) -> Callable[[Any], ir.NamedExpr]:
    def lower_named(node: Any) -> ir.NamedExpr:
        inner = reader.collapse(node)
        parts = children(inner)
        lists = find(parts[0], "NamedExpressionNameList") if len(parts) == 2 else []  # noqa: PLR2004
        if kind_of(inner) not in ("NamedExpression", "ArgumentExpression") or not lists:
            return default(node)
        names = tuple(reader.find_names(lists[0]))
        return NamesExpr(reader.lower_expr(parts[1]), names[0], names)

    return lower_named


def _lower_operator(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lower_operator(node: Any) -> Any:
        op = default(node)
        if isinstance(op, ir.Extend | ir.Project):
            return dataclasses.replace(op, expressions=tuple(_expanded(op.expressions)))
        if isinstance(op, ir.Summarize):
            _refuse_lists(op.by, node)
        elif dataclasses.is_dataclass(op):
            _refuse_lists(getattr(op, "expressions", ()), node)
        return op

    return lower_operator


def _lower_source(default: Callable[[Any], ir.Source]) -> Callable[[Any], ir.Source]:
    def lower_source(node: Any) -> ir.Source:
        source = default(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(source, expressions=tuple(_expanded(source.expressions)))
        return source

    return lower_source


def _expanded(expressions: tuple[ir.NamedExpr, ...]) -> Iterator[ir.NamedExpr]:
    for named in expressions:
        if not isinstance(named, NamesExpr):
            yield named
            continue
        name = named.expr.name.lower() if isinstance(named.expr, ir.FunctionCall) else ""
        if name not in TUPLES:
            raise unsupported("a list of names on the left of =", f"{name or 'the expression'} has one result")
        yield from TUPLES[name](named)


def _refuse_lists(expressions: tuple[Any, ...], node: Any) -> None:
    if any(isinstance(named, NamesExpr) for named in expressions):
        raise unsupported("a list of names on the left of =", position=position(node))


def _lower_function_call(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_function_call(node: Any) -> ir.Expr:
        parts = children(node)
        if len(parts) > 1 and any(argument_name(part) for part in parts[1:]):
            return _named_call(node, parts)
        return default(node)

    return lower_function_call


def _named_call(node: Any, parts: list[Any]) -> ir.Expr:
    name = parts[0].getText()
    declared = reader.LET_FUNCTIONS_STATE.get().get(name)
    if declared is None or declared.body is None:
        raise unsupported(f"a named argument of {name[:100]}()", position=position(node))
    args = ordered_arguments(name, [parameter for parameter, _ in declared.parameters], parts[1:])
    filled = []
    for (parameter, default), arg in zip(declared.parameters, args, strict=True):
        if arg is None and default is None:
            raise KqlUnsupportedError(f"let function:{name}", hint=f"the parameter {parameter!r} has no value")
        filled.append(default if arg is None else reader.lower_expr(arg))
    inlined: ir.Expr = reader.inline_let_function(node, declared, tuple(filled))
    return inlined


def ordered_arguments(function: str, parameters: list[str], nodes: list[Any]) -> list[Any | None]:
    """Return the argument node of each parameter, None where there is none; names may follow positions.

    Raises:
        QueryError: a name is unknown or comes twice, or there are too many arguments.
    """
    found: dict[str, Any] = {}
    for index, node in enumerate(nodes):
        name = argument_name(node) or (parameters[index] if index < len(parameters) else None)
        if name not in parameters or name in found:
            which = "more arguments than parameters" if name is None else f"no parameter to take {name[:100]!r}"
            raise semantic_error(f"{function[:100]}(): there are {which}", inner="SEM0219", position=position(node))
        found[str(name)] = _value(node)
    return [found.get(parameter) for parameter in parameters]


def argument_name(node: Any) -> str | None:
    """Return the name in ``name = value``, None where an argument has none."""
    inner = reader.collapse(node)
    parts = children(inner)
    if kind_of(inner) in ("NamedExpression", "ArgumentExpression") and len(parts) == 2:  # noqa: PLR2004
        names: list[str] = reader.find_names(parts[0])
        return names[0] if names else str(parts[0].getText()).rstrip("= ")
    return None


def _value(node: Any) -> Any:
    inner = reader.collapse(node)
    return children(inner)[1] if argument_name(node) else inner
