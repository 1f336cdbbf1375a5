"""Audit records: drafts, sealing (a draft gets sequence number, time and hash), and parsing of stored records."""

import re
import uuid
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final, NamedTuple

import orjson

from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import (
    STRICT,
    encode_canonical_value,
    parse_canonical_json,
    try_canonicalise_record,
)
from shared.provenance.hash_rule import (
    MAX_DEPTH,
    format_record_id,
    get_filter_fields,
    is_nested_too_deeply,
)
from shared.provenance.ports import ChainRecord
from shared.provenance.signatures import MEMBER, SIGNED_AT

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
"""Properties of an event that its record contains; all others are dropped."""

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
"""Number of bytes that sealing adds to a draft, at most: a hash, a RecordID and a time, with quotation marks."""


class RecordDraft(NamedTuple):
    """Draft of an audit record: its canonical text without time, RecordID and PreviousHash.

    The text is split into four parts; with a signature, into five. :func:`seal_record` inserts the three values between
    the first four parts. With a signature, it also inserts the time between ``part_4`` and ``part_5``.

    Attributes:
        part_1: canonical bytes before the first inserted value.
        part_2: bytes between the first inserted value and the second.
        part_3: bytes between the second inserted value and the third.
        part_4: bytes after the third inserted value.
        time_first: whether the time is the first of the three values, as with AmendedAt and ApprovedAt; otherwise it is
            the last value.
        projection: filter fields (copies of properties for queries) without ``Timestamp``.
        size: upper bound of the sealed record's size in canonical bytes.
        part_5: bytes after the time of the signature; None without a signature.
    """

    part_1: bytes
    part_2: bytes
    part_3: bytes
    part_4: bytes
    time_first: bool
    projection: Mapping[str, str]
    size: int
    part_5: bytes | None = None


def build_record_draft(body: Mapping[str, Any], time_field: str = "Timestamp") -> RecordDraft:
    """Build the draft of a record in canonical form; :func:`seal_record` then only joins bytes and cannot fail.

    Args:
        body: record without RecordID, time, PreviousHash and Hash; the names of its properties are ASCII. If it has
            a ``Signature``, the signature also gets the time of the append.
        time_field: name of the property that receives the time of the append, such as ``AmendedAt``.

    Raises:
        WorkspaceError: INVALID with the name of a property that has no canonical form; TOO_LARGE ``RECORD_TOO_LARGE``
            if the record exceeds :data:`MAX_RECORD_BYTES`.
    """
    signature = {MEMBER: {**body[MEMBER], SIGNED_AT: _SLOT}} if MEMBER in body else {}
    text = encode_canonical_value({**body, **signature, **dict.fromkeys((*_LINKS, time_field), _SLOT)}, "")
    size = len(text) + _LINKS_LONGER
    if size > MAX_RECORD_BYTES:
        raise _build_record_too_large_error(size)
    # In canonical order, the signature follows the links and the time.
    part_1, part_2, part_3, part_4, *last = text.split(_QUOTED_SLOT)
    is_time_first = time_field < _LINKS[0]
    return RecordDraft(part_1, part_2, part_3, part_4, is_time_first, get_filter_fields(body), size, *last)


def build_event_draft(user_id: str, event: Mapping[str, Any]) -> RecordDraft:
    """Build the draft of an event's record. Optional properties that are absent or null are not stored.

    Args:
        user_id: principal who caused the event.
        event: properties of the event; only :data:`EVENT_FIELDS` are stored.

    Raises:
        WorkspaceError: as :func:`build_record_draft`.
    """
    members = _select_event_properties(event)
    text = encode_canonical_value(members, "")
    # In canonical order, properties of an event precede the links, then follow the time and UserID.
    before = text[:-1] + (_LINK if members else _LINK[1:])
    after = _encode_user_id_suffix(user_id)
    projected = {"UserID": user_id}
    for name in _REQUIRED_EVENT_FIELDS:
        if name in members:
            projected[name] = members[name]
    size = len(before) + len(after) + _LINKS_BYTES
    if size > MAX_RECORD_BYTES:
        raise _build_record_too_large_error(size)
    return RecordDraft(before, _PLACE, _TIME, after, False, projected, size)


