"""Timespans as Kusto writes them."""

from datetime import timedelta


def timespan_text(span: timedelta) -> str:
    """Return a duration as ``[-][d.]hh:mm:ss[.fffffff]``, the form of Kusto's wire and literals (100 ns ticks)."""
    sign, rest = ("-", -span) if span < timedelta() else ("", span)
    hours, seconds = divmod(rest.seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    days = f"{rest.days}." if rest.days else ""
    fraction = f".{rest.microseconds:06d}0" if rest.microseconds else ""
    return f"{sign}{days}{hours:02d}:{minutes:02d}:{seconds:02d}{fraction}"
