"""Query parameters: converts KQL literals to Python values, which DuckDB binds to the placeholders in the SQL.

A request contains the value of each parameter as the text of a KQL literal of the declared type, such as
``datetime(2026-01-05)``; the value of a ``string`` parameter is the text itself.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from emulators.kusto.decimals import FRACTION_DIGITS, WHOLE_DIGITS, DecimalRangeError, is_representable_in_duckdb
from emulators.kusto.errors import QueryError, semantic_error, unsupported_error
from emulators.kusto.timespans import TimespanRangeError, parse_kusto_timespan

_WRAPPED = re.compile(r"(?P<type>[A-Za-z]\w*+)\s*+\((?P<value>.*)\)", re.DOTALL)
_INTEGER = re.compile(r"[+-]?[0-9]{1,20}|0[xX][0-9a-fA-F]{1,16}")
_REAL = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d+)?|[+-]?inf|nan", re.ASCII | re.IGNORECASE)
_BOOLS = {"true": True, "1": True, "false": False, "0": False}

_INTEGERS = frozenset({"int", "int32", "long", "int64"})
_NUMBERS = _INTEGERS | {"real", "double", "decimal"}
_SPELLINGS: Mapping[str, frozenset[str]] = {
    "bool": frozenset({"bool", "boolean"}),
    "int": _INTEGERS,
    "long": _INTEGERS,
    "real": _NUMBERS,
    "decimal": _NUMBERS,
    "datetime": frozenset({"datetime", "date"}),
    "timespan": frozenset({"timespan", "time"}),
    "guid": frozenset({"guid", "uuid", "uniqueid"}),
    "dynamic": frozenset({"dynamic"}),
}


@dataclass(frozen=True, slots=True)
class Declaration:
    """Query parameter as the query declares it.

    Attributes:
        name: name of the parameter in the query.
        type: Kusto type of the parameter, by its canonical name (``real``, not ``double``).
        slot: name of the placeholder in the SQL.
        default: default value as the text of a KQL literal; None if the parameter is required.
    """

    name: str
    type: str
    slot: str
    default: str | None


def build_placeholder_values(
    declarations: tuple[Declaration, ...], placeholder_names: frozenset[str], literals_by_name: Mapping[str, Any]
) -> dict[str, Any]:
    """Check the parameters of a request, and return the values of the placeholders in the SQL.

    Args:
        declarations: the parameters that the query declares.
        placeholder_names: names of the placeholders in the SQL; an unused parameter has no placeholder.
        literals_by_name: the parameters of the request as KQL literals, by name.

    Raises:
        QueryError: a parameter is missing or unknown, or its value does not have the declared type.
    """
    unknown = sorted(literals_by_name.keys() - {declaration.name for declaration in declarations})
    if unknown:
        raise semantic_error(f"the query declares no parameter named '{unknown[0][:100]}'", inner="SEM0219")
    bound = {}
    for declaration in declarations:
        text = literals_by_name.get(declaration.name, declaration.default)
        if text is None:
            raise semantic_error(f"no value is given for the query parameter '{declaration.name}'", inner="SEM0219")
        value = parse_parameter_value(text, declaration.type, declaration.name)
        if declaration.slot in placeholder_names:
            bound[declaration.slot] = value
    return bound


def parse_parameter_value(literal: Any, kusto_type: str, parameter_name: str) -> Any:
    """Convert the value of a query parameter to a Python value.

    Args:
        literal: text of a KQL literal, or a JSON number, boolean, object or array.
        kusto_type: canonical name of the Kusto type; for ``string`` the text itself is the value.
        parameter_name: name of the parameter, for the error message.

    Raises:
        QueryError: the value is not of the declared type.
    """
    try:
        if kusto_type == "string":
            return _require_string(literal)
        if not isinstance(literal, str):
            literal = json.dumps(literal, ensure_ascii=False)
        inner = _unwrap_typed_literal(literal, _SPELLINGS[kusto_type])
        return None if inner == "null" else _READERS[kusto_type](inner)
    except (ValueError, OverflowError, InvalidOperation, RecursionError) as error:
        raise _build_type_mismatch_error(parameter_name, kusto_type) from error
    except (TimespanRangeError, DecimalRangeError) as error:
        raise unsupported_error(f"the value of the query parameter '{parameter_name}'", str(error)) from error


def _build_type_mismatch_error(parameter_name: str, kusto_type: str) -> QueryError:
    return semantic_error(
        f"the value of the query parameter '{parameter_name}' is not of its declared type '{kusto_type}'"
    )


def _require_string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("the value must be a string")  # noqa: TRY004  one error type for all invalid values
    value.encode()  # raises a ValueError for a lone surrogate, which UTF-8 cannot encode
    return value


def _unwrap_typed_literal(text: str, type_names: frozenset[str]) -> str:
    """Return the text inside ``type(...)`` without quotes; return any other text unchanged."""
    match = _WRAPPED.fullmatch(text.strip())
    if match is None:
        return text.strip()
    if match["type"].lower() not in type_names:
        raise ValueError(f"the value must have the form {min(type_names)}(...)")
    inner = match["value"].strip()
    if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\"" and "dynamic" not in type_names:
        return inner[1:-1]
    return inner


def _build_integer_parser(bits: int) -> Callable[[str], int]:
    def parse_integer(text: str) -> int:
        if _INTEGER.fullmatch(text) is None:
            raise ValueError("the value must be an integer")
        value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise ValueError(f"the integer does not fit into {bits} bits")
        return value

    return parse_integer


def _parse_real(text: str) -> float:
    if _REAL.fullmatch(text) is None:
        raise ValueError("the value must be a number")
    return float(text)


def _parse_decimal(text: str) -> Decimal:
    if _REAL.fullmatch(text) is None:
        raise ValueError("the value must be a number")
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError("the value must be a finite number")
    if not is_representable_in_duckdb(value):
        raise DecimalRangeError(
            f"a decimal must have at most {WHOLE_DIGITS} digits before and {FRACTION_DIGITS} after the point"
        )
    return value


def _parse_bool(text: str) -> bool:
    if text.lower() not in _BOOLS:
        raise ValueError("the value must be true or false")
    return _BOOLS[text.lower()]


def _parse_datetime(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _require_json_text(text: str) -> str:
    json.loads(text, parse_constant=_reject_json_constant)
    return text


def _reject_json_constant(constant: str) -> None:
    """Reject NaN and Infinity, which Python's JSON parser accepts by default, with a ValueError."""
    raise ValueError(f"the constant {constant} is not valid JSON")


_READERS: Mapping[str, Callable[[str], Any]] = {
    "bool": _parse_bool,
    "int": _build_integer_parser(32),
    "long": _build_integer_parser(64),
    "real": _parse_real,
    "decimal": _parse_decimal,
    "datetime": _parse_datetime,
    "timespan": parse_kusto_timespan,
    "guid": uuid.UUID,
    "dynamic": _require_json_text,
}