def seal_record(draft: RecordDraft, sequence: int, timestamp: str, previous_hash: str, append_id: str) -> ChainRecord:
    """Seal a draft: build the record with its position in a chain, its time and its hash.

    Args:
        draft: content of the record.
        sequence: sequence number of the record in the chain, from 1.
        timestamp: time of the append, RFC 3339 in UTC with microseconds.
        previous_hash: ``Hash`` of the previous record, or the chain's genesis hash.
        append_id: id of the append, stored with the record to detect repeated appends.
    """
    part_1, part_2, part_3, part_4, time_first, projected, _, part_5 = draft
    time, link, place = orjson.dumps(timestamp), orjson.dumps(previous_hash), b'"%012d"' % sequence
    first, second, third = (time, link, place) if time_first else (link, place, time)
    canonical = b"".join((part_1, first, part_2, second, part_3, third, part_4))
    if part_5 is not None:
        canonical += time + part_5
    hashed = sha256(canonical).hexdigest()
    return ChainRecord(sequence, canonical, hashed, append_id, {**projected, "Timestamp": timestamp})


def build_damaged_record_error(sequence: int) -> WorkspaceError:
    """Build the error for an operation on a record that is damaged in the store."""
    detail = f"Record {format_record_id(sequence)} is damaged in the store; verify the chain."
    return WorkspaceError(Kind.CONFLICT, "RECORD_DAMAGED", detail, recordId=format_record_id(sequence))


def parse_record(canonical: bytes, stored_hash: str) -> dict[str, Any]:
    """Parse the canonical bytes of a stored record and add the property ``Hash``, as in replies."""
    record: dict[str, Any] = parse_canonical_json(canonical)
    record["Hash"] = stored_hash
    return record


def format_record_count(count: int) -> str:
    """Format a number of records with its noun: ``1 record``, ``2 records``."""
    return "1 record" if count == 1 else f"{count} records"


def record_to_json(record: ChainRecord) -> bytes:
    """Return the JSON text of a stored record for replies, with its ``Hash``; the record is not parsed."""
    return b'%b,"Hash":"%b"}' % (record.canonical[:-1], record.hash.encode())


def try_normalise_record(record: ChainRecord) -> ChainRecord | None:
    """Convert a stored record to a form that all JSON parsers read equally.

    A record that already has such a form is returned unchanged; any other record is converted to canonical form. Return
    None if the text is not a valid record, or the stored Hash has a quotation mark, a backslash, or a character that is
    not printable ASCII.
    """
    if _BREAKS_JSON.search(record.hash):
        return None
    if _is_provably_unambiguous_json(record.canonical):
        return record
    form = try_canonicalise_record(record.canonical)
    return None if form is None else record._replace(canonical=form)


def build_damaged_record_placeholder(record: ChainRecord) -> ChainRecord:
    """Build a readable replacement of a damaged record: one for which :func:`try_normalise_record` returns None.

    The replacement has the properties ``Damaged`` (true), ``RecordID`` and ``Content`` (the stored text), and the
    stored Hash. The Hash does not match these properties.
    """
    content = record.canonical.decode("utf-8", "replace")
    members = {"Content": content, "Damaged": True, "RecordID": format_record_id(record.sequence)}
    return record._replace(canonical=orjson.dumps(members), hash=_BREAKS_JSON.sub("?", record.hash))


def _is_provably_unambiguous_json(text: bytes) -> bool:
    """Return True if a quick check proves that all JSON parsers read a record's text equally; False if unproven."""
    try:
        value = orjson.loads(text)
        # orjson's output has unique names and no integer beyond ±(2^53-1).
        if type(value) is not dict or not value or "Hash" in value or orjson.dumps(value, None, STRICT) != text:
            return False
    except (TypeError, ValueError):
        return False
    return text.count(b"{") + text.count(b"[") <= MAX_DEPTH or not is_nested_too_deeply(value)


def _select_event_properties(event: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name in EVENT_FIELDS if (value := event.get(name)) is not None}


@lru_cache(_KNOWN_AUTHORS)
def _encode_user_id_suffix(user_id: str) -> bytes:
    """Return the last bytes of an event's canonical JSON text: the property ``UserID`` and the closing brace."""
    return b',"UserID":%b}' % encode_canonical_value(user_id, "UserID")


def _build_record_too_large_error(record_bytes: int) -> WorkspaceError:
    detail = f"The record has {record_bytes} bytes in canonical form; the maximum is {MAX_RECORD_BYTES}."
    return WorkspaceError(Kind.TOO_LARGE, "RECORD_TOO_LARGE", detail)
