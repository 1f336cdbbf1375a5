"""Series functions of several results: ``(a, b) = f(x)`` in ``extend``, ``project`` and ``print``.

Without names the columns are called ``f_x_result``. ``extend`` adds as many columns as it names, ``project`` all.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from duckdb_kql import ir, lower

from emulators.kusto.errors import unsupported
from emulators.kusto.extensions.library import replace
from emulators.kusto.extensions.names import TUPLES

_FUNCTIONS: dict[str, "_Function"] = {}

macros: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Output:
    """One result.

    Attributes:
        name: of the property in the bag, and the end of the column's name.
        conversion: the KQL function that makes the property a scalar, empty for a dynamic.
    """

    name: str
    conversion: str = ""


@dataclasses.dataclass(frozen=True)
class _Function:
    bag: str
    outputs: tuple[Output, ...]
    arities: Collection[int]


@dataclasses.dataclass(frozen=True)
class OutputExpr(ir.NamedExpr):
    """One result of a call, and which others there are."""

    call: ir.FunctionCall | None = None
    bag: ir.FunctionCall | None = None
    last: int = -1


def add_outputs(name: str, bag: str, outputs: Sequence[Output], arities: Collection[int]) -> None:
    """Add a function of several results.

    Args:
        name: of the function in KQL.
        bag: the function that returns the same results as one property bag; it is computed once for all columns.
        outputs: the results, in order.
        arities: how many arguments the function takes.
    """
    _FUNCTIONS[name] = _Function(bag, tuple(outputs), arities)
    TUPLES[name] = lambda named: list(_named(named, named.names))


def install() -> None:
    """Expand calls wherever columns are made; to be called after every call of :func:`add_outputs`' modules."""
    replace(lower, "_lower_operator", _lower_operator)
    replace(lower, "_lower_source", _lower_source)


def _lower_operator(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lower_operator(node: Any) -> Any:
        op = default(node)
        if isinstance(op, ir.Extend | ir.Project):
            every = isinstance(op, ir.Project)
            return dataclasses.replace(op, expressions=tuple(_expanded(op.expressions, every=every)))
        return op

    return lower_operator


def _lower_source(default: Callable[[Any], ir.Source]) -> Callable[[Any], ir.Source]:
    def lower_source(node: Any) -> ir.Source:
        source = default(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(source, expressions=tuple(_expanded(source.expressions, every=True)))
        return source

    return lower_source


def _expanded(expressions: Sequence[ir.NamedExpr], *, every: bool) -> Iterator[ir.NamedExpr]:
    for named in expressions:
        call = named.expr
        if isinstance(call, ir.FunctionCall) and call.name.lower() in _FUNCTIONS:
            names = (named.name,) if named.name else ()
            yield from _completed(_named(named, names), every=every or not names, call=call)
        elif isinstance(named, OutputExpr):
            yield from _completed(iter([named]), every=every and named.last >= 0, call=named.call)
        else:
            yield named


def _completed(named: Iterator["OutputExpr"], *, every: bool, call: ir.FunctionCall | None) -> Iterator[ir.NamedExpr]:
    bag, last = None, -1
    for each in named:
        bag, last = each.bag, each.last
        yield ir.NamedExpr(each.expr, each.name)
    if not every or call is None:
        return
    function = _FUNCTIONS[call.name.lower()]
    bag = bag or _bag(call, function)
    for output in function.outputs[last + 1 :]:
        yield ir.NamedExpr(_value(bag, output), f"{call.name}_{_argument_name(call)}_{output.name}")


def _argument_name(call: ir.FunctionCall) -> str:
    if call.args and isinstance(call.args[0], ir.ColumnRef):
        return call.args[0].name
    raise unsupported(f"{call.name}() without names for its columns", "write (a, b) = ..., or pass a column")


def _named(named: ir.NamedExpr, names: Sequence[str]) -> Iterator[OutputExpr]:
    """Yield the columns that the names name, the last of them knowing that it is."""
    call = named.expr
    assert isinstance(call, ir.FunctionCall)  # noqa: S101  the callers looked
    function = _FUNCTIONS[call.name.lower()]
    if len(names) > len(function.outputs):
        raise unsupported("a list of names on the left of =", f"{call.name}() has {len(function.outputs)} results")
    bag = _bag(call, function)
    for index, (name, output) in enumerate(zip(names, function.outputs, strict=False)):
        last = index if index + 1 == len(names) else -1
        yield OutputExpr(_value(bag, output), name, call, bag, last)


def _bag(call: ir.FunctionCall, function: _Function) -> ir.FunctionCall:
    if len(call.args) not in function.arities:
        raise unsupported(f"{call.name}() with {len(call.args)} arguments")
    return ir.FunctionCall(function.bag, call.args)


def _value(bag: ir.FunctionCall, output: Output) -> ir.Expr:
    """Return one property; the node of the bag is the same for each, by which the translator computes it once."""
    value = ir.PathAccess(bag, (ir.PathStep(output.name),))
    return ir.FunctionCall(output.conversion, (value,)) if output.conversion else value
