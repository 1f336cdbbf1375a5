"""Validation of query parameters, and their conversion to Kusto literals.

The engine receives literals separately from the query and binds them; they never become part of the query text.
"""

import json
import math
import re
import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from shared.catalog.durations import parse_duration
from shared.catalog.models import ParameterType, QueryParameter
from shared.errors import MAX_LISTED, FieldError, build_invalid_fields_error
from shared.text_formats import strict_json
from shared.timestamps import format_rfc3339, parse_rfc3339
from shared.validation.names import MAX_HINTS, find_nearest_name

MAX_TEXT = 65_536
DECIMAL_DIGITS = 34
MAX_TIMESPAN = timedelta(days=10_675_199)
_HYPHENATED_GUID = "[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}"
_GUID = re.compile(rf"{_HYPHENATED_GUID}|\{{{_HYPHENATED_GUID}\}}|[0-9A-Fa-f]{{32}}")
_WHOLE = re.compile(r"[+-]?[0-9]{1,20}")
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}(\.[0-9]{0,40})?|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")
_KUSTO_CLOCK = re.compile(r"(-)?(?:(\d{1,8})\.)?(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d{1,7}))?)?")
_KUSTO_UNIT = re.compile(r"(-)?([0-9]{1,12}(?:\.[0-9]{1,9})?)\s*([a-z]{1,12})")
_UNIT_MICROSECONDS: dict[str, Decimal | int] = {
    **dict.fromkeys(("d", "day", "days"), 86_400_000_000),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), 3_600_000_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000_000),
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1_000_000),
    **dict.fromkeys(("ms", "milli", "millis", "millisecond", "milliseconds"), 1_000),
    **dict.fromkeys(("micro", "micros", "microsecond", "microseconds"), 1),
    **dict.fromkeys(("tick", "ticks"), Decimal("0.1")),
}
_TIMESPAN_RULE = "must be an ISO 8601 duration such as PT15M, or a Kusto timespan such as 15m or 1.02:03:04"
_WHOLE_MICROSECONDS_RULE = "must be a duration of whole microseconds"


def to_kql_literal(kind: ParameterType, value: Any) -> str:
    """Convert the value of a query parameter to the text that is sent to the query engine.

    The text is a Kusto literal, except that a string is sent without quotes. Null is valid for all types except string.

    Args:
        kind: declared type of the parameter.
        value: text of a query string, or a JSON value of a body.

    Raises:
        ValueError: if the value does not have the type; the message states the rule.
    """
    if value is None and kind is not ParameterType.STRING:
        return f"{kind}(null)"
    return _LITERALS[kind](value)


def bind_arguments_as_literals(
    parameters: Sequence[QueryParameter],
    arguments: Mapping[str, Any],
    format_field_name: Callable[[str], str] = "p.{}".format,
    repeated_names: Collection[str] = (),
    *,
    suggests_names: bool = True,
) -> dict[str, str]:
    """Convert the arguments of a call to Kusto literals; return one for each declared parameter of the query, by name.

    A missing or null argument selects the default of its parameter.

    Args:
        parameters: declared parameters of the query.
        arguments: values by parameter name, as text or as JSON values.
        format_field_name: converts a parameter's name to the field name in error messages.
        repeated_names: names of the arguments that the caller sent several times.
        suggests_names: whether the errors suggest similar names of declared parameters.

    Raises:
        WorkspaceError: INVALID with the first :data:`shared.errors.MAX_LISTED` unknown, missing, repeated or invalid
            arguments.
    """
    declared = {parameter.name: parameter for parameter in parameters}
    unknown = [name for name in arguments if name not in declared]
    max_hints = MAX_HINTS if suggests_names else 0
    errors = [
        FieldError(
            format_field_name(name),
            _describe_unknown_parameter(name, declared if index < max_hints else (), format_field_name),
        )
        for index, name in enumerate(unknown[:MAX_LISTED])
    ]
    bound: dict[str, str] = {}
    for name, parameter in declared.items():
        if name in repeated_names:
            errors.append(FieldError(format_field_name(name), "is repeated; send it once"))
            continue
        value = arguments.get(name)
        if value is None and parameter.is_required:
            errors.append(FieldError(format_field_name(name), f"is required; its type is {parameter.type}"))
            continue
        try:
            bound[name] = to_kql_literal(parameter.type, parameter.default if value is None else value)
        except ValueError as error:
            errors.append(
                FieldError(format_field_name(name), f"{error}; the type of the parameter is {parameter.type}")
            )
    if errors:
        raise build_invalid_fields_error(errors, total_count=len(errors) + max(0, len(unknown) - MAX_LISTED))
    return bound


def _describe_unknown_parameter(
    name: str, declared_names: Iterable[str], format_field_name: Callable[[str], str]
) -> str:
    nearest = find_nearest_name(name, declared_names)
    hint = "" if nearest is None else f"; did you mean `{format_field_name(nearest)}`?"
    return f"is not a parameter of this query{hint}"


