"""KQL functions over datetimes and timespans, and ``bin``."""

import dataclasses
import re
from collections.abc import Callable

from duckdb_kql import ir, lower, timespans, translate
from duckdb_kql.errors import KqlUnsupportedError
from duckdb_kql.translate.functions import SCALAR_FUNCTIONS

from emulators.kusto.extensions.library import replace_attribute, writer
from emulators.kusto.extensions.registry import (
    add_custom_function,
    add_function_that_reuses_arguments,
    add_template_function,
    read_literal_value,
)
from emulators.kusto.extensions.sql import KustoType, Sql, quote_text, render_expression
from emulators.kusto.extensions.type_checks import render_error

MICROSECONDS_BEFORE_1970 = 62_135_596_800_000_000
"""Microseconds from 0001-01-01 to 1970-01-01; the bins of datetimes in Kusto start at 0001-01-01, a Monday."""

SUPPORTED: tuple[str, ...] = (
    "bin and floor (parameters, columns and expressions as size)",
    "bin_at",
    "unixtime_seconds_todatetime",
    "unixtime_milliseconds_todatetime",
    "unixtime_microseconds_todatetime",
    "unixtime_nanoseconds_todatetime",
    "datetime_utc_to_local",
    "datetime_local_to_utc",
    "format_timespan",
    "make_datetime",
    "make_timespan",
    "datetime_diff (weeks from Sunday)",
    "datetime_part",
)

_UNIX = {"seconds": "{0} * 1000000", "milliseconds": "{0} * 1000", "microseconds": "{0}", "nanoseconds": "{0} // 1000"}
_INTEGER_PARTS = {
    "hourofday": "hour", "dayofmonth": "day", "dayofyear": "dayofyear", "monthofyear": "month", "getmonth": "month",
    "getyear": "year", "week_of_year": "weekofyear",
}  # fmt: skip

_RFC_FORMATS = tuple(
    f"{date} {time}{zone}"
    for date in ("%a, %-d %b %y", "%-d %b %y", "%A, %-d-%b-%y", "%-d-%b-%y")
    for time in ("%H:%M:%S", "%H:%M")
    for zone in (" GMT", "")
)
"""Formats of RFC 822 and RFC 850 with two digits of the year, such as ``Sat, 8 Nov 14 15:05:02 GMT``."""


def _add_rfc_date_formats(todatetime_sql: Sql) -> Sql:
    """Add the formats of RFC 822 and RFC 850 to the SQL of ``todatetime``.

    The added formats come first, because a format of the library would read a year such as ``14`` as the year 14.
    """
    return todatetime_sql.replace("[", f"[{', '.join(map(quote_text, _RFC_FORMATS))}, ", 1)


_DATE_TEXT = (
    r"^\s*\d{1,4}[-/ ]\d{1,2}[-/ ]\d{1,2}([Tt ]\s*\d{1,2}:\d{1,2}(:\d{1,2}(\.\d*)?)?\s*"
    r"([Zz]|UTC|GMT|[+-]((0?\d|1[0-3])(:?[0-5]\d)?|14(:?00)?))?)?\s*$"
)
"""Texts that DuckDB may read as a datetime; DuckDB itself also reads ``infinity``, time zone names and longer years."""


def _render_text_to_datetime_conversion(text: Sql) -> Sql:
    """Return the SQL that converts a text to a datetime; the caller must reject years outside 1 to 9999."""
    sql = _add_rfc_date_formats(SCALAR_FUNCTIONS["todatetime"].template).format(text)
    is_date = f"regexp_matches({text}, '{_DATE_TEXT}')"
    return sql.replace(f"TRY_CAST({text} AS", f"TRY_CAST(CASE WHEN {is_date} THEN {text} END AS")


