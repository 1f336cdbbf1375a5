"""Rules for the column mapping of an import (which column holds the time, the device id and so on).

This module is separate from the operation that creates an import, because domains do not depend on HTTP.
"""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final
from zoneinfo import ZoneInfo

from shared.catalog.models import TimestampFormat
from shared.downloads.import_request import ImportFormat
from shared.errors import ValidationErrors, build_invalid_field_error

MAX_COLUMNS: Final = 10_000
"""Maximum number of columns that a mapping may list."""
_FORBIDDEN_DELIMITERS: Final = frozenset('"\r\n\0.-+')


def check_column_mapping(file_format: ImportFormat, mapping: Mapping[str, Any], faults: ValidationErrors) -> None:
    """Check the column mapping of an import request; add its errors to ``faults``.

    Args:
        file_format: format of the file.
        mapping: properties of the mapping by attribute name of ``ImportMapping``; None for absent properties.
        faults: collects the errors of the request.
    """
    _check_column_names(mapping, faults)
    _check_delimiter(mapping.get("delimiter"), mapping.get("decimal"), faults)
    if file_format is not ImportFormat.CSV:
        for name in ("delimiter", "decimal"):
            if mapping.get(name) is not None:
                faults.add(build_invalid_field_error(f"mapping.{name}", "applies only to the format csv"))
    zone = mapping.get("time_zone")
    if zone is not None:
        if mapping.get("timestamp_format") is not TimestampFormat.RFC3339:
            faults.add(
                build_invalid_field_error(
                    "mapping.timeZone", "applies only to the timestampFormat rfc3339; epoch times are UTC"
                )
            )
        elif not is_time_zone(zone):
            faults.add(build_invalid_field_error("mapping.timeZone", "must be an IANA time zone such as Europe/Berlin"))


def is_time_zone(name: str) -> bool:
    """Return whether a text is the IANA name of a time zone."""
    try:
        ZoneInfo(name)
    except (OSError, ValueError, LookupError):
        return False
    return True


def _check_column_names(mapping: Mapping[str, Any], faults: ValidationErrors) -> None:
    named: dict[str, str] = {}
    for member, shown in (("timestamp", "timestamp"), ("device", "device"), ("message_id", "messageId")):
        column = mapping.get(member)
        if column is not None and (first := named.setdefault(column, shown)) != shown:
            faults.add(build_invalid_field_error(f"mapping.{shown}", f"must differ from the column of `{first}`"))
    columns = mapping.get("columns") or ()
    repeated = next((name for name, count in Counter(columns).items() if count > 1), None)
    if repeated is not None:
        faults.add(
            build_invalid_field_error("mapping.columns", f"must not repeat a column; {repeated[:64]!r} is listed twice")
        )


def _check_delimiter(delimiter: str | None, decimal_mark: str | None, faults: ValidationErrors) -> None:
    if delimiter is None:
        if decimal_mark == ",":
            rule = "must be given if `decimal` is a comma; such files usually have the delimiter ;"
            faults.add(build_invalid_field_error("mapping.delimiter", rule))
    elif delimiter in _FORBIDDEN_DELIMITERS or delimiter.isalnum() or not (delimiter.isascii()):
        faults.add(build_invalid_field_error("mapping.delimiter", "must be one ASCII character such as , ; | or a tab"))
    elif delimiter == decimal_mark:
        faults.add(build_invalid_field_error("mapping.delimiter", "must differ from `decimal`"))
