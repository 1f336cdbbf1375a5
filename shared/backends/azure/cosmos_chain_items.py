"""Conversion of audit records and segment heads to Cosmos DB items and back, and the items' partition keys."""

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import orjson

from shared.errors import WorkspaceError
from shared.provenance.hash_rule import format_record_id, get_filter_fields, sequence_from_record_id
from shared.provenance.ports import ChainKey, ChainRecord, Target, Tip
from shared.provenance.records import parse_record

HEAD_ID: Final = "head"
STATUS_ID: Final = "status"
"""Id of a chain's status item, with the newest checkpoint's size and the last verification.

The item is in the partition of the chain's first segment.
"""
PENDING_ID: Final = "pending-"
"""Beginning of the ids of items in the index of pending amendments; ids of records are numbers."""
MAX_BATCH_RECORDS: Final = 98
"""Maximum number of records in a batch of 100 operations; the other two write the head and the pending amendments."""
MAX_BATCH_BYTES: Final = 2 * 1024 * 1024 - 16_384
"""Maximum size in bytes of a batch's records: 2 MB, minus 16 KiB for the head item and the rest of the request."""

LAST_SEQUENCE: Final = 10**12 - 1
_RECORD_OVERHEAD: Final = 8_192
_MAX_TEXT_BYTES: Final = 1_500_000
_MAX_PROJECTED_BYTES: Final = 512
_LONGEST_ESCAPE: Final = 6
_DIGEST: Final = "sha256:"
_QUOTES: Final = 2
_FRAME_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class HeadCounts:
    """Counts of a chain's records; the newest head item of the chain contains them.

    Attributes:
        first_at: time of the chain's first record; empty if an earlier version of the service appended this record and
            its time is not read yet.
        counted_from: number of records at the start of the chain that are not counted yet, because an earlier version
            of the service appended them; 0 if all records are counted.
        pending: number of counted amendments that were stored as pending, minus the number of counted decisions. It can
            be negative while amendments with a counted decision are themselves not counted yet.
    """

    first_at: str
    counted_from: int
    pending: int

    @property
    def are_complete(self) -> bool:
        """True if the counts cover the whole chain."""
        return self.counted_from == 0 and bool(self.first_at)


@dataclass(frozen=True, slots=True)
class SegmentHead:
    """Head of one segment (partition) of a chain: describes the segment and its newest record.

    Attributes:
        segment: number of the segment, from 1.
        tip: sequence number, hash and time of the segment's newest record.
        size: estimated size of the segment's records in bytes.
        sealed: True if the segment accepts no more records.
        etag: ETag of the head item.
        counts: counts of the whole chain; None if an earlier version of the service wrote the head.
    """

    segment: int
    tip: Tip
    size: int
    sealed: bool
    etag: str
    counts: HeadCounts | None = None

    def to_tip(self) -> Tip:
        """Convert the head to a tip: the sequence number, hash and time of the chain's last record.

        The token of the tip encodes the head's other attributes, for instance the ETag.
        """
        counts = self.counts
        counted = f"{counts.first_at}|{counts.counted_from}|{counts.pending}" if counts else "||"
        token = f"{self.segment}|{self.size}|{int(self.sealed)}|{counted}|{self.etag}"
        return replace(self.tip, token=token)

    @classmethod
    def from_tip(cls, tip: Tip) -> "SegmentHead | None":
        """Restore the segment's head from a tip that :meth:`to_tip` has built.

        Return None for the tip of an empty chain.
        """
        if not tip.token:
            return None
        segment, size, sealed, first_at, counted_from, pending, etag = tip.token.split("|", 6)
        counts = HeadCounts(first_at, int(counted_from), int(pending)) if counted_from else None
        return cls(int(segment), tip, int(size), sealed == "1", etag, counts)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> "SegmentHead":
        """Parse a segment's head from its Cosmos DB item; invalid properties count as missing."""
        members = item.get("tip")
        members = members if isinstance(members, dict) else {}
        # The partition key is the only property that cannot be changed in an existing item.
        segment, scope = _to_int_or_zero(item["chain"].rpartition("-")[2]), item.get("scope", "")
        tip = Tip(
            _to_int_or_zero(members.get("sequence")),
            str(members.get("hash", "")),
            str(members.get("timestamp", "")),
            states_other_scope=not isinstance(scope, str)
            or item["chain"] != _compute_partition_key_of_scope(scope, segment),
        )
        sealed, counts = item.get("sealed") is True, _parse_head_counts_if_valid(item.get("counts"))
        return cls(segment, tip, _to_int_or_zero(item.get("size")), sealed, item["_etag"], counts)


