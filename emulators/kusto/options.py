"""Request options of a query: the ones that are honoured, the ones that cannot matter, the ones that are refused."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulators.kusto.errors import bad_request, unsupported

DEFAULT_TIMEOUT_SECONDS = 240.0
MAX_TIMEOUT_SECONDS = 3600.0
DEFAULT_MAX_RECORDS = 500_000
DEFAULT_MAX_BYTES = 64 * 1024 * 1024

_TIMESPAN = re.compile(
    r"(?:(?P<days>\d{1,3})(?:\.| days?, ))?(?P<hours>\d{1,2}):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d{1,9})?)",
    re.ASCII,
)

_REFUSED = frozenset(
    {
        "best_effort",
        "query_cursor_after_default",
        "query_cursor_before_or_at_default",
        "query_cursor_current",
        "query_cursor_scoped_tables",
        "query_datetimescope_column",
        "query_datetimescope_from",
        "query_datetimescope_to",
        "query_now",
        "query_results_apply_getschema",
        "results_progressive_enabled",
        "validatepermissions",
    }
)
"""Options that change what a query answers and that nothing here reproduces; ignored, they would answer wrongly."""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """What a request asks of the engine beside its query.

    Attributes:
        timeout_seconds: ``servertimeout``.
        take_records: ``query_take_max_records``: the result ends here, silently; None for no such limit.
        max_records: ``truncationmaxrecords``: more than these is a failure.
        max_bytes: ``truncationmaxsize``: a result of more bytes is a failure.
        cached_seconds: ``query_results_cache_max_age``: a result of an earlier request may be so old; 0 for none.
        refresh_cache: ``query_results_cache_force_refresh``: the result is computed and replaces the kept one.
    """

    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    take_records: int | None = None
    max_records: int = DEFAULT_MAX_RECORDS
    max_bytes: int = DEFAULT_MAX_BYTES
    cached_seconds: float = 0.0
    refresh_cache: bool = False


def read_options(options: Mapping[str, Any]) -> RequestOptions:
    """Return the options of a request; names are compared without case, as Data Explorer does.

    Limits are bounded by the defaults of Data Explorer even where a request asks for more (``notruncation`` included):
    the endpoint shares its process with ingestion. The restrictions (``request_readonly``,
    ``request_callout_disabled`` and their like) hold always, whether a request names them or not.

    Raises:
        QueryError: a value is malformed, or the option would change the answer and is not supported.
    """
    named = {name.lower(): value for name, value in options.items()}
    for name in sorted(_REFUSED & named.keys()):
        if named[name] not in (None, False, "false"):
            raise unsupported(f"request option {name}")
    take = named.get("query_take_max_records")
    return RequestOptions(
        timeout_seconds=_timeout(named),
        take_records=None if take is None else _count("query_take_max_records", take),
        max_records=_bounded(named, "truncationmaxrecords", DEFAULT_MAX_RECORDS),
        max_bytes=_bounded(named, "truncationmaxsize", DEFAULT_MAX_BYTES),
        cached_seconds=_seconds(named, "query_results_cache_max_age") or 0.0,
        refresh_cache=named.get("query_results_cache_force_refresh") in (True, "true"),
    )


def _bounded(named: Mapping[str, Any], name: str, ceiling: int) -> int:
    value = named.get(name)
    return ceiling if value is None else min(_count(name, value), ceiling)


def _count(name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise bad_request(f"request option {name}: a whole number, 0 or more, is expected")
    return value


def _timeout(named: Mapping[str, Any]) -> float:
    seconds = _seconds(named, "servertimeout")
    if seconds is None:
        return MAX_TIMEOUT_SECONDS if named.get("norequesttimeout") in (True, "true") else DEFAULT_TIMEOUT_SECONDS
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise bad_request("request option servertimeout: above zero and at most one hour is expected")
    return seconds


def _seconds(named: Mapping[str, Any], name: str) -> float | None:
    value = named.get(name)
    if value is None:
        return None
    match = _TIMESPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise bad_request(f"request option {name}: a timespan such as 00:01:00 is expected")
    days, hours, minutes = (int(match[unit] or 0) for unit in ("days", "hours", "minutes"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match["seconds"])