macros: tuple[str, ...] = (
    (
        f"CREATE OR REPLACE MACRO kql_text_datetime(t) AS list_transform(list_transform(["
        # try_strptime() also reads the words infinity and epoch.
        "CASE WHEN regexp_matches(t, '[0-9]') THEN t END], "
        f"lambda _t: {_render_text_to_datetime_conversion('_t')}), lambda _d: CASE WHEN _d BETWEEN TIMESTAMP "
        "'0001-01-01' AND TIMESTAMP '9999-12-31 23:59:59.999999' THEN _d END)[1]"
    ),
    (
        "CREATE OR REPLACE MACRO kql_datetime(v) AS list_transform([v], lambda _v: CASE WHEN typeof(_v) = 'TIMESTAMP' "
        "THEN CAST(_v AS TIMESTAMP) ELSE kql_text_datetime(CASE WHEN typeof(_v) = 'JSON' THEN to_json(_v) ->> '$' "
        "ELSE CAST(_v AS VARCHAR) END) END)[1]"
    ),
    # weekofyear() counts weeks from Sunday to Saturday; the Wednesday decides to which year a week belongs.
    (
        "CREATE OR REPLACE MACRO kql_week_from_wednesday(d) AS "
        "CAST((dayofyear(d + to_days(CAST(3 - dayofweek(d) AS INTEGER))) - 1) // 7 + 1 AS INTEGER)"
    ),
    (
        "CREATE OR REPLACE MACRO kql_bin(v BIGINT, r BIGINT) AS CASE WHEN r > 0 THEN v - ((v % r) + r) % r END, "
        "(v HUGEINT, r BIGINT) AS CAST(CASE WHEN r > 0 THEN v - ((v % r) + r) % r END AS BIGINT), "
        "(v DOUBLE, r DOUBLE) AS CASE WHEN r >= 0 THEN floor(v / r) * r END, "
        "(v TIMESTAMP, r INTERVAL) AS CASE WHEN epoch_us(r) > 0 THEN v - to_microseconds((epoch_us(v) + "
        f"{MICROSECONDS_BEFORE_1970}) % epoch_us(r)) END, "
        "(v INTERVAL, r INTERVAL) AS CASE WHEN epoch_us(r) > 0 THEN v - to_microseconds(((epoch_us(v) % epoch_us(r)) "
        "+ epoch_us(r)) % epoch_us(r)) END"
    ),
    (
        "CREATE OR REPLACE MACRO kql_bin_at(v BIGINT, r BIGINT, f BIGINT) AS CASE WHEN r > 0 THEN v - ((v "
        "- f) % r + r) % r END, "
        "(v DOUBLE, r DOUBLE, f DOUBLE) AS CASE WHEN r > 0 THEN f + floor((v - f) / r) * r END, "
        "(v TIMESTAMP, r INTERVAL, f TIMESTAMP) AS CASE WHEN epoch_us(r) > 0 THEN v - to_microseconds("
        "((epoch_us(v) - epoch_us(f)) % epoch_us(r) + epoch_us(r)) % epoch_us(r)) END, "
        "(v INTERVAL, r INTERVAL, f INTERVAL) AS CASE WHEN epoch_us(r) > 0 THEN v - to_microseconds("
        "((epoch_us(v) - epoch_us(f)) % epoch_us(r) + epoch_us(r)) % epoch_us(r)) END"
    ),
)


def install_into_translator() -> None:
    """Add functions over datetimes and timespans to the KQL translator library."""
    for unit, sql in _UNIX.items():
        # DuckDB's TRY rejects the subqueries that some arguments contain, so that the argument is bound outside.
        instant = f"TRY(make_timestamp(CAST({sql} AS BIGINT)))"
        add_function_that_reuses_arguments(f"unixtime_{unit}_todatetime", (1,), instant.format)
    add_template_function("datetime_utc_to_local", "(({0} AT TIME ZONE 'UTC') AT TIME ZONE {1})", 2)
    add_function_that_reuses_arguments("datetime_local_to_utc", (2,), _render_local_to_utc)
    for name, part in _INTEGER_PARTS.items():
        add_template_function(name, f"CAST({part}({{0}}) AS INTEGER)", 1)
    add_template_function("weekofyear", "kql_week_from_wednesday({0})", 1)
    add_function_that_reuses_arguments("bin", (2,), lambda value, size: f"kql_bin({value}, {size})")
    add_function_that_reuses_arguments("floor", (2,), lambda value, size: f"kql_bin({value}, {size})")
    add_function_that_reuses_arguments(
        "bin_at", (3,), lambda value, size, fixed: f"kql_bin_at({value}, {size}, {fixed})"
    )
    add_custom_function("format_timespan", (2,), _render_format_timespan)
    add_custom_function("make_datetime", (1, 3, 4, 5, 6), _render_make_datetime)
    add_custom_function("make_timespan", (1, 2, 3, 4), _render_make_timespan)
    add_custom_function("datetime_diff", (3,), _render_datetime_diff)
    add_custom_function("datetime_part", (2,), _render_datetime_part)
    add_custom_function("datepart", (2,), _render_datetime_part)
    replace_attribute(timespans, "_UNIT", lambda _: _SPACED_UNIT)
    replace_attribute(lower, "_datetime_parts_to_iso", _patch_datetime_literals_to_allow_spaces)
    replace_attribute(translate, "render_literal", _patch_literals_to_check_datetimes)
    replace_attribute(translate, "_TODATETIME", _add_rfc_date_formats)
    SCALAR_FUNCTIONS["todatetime"] = dataclasses.replace(SCALAR_FUNCTIONS["todatetime"], template="kql_datetime({0})")
    replace_attribute(translate, "_mv_expand_convert", _patch_mv_expand_to_convert_datetimes)
    replace_attribute(translate, "_DATETIME_RETURNING", lambda names: names | _DATETIMES)
    replace_attribute(translate, "_TIMESPAN_RETURNING", lambda names: names | {"make_timespan"})


