"""Checks of the arguments of function calls by the signatures of KQL's functions.

The file ``language.json`` has the signatures of Microsoft's language service. A call is rejected if the types of its
arguments are known and no signature accepts them, so that a query that runs locally also runs on Data Explorer. Where a
signature accepts any type and the SQL requires a string, the argument is converted.
"""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from duckdb_kql import ir, translate
from duckdb_kql.errors import KqlUnsupportedError

from emulators.kusto.errors import QueryError, semantic_error
from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.language import read_symbols
from emulators.kusto.extensions.library import replace_attribute

_NUMBERS = frozenset({"int", "long", "real", "decimal"})
_DYNAMICS = frozenset({"dynamic", "array", "bag"})
_TEMPORAL = frozenset({"datetime", "timespan"})
_ACCEPTED: Mapping[str, frozenset[str]] = {
    "integer": frozenset({"int", "long"}),
    "real_or_decimal": frozenset({"real", "decimal"}),
    "string_or_dynamic": frozenset({"string"}) | _DYNAMICS,
    "string_or_array": frozenset({"string", "dynamic", "array"}),
    "integer_or_array": frozenset({"int", "long", "dynamic", "array"}),
    "array": frozenset({"dynamic", "array"}),
    "bag": frozenset({"dynamic", "bag"}),
    "number": _NUMBERS,
    "number_or_bool": _NUMBERS | {"bool"},
    "summable": _NUMBERS | _TEMPORAL,
    "orderable": _NUMBERS | _TEMPORAL | {"string", "bool"},
    "not_real_or_bool": frozenset({"int", "long", "decimal", "string", "guid"}) | _TEMPORAL | _DYNAMICS,
    "not_dynamic": _NUMBERS | _TEMPORAL | {"string", "bool", "guid"},
    "not_bool": _NUMBERS | _TEMPORAL | {"string", "guid"} | _DYNAMICS,
}
"""Types that a parameter of each kind accepts; a kind that is missing here accepts all types."""
_PROMOTED: Mapping[str, frozenset[str]] = {
    "long": frozenset({"int", "long"}),
    "real": frozenset({"int", "long", "real"}),
    "decimal": _NUMBERS,
    "string": frozenset({"string", "dynamic"}),
    "dynamic": _DYNAMICS,
}
"""Types that a parameter of a declared type accepts; other types accept themselves only."""
_TEXTS: Mapping[str, Sequence[int]] = {
    "tolower": (0,), "toupper": (0,), "substring": (0,), "isascii": (0,), "isutf8": (0,), "url_decode": (0,),
    "url_encode": (0,), "url_encode_component": (0,), "regex_quote": (0,), "indexof": (0, 1), "indexof_regex": (0, 1),
    "unicode_codepoints_from_string": (0,), "trim": (1,), "trim_start": (1,), "trim_end": (1,), "string_size": (0,),
    "strlen": (0,), "split": (0,), "reverse": (0,), "strcmp": (0, 1), "replace_string": (0,), "countof": (0,),
    "punycode_from_string": (0,), "extract": (2,), "extract_all": (2,), "base64_encode_tostring": (0,),
    "gzip_compress_to_base64_string": (0,), "zlib_compress_to_base64_string": (0,),
}  # fmt: skip
"""Positions of the arguments that the SQL of a function requires as strings, while KQL accepts any type."""
_COMPARISONS = frozenset({"==", "!=", "<", "<=", ">", ">=", "=~", "!~", "and", "or"})
_CONVERTED = _NUMBERS | _TEMPORAL | {"bool", "guid"}


def _find_signatures(function: str) -> Sequence[Mapping[str, Any]]:
    """Return the signatures of a function; none if the language service does not know the function."""
    symbol = read_symbols("functions").get(function)
    return () if symbol is None else symbol["signatures"]


def infer_static_type(expr: ir.Expr) -> str | None:
    """Return the type of an expression, with ``array`` and ``bag`` for dynamics of known form; None if unknown."""
    if isinstance(expr, ir.LetRef):
        return infer_static_type(expr.value)
    if isinstance(expr, ir.BinaryOp) and expr.op in _COMPARISONS:
        return "bool"
    if isinstance(expr, ir.Literal) and expr.kind == "dynamic":
        return {"[": "array", "{": "bag"}.get(str(expr.value).lstrip()[:1], "dynamic")
    if isinstance(expr, ir.FunctionCall):
        returned = {each["returns"] for each in _find_signatures(expr.name)}
        if len(returned) == 1 and not (found := returned.pop()).startswith("="):
            return None if found == "unknown" else found
    return infer_type(expr)


def _find_call_error(call: ir.FunctionCall) -> QueryError | None:
    """Return the error of a call whose arguments no signature of the function accepts; else None."""
    signatures = _find_signatures(call.name)
    if not signatures or any(isinstance(arg, ir.Wildcard) for arg in call.args):
        return None
    types = [infer_static_type(arg) for arg in call.args]
    if any(_accepts(signature["parameters"], types) for signature in signatures):
        return None
    named = ", ".join(each or "unknown" for each in types)
    return semantic_error(
        f"{call.name}(): the function does not accept arguments of the types ({named})",
        inner="SEM0219",
        subject=f"{call.name}()",
    )


def _accepts(parameters: Sequence[Mapping[str, Any]], types: Sequence[str | None]) -> bool:
    """Return whether parameters accept arguments of these types; True if this is unclear."""
    if any(each.get("most", 1) > 1 for each in parameters[:-1]):
        known = [kind for kind in types if kind not in (None, "null")]
        return all(any(_accepts_type(each["types"], str(kind)) for each in parameters) for kind in known)
    for index, kind in enumerate(types):
        if index >= len(parameters) and (not parameters or parameters[-1].get("most", 1) == 1):
            return False
        parameter = parameters[min(index, len(parameters) - 1)]
        if kind is not None and kind != "null" and not _accepts_type(parameter["types"], kind):
            return False
    return True


def _accepts_type(declared: str | Sequence[str], kind: str) -> bool:
    if isinstance(declared, str):
        return declared not in _ACCEPTED or kind in _ACCEPTED[declared]
    return any(kind in _PROMOTED.get(each, {each}) for each in declared)


def _convert_texts(call: ir.FunctionCall) -> ir.FunctionCall:
    positions = _TEXTS.get(call.name, ())
    if not any(index < len(call.args) and infer_static_type(call.args[index]) in _CONVERTED for index in positions):
        return call
    args = tuple(
        ir.FunctionCall("tostring", (arg,)) if index in positions and infer_static_type(arg) in _CONVERTED else arg
        for index, arg in enumerate(call.args)
    )
    return dataclasses.replace(call, args=args)


def _patch_render_expr(default: Callable[[ir.Expr], str]) -> Callable[[ir.Expr], str]:
    def render_expr(node: ir.Expr) -> str:
        if not isinstance(node, ir.FunctionCall):
            return default(node)
        error = _find_call_error(node)
        try:
            rendered = default(_convert_texts(node))
        except KqlUnsupportedError:
            # Other arguments would not help.
            raise
        except Exception:
            if error is not None:
                raise error from None
            raise
        if error is not None:
            raise error
        return rendered

    return render_expr


macros: tuple[str, ...] = ()


def install() -> None:
    """Make the translator library check the arguments of function calls."""
    replace_attribute(translate, "render_expr", _patch_render_expr)
