"""The rule by which a chain is hashed, in the standard library alone: what an offline verifier needs too."""

import hashlib
from collections.abc import Mapping
from typing import Any, Final

RECORD_ID_DIGITS: Final = 12
LAST_SEQUENCE: Final = 10**RECORD_ID_DIGITS - 1
SAFE_INTEGER: Final = 2**53 - 1
TIMES: Final = ("Timestamp", "AmendedAt", "ApprovedAt", "RejectedAt")
"""Members that hold a record's own time; each kind of record has one of them."""


def genesis_hash(workspace: str, target: str, scope_key: str = "") -> str:
    """Return the ``PreviousHash`` of a chain's first record.

    Args:
        workspace: the workspace's id.
        target: the container.
        scope_key: the scope of a domain chain, empty for a workspace chain.
    """
    return hashlib.sha256(f"oi-provenance/v1\n{workspace}\n{target}\n{scope_key}".encode()).hexdigest()


def record_id(sequence: int) -> str:
    """Return the RecordID of a sequence number (from 1): 12 digits, zero-padded."""
    return f"{sequence:0{RECORD_ID_DIGITS}d}"


def sequence_of(text: object) -> int | None:
    """Return the sequence number that a well-formed RecordID names, None for anything else."""
    well_formed = isinstance(text, str) and len(text) == RECORD_ID_DIGITS and text.isascii() and text.isdigit()
    return int(str(text)) if well_formed else None


def own_time(record: Mapping[str, Any]) -> str:
    """Return the own time of any kind of record, empty where there is none; it never decreases along a chain."""
    time = next((record[name] for name in TIMES if name in record), "")
    return time if isinstance(time, str) else ""


def earlier(here: str, before: int) -> str:
    """Return the reason of a record, by its RecordID, whose time goes back behind that of a sequence."""
    return f"{here} does not have a time as late as that of {record_id(before)}"


def digest(canonical: bytes) -> str:
    """Return the ``Hash`` over a record's canonical bytes."""
    return hashlib.sha256(canonical).hexdigest()


def json_integer(text: str) -> Any:
    """Return the number that integer digits in canonical text stand for: a float beyond ±(2^53-1).

    RFC 8785 writes doubles up to 1e21 without an exponent, so 1e20 stands there as an integer. Only floats can:
    integers beyond ±(2^53-1) are refused on the way in. Pass this as ``parse_int`` to :func:`json.loads`.
    """
    number = int(text)
    return number if abs(number) <= SAFE_INTEGER else float(number)