_SPACED_UNIT = re.compile(r"^(\d+(?:\.\d+)?) ?([a-z]+)$")
"""Number and unit of a timespan such as ``15 seconds``."""
_SPACED_DATE = re.compile(r"(\d{4}) ?+- ?+(\d{1,2}) ?+- ?+(\d{1,2})")


def _patch_datetime_literals_to_allow_spaces(library_function: Callable[[str], str]) -> Callable[[str], str]:
    def convert_datetime_literal_to_iso(literal_text: str) -> str:
        """Return the text of a datetime literal; remove spaces as in ``2017 - 08 - 01``."""
        return library_function(_SPACED_DATE.sub(r"\1-\2-\3", literal_text, count=1))

    return convert_datetime_literal_to_iso


def _patch_mv_expand_to_convert_datetimes(
    library_function: Callable[[Sql, KustoType], Sql],
) -> Callable[[Sql, KustoType], Sql]:
    """Patch ``mv-expand x to typeof(datetime)`` so that it converts texts as ``todatetime`` does."""

    def render_converted_element(element: Sql, target_type: KustoType) -> Sql:
        if target_type != "datetime":
            return library_function(element, target_type)
        return f"kql_text_datetime(CASE json_type({element}) WHEN 'VARCHAR' THEN {element} ->> '$' END)"

    return render_converted_element


_PLAIN_DATE = re.compile(r"[12]\d{3}-(0[1-9]|1[0-2])-([01]\d|2[0-8])")
_WRONG_YEAR = re.compile(r"(\d{5,}|0000)[-/]")
_TIME = re.compile(r"\d{1,2}:\d{2}(:\d{2}(\.\d{1,6})?)?")


def _patch_literals_to_check_datetimes(library_function: Callable[[ir.Literal], Sql]) -> Callable[[ir.Literal], Sql]:
    """Patch literals so that an invalid datetime is an error, and ``datetime(12:30)`` is a time of the current day."""

    def render_literal(literal: ir.Literal) -> Sql:
        sql = library_function(literal)
        if literal.kind != "datetime" or literal.value is None:
            return sql
        text = str(literal.value)
        if _PLAIN_DATE.match(text) and len(text) == len("2024-01-02"):
            return sql
        if _TIME.fullmatch(text):
            today = render_expression(ir.FunctionCall("startofday", (ir.FunctionCall("now"),)))
            return f"({today} + CAST({quote_text(text)} AS INTERVAL))"
        if _WRONG_YEAR.match(text):
            sql = "NULL"
        failure = render_error("SYN0002", f"The literal datetime({text[:50]}) does not have the format of a datetime")
        return f"coalesce({sql}, CAST({failure} AS TIMESTAMP))"

    return render_literal


_DATETIMES = frozenset(
    {"make_datetime", "endofweek", "datetime_add", "datetime_utc_to_local", "datetime_local_to_utc"}
) | {f"unixtime_{unit}_todatetime" for unit in _UNIX}


def _render_local_to_utc(local_time: Sql, time_zone: Sql) -> Sql:
    # DuckDB moves a local time that a change of the clock skips forward; Kusto moves it back, by the skipped time.
    return (
        f"list_transform([({local_time} AT TIME ZONE {time_zone}) AT TIME ZONE 'UTC'], lambda _u: "
        f"_u - (((_u AT TIME ZONE 'UTC') AT TIME ZONE {time_zone}) - {local_time}))[1]"
    )


def _render_make_datetime(call: ir.FunctionCall) -> Sql:
    if len(call.args) == 1:
        return render_expression(ir.FunctionCall("todatetime", call.args))
    parts = [f"CAST({render_expression(arg)} AS BIGINT)" for arg in call.args[:5]]
    parts += ["0"] * (5 - len(parts))
    # Fractions of a microsecond are cut, not rounded.
    seconds = [f"floor(CAST({render_expression(arg)} AS DOUBLE) * 1000000) / 1000000" for arg in call.args[5:]]
    second = seconds[0] if seconds else "0"
    return f"TRY(make_timestamp({', '.join(parts)}, {second}))"


def _render_make_timespan(call: ir.FunctionCall) -> Sql:
    if len(call.args) == 1:
        return render_expression(ir.FunctionCall("totimespan", call.args))
    units = ["days", "hours", "minutes", "seconds"] if len(call.args) == 4 else ["hours", "minutes", "seconds"]  # noqa: PLR2004
    sized = [(unit, render_expression(arg)) for unit, arg in zip(units, call.args, strict=False)]
    spans = [
        f"to_seconds(CAST({sql} AS DOUBLE))" if unit == "seconds" else f"to_{unit}(CAST({sql} AS INTEGER))"
        for unit, sql in sized
    ]
    return f"({' + '.join(spans)})"


