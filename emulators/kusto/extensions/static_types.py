"""Types of expressions and parameters, inferred from the signatures of KQL functions.

The file ``language.json`` has the signatures of Microsoft's language service. The type of an expression is ``array`` or
``bag`` if a dynamic value is known to have this form, and None if the type is unknown before DuckDB binds the SQL.
The module ``type_checks`` compares these types with the parameters of calls.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from duckdb_kql import ir

from emulators.kusto.extensions.known_types import infer_type
from emulators.kusto.extensions.language import FunctionKind, read_kql_function_descriptions
from emulators.kusto.extensions.sql import KustoType

NUMBERS = frozenset({"int", "long", "real", "decimal"})
DYNAMICS = frozenset({"dynamic", "array", "bag"})
TEMPORAL = frozenset({"datetime", "timespan"})
_WIDTH = ("int", "long", "real", "decimal")
_ACCEPTED: Mapping[str, frozenset[str]] = {
    "integer": frozenset({"int", "long"}),
    "real_or_decimal": frozenset({"real", "decimal"}),
    "string_or_dynamic": frozenset({"string"}) | DYNAMICS,
    "string_or_array": frozenset({"string", "dynamic", "array"}),
    "integer_or_array": frozenset({"int", "long", "dynamic", "array"}),
    "array": frozenset({"dynamic", "array"}),
    "bag": frozenset({"dynamic", "bag"}),
    "number": NUMBERS,
    "number_or_bool": NUMBERS | {"bool"},
    "summable": NUMBERS | TEMPORAL,
    "orderable": NUMBERS | TEMPORAL | {"string", "bool"},
    "not_real_or_bool": frozenset({"int", "long", "decimal", "string", "guid"}) | TEMPORAL | DYNAMICS,
    "not_dynamic": NUMBERS | TEMPORAL | {"string", "bool", "guid"},
    "not_bool": NUMBERS | TEMPORAL | {"string", "guid"} | DYNAMICS,
}
"""Types that a parameter of each kind accepts; a kind that is missing here accepts all types."""
_PROMOTED: Mapping[str, frozenset[str]] = {
    "int": frozenset({"int", "long"}),
    "long": frozenset({"int", "long"}),
    "real": frozenset({"int", "long", "real"}),
    "decimal": NUMBERS,
    "string": frozenset({"string", "dynamic"}),
    "dynamic": DYNAMICS,
}
"""Types that a parameter of a declared type accepts; other types accept themselves only."""
_ARITHMETIC = frozenset({"+", "-", "*", "/", "%"})
_CUSTOM = {
    "array": ("pack_array", "array_concat", "array_iff", "set_difference", "set_intersect", "set_union"),
    "bag": ("bag_pack", "bag_merge", "bag_pack_columns", "bag_remove_keys", "bag_set_key", "pack_all"),
}
_CUSTOM_RESULTS = {name: kind for kind, names in _CUSTOM.items() for name in names}
"""Types of results for which the language service has a rule of its own."""

type Signature = Mapping[str, Any]
type SignatureParameters = Sequence[Mapping[str, Any]]
type ArgumentTypes = Sequence[KustoType | None]
"""Kusto type of each argument of a call; None for an unknown type."""


def find_signatures(function_kind: FunctionKind, function_name: str) -> Sequence[Signature]:
    """Return the signatures of a function; empty if the language service does not know the function.

    Args:
        function_kind: ``functions`` or ``aggregates``.
        function_name: name of the function.
    """
    symbol = read_kql_function_descriptions(function_kind).get(function_name)
    return () if symbol is None else symbol["signatures"]


@dataclasses.dataclass(frozen=True)
class DynamicLiteral(ir.FunctionCall):
    """Literal ``dynamic(...)`` with values that JSON lacks, such as datetimes.

    The SQL therefore assembles the literal's JSON when the query runs, instead of containing the JSON as a constant.

    Attributes:
        form: ``array`` or ``bag``.
    """

    form: str = "array"


def infer_static_type(expr: ir.Expr) -> KustoType | None:
    """Return the Kusto type of an expression; None if the type is unknown.

    Unlike `infer_type`, this function also uses the signatures of functions and the types of operands. The type is
    ``array`` or ``bag`` for a dynamic value that is known to be an array or a JSON object.
    """
    found: str | None = None
    match expr:
        case ir.LetRef():
            found = infer_static_type(expr.value)
        case ir.InList() | ir.Between() | ir.HasList():
            found = "bool"
        case ir.BinaryOp():
            found = _infer_arithmetic_type(expr) if expr.op in _ARITHMETIC else "bool"
        case ir.UnaryOp(op="-" | "+"):
            found = infer_static_type(expr.operand)
        case ir.Literal(kind="dynamic"):
            found = {"[": "array", "{": "bag"}.get(str(expr.value).lstrip()[:1])
        case DynamicLiteral():
            found = expr.form
        case ir.FunctionCall():
            found = _infer_call_type(expr)
    return found or infer_type(expr)


def _infer_arithmetic_type(expr: ir.BinaryOp) -> KustoType | None:
    left, right = infer_static_type(expr.left), infer_static_type(expr.right)
    if left in NUMBERS and right in NUMBERS:
        return "long" if left == right == "int" else _find_widest_number_type((left, right))
    if left in TEMPORAL or right in TEMPORAL:
        return _infer_temporal_arithmetic_type(expr.op, left, right)
    return None


def _infer_temporal_arithmetic_type(
    operator: str, left_type: KustoType | None, right_type: KustoType | None
) -> KustoType | None:
    if left_type is None or right_type is None:
        return None
    if left_type == right_type:
        return {"-": "timespan", "/": "real"}.get(operator, left_type)
    return "datetime" if "datetime" in (left_type, right_type) else "timespan"


def _find_widest_number_type(types: ArgumentTypes) -> KustoType | None:
    return max((str(each) for each in types), key=_WIDTH.index) if all(each in NUMBERS for each in types) else None


def _infer_call_type(call: ir.FunctionCall) -> KustoType | None:
    types = [infer_static_type(arg) for arg in call.args]
    signatures = find_signatures("functions", call.name)
    results = [
        _find_result_type(call.name, each, types)
        for each in signatures
        if accepts_argument_types(each["parameters"], types)
    ]
    if not results or (None in types and len(set(results)) > 1):
        return None
    return results[0]


def _find_result_type(function_name: str, signature: Signature, types: ArgumentTypes) -> KustoType | None:
    returned = str(signature["returns"])
    if not returned.startswith("="):
        return None if returned == "unknown" else returned
    if returned == "=custom":
        return _CUSTOM_RESULTS.get(function_name)
    if returned == "=parameter0_array":
        return "array"
    if returned == "=parameter0" and types:
        return types[0]
    if returned == "=common_not_dynamic":
        return _find_common_type([*types[1:-1:2], types[-1]])
    return _find_common_type(types) if returned in ("=widest", "=common") else None


def _find_common_type(types: ArgumentTypes) -> KustoType | None:
    return types[-1] if len(set(types)) == 1 else _find_widest_number_type(types)


def accepts_argument_types(parameters: SignatureParameters, types: ArgumentTypes) -> bool:
    """Return whether a signature accepts arguments of these types; every parameter accepts an unknown type."""
    if len(types) < sum(each.get("least", 1) for each in parameters):
        return False
    return any(_accepts_all_types(each, types) for each in iterate_possible_parameter_lists(parameters, len(types)))


def iterate_possible_parameter_lists(
    parameters: SignatureParameters, argument_count: int
) -> Iterator[SignatureParameters]:
    """Yield each list of parameters, one for each argument, that matches a call with ``argument_count`` arguments.

    Parameters of a signature can be repeatable. The repeatable parameters form a group that is repeated as a whole, for
    instance the pair of condition and value in ``case``. The group is at the start or at the end of the signature.
    """
    group = [each for each in parameters if each.get("most", 1) > 1]
    if not group or parameters[0] is not group[0]:
        listed = [*parameters, *(group * (argument_count - len(parameters)))]
        if argument_count <= len(listed):
            yield listed[:argument_count]
        return
    rest = parameters[len(group) :]
    for extra in range(sum(each.get("least", 1) for each in rest), len(rest) + 1):
        if (argument_count - extra) % len(group) == 0:
            yield [*(group * ((argument_count - extra) // len(group))), *rest[:extra]]


def _accepts_all_types(parameters: SignatureParameters, types: ArgumentTypes) -> bool:
    return all(
        kind is None or kind == "null" or _accepts_type(parameter["types"], kind)
        for parameter, kind in zip(parameters, types, strict=True)
    )


def list_conflicting_types(parameters: SignatureParameters, types: ArgumentTypes) -> ArgumentTypes:
    """Return the types of arguments that must have one common type but do not; empty if the types are compatible.

    All types of numbers are compatible. A dynamic value is compatible with every type if its parameter also accepts
    dynamic values.
    """
    common = [
        ("dynamic" if kind in DYNAMICS else kind, parameter["types"])
        for parameter, kind in zip(parameters, types, strict=True)
        if str(parameter["types"]).startswith("common_") and kind not in (None, "null")
    ]
    kinds = {kind for kind, declared in common if kind != "dynamic" or declared != "common_scalar_or_dynamic"}
    return sorted(map(str, kinds)) if len(kinds) > 1 and not kinds <= NUMBERS else []


def _accepts_type(declared_types: str | Sequence[str], argument_type: KustoType) -> bool:
    if isinstance(declared_types, str):
        return declared_types not in _ACCEPTED or argument_type in _ACCEPTED[declared_types]
    return any(argument_type in _PROMOTED.get(each, {each}) for each in declared_types)
