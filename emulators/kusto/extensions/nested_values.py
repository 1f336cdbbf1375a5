"""Functions over dynamic values: paths into nested JSON objects, canonical JSON, and sorting of several arrays.

A path such as ``$.a.b`` or ``d.["a"]`` addresses a key of an object. ``array_sort_asc`` and ``array_sort_desc`` accept
several arrays; the first array determines the order of all arrays. The call returns an array of arrays. If the call is
a whole column expression, or has a list of names, each array becomes a column.
"""

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import orjson
from duckdb_kql import ir, lower, translate

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.multi_results import GeneratedName, make_generated_names_unique
from emulators.kusto.extensions.names import MULTI_RESULT_FUNCTIONS, NameListExpr
from emulators.kusto.extensions.pipeline import OperatorParser
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.scalar_calls import (
    JsonValue,
    ScalarCall,
    build_python_functions,
    install_scalar_calls,
    parse_dynamic,
)
from emulators.kusto.extensions.sql import Sql, quote_text, render_expression, render_with_arguments_evaluated_once
from emulators.kusto.extensions.static_types import DYNAMICS, NUMBERS, DynamicLiteral, infer_static_type
from emulators.kusto.extensions.tree import ParseNode, get_child_rules, get_rule_name
from emulators.kusto.python_functions import FunctionFailure, PythonFunction
from emulators.kusto.stop_events import EXECUTION

_STEP = re.compile(r"""\.([A-Za-z_][\w-]*)|\[(?:'([^']*)'|"([^"]*)")\]""")
_LONG_INTEGER = re.compile(r"\d{19}")
_MAX_STEPS = 100
_LEGACY_ELEMENT = "LegacyFunctionCallOrPathElementOperation"


def _split_json_path_into_keys(path: str) -> list[str]:
    """Return the keys of a path such as ``$.a.b``; empty for ``$``, and for a path with an array index.

    Raises:
        FunctionFailure: the path has too many steps.
    """
    keys: list[str] = []
    position = 1
    while position < len(path):
        step = _STEP.match(path, position)
        if step is None:
            return []
        keys.append(next(key for key in step.groups() if key is not None))
        position = step.end()
        if len(keys) > _MAX_STEPS:
            raise FunctionFailure(
                "EMB0001",
                f"a path of more than {_MAX_STEPS} steps in a bag is not supported by the embedded query engine",
            )
    return keys


def _remove_keys_from_bag(bag: JsonValue, keys: Sequence[str | None]) -> JsonValue:
    """Remove the given keys from a JSON object, and return it.

    A key that starts with ``$`` is a path, a null key has no effect.
    """
    for key in keys:
        if key is not None:
            _remove_value_at_path(bag, _split_json_path_into_keys(key) if key.startswith("$") else [key])
    return bag


def _remove_value_at_path(bag: JsonValue, path_keys: Sequence[str]) -> None:
    for key in path_keys[:-1]:
        bag = bag.get(key) if isinstance(bag, dict) else None
    if path_keys and isinstance(bag, dict):
        bag.pop(path_keys[-1], None)


def _set_value_at_path(bag: JsonValue, path_keys: Sequence[str], value: JsonValue) -> JsonValue:
    """Return a copy of a JSON object with a value at a path.

    Missing objects on the path are created; values on the path that are not objects are replaced by objects.
    """
    if not path_keys:
        return value
    first, *rest = path_keys
    outer: Mapping[str, Any] = bag if isinstance(bag, dict) else {}
    return {**outer, first: _set_value_at_path(outer.get(first), rest, value)}


def _remove_keys_in_json_text(bag_json: str | None, keys: Sequence[str | None] | None) -> str | None:
    if bag_json is None or keys is None:
        return None
    return _edit_bag_in_json_text("bag_remove_keys", bag_json, lambda parsed: _remove_keys_from_bag(parsed, keys))


def _set_key_in_json_text(bag_json: str | None, path: str | None, value_json: str | None) -> str | None:
    keys = [] if path is None else _split_json_path_into_keys(path)
    if bag_json is None or not keys:
        return None
    return _edit_bag_in_json_text(
        "bag_set_key", bag_json, lambda parsed: _set_value_at_path(parsed, keys, _parse_json(value_json or "null"))
    )


def _edit_bag_in_json_text(function_name: str, bag_json: str, edit_bag: Callable[[JsonValue], JsonValue]) -> str:
    try:
        return orjson.dumps(edit_bag(_parse_json(bag_json))).decode()
    except (TypeError, RecursionError, json.JSONDecodeError):  # orjson reports too many levels as a TypeError
        raise FunctionFailure(
            "EMB0001",
            f"{function_name}() of a value that is not JSON or is nested too deeply is not supported by the embedded "
            "query engine",
        ) from None


