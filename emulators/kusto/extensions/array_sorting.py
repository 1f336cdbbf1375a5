"""``array_sort_asc`` and ``array_sort_desc`` over several arrays: the first array determines the order of all.

The call returns an array of arrays. As a column of its own, or with a list of names, each array becomes a column.
"""

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import orjson
from duckdb_kql import ir, lower

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.multi_results import GeneratedName, number_generated_names
from emulators.kusto.extensions.names import MULTI_RESULT_FUNCTIONS, NameListExpr
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.sql import render_expression
from emulators.kusto.extensions.static_types import infer_static_type
from emulators.kusto.python_functions import PythonFunction

SUPPORTED: tuple[str, ...] = ()
_NAMES = {"array_sort_asc": False, "array_sort_desc": True}
"""Whether the order is descending, by function."""
_MAX_ARRAYS = 65


def _get_sort_key(value: Any) -> tuple[int, Any]:
    """Return the sort key of an array's element: numbers first, then strings, then all others."""
    if isinstance(value, bool) or value is None or isinstance(value, dict | list):
        return 2, orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
    return (0, value) if isinstance(value, int | float) else (1, str(value))


def _sort_arrays(texts: Sequence[str | None], descending: bool | None, last: bool | None) -> str:  # noqa: FBT001  SQL passes positions
    arrays = [orjson.loads(text) if text is not None else None for text in texts]
    first = arrays[0]
    if not isinstance(first, list):
        return orjson.dumps([None] * len(arrays)).decode()
    filled = [index for index, value in enumerate(first) if value is not None]
    empty = [index for index, value in enumerate(first) if value is None]
    ordered = sorted(filled, key=lambda index: _get_sort_key(first[index]), reverse=bool(descending))
    indexes = [*empty, *ordered] if last is False else [*ordered, *empty]
    return orjson.dumps(
        [
            [array[index] for index in indexes] if isinstance(array, list) and len(array) == len(first) else None
            for array in arrays
        ]
    ).decode()


functions: tuple[PythonFunction, ...] = (
    PythonFunction("kql_sorted_arrays", _sort_arrays, ("VARCHAR[]", "BOOLEAN", "BOOLEAN"), "VARCHAR"),
)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add the functions over several arrays to the KQL translator library."""
    for name in _NAMES:
        single = writer.SPECIAL_FORMS[name]
        add_custom_function(name, range(1, _MAX_ARRAYS + 1), functools.partial(_render_call, single))
        MULTI_RESULT_FUNCTIONS[name] = _expand_names
    replace_attribute(lower, "_lower_operator", _patch_lower_operator)
    replace_attribute(lower, "_lower_source", _patch_lower_source)


def _split_arguments(call: ir.FunctionCall) -> tuple[Sequence[ir.Expr], ir.Expr | None]:
    """Split the arguments of a call into the arrays and the flag that sorts nulls last (None if it is missing)."""
    end = call.args[-1]
    value = end.value if isinstance(end, ir.LetRef) else end
    has_flag = len(call.args) > 1 and isinstance(value, ir.Literal) and value.kind == "bool"
    return (call.args[:-1], value) if has_flag else (call.args, None)


def _render_call(single: Callable[[ir.FunctionCall], str], call: ir.FunctionCall) -> str:
    arrays, last = _split_arguments(call)
    if any(infer_static_type(each) == "bool" for each in arrays):
        raise semantic_error(f"{call.name}(): nulls_last must be a literal at the end", inner="SEM0219")
    if len(arrays) == 1:
        return single(dataclasses.replace(call, args=(*arrays, *((last,) if last is not None else ()))))
    listed = ", ".join(f"CAST(to_json({render_expression(array)}) AS VARCHAR)" for array in arrays)
    descending = str(_NAMES[call.name]).lower()
    flag = "true" if last is None else render_expression(last)
    return f"CAST(kql_sorted_arrays([{listed}], {descending}, {flag}) AS JSON)"


def _build_results(call: ir.FunctionCall) -> list[ir.Expr]:
    arrays, _ = _split_arguments(call)
    if len(arrays) == 1:
        return [call]
    return [ir.PathAccess(call, (ir.PathStep(index=ir.Literal(index, "long")),)) for index in range(len(arrays))]


def _expand_names(named: NameListExpr) -> list[ir.NamedExpr]:
    call = named.expr
    assert isinstance(call, ir.FunctionCall)  # noqa: S101  registered for calls
    return [ir.NamedExpr(each, name) for name, each in zip(named.names, _build_results(call), strict=False)]


def _expand_calls(expressions: Sequence[ir.NamedExpr]) -> Iterator[ir.NamedExpr]:
    for named in expressions:
        call = named.expr
        if not isinstance(call, ir.FunctionCall) or call.name not in _NAMES or isinstance(named, NameListExpr):
            yield named
            continue
        results = _build_results(call)
        if len(results) == 1:
            yield named
            continue
        arrays, _ = _split_arguments(call)
        for index, (array, result) in enumerate(zip(arrays, results, strict=True)):
            name = array.name if isinstance(array, ir.ColumnRef | ir.LetRef) else f"array{index}"
            if named.name and index == 0:
                yield ir.NamedExpr(result, named.name)
            else:
                yield GeneratedName(result, f"{name}_sorted")


def _patch_lower_operator(default: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def lower_operator(node: Any) -> Any:
        op = default(node)
        if isinstance(op, ir.Extend | ir.Project):
            return dataclasses.replace(op, expressions=number_generated_names(_expand_calls(op.expressions)))
        return op

    return lower_operator


def _patch_lower_source(default: Callable[[Any], ir.Source]) -> Callable[[Any], ir.Source]:
    def lower_source(node: Any) -> ir.Source:
        source = default(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(source, expressions=number_generated_names(_expand_calls(source.expressions)))
        return source

    return lower_source
