"""Audit records: what they are made of, how they are linked, and how they are read back."""

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
    sequence_of,
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
    "seal_record",
    "sequence_of",
    "to_json",
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
"""What a record takes over from its event; anything else in it is dropped."""

MAX_RECORD_BYTES: Final = 1_500_000
"""Most canonical bytes of one record; base64 of them, too, fits a Cosmos item of 2 MB."""

_OF_EVENTS: Final = ("ActionType", "EntityType", "EntityID")
_BREAKS_JSON: Final = re.compile(r"[^ !#-\[\]-~]")
_LINKS: Final = ("PreviousHash", "RecordID")
_SLOT: Final = uuid.uuid4().hex
"""Stands in drafts where a link goes; a caller cannot know it."""
_QUOTED_SLOT: Final = orjson.dumps(_SLOT)
_LINKS_LONGER: Final = 8
_KNOWN_AUTHORS: Final = 1_000
_LINK: Final = b',"PreviousHash":'
_PLACE: Final = b',"RecordID":'
_TIME: Final = b',"Timestamp":'
_LINKS_BYTES: Final = len(_PLACE + _TIME) + 66 + 14 + 29
"""With a quoted hash, RecordID and time."""


class RecordDraft(NamedTuple):
    """What is to become a record: all but its place, its time and its links.

    Attributes:
        before: the record's RFC 8785 bytes before the first value of its time and its two links.
        between: the bytes between the first value and the second.
        behind: the bytes between the second value and the third.
        after: the bytes after the third.
        time_first: whether the time stands before the links, as AmendedAt and ApprovedAt do; other times stand behind.
        projection: the fields that filters look at, but for ``Timestamp``.
        size: how many canonical bytes the record will have at most.
    """

    before: bytes
    between: bytes
    behind: bytes
    after: bytes
    time_first: bool
    projection: Mapping[str, str]
    size: int


def draft_record(body: Mapping[str, Any], time_field: str = "Timestamp") -> RecordDraft:
    """Return a draft that is canonical already, so that sealing is joining and cannot fail.

    Args:
        body: the record without RecordID, its time, PreviousHash and Hash; names are ASCII.
        time_field: the member that receives the time of the append.

    Raises:
        WorkspaceError: INVALID naming the member without canonical form; TOO_LARGE ``RECORD_TOO_LARGE``.
    """
    text = canonical_value({**body, **dict.fromkeys((*_LINKS, time_field), _SLOT)}, "")
    size = len(text) + _LINKS_LONGER
    if size > MAX_RECORD_BYTES:
        raise _too_large_error(size)
    before, between, behind, after = text.split(_QUOTED_SLOT)
    return RecordDraft(before, between, behind, after, time_field < _LINKS[0], project_record(body), size)


def draft_event(user_id: str, event: Mapping[str, Any]) -> RecordDraft:
    """Return an event as a draft; absent and null optional fields are left out.

    Args:
        user_id: the acting principal.
        event: what the caller says; only :data:`EVENT_FIELDS` of it are kept.

    Raises:
        WorkspaceError: as :func:`draft_record`.
    """
    members = _event_members(event)
    text = canonical_value(members, "")
    # Every member of an event sorts before the links, these before the time, and UserID is the last of all.
    before = text[:-1] + (_LINK if members else _LINK[1:])
    after = _dump_author(user_id)
    projected = {"UserID": user_id}
    for name in _OF_EVENTS:
        if name in members:
            projected[name] = members[name]
    size = len(before) + len(after) + _LINKS_BYTES
    if size > MAX_RECORD_BYTES:
        raise _too_large_error(size)
    return RecordDraft(before, _PLACE, _TIME, after, False, projected, size)


def seal_record(draft: RecordDraft, sequence: int, timestamp: str, previous_hash: str, append_id: str) -> ChainRecord:
    """Return the record that a draft becomes at a place of a chain.

    Args:
        draft: what the record is made of.
        sequence: its place, from 1.
        timestamp: RFC 3339 text in UTC with microseconds.
        previous_hash: ``Hash`` of the record before, or the chain's genesis hash.
        append_id: stays beside the record.
    """
    before, between, behind, after, time_first, projected, _ = draft
    time, link, place = orjson.dumps(timestamp), orjson.dumps(previous_hash), b'"%012d"' % sequence
    first, second, third = (time, link, place) if time_first else (link, place, time)
    canonical = b"".join((before, first, between, second, behind, third, after))
    hashed = sha256(canonical).hexdigest()
    return ChainRecord(sequence, canonical, hashed, append_id, {**projected, "Timestamp": timestamp})


def build_event_record(sequence: int, timestamp: str, user_id: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Return an event as a record without its links, as :func:`draft_event` takes it over."""
    return {"RecordID": record_id(sequence), "Timestamp": timestamp, "UserID": user_id, **_event_members(event)}


def damaged_record_error(sequence: int) -> WorkspaceError:
    """Return the error of what needs a record that somebody damaged in the store."""
    detail = f"Record {record_id(sequence)} is damaged in the store; verify the chain."
    return WorkspaceError(Kind.CONFLICT, "RECORD_DAMAGED", detail, recordId=record_id(sequence))


def parse_record(canonical: bytes, stored_hash: str) -> dict[str, Any]:
    """Return a stored record as callers see it."""
    record: dict[str, Any] = parse_canonical(canonical)
    record["Hash"] = stored_hash
    return record


def to_json(record: ChainRecord) -> bytes:
    """Return a stored record as callers see it, as JSON text, without parsing it."""
    return b'%b,"Hash":"%b"}' % (record.canonical[:-1], record.hash.encode())


def normalize_record(record: ChainRecord) -> ChainRecord | None:
    """Return a record that every reader sees alike, None when somebody left none in its place.

    What is a record in another form than the canonical one, is given in that: it has the same values.
    """
    if _BREAKS_JSON.search(record.hash):
        return None
    if _is_unambiguous(record.canonical):
        return record
    form = canonicalize_record(record.canonical)
    return None if form is None else record._replace(canonical=form)


def build_placeholder(record: ChainRecord) -> ChainRecord:
    """Return what is shown in the place of what is not :func:`normalize_record`.

    It has ``Damaged`` true, the place, the stored Hash, and what stands there as text; no digest fits it.
    """
    content = record.canonical.decode("utf-8", "replace")
    members = {"Content": content, "Damaged": True, "RecordID": record_id(record.sequence)}
    return record._replace(canonical=orjson.dumps(members), hash=_BREAKS_JSON.sub("?", record.hash))


def _is_unambiguous(text: bytes) -> bool:
    """Tell quickly whether text is a record that every reader sees alike; some that are need a closer look."""
    try:
        value = orjson.loads(text)
        # What orjson writes has each name once, and no integer that is not safe.
        if type(value) is not dict or not value or "Hash" in value or orjson.dumps(value, None, STRICT) != text:
            return False
    except (TypeError, ValueError):
        return False
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH or not is_too_deep(value)


def find_first_fault(records: Iterable[Mapping[str, Any]], genesis: str) -> str | None:
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


def _event_members(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name in EVENT_FIELDS if (value := event.get(name)) is not None}


@lru_cache(_KNOWN_AUTHORS)
def _dump_author(user_id: str) -> bytes:
    """Return what an event ends with."""
    return b',"UserID":%b}' % canonical_value(user_id, "UserID")


def _too_large_error(size: int) -> WorkspaceError:
    detail = f"The record takes {size} bytes in canonical form; at most {MAX_RECORD_BYTES} are taken."
    return WorkspaceError(Kind.TOO_LARGE, "RECORD_TOO_LARGE", detail)