def _parse_json(json_text: str) -> JsonValue:
    """Parse JSON; an integer that possibly exceeds 64 bits remains JSON text, so that no digit is lost."""
    if _LONG_INTEGER.search(json_text) is None:
        return orjson.loads(json_text)
    # orjson parses an integer of more than 64 bits as a real, and rejects one beyond the range of a double.
    return json.loads(json_text, parse_int=orjson.Fragment, parse_constant=str)


def _format_canonical_json(json_text: str) -> str:
    value = _parse_json(json_text)
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


CALLS = (ScalarCall("dynamic_to_json", _format_canonical_json, "json", "string", ""),)
SUPPORTED: tuple[str, ...] = ("dynamic_to_json", 'd.["a"] and d.[name]')


def _render_dynamic_to_json_call(render_call_sql: Callable[[ir.FunctionCall], Sql], call: ir.FunctionCall) -> Sql:
    kind = infer_static_type(call.args[0])
    if kind == "string":
        return render_expression(call.args[0])
    return render_call_sql(call) if kind in DYNAMICS | {None} else str(translate.render_kql_tostring(call.args[0]))


def _patch_paths_for_special_names(library_function: Callable[[ir.PathAccess], Sql]) -> Callable[[ir.PathAccess], Sql]:
    """Patch the translator library so that paths can contain property names that a JSON path cannot express."""

    def render_path(node: ir.PathAccess) -> Sql:
        steps = tuple(map(_convert_string_index_to_key, node.steps))
        indexes = [step.index for step in steps if step.index is not None]
        has_positions = all(
            isinstance(each, ir.Literal | ir.UnaryOp) or infer_static_type(each) in NUMBERS for each in indexes
        )
        if has_positions and all(map(_can_express_step_in_json_path, steps)):
            return library_function(ir.PathAccess(node.base, steps))
        sql = render_expression(node.base)
        for step in steps:
            if step.name is not None and not _can_express_step_in_json_path(step):
                sql = f"json_extract({sql}, {_render_json_pointer(quote_text(step.name))})"
            elif step.index is None:
                sql = library_function(ir.PathAccess(ir.RenderedAggregate(sql), (step,)))
            else:
                sql = render_with_arguments_evaluated_once(
                    [sql, render_expression(step.index)], _render_indexed_element
                )
        return sql

    return render_path


def _can_express_step_in_json_path(step: ir.PathStep) -> bool:
    """Return whether a JSON path of DuckDB can express a step, such as ``.a``, of a path in KQL.

    DuckDB rejects an empty name, reads ``*`` as a wildcard even in quotes, and cannot escape quotes and backslashes.
    """
    return step.name is None or (step.name != "" and not set(step.name) & set('*"\\'))


def _render_json_pointer(property_name: Sql) -> Sql:
    """Return SQL for the JSON pointer (RFC 6901) to a property, whose name can be any text."""
    return f"'/' || replace(replace({property_name}, '~', '~0'), '/', '~1')"


def _patch_static_paths_for_special_names(
    library_function: Callable[[tuple[ir.PathStep, ...]], str | None],
) -> Callable[[tuple[ir.PathStep, ...]], str | None]:
    """Patch the translator library so that it uses no JSON path for a property name that a JSON path cannot express."""
    return lambda steps: library_function(steps) if all(map(_can_express_step_in_json_path, steps)) else None


def _patch_mv_expand_for_special_names(
    library_function: Callable[[ir.MvExpand, ir.MvExpandTarget], Sql],
) -> Callable[[ir.MvExpand, ir.MvExpandTarget], Sql]:
    """Patch ``mv-expand`` of a bag (JSON object) so that property names may contain any characters.

    The SQL of the translator library builds a JSON path from each name, but a JSON path cannot express all names.
    """

    def render_elements(op: ir.MvExpand, target: ir.MvExpandTarget) -> Sql:
        return library_function(op, target).replace("""'$."' || k || '"'""", _render_json_pointer("k"))

    return render_elements


def _render_indexed_element(base: Sql, index: Sql) -> Sql:
    """Return SQL for an element of a JSON array or object; ``index`` is SQL for a position or the name of a key."""
    text = f"CAST({index} AS VARCHAR)"
    name = _render_json_pointer(text)
    number = f"'$[' || CASE WHEN starts_with({text}, '-') THEN '#' ELSE '' END || {text} || ']'"
    bag = f"CASE WHEN json_type({base}) = 'OBJECT' THEN {base} END"
    return (
        f"CASE WHEN typeof({index}) = 'VARCHAR' THEN json_extract({bag}, {name}) "
        f"ELSE json_extract({base}, {number}) END"
    )


