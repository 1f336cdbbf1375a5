"""Nested property bags: keys that a path such as ``$.a.b`` names, paths such as ``d.["a"]``, and canonical JSON."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import orjson
from duckdb_kql import ir, lower, translate

from emulators.kusto.extensions.library import reader, replace_attribute, writer
from emulators.kusto.extensions.registry import add_custom_function
from emulators.kusto.extensions.scalar_calls import ScalarCall, build_functions, install_calls
from emulators.kusto.extensions.sql import bind_once, render_expression
from emulators.kusto.extensions.static_types import DYNAMICS, NUMBERS, DynamicLiteral, infer_static_type
from emulators.kusto.extensions.tree import get_child_rules, get_rule_name
from emulators.kusto.python_functions import FunctionFailure, PythonFunction

_STEP = re.compile(r"""\.([A-Za-z_][\w-]*)|\[(?:'([^']*)'|"([^"]*)")\]""")
_LONG_INTEGER = re.compile(r"\d{19}")
_MAX_STEPS = 100
_LEGACY_ELEMENT = "LegacyFunctionCallOrPathElementOperation"


def _parse_path(path: str) -> list[str]:
    """Return the keys of a path from the root of a bag; a path into an array, or of the root itself, has none.

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
            raise FunctionFailure("EMB0001", f"a path of more than {_MAX_STEPS} steps in a bag")
    return keys


def _remove_keys(bag: Any, keys: Sequence[str | None]) -> Any:
    """Return a bag without some keys; a key that starts with ``$`` is a path, and a null key removes nothing."""
    remaining = bag
    for key in keys:
        if key is not None:
            remaining = _remove_path(remaining, _parse_path(key) if key.startswith("$") else [key])
    return remaining


def _remove_path(bag: Any, keys: Sequence[str]) -> Any:
    if not keys or not isinstance(bag, dict) or keys[0] not in bag:
        return bag
    first, *rest = keys
    if rest:
        return {**bag, first: _remove_path(bag[first], rest)}
    return {key: value for key, value in bag.items() if key != first}


def _set_path(bag: Any, keys: Sequence[str], value: Any) -> Any:
    """Return a bag with a value at a path; bags on the way are created, and other values on the way are replaced."""
    if not keys:
        return value
    first, *rest = keys
    outer: Mapping[str, Any] = bag if isinstance(bag, dict) else {}
    return {**outer, first: _set_path(outer.get(first), rest, value)}


def _remove_keys_in_text(bag: str | None, keys: Sequence[str | None] | None) -> str | None:
    if bag is None or keys is None:
        return None
    return _edit_bag("bag_remove_keys", bag, lambda parsed: _remove_keys(parsed, keys))


def _set_key_in_text(bag: str | None, path: str | None, value: str | None) -> str | None:
    keys = [] if path is None else _parse_path(path)
    if bag is None or not keys:
        return None
    return _edit_bag("bag_set_key", bag, lambda parsed: _set_path(parsed, keys, _parse_json(value or "null")))


def _edit_bag(name: str, bag: str, edit: Callable[[Any], Any]) -> str:
    try:
        return orjson.dumps(edit(_parse_json(bag))).decode()
    except (TypeError, RecursionError, orjson.JSONDecodeError):  # orjson reports too many levels as a TypeError
        raise FunctionFailure("EMB0001", f"{name}() of a value that has too many levels or is not JSON") from None


def _parse_json(text: str) -> Any:
    """Parse JSON; an integer that may exceed 64 bits becomes a fragment of JSON with the same digits."""
    parsed = orjson.loads(text)
    # orjson parses an integer of more than 64 bits as a real.
    return json.loads(text, parse_int=orjson.Fragment) if _LONG_INTEGER.search(text) else parsed


def _render_canonical_json(text: str) -> str:
    value = _parse_json(text)
    return value if isinstance(value, str) else orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()


CALLS = (ScalarCall("dynamic_to_json", _render_canonical_json, "json", "string", ""),)
SUPPORTED: tuple[str, ...] = ("dynamic_to_json", 'd.["a"] and d.[name]')
functions = (
    *build_functions(CALLS),
    PythonFunction("kql_bag_without", _remove_keys_in_text, ("VARCHAR", "VARCHAR[]"), "VARCHAR"),
    PythonFunction("kql_bag_with", _set_key_in_text, ("VARCHAR", "VARCHAR", "VARCHAR"), "VARCHAR"),
)
macros: tuple[str, ...] = ()


def install() -> None:
    """Add canonical JSON and paths with a dot before the bracket to the KQL translator library."""
    install_calls(CALLS)
    render_call = writer.SPECIAL_FORMS["dynamic_to_json"]
    add_custom_function("dynamic_to_json", (1,), lambda call: _render_to_json(render_call, call))
    replace_attribute(lower, "_lower_dynamic_literal", _patch_lower_literal)
    replace_attribute(lower, "_lower_path", _patch_lower_path)
    replace_attribute(translate, "render_path", _patch_render_path)


def _render_to_json(render_call: Callable[[ir.FunctionCall], str], call: ir.FunctionCall) -> str:
    kind = infer_static_type(call.args[0])
    if kind == "string":
        return render_expression(call.args[0])
    return render_call(call) if kind in DYNAMICS | {None} else str(translate.render_kql_tostring(call.args[0]))


def _patch_render_path(default: Callable[[ir.PathAccess], str]) -> Callable[[ir.PathAccess], str]:
    def render_path(node: ir.PathAccess) -> str:
        steps = tuple(map(_convert_step_to_name, node.steps))
        indexes = [step.index for step in steps if step.index is not None]
        if all(isinstance(each, ir.Literal | ir.UnaryOp) or infer_static_type(each) in NUMBERS for each in indexes):
            return default(ir.PathAccess(node.base, steps))
        sql = render_expression(node.base)
        for step in steps:
            if step.index is None:
                sql = default(ir.PathAccess(ir.RenderedAggregate(sql), (step,)))
            else:
                sql = bind_once([sql, render_expression(step.index)], _render_element)
        return sql

    return render_path


def _render_element(base: str, index: str) -> str:
    """Return SQL of the element with an index, which is the name of a key or a number."""
    text = f"CAST({index} AS VARCHAR)"
    # A JSON pointer, because the text of a name can be anything.
    name = f"'/' || replace(replace({text}, '~', '~0'), '/', '~1')"
    number = f"'$[' || CASE WHEN starts_with({text}, '-') THEN '#' ELSE '' END || {text} || ']'"
    bag = f"CASE WHEN json_type({base}) = 'OBJECT' THEN {base} END"
    return (
        f"CASE WHEN typeof({index}) = 'VARCHAR' THEN json_extract({bag}, {name}) "
        f"ELSE json_extract({base}, {number}) END"
    )


def _patch_lower_literal(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_dynamic_literal(node: Any) -> ir.Expr:
        lowered = default(node)
        match lowered:
            case ir.FunctionCall("parse_json", (ir.FunctionCall("strcat", (ir.Literal(value=str(text)), *_)),)):
                form = {"[": "array", "{": "bag"}.get(text[:1])
                return DynamicLiteral(lowered.name, lowered.args, form) if form else lowered
        return lowered

    return lower_dynamic_literal


def _patch_lower_path(default: Callable[[Any], ir.Expr]) -> Callable[[Any], ir.Expr]:
    def lower_path(node: Any) -> ir.Expr:
        base, *steps = get_child_rules(node)
        inner = [reader.collapse(step) for step in steps]
        if _LEGACY_ELEMENT not in map(get_rule_name, inner):
            return default(node)
        return ir.PathAccess(reader.lower_expr(base), tuple(map(_read_step, inner)))

    return lower_path


def _read_step(node: Any) -> ir.PathStep:
    if get_rule_name(node) == "FunctionCallOrPathPathOperation":
        return ir.PathStep(name=reader.find_names(node)[0])
    index = reader.lower_expr(get_child_rules(node)[0])
    return _convert_step_to_name(ir.PathStep(index=index))


def _convert_step_to_name(step: ir.PathStep) -> ir.PathStep:
    """Return a step by name if the index is a string, such as the argument of a function."""
    if isinstance(step.index, ir.Literal) and step.index.kind == "string":
        return ir.PathStep(name=str(step.index.value))
    return step
