"""Support for KQL functions that a Python function computes for each row.

An extension lists its functions as `ScalarCall`. ``build_python_functions`` creates the Python functions for DuckDB;
``install_scalar_calls`` adds the KQL functions to the translator library.
"""

import functools
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from duckdb_kql import ir

from emulators.kusto.errors import semantic_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.registry import ANY_NUMBER, add_custom_function
from emulators.kusto.extensions.sql import Sql, render_expression
from emulators.kusto.python_functions import FunctionFailure, PythonFunction
from emulators.kusto.stop_events import EXECUTION

_SQL_TYPES = {
    "string": "VARCHAR", "long": "BIGINT", "int": "INTEGER", "real": "DOUBLE", "bool": "BOOLEAN", "dynamic": "VARCHAR",
    "json": "VARCHAR", "text": "VARCHAR", "guid": "VARCHAR", "any": "VARCHAR", "digested": "DOUBLE",
}  # fmt: skip
_NUMBERS = frozenset({"long", "int", "real", "decimal"})
_ACCEPTED: Mapping[str, frozenset[str]] = {
    "string": frozenset({"string", "dynamic", "null"}),
    "text": frozenset({"string", "dynamic", "null"}),
    "long": _NUMBERS | {"dynamic", "null", "bool"},
    "real": _NUMBERS | {"dynamic", "null"},
    "dynamic": frozenset({"dynamic", "string", "null"}),
    "json": frozenset({"dynamic", "string", "null"}),
    "bool": frozenset({"bool", "null", "dynamic", *_NUMBERS}),
}
"""Kusto types that an argument of each kind accepts."""
INTEGERS_OF_64_BITS = range(-(2**63), 2**64)
"""Integers that orjson parses and encodes as integers."""


type JsonValue = Any
"""Parsed JSON."""


@dataclass(frozen=True, slots=True)
class ScalarCall:
    """KQL function that a Python function computes for each row.

    Attributes:
        name: name of the KQL function.
        run: the function in Python; it receives None for null and for a missing argument, and a dynamic argument as
            parsed JSON. If it rejects a value with an exception such as ValueError, the result is ``missing``.
        kinds: kind of each argument: ``string``, ``text`` (an empty text is not null), ``long``, ``real``, ``bool``,
            ``digested`` (a value to look up in a t-digest), ``dynamic``, ``json`` (a dynamic value as JSON text) or
            ``any`` (as text). A kind that ends with ``?`` is an optional argument. The last kind can be ``*``: any
            number of strings or arrays of strings, which the function receives as one list.
        result: type of the result.
        missing: result if a required argument is null, or if the function rejects a value.
    """

    name: str
    run: Callable[..., Any]
    kinds: str
    result: str
    missing: Any = None

    @property
    def sql_name(self) -> str:
        """Name of the function in SQL."""
        return f"kql_call_{self.name}"

    def list_argument_kinds(self) -> list[str]:
        """Return the kinds of the function's arguments without the ``?`` of optional arguments."""
        return [kind.rstrip("?") for kind in self.kinds.split()]

    def count_required_arguments(self) -> int:
        """Return the number of required arguments."""
        return sum(not kind.endswith("?") for kind in self.kinds.split())


def build_python_functions(calls: Iterable[ScalarCall]) -> tuple[PythonFunction, ...]:
    """Return the Python functions that the generated SQL calls, one for each KQL function."""
    return tuple(
        PythonFunction(
            call.sql_name,
            _build_function_that_parses_arguments(call),
            tuple("VARCHAR[]" if kind == "*" else _SQL_TYPES[kind] for kind in call.list_argument_kinds()),
            _SQL_TYPES[call.result],
        )
        for call in calls
    )


