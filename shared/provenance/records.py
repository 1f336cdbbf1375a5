"""Audit records: drafts, sealing into a chain, and reading."""

import re
import uuid
from collections.abc import Iterable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import STRICT, canonical_bytes, canonical_value, canonicalize_record, parse_canonical
from shared.provenance.hash_rule import (
    MAX_DEPTH,
    RECORD_ID_DIGITS,
    SAFE_INTEGER,
    digest,
    genesis_hash,
    is_too_deep,
    project_record,
    record_id,
    sequence_from_record_id,
)
from shared.provenance.ports import ChainRecord

__all__ = [
    "EVENT_FIELDS",
    "MAX_RECORD_BYTES",
    "RECORD_ID_DIGITS",
    "SAFE_INTEGER",
    "RecordDraft",
    "build_event_record",
    "build_placeholder",
    "canonical_bytes",
    "damaged_record_error",
    "digest",
    "draft_event",
    "draft_record",
    "find_first_fault",
    "genesis_hash",
    "normalize_record",
    "parse_record",
    "project_record",
    "record_id",
    "record_to_json",
    "seal_record",
    "sequence_from_record_id",
]

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
"""Members of an event that its record contains; all others are dropped."""

MAX_RECORD_BYTES: Final = 1_500_000
"""Maximum number of canonical bytes of one record; even as base64, they fit in a Cosmos item of 2 MB."""

_REQUIRED_EVENT_FIELDS: Final = ("ActionType", "EntityType", "EntityID")
_BREAKS_JSON: Final = re.compile(r"[^ !#-\[\]-~]")
_LINKS: Final = ("PreviousHash", "RecordID")
_SLOT: Final = uuid.uuid4().hex
"""Placeholder for time, RecordID and PreviousHash in drafts. It is random, so that no caller's text contains it."""
_QUOTED_SLOT: Final = orjson.dumps(_SLOT)
_LINKS_LONGER: Final = 8
_KNOWN_AUTHORS: Final = 1_000
_LINK: Final = b',"PreviousHash":'
_PLACE: Final = b',"RecordID":'
_TIME: Final = b',"Timestamp":'
_LINKS_BYTES: Final = len(_PLACE + _TIME) + 66 + 14 + 29
"""Includes a quoted hash, RecordID and time."""


class RecordDraft(NamedTuple):
    """Record without its time, RecordID and PreviousHash, which sealing inserts between four parts of its text.

    Attributes:
        part_1: RFC 8785 bytes before the first inserted value.
        part_2: bytes between the first inserted value and the second.
        part_3: bytes between the second inserted value and the third.
        part_4: bytes after the third inserted value.
        time_first: whether the time is the first of the three values, as with AmendedAt and ApprovedAt; else the last.
        projection: filter fields without ``Timestamp``.
        size: maximum number of canonical bytes of the record.
    """

    part_1: bytes
    part_2: bytes
    part_3: bytes
    part_4: bytes
    time_first: bool
    projection: Mapping[str, str]
    size: int


def draft_record(body: Mapping[str, Any], time_field: str = "Timestamp") -> RecordDraft:
    """Return a draft in canonical form. Sealing it only joins bytes and cannot fail.

    Args:
        body: the record without RecordID, time, PreviousHash and Hash; names are ASCII.
        time_field: member for the time of the append.

    Raises:
        WorkspaceError: INVALID with the name of the member that has no canonical form; TOO_LARGE ``RECORD_TOO_LARGE``.
    """
    text = canonical_value({**body, **dict.fromkeys((*_LINKS, time_field), _SLOT)}, "")
    size = len(text) + _LINKS_LONGER
    if size > MAX_RECORD_BYTES:
        raise _too_large_error(size)
    part_1, part_2, part_3, part_4 = text.split(_QUOTED_SLOT)
    return RecordDraft(part_1, part_2, part_3, part_4, time_field < _LINKS[0], project_record(body), size)


def draft_event(user_id: str, event: Mapping[str, Any]) -> RecordDraft:
    """Return the draft of an event. Optional members that are absent or null are not stored.

    Args:
        user_id: acting principal.
        event: members of the event; only :data:`EVENT_FIELDS` are stored.

    Raises:
        WorkspaceError: as :func:`draft_record`.
    """
    members = _event_members(event)
    text = canonical_value(members, "")
    # In canonical order, members of an event precede the links, then follow the time and UserID.
    before = text[:-1] + (_LINK if members else _LINK[1:])
    after = _dump_author(user_id)
    projected = {"UserID": user_id}
    for name in _REQUIRED_EVENT_FIELDS:
        if name in members:
            projected[name] = members[name]
    size = len(before) + len(after) + _LINKS_BYTES
    if size > MAX_RECORD_BYTES:
        raise _too_large_error(size)
    return RecordDraft(before, _PLACE, _TIME, after, False, projected, size)


