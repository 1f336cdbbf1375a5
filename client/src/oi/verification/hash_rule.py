"""Rules for the hashes, RecordIDs and times of audit records.

This module needs only the standard library, because the offline verifier imports it.
"""

import hashlib
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from typing import Any, Final

RECORD_ID_DIGITS: Final = 12
LAST_SEQUENCE: Final = 10**RECORD_ID_DIGITS - 1
SAFE_INTEGER: Final = 2**53 - 1
MAX_DEPTH: Final = 128
"""Maximum number of nested JSON levels of a record. Requests have up to 100 levels."""
TIMES: Final = ("Timestamp", "AmendedAt", "ApprovedAt", "RejectedAt")
"""Properties that contain a record's time; each kind of record has one of them."""
ACTORS: Final = ("UserID", "AmendedBy", "ApprovedBy", "RejectedBy")
_UNRENAMED: Final = ("ActionType", "EntityType", "EntityID", "ReasonCategory", "Status", "AmendmentID")
_TIME_LENGTH: Final = len("2026-01-05T08:00:00.000000Z")
DAY_OF_ANY_MONTH: Final = re.compile(
    r"(?!0000)\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII
)
"""Pattern for a fast check of record times; it accepts only the days that every month has."""
_FIRST_WITH_EXPONENT: Final = 10**21
"""Number from which RFC 8785 writes doubles with an exponent."""


def compute_genesis_hash(workspace_id: str, target: str, scope_key: str = "") -> str:
    """Return the ``PreviousHash`` of a chain's first record.

    Args:
        workspace_id: the workspace's id.
        target: container of the chain.
        scope_key: scope of the chain, such as ``line-1``; empty for a chain of the whole workspace.
    """
    return hashlib.sha256(f"oi-provenance/v1\n{workspace_id}\n{target}\n{scope_key}".encode()).hexdigest()


def format_record_id(sequence: int) -> str:
    """Format a sequence number (from 1) as a RecordID: 12 digits, zero-padded."""
    return f"{sequence:0{RECORD_ID_DIGITS}d}"


def sequence_from_record_id(text: object) -> int | None:
    """Return the sequence number of a RecordID; None if the RecordID is malformed."""
    well_formed = isinstance(text, str) and len(text) == RECORD_ID_DIGITS and text.isascii() and text.isdigit()
    return int(str(text)) if well_formed else None


def get_record_time(record: Mapping[str, Any]) -> str:
    """Return the time in an audit record (event, amendment or decision); an empty string if it has none."""
    time = next((record[name] for name in TIMES if name in record), "")
    return time if isinstance(time, str) else ""


def get_filter_fields(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the filter fields of a record: copies of the properties by which queries filter.

    For every kind of record, the field ``UserID`` is the user who caused the record, and ``Timestamp`` its time.
    """
    fields = {name: record[name] for name in _UNRENAMED if name in record}
    for actor in ACTORS:
        if actor in record:
            fields["UserID"] = record[actor]
            break
    for time in TIMES:
        if time in record:
            fields["Timestamp"] = record[time]
            break
    return fields


def describe_non_text_fields(record_name: str, fields: Mapping[str, Any]) -> str:
    """Return an error message that names the filter fields that are not text; empty if all fields are text.

    Args:
        record_name: name of the record in the message, such as its RecordID.
        fields: filter fields of the record, from :func:`get_filter_fields`.
    """
    names = sorted(name for name, value in fields.items() if not isinstance(value, str))
    return f"filter fields of {record_name} are not text: {', '.join(names)}" if names else ""


def is_record_time(text: str) -> bool:
    """Return whether text is a time in the format of records: RFC 3339 in UTC with six fractional digits and ``Z``."""
    if DAY_OF_ANY_MONTH.fullmatch(text):
        return True
    if len(text) != _TIME_LENGTH:
        return False
    try:
        return datetime.fromisoformat(text[:-1]).isoformat(timespec="microseconds") + "Z" == text
    except ValueError:
        return False


def describe_invalid_time(record_name: str) -> str:
    """Build the error message for a record whose time does not have the format of :func:`is_record_time`."""
    return f"the time of {record_name} does not have the format 2026-01-05T08:00:00.000000Z"


def is_nested_too_deeply(value: Any) -> bool:
    """Return whether a JSON value has more than :data:`MAX_DEPTH` nested levels; works without recursion."""
    level = [value]
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                below.extend(item.values())
            elif isinstance(item, list | tuple):
                below.extend(item)
        if not below:
            return False
        level = below
    return any(isinstance(item, dict | list | tuple) for item in level)


def describe_time_order_fault(record_name: str, previous_sequence: int) -> str:
    """Build the error message for a record whose time is earlier than that of record number ``previous_sequence``."""
    return f"the time of {record_name} is earlier than the time of {format_record_id(previous_sequence)}"


def compute_record_hash(canonical: bytes) -> str:
    """Compute the ``Hash`` of a record: the SHA-256 of its canonical bytes as lowercase hex digits."""
    return hashlib.sha256(canonical).hexdigest()


def parse_integer_or_exact_float(text: str) -> int | float:
    """Parse an integer literal of a record; an integer beyond ±(2^53-1) becomes a float if the float is exact.

    RFC 8785 writes doubles up to 1e21 without an exponent, so 1e20 is written as an integer. The service rejects
    integers beyond ±(2^53-1), so such a literal can only be a float. An integer that is not exactly a double
    stays an int, and is later rejected as not canonical. Pass this function as ``parse_int`` to :func:`json.loads`.
    """
    number = int(text)
    if abs(number) <= SAFE_INTEGER or abs(number) >= _FIRST_WITH_EXPONENT:
        return number
    nearest = float(number)
    # A float's canonical form has the shortest digits that identify it.
    return nearest if Decimal(repr(nearest)) == number else number