def install_scalar_calls(calls: Iterable[ScalarCall]) -> None:
    """Add KQL functions to the translator library; the SQL of each function calls its Python function."""
    for call in calls:
        kinds = call.list_argument_kinds()
        arities: Sequence[int] = range(call.count_required_arguments(), len(kinds) + 1)
        if "*" in kinds:
            arities = range(len(kinds), ANY_NUMBER[-1] + 1)
        add_custom_function(call.name, arities, functools.partial(_render_call, call))


def _build_function_that_parses_arguments(call: ScalarCall) -> Callable[..., Any]:
    kinds = call.list_argument_kinds()
    required = call.count_required_arguments()

    def run_with_parsed_arguments(*values: Any) -> Any:
        if any(value is None for value in values[:required]):
            return call.missing
        arguments = [
            _parse_argument(kind, value) if value is not None else None
            for kind, value in zip(kinds, values, strict=True)
        ]
        try:
            found = call.run(*arguments)
        except FunctionFailure:
            raise
        except (ValueError, OverflowError, LookupError, TypeError, RecursionError):
            return call.missing  # the function rejects a value as invalid
        return orjson.dumps(found).decode() if call.result == "dynamic" and found is not None else found

    return run_with_parsed_arguments


def _parse_argument(argument_kind: str, value: Any) -> JsonValue:
    if argument_kind == "dynamic":
        return parse_dynamic(value)
    if argument_kind == "*":
        found: list[str] = []
        for each in value:
            parsed = parse_dynamic(each) if each is not None else None
            found += [str(item) for item in parsed] if isinstance(parsed, list) else [str(parsed or "")]
        return found
    return value


def parse_dynamic(json_text: str) -> JsonValue:
    """Parse the JSON text of a dynamic value.

    Integers beyond 64 bits become reals. Beyond the range of a double, they remain exact up to 4,300 digits; an integer
    with more digits, which Python does not convert, becomes infinity.
    """
    try:
        return orjson.loads(json_text)
    except orjson.JSONDecodeError:
        return json.loads(json_text, parse_int=_parse_integer)


def _parse_integer(digits: str) -> int | float:
    real = float(digits)
    if math.isinf(real):
        return int(digits) if len(digits.lstrip("-")) <= sys.int_info.default_max_str_digits else real
    number = int(digits)
    return number if number in INTEGERS_OF_64_BITS else real


def _render_call(call: ScalarCall, node: ir.FunctionCall) -> Sql:
    kinds = call.list_argument_kinds()
    several = kinds[-1:] == ["*"]
    single = kinds[:-1] if several else kinds
    rendered = [_render_argument(call, kind, arg) for kind, arg in zip(single, node.args, strict=False)]
    rendered += ["NULL"] * (len(single) - len(rendered))
    if several:
        listed = ", ".join(f"CAST(to_json({render_expression(arg)}) AS VARCHAR)" for arg in node.args[len(single) :])
        rendered.append(f"CAST([{listed}] AS VARCHAR[])")
    sql = f"{call.sql_name}({', '.join([EXECUTION, *rendered])})"
    return f"CAST({sql} AS {_RESULTS[call.result]})" if call.result in _RESULTS else sql


_RESULTS = {"dynamic": "JSON", "guid": "UUID"}


def _render_argument(call: ScalarCall, argument_kind: str, arg: ir.Expr) -> Sql:
    known = infer_type(arg)
    if argument_kind == "digested":
        return f"kql_digest_value({render_expression(arg)})"
    if known is not None and known not in _ACCEPTED.get(argument_kind, {known}):
        raise semantic_error(
            f"{call.name}(): an argument has the type {known} instead of {argument_kind}", inner="SEM0219"
        )
    sql = render_expression(arg)
    if argument_kind in ("dynamic", "json"):
        return f"CAST(to_json({sql}) AS VARCHAR)"
    if argument_kind in ("string", "text"):
        return f"json_extract_string(to_json({sql}), '$')" if known in (None, "dynamic") else sql
    return f"CAST({sql} AS {_SQL_TYPES[argument_kind]})"
