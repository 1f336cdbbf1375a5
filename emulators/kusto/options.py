"""Options of a query request, such as its timeout, which a client sends as request properties."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from emulators.kusto.errors import bad_request_error, unsupported_error

DEFAULT_TIMEOUT_SECONDS = 240.0
MAX_TIMEOUT_SECONDS = 3600.0
DEFAULT_MAX_RECORDS = 500_000
DEFAULT_MAX_BYTES = 64 * 1024 * 1024

_TIMESPAN = re.compile(
    r"(?:(?P<days>\d{1,3})\.)?(?P<hours>\d{1,2}):(?P<minutes>\d{2}):(?P<seconds>\d{2}(?:\.\d{1,9})?)",
    re.ASCII,
)

_UNSUPPORTED = frozenset(
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
"""Options that change the result of a query and that the emulator rejects; ignoring them would give wrong results."""


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """Request options that the emulator supports.

    Attributes:
        timeout_seconds: maximum duration of the query (``servertimeout``).
        take_records: number of records at which the result is cut (``query_take_max_records``); None for no limit.
        max_records: number of records above which the query fails (``truncationmaxrecords``).
        max_bytes: size of the result above which the query fails (``truncationmaxsize``).
        cached_seconds: maximum age of a cached result (``query_results_cache_max_age``); 0 disables the cache.
        refresh_cache: True to compute the result again and replace the cached result
            (``query_results_cache_force_refresh``).
    """

    timeout_seconds: float = DEFAULT_TIMEOUT_SECONDS
    take_records: int | None = None
    max_records: int = DEFAULT_MAX_RECORDS
    max_bytes: int = DEFAULT_MAX_BYTES
    cached_seconds: float = 0.0
    refresh_cache: bool = False


def parse_request_options(options: Mapping[str, Any]) -> RequestOptions:
    """Parse the options of a request and limit their values; option names are not case-sensitive.

    A request cannot raise the limits above Data Explorer's defaults, even with ``notruncation``, because queries and
    ingestion share one process. Restrictions such as ``request_readonly`` always apply, even if the request does not
    set them.

    Raises:
        QueryError: a value is invalid, or the option is not supported and would change the result.
    """
    named = {name.lower(): value for name, value in options.items()}
    for name in sorted(_UNSUPPORTED & named.keys()):
        if named[name] not in (None, False, "false"):
            raise unsupported_error(f"request option {name}")
    take = named.get("query_take_max_records")
    return RequestOptions(
        timeout_seconds=_read_timeout_seconds(named),
        take_records=None if take is None else _read_whole_number("query_take_max_records", take),
        max_records=_read_limit_up_to_ceiling(named, "truncationmaxrecords", DEFAULT_MAX_RECORDS),
        max_bytes=_read_limit_up_to_ceiling(named, "truncationmaxsize", DEFAULT_MAX_BYTES),
        cached_seconds=_find_timespan_seconds(named, "query_results_cache_max_age") or 0.0,
        refresh_cache=named.get("query_results_cache_force_refresh") in (True, "true"),
    )


def _read_limit_up_to_ceiling(named_options: Mapping[str, Any], option_name: str, ceiling: int) -> int:
    value = named_options.get(option_name)
    return ceiling if value is None else min(_read_whole_number(option_name, value), ceiling)


def _read_whole_number(option_name: str, value: Any) -> int:
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,18}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise bad_request_error(f"request option {option_name} must be a whole number of at least 0")
    return value


def _read_timeout_seconds(named_options: Mapping[str, Any]) -> float:
    seconds = _find_timespan_seconds(named_options, "servertimeout")
    if seconds is None:
        return (
            MAX_TIMEOUT_SECONDS if named_options.get("norequesttimeout") in (True, "true") else DEFAULT_TIMEOUT_SECONDS
        )
    if not 0 < seconds <= MAX_TIMEOUT_SECONDS:
        raise bad_request_error("request option servertimeout must be above zero and at most one hour")
    return seconds


def _find_timespan_seconds(named_options: Mapping[str, Any], option_name: str) -> float | None:
    value = named_options.get(option_name)
    if value is None:
        return None
    match = _TIMESPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    if match is None:
        raise bad_request_error(f"request option {option_name} must be a timespan such as 00:01:00")
    days, hours, minutes = (int(match[unit] or 0) for unit in ("days", "hours", "minutes"))
    return ((days * 24 + hours) * 60 + minutes) * 60 + float(match["seconds"])