def parse_timespan(text: str) -> timedelta:
    """Parse a duration in ISO 8601 (``PT5M``) or as a Kusto timespan (``5m``, ``1.02:03:04``).

    Raises:
        ValueError: if the text has neither form, is out of range, or has years or months, whose length is not fixed.
    """
    try:
        return _parse_timespan_of_any_length(text)
    except OverflowError:
        raise ValueError("must be a duration of less than 10675199 days") from None


def _parse_timespan_of_any_length(text: str) -> timedelta:
    if clock := _KUSTO_CLOCK.fullmatch(text):
        sign, days, hours, minutes, seconds, fraction = clock.groups()
        if (fraction or "")[6:].strip("0"):
            raise ValueError(_WHOLE_MICROSECONDS_RULE)
        microseconds = int((fraction or "0").ljust(6, "0")[:6])
        span = timedelta(int(days or 0), int(seconds or 0), microseconds, 0, int(minutes), int(hours))
        return -span if sign else span
    if (unit := _KUSTO_UNIT.fullmatch(text)) and unit[3] in _UNIT_MICROSECONDS:
        exact = Decimal(unit[2]) * _UNIT_MICROSECONDS[unit[3]]
        if exact != int(exact):
            raise ValueError(_WHOLE_MICROSECONDS_RULE)
        return timedelta(microseconds=-int(exact) if unit[1] else int(exact))
    if "P" not in text:
        raise ValueError(_TIMESPAN_RULE)
    return parse_duration(text)


def _to_bool_literal(value: Any) -> str:
    text = str(value).lower() if isinstance(value, bool | str) else ""
    if text not in ("true", "false"):
        raise ValueError("must be true or false")
    return f"bool({text})"


def _build_integer_literal_converter(bits: int) -> Callable[[Any], str]:
    name = "int" if bits == 32 else "long"  # noqa: PLR2004  Kusto's int has 32 bits
    limit = 2 ** (bits - 1)

    def to_integer_literal(value: Any) -> str:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
        if not _WHOLE.fullmatch(text) or not -limit <= int(text) < limit:
            raise ValueError(f"must be a {bits}-bit whole number")
        return f"{name}({int(text)})"

    return to_integer_literal


def _to_number_text(value: Any) -> str:
    text = repr(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not _NUMBER.fullmatch(text):
        raise ValueError("must be a number")
    return text


def _to_real_literal(value: Any) -> str:
    number = float(_to_number_text(value))
    if math.isinf(number):
        raise ValueError("must be a number in the range of a double")
    return f"real({number!r})"


def _to_decimal_literal(value: Any) -> str:
    number = Decimal(_to_number_text(value))
    written = f"{number:f}"
    if sum(character.isdigit() for character in written) > DECIMAL_DIGITS:
        raise ValueError(f"must be a decimal of at most {DECIMAL_DIGITS} digits")
    return f"decimal({written})"


def _to_string_literal(value: Any) -> str:
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ValueError(f"must be text of at most {MAX_TEXT} characters")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("must be text without unpaired surrogates") from None
    return value


def _to_datetime_literal(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("must be an RFC 3339 date-time")  # noqa: TRY004  callers catch one error
    return f"datetime({format_rfc3339(parse_rfc3339(value))})"


def _to_timespan_literal(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(_TIMESPAN_RULE)  # noqa: TRY004  callers catch one error
    span = parse_timespan(value)
    if abs(span) >= MAX_TIMESPAN:
        raise ValueError("must be a duration of less than 10675199 days")
    sign, span = ("-", -span) if span < timedelta(0) else ("", span)
    minutes, seconds = divmod(span.seconds, 60)
    return f"time({sign}{span.days}.{minutes // 60:02d}:{minutes % 60:02d}:{seconds:02d}.{span.microseconds:06d})"


def _to_guid_literal(value: Any) -> str:
    if not isinstance(value, str) or not _GUID.fullmatch(value):
        raise ValueError("must be a GUID such as 74be27de-1e4e-49d9-b579-fe0b331d3642")
    return f"guid({uuid.UUID(value)})"


def _to_dynamic_literal(value: Any) -> str:
    if isinstance(value, str):
        try:
            value = strict_json.parse_json(value.encode("utf-8", "surrogatepass"))
        except ValueError as error:
            raise ValueError(f"must be JSON: {error}") from None
    return f"dynamic({json.dumps(value)})"


_LITERALS: dict[ParameterType, Callable[[Any], str]] = {
    ParameterType.BOOL: _to_bool_literal,
    ParameterType.INT: _build_integer_literal_converter(32),
    ParameterType.LONG: _build_integer_literal_converter(64),
    ParameterType.REAL: _to_real_literal,
    ParameterType.DECIMAL: _to_decimal_literal,
    ParameterType.STRING: _to_string_literal,
    ParameterType.DATETIME: _to_datetime_literal,
    ParameterType.TIMESPAN: _to_timespan_literal,
    ParameterType.GUID: _to_guid_literal,
    ParameterType.DYNAMIC: _to_dynamic_literal,
}
