"""Query parameters off the wire: KQL literals become Python values, which DuckDB binds and nobody pastes.

Kusto's request properties carry each value as the text of a KQL literal of the declared type. A ``string`` parameter is
the exception: its value is the text itself.
"""

import json
import re
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from emulators.kusto.decimals import FRACTION_DIGITS, WHOLE_DIGITS, fits
from emulators.kusto.errors import QueryError, semantic_error, unsupported
from emulators.kusto.timespans import TimespanRangeError, read_timespan

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
    """One declared query parameter.

    Attributes:
        name: as the query declares it.
        type: the canonical Kusto scalar type.
        slot: the placeholder in the SQL text.
        default: the default as wire text, None where the query declares none.
    """

    name: str
    type: str
    slot: str
    default: str | None


def bind(declarations: tuple[Declaration, ...], slots: frozenset[str], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of the SQL's placeholders.

    Args:
        declarations: what the query declares.
        slots: the placeholders that the SQL mentions; DuckDB takes no others.
        values: the request's parameters, by name.

    Raises:
        QueryError: a value is missing, unknown or not of its declared type.
    """
    unknown = sorted(values.keys() - {declaration.name for declaration in declarations})
    if unknown:
        raise semantic_error(f"the query declares no parameter named '{unknown[0][:100]}'", inner="SEM0219")
    bound = {}
    for declaration in declarations:
        given = values.get(declaration.name, declaration.default)
        if given is None:
            raise semantic_error(f"no value is given for the query parameter '{declaration.name}'", inner="SEM0219")
        value = read(given, declaration.type, declaration.name)
        if declaration.slot in slots:
            bound[declaration.slot] = value
    return bound


def read(value: Any, kind: str, name: str) -> Any:
    """Return the Python value of a wire value.

    Args:
        value: text of a KQL literal, or a JSON number, boolean, object or array.
        kind: the canonical Kusto type; ``string`` takes the text as it stands.
        name: of the parameter, for the error.

    Raises:
        QueryError: the value is not of that type.
    """
    try:
        if kind == "string":
            return _string(value)
        if not isinstance(value, str):
            value = json.dumps(value, ensure_ascii=False)
        inner = _unwrap(value, _SPELLINGS[kind])
        return None if inner == "null" else _READERS[kind](inner)
    except (ValueError, OverflowError, InvalidOperation, RecursionError) as error:
        raise _mismatch(name, kind) from error
    except TimespanRangeError as error:
        raise unsupported(f"the value of the query parameter '{name}'", str(error)) from error


def _mismatch(name: str, kind: str) -> QueryError:
    return semantic_error(f"the value of the query parameter '{name}' is not of its declared type '{kind}'")


def _string(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("a text is expected")  # noqa: TRY004  one error for every value that does not fit
    value.encode()  # a lone surrogate has no UTF-8 form; the error is a ValueError
    return value


def _unwrap(text: str, spellings: frozenset[str]) -> str:
    """Return the inside of ``type(...)``, or the text where it is not wrapped; quotes inside the wrapper go."""
    match = _WRAPPED.fullmatch(text.strip())
    if match is None:
        return text.strip()
    if match["type"].lower() not in spellings:
        raise ValueError("a literal of another type")
    inner = match["value"].strip()
    if len(inner) > 1 and inner[0] == inner[-1] and inner[0] in "'\"" and "dynamic" not in spellings:
        return inner[1:-1]
    return inner


def _integer(bits: int) -> Callable[[str], int]:
    def convert(text: str) -> int:
        if _INTEGER.fullmatch(text) is None:
            raise ValueError("an integer is expected")
        value = int(text, 16 if text[:2] in ("0x", "0X") else 10)
        if not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
            raise ValueError("out of range")
        return value

    return convert


def _real(text: str) -> float:
    if _REAL.fullmatch(text) is None:
        raise ValueError("a number is expected")
    return float(text)


def _decimal(text: str) -> Decimal:
    if _REAL.fullmatch(text) is None:
        raise ValueError("a number is expected")
    value = Decimal(text)
    if not value.is_finite():
        raise ValueError("a finite number is expected")
    if not fits(value):
        digits = f"a decimal has at most {WHOLE_DIGITS} digits before the point and {FRACTION_DIGITS} behind it"
        raise unsupported("this decimal", digits)
    return value


def _bool(text: str) -> bool:
    if text.lower() not in _BOOLS:
        raise ValueError("true or false is expected")
    return _BOOLS[text.lower()]


def _datetime(text: str) -> datetime:
    value = datetime.fromisoformat(text)
    return value if value.tzinfo is None else value.astimezone(UTC).replace(tzinfo=None)


def _dynamic(text: str) -> str:
    json.loads(text, parse_constant=_refuse)
    return text


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


_READERS: Mapping[str, Callable[[str], Any]] = {
    "bool": _bool,
    "int": _integer(32),
    "long": _integer(64),
    "real": _real,
    "decimal": _decimal,
    "datetime": _datetime,
    "timespan": read_timespan,
    "guid": uuid.UUID,
    "dynamic": _dynamic,
}