def seal_record(draft: RecordDraft, sequence: int, timestamp: str, previous_hash: str, append_id: str) -> ChainRecord:
    """Seal a draft: return it as the record at a position of a chain, with its Hash.

    Args:
        draft: content of the record.
        sequence: position in the chain, from 1.
        timestamp: RFC 3339 text in UTC with microseconds.
        previous_hash: ``Hash`` of the previous record, or the chain's genesis hash.
        append_id: id of the append, stored with the record.
    """
    part_1, part_2, part_3, part_4, time_first, projected, _ = draft
    time, link, place = orjson.dumps(timestamp), orjson.dumps(previous_hash), b'"%012d"' % sequence
    first, second, third = (time, link, place) if time_first else (link, place, time)
    canonical = b"".join((part_1, first, part_2, second, part_3, third, part_4))
    hashed = sha256(canonical).hexdigest()
    return ChainRecord(sequence, canonical, hashed, append_id, {**projected, "Timestamp": timestamp})


def build_event_record(sequence: int, timestamp: str, user_id: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event's record without ``PreviousHash`` and ``Hash``.

    Its other members equal those of :func:`draft_event`.
    """
    return {"RecordID": record_id(sequence), "Timestamp": timestamp, "UserID": user_id, **_event_members(event)}


def damaged_record_error(sequence: int) -> WorkspaceError:
    """Return the error of an operation that requires a record that is damaged in the store."""
    detail = f"Record {record_id(sequence)} is damaged in the store; verify the chain."
    return WorkspaceError(Kind.CONFLICT, "RECORD_DAMAGED", detail, recordId=record_id(sequence))


def parse_record(canonical: bytes, stored_hash: str) -> dict[str, Any]:
    """Parse a stored record and add its ``Hash``, as in replies."""
    record: dict[str, Any] = parse_canonical(canonical)
    record["Hash"] = stored_hash
    return record


def record_to_json(record: ChainRecord) -> bytes:
    """Return a stored record with its ``Hash`` as the JSON text of replies, without parsing it."""
    return b'%b,"Hash":"%b"}' % (record.canonical[:-1], record.hash.encode())


def normalize_record(record: ChainRecord) -> ChainRecord | None:
    """Return a record in a form that all JSON parsers read equally; None if the stored text is not a record.

    A record that is not in canonical form is converted to it; its values are the same.
    """
    if _BREAKS_JSON.search(record.hash):
        return None
    if _is_unambiguous(record.canonical):
        return record
    form = canonicalize_record(record.canonical)
    return None if form is None else record._replace(canonical=form)


def build_placeholder(record: ChainRecord) -> ChainRecord:
    """Return the placeholder of a record that :func:`normalize_record` rejects.

    The placeholder contains ``Damaged`` true, the RecordID and the stored text. Its Hash is the stored one, which does
    not match its content.
    """
    content = record.canonical.decode("utf-8", "replace")
    members = {"Content": content, "Damaged": True, "RecordID": record_id(record.sequence)}
    return record._replace(canonical=orjson.dumps(members), hash=_BREAKS_JSON.sub("?", record.hash))


def _is_unambiguous(text: bytes) -> bool:
    """Return whether text is a record that all JSON parsers read equally; if False, it may still be such a record."""
    try:
        value = orjson.loads(text)
        # orjson's output has unique names and no integer beyond ±(2^53-1).
        if type(value) is not dict or not value or "Hash" in value or orjson.dumps(value, None, STRICT) != text:
            return False
    except (TypeError, ValueError):
        return False
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH or not is_too_deep(value)


def find_first_fault(records: Iterable[Mapping[str, Any]], genesis: str) -> str | None:
    """Verify a chain from its first record on; return a description of the first fault, or None.

    Args:
        records: records in order, including ``Hash``.
        genesis: from :func:`genesis_hash`.
    """
    previous = genesis
    for sequence, record in enumerate(records, start=1):
        if record["RecordID"] != record_id(sequence):
            return f"{record_id(sequence)} is missing"
        if record["PreviousHash"] != previous:
            return f"{record['RecordID']} does not link to the record before it"
        if digest(canonical_bytes({key: value for key, value in record.items() if key != "Hash"})) != record["Hash"]:
            return f"{record['RecordID']} does not match the digest of its content"
        previous = record["Hash"]
    return None


def _event_members(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name in EVENT_FIELDS if (value := event.get(name)) is not None}


@lru_cache(_KNOWN_AUTHORS)
def _dump_author(user_id: str) -> bytes:
    """Return the end of an event's canonical text, which contains its author."""
    return b',"UserID":%b}' % canonical_value(user_id, "UserID")


def _too_large_error(size: int) -> WorkspaceError:
    detail = f"The record has {size} bytes in canonical form; the maximum is {MAX_RECORD_BYTES}."
    return WorkspaceError(Kind.TOO_LARGE, "RECORD_TOO_LARGE", detail)