def _render_datetime_diff(call: ir.FunctionCall) -> Sql:
    part = str(read_literal_value(call.args[0], "datetime_diff")).lower()
    if part == "nanosecond":
        later, earlier = (
            f"(epoch_us({render_expression(arg)}) * 1000 + {_count_sub_microsecond_ticks(arg) * 100})"
            for arg in call.args[1:]
        )
        return f"({later} - {earlier})"
    if part != "week":
        return str(writer.render_datetime_diff(call))
    # Weeks start on Sunday; 1970-01-04 was a Sunday.
    later, earlier = (
        f"CAST(floor((epoch({render_expression(arg)}) / 86400 - 3) / 7) AS BIGINT)" for arg in call.args[1:]
    )
    return f"({later} - {earlier})"


def _render_datetime_part(call: ir.FunctionCall) -> Sql:
    part = str(read_literal_value(call.args[0], call.name)).lower()
    if part not in _FRACTIONS:
        return f"CAST({writer.render_datetime_part(call)} AS INTEGER)"
    # A datetime before 1970 has a negative number of microseconds.
    fraction = f"(epoch_us({render_expression(call.args[1])}) % 1000000 + 1000000) % 1000000"
    ticks = _count_sub_microsecond_ticks(call.args[1]) * 100 if part == "nanosecond" else 0
    return f"CAST(({fraction}) {_FRACTIONS[part]} + {ticks} AS INTEGER)"


_FRACTIONS = {"millisecond": "// 1000", "microsecond": "", "nanosecond": "* 1000"}
_TICKS = re.compile(r"\.\d{6}(\d)")


def _count_sub_microsecond_ticks(expr: ir.Expr) -> int:
    """Return the ticks (100 ns) beyond the last whole microsecond of a datetime literal; 0 for any other expression."""
    value = expr.value if isinstance(expr, ir.LetRef) else expr
    found = _TICKS.search(str(value.value)) if isinstance(value, ir.Literal) and value.kind == "datetime" else None
    return int(found[1]) if found else 0


_SPAN_UNITS = {"h": 3_600_000_000, "H": 3_600_000_000, "m": 60_000_000, "s": 1_000_000}
_SPAN_LIMITS = {"h": 24, "H": 24, "m": 60, "s": 60}
_MAX_REPETITIONS = {"d": 8, "h": 2, "H": 2, "m": 2, "s": 2, "f": 7, "F": 7}
_DELIMITERS = frozenset(" /-:,._[]")


def _render_format_timespan(call: ir.FunctionCall) -> Sql:
    text = read_literal_value(call.args[1], "format_timespan")
    if not isinstance(text, str) or not text:
        raise KqlUnsupportedError(
            "format_timespan", hint="the format of format_timespan() must be a non-empty string literal"
        )
    pieces = " || ".join(_render_timespan_format_element(element) for element in _split_timespan_format(text))
    return f"list_transform([epoch_us({render_expression(call.args[0])})], lambda _us: {pieces})[1]"


def _split_timespan_format(format_text: str) -> list[str]:
    """Split a format of ``format_timespan``, such as ``hh:mm``, into elements and delimiters."""
    elements: list[str] = []
    for char in format_text:
        if elements and elements[-1][0] == char and len(elements[-1]) < _MAX_REPETITIONS.get(char, 0):
            elements[-1] += char
        elif char in _DELIMITERS or char in _MAX_REPETITIONS:
            elements.append(char)
        else:
            raise KqlUnsupportedError(
                f"format_timespan:{char}", hint=f"{char!r} in the format is neither a format element nor a delimiter"
            )
    return elements


def _render_timespan_format_element(element: str) -> Sql:
    kind, width = element[0], len(element)
    if kind in _DELIMITERS:
        return quote_text(element)
    if kind in "fF":
        return _render_second_fraction(kind, width)
    number = "abs(_us) // 86400000000" if kind == "d" else f"abs(_us) // {_SPAN_UNITS[kind]} % {_SPAN_LIMITS[kind]}"
    digits = f"CAST({number} AS VARCHAR)"
    return f"lpad({digits}, CAST(greatest({width}, length({digits})) AS INTEGER), '0')"


def _render_second_fraction(format_letter: str, digit_count: int) -> Sql:
    # A timespan has microseconds here, so that the seventh digit is 0.
    digits = f"substr(lpad(CAST(abs(_us) % 1000000 AS VARCHAR), 6, '0') || '0', 1, {digit_count})"
    return digits if format_letter == "f" else f"CASE WHEN {digits} = '{'0' * digit_count}' THEN '' ELSE {digits} END"
