"""What stands in Cosmos DB: records and heads as items, and the partitions they lie in."""

import base64
import binascii
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from shared.errors import WorkspaceError
from shared.provenance.hash_rule import record_id, sequence_of
from shared.provenance.ports import ChainKey, ChainRecord, Target, Tip
from shared.provenance.records import parse_record, project_record

HEAD_ID: Final = "head"
MAX_BATCH_RECORDS: Final = 99
MAX_BATCH_WEIGHT: Final = 2 * 1024 * 1024 - 16_384
"""Two megabytes, without what the head and the frame of the request take."""

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
    """Where a chain ends, within one of its segments.

    Attributes:
        segment: from 1.
        tip: what the head item says; its token is made of this head.
        size: bytes of the segment's records, about.
        sealed: whether the segment takes no more records.
        etag: of the head item.
    """

    segment: int
    tip: Tip
    size: int
    sealed: bool
    etag: str

    def to_tip(self) -> Tip:
        """Return the tip with the token from which :meth:`from_tip` makes this head again."""
        token = f"{self.segment}|{self.size}|{int(self.sealed)}|{self.etag}"
        return Tip(self.tip.sequence, self.tip.hash, self.tip.timestamp, token)

    @classmethod
    def from_tip(cls, tip: Tip) -> "SegmentHead | None":
        """Return the head of a tip, None for a chain without one."""
        if not tip.token:
            return None
        segment, size, sealed, etag = tip.token.split("|", 3)
        return cls(int(segment), tip, int(size), sealed == "1", etag)

    @classmethod
    def from_item(cls, item: Mapping[str, Any]) -> "SegmentHead":
        """Return the head that an item holds; what a forger spoilt counts as missing, for the verifier to notice."""
        said = item.get("tip")
        said = said if isinstance(said, dict) else {}
        tip = Tip(_whole(said.get("sequence")), str(said.get("hash", "")), str(said.get("timestamp", "")))
        # The partition key is the one member that nobody can change.
        segment = _whole(item["chain"].rpartition("-")[2])
        return cls(segment, tip, _whole(item.get("size")), item.get("sealed") is True, item["_etag"])


def partition(chain: ChainKey, segment: int) -> str:
    """Return the partition key of a segment; scopes are hashed, since they may be any text of any length."""
    return f"{hashlib.sha256(chain.scope_key.encode()).hexdigest()}-{segment:06d}"


def head_item(chain: ChainKey, head: SegmentHead) -> dict[str, Any]:
    """Return the item of a head; ``append`` is there because a unique key takes one item without it at most."""
    tip = {"sequence": head.tip.sequence, "hash": head.tip.hash, "timestamp": head.tip.timestamp}
    place = {"id": HEAD_ID, "chain": partition(chain, head.segment), "append": "", "scope": chain.scope_key}
    return {**place, "segment": head.segment, "tip": tip, "size": head.size, "sealed": head.sealed}


def chain_from_item(target: Target, item: Mapping[str, Any]) -> ChainKey | None:
    """Return the chain that a head item belongs to; None when it lies elsewhere than that chain's heads do."""
    chain = ChainKey(target, str(item.get("scope", "")))
    return chain if item["chain"] == partition(chain, SegmentHead.from_item(item).segment) else None


def weight(canonical: bytes) -> int:
    """Return the most bytes that a record takes in a batch."""
    return min(_escaped(canonical), _in_base64(canonical)) + _RECORD_OVERHEAD


def estimate_stored_bytes(record: ChainRecord) -> int:
    """Return about how many bytes a record takes in its segment, before indexing."""
    fields = sum(len(name) + len(project_value(value)) for name, value in record.projection.items())
    return min(_escaped(record.canonical), _in_base64(record.canonical)) + fields + _FRAME_BYTES


def record_item(key: str, record: ChainRecord) -> dict[str, Any]:
    """Return the item of a record in a partition.

    The canonical bytes stand there as text, since Cosmos holds numbers as doubles; as base64 where escaping makes
    the text long, so that the largest record fits an item.
    """
    escaped = _escaped(record.canonical)
    if escaped <= _MAX_TEXT_BYTES or escaped <= _in_base64(record.canonical):
        content = {"text": record.canonical.decode()}
    else:
        content = {"base64": base64.b64encode(record.canonical).decode()}
    fields = {name: project_value(value) for name, value in record.projection.items()}
    place = {"id": record_id(record.sequence), "chain": key, "append": record.append_id}
    return {**place, "hash": record.hash, "p": fields, **content}


def record_from_item(item: Mapping[str, Any]) -> ChainRecord | None:
    """Return the record of an item as it stands there, whoever wrote it; None when its id is no record's."""
    sequence = sequence_of(item["id"])
    if sequence is None:
        return None
    canonical = _canonical(item)
    fields = item.get("p")
    found = _restored(_texts(fields) if isinstance(fields, dict) else {}, canonical)
    return ChainRecord(sequence, canonical, str(item.get("hash", "")), str(item.get("append", "")), found)


def project_value(value: str) -> str:
    """Return what stands for a filter's field: the value, or its digest where that is shorter than the value."""
    if not value.startswith(_DIGEST):
        if len(value) * _LONGEST_ESCAPE <= _MAX_PROJECTED_BYTES:
            return value
        if len(orjson.dumps(value)) - _QUOTES <= _MAX_PROJECTED_BYTES:
            return value
    return _DIGEST + hashlib.sha256(value.encode()).hexdigest()


def _canonical(item: Mapping[str, Any]) -> bytes:
    text = item.get("text")
    if isinstance(text, str):
        return text.encode("utf-8", "surrogatepass")
    try:
        return base64.b64decode(str(item.get("base64", "")), validate=True)
    except (binascii.Error, ValueError):
        return b""


def _texts(fields: Mapping[str, Any]) -> dict[str, str]:
    """Return filter fields as text; what is none by a forger's hand becomes what no field says."""
    return {name: value if isinstance(value, str) else f"\ufffd{value!r}" for name, value in fields.items()}


def _restored(fields: dict[str, str], canonical: bytes) -> dict[str, str]:
    """Put the values back whose digests stand in a projection; what disagrees with the record stays as it is."""
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


def _whole(value: object) -> int:
    return int(value) if isinstance(value, int | float | str) and str(value).isdecimal() else 0


def _escaped(canonical: bytes) -> int:
    # Canonical text has no raw control characters: JSON escapes nothing else in it.
    return len(canonical) + canonical.count(b'"') + canonical.count(b"\\")


def _in_base64(canonical: bytes) -> int:
    return (len(canonical) + 2) // 3 * 4
