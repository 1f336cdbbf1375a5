"""Audit records: their canonical form, their hash, and the links between them."""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import rfc8785

from shared.errors import WorkspaceError, invalid

EVENT_FIELDS: Final = (
    "ActionType",
    "EntityType",
    "EntityID",
    "NodeID",
    "BeforeState",
    "AfterState",
    "Name",
    "Description",
)
"""What a record takes over from its event; anything else in it is dropped."""

SAFE_INTEGER: Final = 2**53 - 1
RECORD_ID_DIGITS: Final = 12


@dataclass(frozen=True, slots=True)
class Sealed:
    """A record ready to be stored.

    Attributes:
        canonical: RFC 8785 bytes of the record without ``Hash``: what is stored and hashed.
        hash: lowercase hex SHA-256 of these bytes.
    """

    canonical: bytes
    hash: str

    @property
    def record(self) -> dict[str, Any]:
        """The record as it is read back, ``Hash`` included."""
        return opened(self.canonical, self.hash)


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


def event_record(sequence: int, timestamp: str, user_id: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as a record without its links; absent and null optional fields are left out.

    Args:
        sequence: place in the chain, from 1.
        timestamp: RFC 3339 text in UTC with microseconds.
        user_id: the acting principal.
        event: what the caller says; only :data:`EVENT_FIELDS` of it are kept.
    """
    kept = {name: event[name] for name in EVENT_FIELDS if event.get(name) is not None}
    return {"RecordID": record_id(sequence), "Timestamp": timestamp, "UserID": user_id, **kept}


def seal(record: Mapping[str, Any], previous_hash: str) -> Sealed:
    """Return a record linked to the one before it and hashed.

    Args:
        record: the record without ``PreviousHash`` and ``Hash``.
        previous_hash: ``Hash`` of the record before, or the chain's genesis hash.

    Raises:
        WorkspaceError: INVALID for what has no canonical form: integers beyond ±(2^53-1), NaN, infinity, lone
            surrogates, or a body that is nested too deeply.
    """
    canonical = canonical_bytes({**record, "PreviousHash": previous_hash})
    return Sealed(canonical, digest(canonical))


def canonical_bytes(value: Mapping[str, Any]) -> bytes:
    """Return the RFC 8785 (JCS) bytes of a JSON object.

    Raises:
        WorkspaceError: INVALID, as :func:`seal`.
    """
    try:
        canonical = rfc8785.dumps(dict(value))
        json.loads(canonical, parse_int=_safe_integer)
    except ValueError as error:
        raise _uncanonical(str(error)) from None
    except RecursionError:
        raise _uncanonical("the body is nested too deeply") from None
    return canonical


def digest(canonical: bytes) -> str:
    """Return the ``Hash`` over a record's canonical bytes."""
    return hashlib.sha256(canonical).hexdigest()


def opened(canonical: bytes, stored_hash: str) -> dict[str, Any]:
    """Return a stored record as callers see it."""
    record: dict[str, Any] = json.loads(canonical)
    record["Hash"] = stored_hash
    return record


def first_fault(records: Iterable[Mapping[str, Any]], genesis: str) -> str | None:
    """Walk a chain from its first record and say what is wrong first, None when it is sound.

    Args:
        records: in order, ``Hash`` included.
        genesis: from :func:`genesis_hash`.
    """
    previous = genesis
    for sequence, record in enumerate(records, start=1):
        if record["RecordID"] != record_id(sequence):
            return f"{record_id(sequence)} is missing"
        if record["PreviousHash"] != previous:
            return f"{record['RecordID']} does not link to the record before it"
        if digest(canonical_bytes({key: value for key, value in record.items() if key != "Hash"})) != record["Hash"]:
            return f"{record['RecordID']} does not have the digest of its content"
        previous = record["Hash"]
    return None


def _safe_integer(text: str) -> None:
    """Refuse a number that is written as an integer (a float such as 1e20 is) and that JSON readers round."""
    if abs(int(text)) > SAFE_INTEGER:
        raise _uncanonical(f"{text} lies beyond the integers that JSON numbers hold exactly")


def _uncanonical(reason: str) -> WorkspaceError:
    return invalid("body", reason)
