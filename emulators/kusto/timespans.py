"""Parser and formatter of Kusto timespans, which have ticks of 100 ns."""

from datetime import timedelta

from duckdb_kql.params import parse_timespan
from duckdb_kql.timespans import ticks

_MAX_TICKS = 2**63 - 1
_TICKS_PER_MICROSECOND = 10
"""Ticks of 100 ns in a microsecond, which is the resolution of DuckDB's intervals."""


class TimespanRangeError(Exception):
    """A timespan is out of Kusto's range or more precise than a microsecond; the message contains the reason."""


def format_timespan(span: timedelta) -> str:
    """Format a duration as ``[-][d.]hh:mm:ss[.fffffff]``, the format of Kusto's replies and literals."""
    sign, rest = ("-", -span) if span < timedelta() else ("", span)
    hours, seconds = divmod(rest.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    days = f"{rest.days}." if rest.days else ""
    fraction = f".{rest.microseconds:06d}0" if rest.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def parse_kusto_timespan(text: str) -> timedelta:
    """Parse a timespan such as ``1h``, ``1.02:03:04.5`` or ``2`` (days), with an optional sign.

    Raises:
        ValueError: the text is not a timespan.
        TimespanRangeError: the timespan is out of range or has a fraction of a microsecond.
    """
    sign, body = (text[0], text[1:]) if text[:1] in ("-", "+") else ("", text)
    count = ticks(body)
    if count > _MAX_TICKS:
        raise TimespanRangeError("the timespan is too long; the longest is 10675199.02:48:05.4775807")
    if count % _TICKS_PER_MICROSECOND:
        raise TimespanRangeError("the timespan has a fraction of a microsecond; use whole microseconds")
    if parse_timespan(body) is None:
        raise ValueError("the text is not a timespan such as 1h or 1.02:03:04")
    span = timedelta(microseconds=count // _TICKS_PER_MICROSECOND)
    return -span if sign == "-" else span


def check_timespan_literal(text: str) -> None:
    """Check that DuckDB can represent a timespan literal of a query; ignore text that is not a timespan.

    Args:
        text: the literal, such as ``1h``, ``time(1.00:00:00)`` or ``timespan('1h')``.

    Raises:
        TimespanRangeError: the timespan is out of range or has a fraction of a microsecond.
    """
    inner = text.partition("(")[2].removesuffix(")") if "(" in text else text
    try:
        parse_kusto_timespan(inner.strip().strip("'\""))
    except ValueError:
        return