def compute_partition_key(chain: ChainKey, segment_number: int) -> str:
    """Return the partition key of a segment.

    The key contains a hash of the chain's scope, because a scope can be long and have any characters.
    """
    return _compute_partition_key_of_scope(chain.scope_key, segment_number)


def _compute_partition_key_of_scope(scope_key: str, segment_number: int) -> str:
    # Only an edited head item has a scope with an unpaired surrogate.
    digest = hashlib.sha256(scope_key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{digest}-{segment_number:06d}"


def head_to_item(chain: ChainKey, head: SegmentHead) -> dict[str, Any]:
    """Convert a segment's head to a Cosmos DB item.

    The item has an empty property ``append``, because the container's unique key requires this property.
    """
    tip = {"sequence": head.tip.sequence, "hash": head.tip.hash, "timestamp": head.tip.timestamp}
    place = {"id": HEAD_ID, "chain": compute_partition_key(chain, head.segment), "append": "", "scope": chain.scope_key}
    item = {**place, "segment": head.segment, "tip": tip, "size": head.size, "sealed": head.sealed}
    if head.counts is not None:
        counts = head.counts
        item["counts"] = {"firstAt": counts.first_at, "from": counts.counted_from, "pending": counts.pending}
    return item


def build_pending_amendments_item(
    chain: ChainKey, segment_number: int, timestamp: str, sequences: Sequence[int]
) -> dict[str, Any]:
    """Build an item of the index of pending amendments, for amendments with the same time.

    Args:
        chain: chain of the amendments.
        segment_number: number of the segment whose partition contains the item.
        timestamp: time of the amendments.
        sequences: sequence numbers of the amendments, ascending.
    """
    place = {
        "id": f"{PENDING_ID}{format_record_id(sequences[0])}",
        "chain": compute_partition_key(chain, segment_number),
    }
    members = {"append": place["id"], "scopeKey": chain.scope_key, "pendingAt": timestamp}
    return {**place, **members, "sequences": list(sequences)}


def _parse_head_counts_if_valid(properties: object) -> HeadCounts | None:
    if not isinstance(properties, dict):
        return None
    first_at, counted_from, pending = properties.get("firstAt"), properties.get("from"), properties.get("pending")
    # A boolean is an instance of int, but it cannot be parsed from the token of a tip.
    if not (isinstance(first_at, str) and type(counted_from) is int and type(pending) is int):
        return None
    # The separator of a tip's token is not part of a time.
    return HeadCounts(first_at.replace("|", ""), max(counted_from, 0), pending)


def chain_key_from_genuine_head_item(target: Target, item: Mapping[str, Any]) -> ChainKey | None:
    """Parse the key of a chain from a head item; return None if the item is stored in a partition of another chain."""
    is_foreign = SegmentHead.from_item(item).tip.states_other_scope
    return None if is_foreign else ChainKey(target, item.get("scope", ""))


def compute_max_bytes_in_batch(canonical_json: bytes) -> int:
    """Return the maximum number of bytes that a record with this canonical JSON takes in a transactional batch."""
    return _count_content_bytes(canonical_json) + _RECORD_OVERHEAD


def estimate_stored_bytes(record: ChainRecord) -> int:
    """Estimate the number of bytes that a record takes in its partition, without the index."""
    fields = sum(len(name) + len(hash_filter_value_if_long(value)) for name, value in record.projection.items())
    return _count_content_bytes(record.canonical) + fields + _FRAME_BYTES


def record_to_item(partition_key: str, record: ChainRecord) -> dict[str, Any]:
    """Convert an audit record to its Cosmos DB item in the partition with the key ``partition_key``.

    The canonical JSON is stored as text, because Cosmos DB would store its numbers as doubles. If the escaped text is
    too long for an item, the JSON is stored as base64.
    """
    if _is_stored_as_text(record.canonical):
        content = {"text": record.canonical.decode()}
    else:
        content = {"base64": base64.b64encode(record.canonical).decode()}
    fields = {name: hash_filter_value_if_long(value) for name, value in record.projection.items()}
    place = {"id": format_record_id(record.sequence), "chain": partition_key, "append": record.append_id}
    return {**place, "hash": record.hash, "p": fields, **content}


def record_from_item(item: Mapping[str, Any]) -> ChainRecord | None:
    """Convert a Cosmos DB item to a record without validation; return None if the item is not a record."""
    sequence = sequence_from_record_id(item["id"])
    if sequence is None:
        return None
    canonical = _canonical_json_from_item(item)
    fields = item.get("p")
    restored = _restore_filter_fields(fields if isinstance(fields, dict) else {}, canonical)
    return ChainRecord(sequence, canonical, str(item.get("hash", "")), str(item.get("append", "")), restored)


def hash_filter_value_if_long(value: str) -> str:
    """Return the text by which queries filter for a record field's value: the value, or its digest if it is long."""
    if not value.startswith(_DIGEST):
        if len(value) * _LONGEST_ESCAPE <= _MAX_PROJECTED_BYTES:
            return value
        if len(orjson.dumps(value)) - _QUOTES <= _MAX_PROJECTED_BYTES:
            return value
    return _DIGEST + hashlib.sha256(value.encode()).hexdigest()


def _canonical_json_from_item(item: Mapping[str, Any]) -> bytes:
    text = item.get("text")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(str(item.get("base64", "")), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _restore_filter_fields(fields: Mapping[str, Any], canonical_json: bytes) -> dict[str, str]:
    """Return the filter fields of an item with their original values: long values instead of their digests.

    Filter fields are copies of a record's fields, by which queries filter. An item stores the digest of a long value;
    the value itself is in ``canonical_json``. A damaged field contains neither a short text nor this digest, but for
    instance a number. It is returned as a text that begins with U+FFFD; verification then finds that it differs from
    the content.
    """
    restored: dict[str, Any] = {}
    content: Mapping[str, Any] | None = None
    for name, value in fields.items():
        if _is_stored_form(value, value):
            restored[name] = value
            continue
        # Most records have no such field, so their content is not parsed.
        content = _parse_filter_fields_of_content(canonical_json) if content is None else content
        original = content.get(name)
        restored[name] = original if _is_stored_form(value, original) else f"\ufffd{value!r}"
    return restored


def _is_stored_form(stored: Any, original: Any) -> bool:
    """Return whether ``stored`` is the form in which an item stores the text ``original``: itself, or a digest."""
    try:
        return isinstance(original, str) and hash_filter_value_if_long(original) == stored
    except (TypeError, UnicodeEncodeError):
        # Only a damaged item has a text with an unpaired surrogate.
        return False


def _parse_filter_fields_of_content(canonical_json: bytes) -> Mapping[str, Any]:
    """Return the filter fields of a record's content; an empty mapping if the content is damaged."""
    try:
        return get_filter_fields(parse_record(canonical_json, ""))
    except (ValueError, TypeError, AttributeError, WorkspaceError):
        return {}


def _to_int_or_zero(value: object) -> int:
    return int(value) if isinstance(value, int | float | str) and str(value).isdecimal() else 0


def _is_stored_as_text(canonical_json: bytes) -> bool:
    escaped = _count_escaped_bytes(canonical_json)
    return escaped <= _MAX_TEXT_BYTES or escaped <= _count_base64_bytes(canonical_json)


def _count_content_bytes(canonical_json: bytes) -> int:
    """Return the size in bytes of canonical JSON in its item: as escaped text or as base64."""
    return (
        _count_escaped_bytes(canonical_json)
        if _is_stored_as_text(canonical_json)
        else _count_base64_bytes(canonical_json)
    )


def _count_escaped_bytes(canonical_json: bytes) -> int:
    # Canonical text contains no control characters, so JSON escapes only these two.
    return len(canonical_json) + canonical_json.count(b'"') + canonical_json.count(b"\\")


def _count_base64_bytes(canonical_json: bytes) -> int:
    return (len(canonical_json) + 2) // 3 * 4