def _patch_dynamic_literals_to_keep_form(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    """Patch the translator library to record whether a ``dynamic(...)`` literal is an array or a bag (JSON object).

    This concerns literals with values that JSON lacks, such as datetimes.
    """

    def convert_dynamic_literal(node: ParseNode) -> ir.Expr:
        lowered = library_function(node)
        match lowered:
            case ir.FunctionCall("parse_json", (ir.FunctionCall("strcat", (ir.Literal(value=str(text)), *_)),)):
                form = {"[": "array", "{": "bag"}.get(text[:1])
                return DynamicLiteral(lowered.name, lowered.args, form) if form else lowered
        return lowered

    return convert_dynamic_literal


def _patch_paths_to_accept_dot_before_bracket(
    library_function: Callable[[ParseNode], ir.Expr],
) -> Callable[[ParseNode], ir.Expr]:
    """Patch the translator library so that a path may have a dot before a bracket, as in ``d.["a"]``."""

    def convert_path(node: ParseNode) -> ir.Expr:
        base, *steps = get_child_rules(node)
        inner = [reader.collapse(step) for step in steps]
        if _LEGACY_ELEMENT not in map(get_rule_name, inner):
            return library_function(node)
        return ir.PathAccess(reader.lower_expr(base), tuple(map(_read_path_step, inner)))

    return convert_path


def _read_path_step(node: ParseNode) -> ir.PathStep:
    if get_rule_name(node) == "FunctionCallOrPathPathOperation":
        return ir.PathStep(name=reader.find_names(node)[0])
    index = reader.lower_expr(get_child_rules(node)[0])
    return _convert_string_index_to_key(ir.PathStep(index=index))


def _convert_string_index_to_key(step: ir.PathStep) -> ir.PathStep:
    """Convert a path step whose index is a string, as in ``d["a"]``, to a step by name, as in ``d.a``.

    Return any other step unchanged.
    """
    if isinstance(step.index, ir.Literal) and step.index.kind == "string":
        return ir.PathStep(name=str(step.index.value))
    return step


_SORT_FUNCTIONS = {"array_sort_asc": False, "array_sort_desc": True}
"""Whether the order is descending, by function."""
_MAX_ARRAYS = 65


def _get_array_element_sort_key(element: JsonValue) -> tuple[int, Any]:
    """Return the sort key of an array element: numbers come first, then strings, then all other values."""
    if isinstance(element, bool) or element is None or isinstance(element, dict | list):
        return 2, json.dumps(element, ensure_ascii=False, separators=(",", ":"), sort_keys=True)
    return (0, element) if isinstance(element, int | float) else (1, str(element))


def _sort_json_arrays_by_first_array(
    json_arrays: Sequence[str | None],
    descending: bool | None,  # noqa: FBT001  SQL passes positions
    nulls_last: bool | None,  # noqa: FBT001
) -> str:
    arrays = [parse_dynamic(text) if text is not None else None for text in json_arrays]
    first = arrays[0]
    if not isinstance(first, list):
        return json.dumps([None] * len(arrays), separators=(",", ":"))
    filled = [index for index, value in enumerate(first) if value is not None]
    empty = [index for index, value in enumerate(first) if value is None]
    ordered = sorted(filled, key=lambda index: _get_array_element_sort_key(first[index]), reverse=bool(descending))
    indexes = [*empty, *ordered] if nulls_last is False else [*ordered, *empty]
    # orjson encodes no integers of more than 64 bits.
    return json.dumps(
        [
            [array[index] for index in indexes] if isinstance(array, list) and len(array) == len(first) else None
            for array in arrays
        ],
        ensure_ascii=False,
        separators=(",", ":"),
    )


functions: tuple[PythonFunction, ...] = (
    *build_python_functions(CALLS),
    PythonFunction("kql_bag_without", _remove_keys_in_json_text, ("VARCHAR", "VARCHAR[]"), "VARCHAR"),
    PythonFunction("kql_bag_with", _set_key_in_json_text, ("VARCHAR", "VARCHAR", "VARCHAR"), "VARCHAR"),
    PythonFunction(
        "kql_sorted_arrays", _sort_json_arrays_by_first_array, ("VARCHAR[]", "BOOLEAN", "BOOLEAN"), "VARCHAR"
    ),
)
macros: tuple[str, ...] = ()


def install_into_translator() -> None:
    """Add canonical JSON, paths such as ``d.["a"]``, and sorting of several arrays to the KQL translator library."""
    install_scalar_calls(CALLS)
    render_call_sql = writer.SPECIAL_FORMS["dynamic_to_json"]
    add_custom_function("dynamic_to_json", (1,), lambda call: _render_dynamic_to_json_call(render_call_sql, call))
    replace_attribute(lower, "_lower_dynamic_literal", _patch_dynamic_literals_to_keep_form)
    replace_attribute(lower, "_lower_path", _patch_paths_to_accept_dot_before_bracket)
    replace_attribute(translate, "render_path", _patch_paths_for_special_names)
    replace_attribute(translate, "_static_path", _patch_static_paths_for_special_names)
    replace_attribute(translate, "_mv_expand_elements", _patch_mv_expand_for_special_names)
    for name in _SORT_FUNCTIONS:
        single = writer.SPECIAL_FORMS[name]
        add_custom_function(name, range(1, _MAX_ARRAYS + 1), functools.partial(_render_array_sort, single))
        MULTI_RESULT_FUNCTIONS[name] = _expand_array_sort_call_with_result_names
    replace_attribute(lower, "_lower_operator", _patch_operators_for_array_sorts)
    replace_attribute(lower, "_lower_source", _patch_print_for_array_sorts)


def _split_arrays_and_nulls_last_flag(call: ir.FunctionCall) -> tuple[Sequence[ir.Expr], ir.Expr | None]:
    """Split the arguments of a sort function into the arrays and the flag ``nulls_last`` (None if missing)."""
    end = call.args[-1]
    value = end.value if isinstance(end, ir.LetRef) else end
    has_flag = len(call.args) > 1 and isinstance(value, ir.Literal) and value.kind == "bool"
    return (call.args[:-1], value) if has_flag else (call.args, None)


def _render_array_sort(render_single_array: Callable[[ir.FunctionCall], Sql], call: ir.FunctionCall) -> Sql:
    arrays, last = _split_arrays_and_nulls_last_flag(call)
    if any(infer_static_type(each) == "bool" for each in arrays):
        raise semantic_error(f"{call.name}(): nulls_last must be a literal and the last argument", inner="SEM0219")
    if len(arrays) == 1:
        return render_single_array(dataclasses.replace(call, args=(*arrays, *((last,) if last is not None else ()))))
    listed = ", ".join(f"CAST(to_json({render_expression(array)}) AS VARCHAR)" for array in arrays)
    descending = str(_SORT_FUNCTIONS[call.name]).lower()
    flag = "true" if last is None else render_expression(last)
    return f"CAST(kql_sorted_arrays({EXECUTION}, [{listed}], {descending}, {flag}) AS JSON)"


def _build_expressions_of_sorted_arrays(call: ir.FunctionCall) -> list[ir.Expr]:
    arrays, _ = _split_arrays_and_nulls_last_flag(call)
    if len(arrays) == 1:
        return [call]
    return [ir.PathAccess(call, (ir.PathStep(index=ir.Literal(index, "long")),)) for index in range(len(arrays))]


def _expand_array_sort_call_with_result_names(named: NameListExpr) -> list[ir.NamedExpr]:
    call = named.expr
    assert isinstance(call, ir.FunctionCall)  # noqa: S101  registered for calls
    return [
        ir.NamedExpr(each, name)
        for name, each in zip(named.names, _build_expressions_of_sorted_arrays(call), strict=False)
    ]


def _expand_array_sort_calls(expressions: Sequence[ir.NamedExpr]) -> Iterator[ir.NamedExpr]:
    for named in expressions:
        call = named.expr
        if not isinstance(call, ir.FunctionCall) or call.name not in _SORT_FUNCTIONS or isinstance(named, NameListExpr):
            yield named
            continue
        results = _build_expressions_of_sorted_arrays(call)
        if len(results) == 1:
            yield named
            continue
        arrays, _ = _split_arrays_and_nulls_last_flag(call)
        for index, (array, result) in enumerate(zip(arrays, results, strict=True)):
            name = array.name if isinstance(array, ir.ColumnRef | ir.LetRef) else f"array{index}"
            if named.name and index == 0:
                yield ir.NamedExpr(result, named.name)
            else:
                yield GeneratedName(result, f"{name}_sorted")


def _patch_operators_for_array_sorts(library_function: OperatorParser) -> OperatorParser:
    """Patch the parser so that a sort of several arrays in ``extend`` or ``project`` yields a column for each array."""

    def convert_operator(node: ParseNode) -> ir.Operator | list[ir.Operator] | None:
        op = library_function(node)
        if isinstance(op, ir.Extend | ir.Project):
            return dataclasses.replace(
                op, expressions=make_generated_names_unique(_expand_array_sort_calls(op.expressions))
            )
        return op

    return convert_operator


def _patch_print_for_array_sorts(
    library_function: Callable[[ParseNode], ir.Source],
) -> Callable[[ParseNode], ir.Source]:
    """Patch the parser so that a sort of several arrays in ``print`` yields one column for each array."""

    def convert_source(node: ParseNode) -> ir.Source:
        source = library_function(node)
        if isinstance(source, ir.PrintSource):
            return dataclasses.replace(
                source, expressions=make_generated_names_unique(_expand_array_sort_calls(source.expressions))
            )
        return source

    return convert_source
