"""Values of Kusto's scalar types: checked, and written as the literals that query parameters travel as.

A literal is sent beside the query and bound by the engine; it never becomes part of the query's text.
"""

import json
import math
import re
import uuid
from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Any

import isodate

from shared.catalog.models import ParameterType
from shared.text_formats import strict_json
from shared.timestamps import parse_rfc3339, rfc3339

MAX_TEXT = 65_536
DECIMAL_DIGITS = 34
MAX_TIMESPAN = timedelta(days=10_675_199)
MAX_DURATION = 64
"""Characters of a duration; no sane one is longer."""
_AMOUNT = "[0-9]+(?:[.,][0-9]+)?"
_DAYS = f"(?:{_AMOUNT}W(?:{_AMOUNT}D)?|{_AMOUNT}D)"
_CLOCK = f"T(?:{_AMOUNT}H(?:{_AMOUNT}M)?(?:{_AMOUNT}S)?|{_AMOUNT}M(?:{_AMOUNT}S)?|{_AMOUNT}S)"
DURATION_PATTERN = f"P(?:{_DAYS}(?:{_CLOCK})?|{_CLOCK})"
"""What :func:`parse_duration` reads, signs aside, as a pattern that JSON Schema takes, too."""
_DURATION = re.compile(f"[+-]?{DURATION_PATTERN}")
_CALENDAR = re.compile(r"[+-]?P[0-9.,WD]*[YM][0-9.,WDYMTHS]*")
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_KUSTO_CLOCK = re.compile(r"(-)?(?:(\d{1,8})\.)?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?")
_KUSTO_UNIT = re.compile(r"(-)?([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*(d|h|m|s|ms|microsecond|tick)s?")
_UNIT_MICROSECONDS: dict[str, Decimal | int] = {
    "d": 86_400_000_000,
    "h": 3_600_000_000,
    "m": 60_000_000,
    "s": 1_000_000,
    "ms": 1_000,
    "microsecond": 1,
    "tick": Decimal("0.1"),
}


def to_literal(kind: ParameterType, value: Any) -> str:
    """Return a value as the literal of its Kusto type; strings stand bare. Null fits every type but string.

    Args:
        kind: the declared type.
        value: text as it comes in a query string, or the JSON value as it comes in a body.

    Raises:
        ValueError: the value is not of the type; the message is the rule.
    """
    if value is None and kind is not ParameterType.STRING:
        return f"{kind}(null)"
    return _LITERALS[kind](value)


def parse_timespan(text: str) -> timedelta:
    """Return the time that ISO 8601 (``PT5M``) or Kusto text (``5m``, ``1.02:03:04``) names.

    Raises:
        ValueError: it is neither, has years or months, which have no fixed length, or is beyond a timespan's range.
    """
    try:
        return _parse_timespan(text)
    except OverflowError:
        raise ValueError("a time of less than 10675199 days is expected") from None


def _parse_timespan(text: str) -> timedelta:
    if clock := _KUSTO_CLOCK.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = clock.groups()
        microseconds = int((fraction or "0").ljust(6, "0")[:6])
        span = timedelta(int(days or 0), int(seconds or 0), microseconds, 0, int(minutes), int(hours))
        return -span if sign else span
    if unit := _KUSTO_UNIT.fullmatch(text):
        exact = Decimal(unit[2]) * _UNIT_MICROSECONDS[unit[3]]
        if exact != int(exact):
            raise ValueError("a time of whole microseconds is expected")
        return timedelta(microseconds=-int(exact) if unit[1] else int(exact))
    return parse_duration(text)


def parse_duration(text: str) -> timedelta:
    """Return an ISO 8601 duration of weeks, days, hours, minutes and seconds.

    Raises:
        ValueError: it is no such duration.
    """
    rule = "an ISO 8601 duration of weeks, days, hours, minutes or seconds is expected, such as PT15M or P7D"
    if len(text) <= MAX_DURATION and _CALENDAR.fullmatch(text):
        raise ValueError("years and months have no fixed length; use weeks, days, hours, minutes or seconds")
    if len(text) > MAX_DURATION or not _DURATION.fullmatch(text):
        raise ValueError(rule)
    try:
        duration: timedelta = isodate.parse_duration(text)
    except (isodate.ISO8601Error, ValueError, OverflowError, ArithmeticError):
        raise ValueError(rule) from None
    return duration


def _bool(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool | str) else ""
    if text not in ("true", "false"):
        raise ValueError("true or false is expected")
    return f"bool({text})"


def _integer(bits: int) -> Callable[[Any], str]:
    name = "int" if bits == 32 else "long"  # noqa: PLR2004  Kusto's int has 32 bits
    limit = 2 ** (bits - 1)

    def write(value: Any) -> str:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if not _WHOLE.fullmatch(text) or not -limit <= int(text) < limit:
            raise ValueError(f"a whole number of {bits} bits is expected")
        return f"{name}({int(text)})"

    return write


def _number_text(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValueError("a number is expected")
    return text


def _real(value: Any) -> str:
    number = float(_number_text(value))
    if math.isinf(number):
        raise ValueError("a number in the range of a double is expected")
    return f"real({number!r})"


def _decimal(value: Any) -> str:
    number = Decimal(_number_text(value))
    written = f"{number:f}"
    if sum(character.isdigit() for character in written) > DECIMAL_DIGITS:
        raise ValueError(f"a decimal of at most {DECIMAL_DIGITS} digits is expected")
    return f"decimal({written})"


def _string(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"text of at most {MAX_TEXT} characters is expected")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("text without lone surrogates is expected") from None
    return value


def _datetime(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("an RFC 3339 date-time is expected")  # noqa: TRY004  callers catch one error
    return f"datetime({rfc3339(parse_rfc3339(value))})"


def _timespan(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("an ISO 8601 duration or Kusto time is expected")  # noqa: TRY004  callers catch one error
    span = parse_timespan(value)
    if abs(span) >= MAX_TIMESPAN:
        raise ValueError("a time of less than 10675199 days is expected")
    sign, span = ("-", -span) if span < timedelta(0) else ("", span)
    minutes, seconds = divmod(span.seconds, 60)
    return f"time({sign}{span.days}.{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{span.microseconds:06d})"


def _guid(value: Any) -> str:
    try:
        return f"guid({uuid.UUID(value)})"
    except (ValueError, TypeError, AttributeError):
        raise ValueError("a GUID is expected") from None


def _dynamic(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = strict_json.parse_json(value.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise ValueError(f"JSON text is expected: {error}") from None
    return f"dynamic({json.dumps(value)})"


_LITERALS: dict[ParameterType, Callable[[Any], str]] = {
    ParameterType.BOOL: _bool,
    ParameterType.INT: _integer(32),
    ParameterType.LONG: _integer(64),
    ParameterType.REAL: _real,
    ParameterType.DECIMAL: _decimal,
    ParameterType.STRING: _string,
    ParameterType.DATETIME: _datetime,
    ParameterType.TIMESPAN: _timespan,
    ParameterType.GUID: _guid,
    ParameterType.DYNAMIC: _dynamic,
}
