"""Items of audit chains in Cosmos DB: records, heads, and their partition keys."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.errors import WorkspaceError
from shared.provenance.hash_rule import record_id, sequence_from_record_id
from shared.provenance.ports import ChainKey, ChainRecord, Target, Tip
from shared.provenance.records import parse_record, project_record

HEAD_ID: Final = "head"
MAX_BATCH_RECORDS: Final = 99
MAX_BATCH_WEIGHT: Final = 2 * 1024 * 1024 - 16_384
"""Maximum weight of a batch: two megabytes, minus the head item and the frame of the request."""

LAST_SEQUENCE: Final = 10**12 - 1
_RECORD_OVERHEAD: Final = 8_192
_MAX_TEXT_BYTES: Final = 1_500_000
_MAX_PROJECTED_BYTES: Final = 512
_LONGEST_ESCAPE: Final = 6
_DIGEST: Final = "sha256:"
_QUOTES: Final = 2
_FRAME_BYTES: Final = 400


@dataclass(frozen=True, slots=True)
class SegmentHead:
    """Head of one segment of a chain.

    Attributes:
        segment: number of the segment, from 1.
        tip: sequence, hash and time of the newest record of the segment.
        size: estimated bytes of the segment's records.
        sealed: whether the segment accepts no more records.
        etag: ETag of the head item.
    """

    segment: int
    tip: Tip
    size: int
    sealed: bool
    etag: str

    def to_tip(self) -> Tip:
        """Convert the head to a tip. The tip's token contains the other attributes, for :meth:`from_tip`."""
        token = f"{self.segment}|{self.size}|{int(self.sealed)}|{self.etag}"
        return Tip(self.tip.sequence, self.tip.hash, self.tip.timestamp, token)

    @classmethod
    def from_tip(cls, tip: Tip) -> "SegmentHead | None":
        """Restore a head from the tip of :meth:`to_tip`; None if the chain has no head item."""
        if not tip.token:
            return None
        segment, size, sealed, etag = tip.token.split("|", 3)
        return cls(int(segment), tip, int(size), sealed == "1", etag)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> "SegmentHead":
        """Parse a chain's head from its Cosmos DB item. Invalid members count as missing; verification reports them."""
        members = item.get("tip")
        members = members if isinstance(members, dict) else {}
        tip = Tip(_to_int(members.get("sequence")), str(members.get("hash", "")), str(members.get("timestamp", "")))
        # The partition key is the only member that cannot be changed in an existing item.
        segment = _to_int(item["chain"].rpartition("-")[2])
        return cls(segment, tip, _to_int(item.get("size")), item.get("sealed") is True, item["_etag"])


def partition_key(chain: ChainKey, segment: int) -> str:
    """Return the partition key of a segment. The scope is hashed, because it may be long and contain any characters."""
    return f"{hashlib.sha256(chain.scope_key.encode()).hexdigest()}-{segment:06d}"


def head_to_item(chain: ChainKey, head: SegmentHead) -> dict[str, Any]:
    """Convert a head to its Cosmos DB item. Its member ``append`` satisfies the unique key on ``append``."""
    tip = {"sequence": head.tip.sequence, "hash": head.tip.hash, "timestamp": head.tip.timestamp}
    place = {"id": HEAD_ID, "chain": partition_key(chain, head.segment), "append": "", "scope": chain.scope_key}
    return {**place, "segment": head.segment, "tip": tip, "size": head.size, "sealed": head.sealed}


def chain_from_item(target: Target, item: Mapping[str, Any]) -> ChainKey | None:
    """Parse the key of a chain from a head item; None if the item is not in a partition of that chain."""
    chain = ChainKey(target, str(item.get("scope", "")))
    return chain if item["chain"] == partition_key(chain, SegmentHead.from_item(item).segment) else None


def batch_weight(canonical: bytes) -> int:
    """Return the maximum number of bytes that a record takes in a batch."""
    return min(_measure_escaped(canonical), _measure_base64(canonical)) + _RECORD_OVERHEAD


def estimate_stored_bytes(record: ChainRecord) -> int:
    """Estimate the number of bytes that a record takes in its segment, without the index."""
    fields = sum(len(name) + len(project_value(value)) for name, value in record.projection.items())
    return min(_measure_escaped(record.canonical), _measure_base64(record.canonical)) + fields + _FRAME_BYTES


def record_to_item(key: str, record: ChainRecord) -> dict[str, Any]:
    """Convert a record to its Cosmos DB item.

    The canonical bytes are stored as text, because Cosmos DB stores numbers as doubles. They are stored as base64 if
    escaping makes the text too long for an item.
    """
    escaped = _measure_escaped(record.canonical)
    if escaped <= _MAX_TEXT_BYTES or escaped <= _measure_base64(record.canonical):
        content = {"text": record.canonical.decode()}
    else:
        content = {"base64": base64.b64encode(record.canonical).decode()}
    fields = {name: project_value(value) for name, value in record.projection.items()}
    place = {"id": record_id(record.sequence), "chain": key, "append": record.append_id}
    return {**place, "hash": record.hash, "p": fields, **content}


def record_from_item(item: Mapping[str, Any]) -> ChainRecord | None:
    """Convert an item to a record without validation; None if the item's id is not a RecordID."""
    sequence = sequence_from_record_id(item["id"])
    if sequence is None:
        return None
    canonical = _parse_canonical(item)
    fields = item.get("p")
    restored = _restore_values(_to_texts(fields) if isinstance(fields, dict) else {}, canonical)
    return ChainRecord(sequence, canonical, str(item.get("hash", "")), str(item.get("append", "")), restored)


def project_value(value: str) -> str:
    """Return the value of a filter field as it is stored: a long value is replaced by its digest."""
    if not value.startswith(_DIGEST):
        if len(value) * _LONGEST_ESCAPE <= _MAX_PROJECTED_BYTES:
            return value
        if len(orjson.dumps(value)) - _QUOTES <= _MAX_PROJECTED_BYTES:
            return value
    return _DIGEST + hashlib.sha256(value.encode()).hexdigest()


def _parse_canonical(item: Mapping[str, Any]) -> bytes:
    text = item.get("text")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(str(item.get("base64", "")), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _to_texts(fields: Mapping[str, Any]) -> dict[str, str]:
    """Convert filter fields to text. A value of another type, which only forgery stores, becomes an invalid text."""
    return {name: value if isinstance(value, str) else f"\ufffd{value!r}" for name, value in fields.items()}


def _restore_values(fields: dict[str, str], canonical: bytes) -> dict[str, str]:
    """Replace the digests of long filter fields by the values in the record's content, if the digests match."""
    digests = [name for name, value in fields.items() if str(value).startswith(_DIGEST)]
    if not digests:
        return fields
    try:
        values = project_record(parse_record(canonical, ""))
    except (ValueError, TypeError, AttributeError, WorkspaceError):
        return fields
    for name in digests:
        value = values.get(name)
        if value is not None and project_value(value) == fields[name]:
            fields[name] = value
    return fields


def _to_int(value: object) -> int:
    return int(value) if isinstance(value, int | float | str) and str(value).isdecimal() else 0


def _measure_escaped(canonical: bytes) -> int:
    # Canonical text contains no control characters, so JSON escapes only these two.
    return len(canonical) + canonical.count(b'"') + canonical.count(b"\\")


def _measure_base64(canonical: bytes) -> int:
    return (len(canonical) + 2) // 3 * 4
