"""Timespans as Kusto writes them, in ticks of 100 ns."""

from datetime import timedelta

from duckdb_kql.params import parse_timespan
from duckdb_kql.timespans import ticks

_MOST_TICKS = 2**63 - 1
_TICKS = 10
"""In a microsecond, the least that DuckDB keeps."""


class TimespanRangeError(Exception):
    """The timespan is none of Kusto's, or none that can be kept in full; the message says which."""


def timespan_text(span: timedelta) -> str:
    """Return a duration as ``[-][d.]hh:mm:ss[.fffffff]``, the form of Kusto's wire and literals (100 ns ticks)."""
    sign, rest = ("-", -span) if span < timedelta() else ("", span)
    hours, seconds = divmod(rest.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    days = f"{rest.days}." if rest.days else ""
    fraction = f".{rest.microseconds:06d}0" if rest.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"


def read_timespan(text: str) -> timedelta:
    """Return the duration that a text names: ``1h``, ``1.02:03:04.5``, ``2`` (days), each with a sign or without.

    Raises:
        ValueError: it names none.
        TimespanRangeError: it is longer than Kusto's timespans, or has a fraction of a microsecond.
    """
    sign, body = (text[0], text[1:]) if text[:1] in ("-", "+") else ("", text)
    count = ticks(body)
    if count > _MOST_TICKS:
        raise TimespanRangeError("a timespan ends at 10675199.02:48:05.4775807")
    if count % _TICKS:
        raise TimespanRangeError("timespans are kept in whole microseconds")
    if parse_timespan(body) is None:
        raise ValueError("a timespan is expected")
    span = timedelta(microseconds=count // _TICKS)
    return -span if sign == "-" else span


def check_literal(text: str) -> None:
    """Pass for a timespan literal of a query that is kept in full, and for one that is not understood here.

    Args:
        text: as it stands in the query: ``1h``, ``time(1.00:00:00)``, ``timespan('1h')``.

    Raises:
        TimespanRangeError: it is too long or has a fraction of a microsecond.
    """
    inner = text.partition("(")[2].removesuffix(")") if "(" in text else text
    try:
        read_timespan(inner.strip().strip("'\""))
    except ValueError:
        return
