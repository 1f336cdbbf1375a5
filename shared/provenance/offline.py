"""Verifies exported records with the standard library, ``cryptography`` and ``rfc8785`` alone."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import rfc8785

from shared.provenance.hash_rule import (
    MAX_DEPTH,
    describe_earlier_time,
    describe_invalid_time,
    describe_non_text_fields,
    digest,
    genesis_hash,
    is_time,
    is_too_deep,
    parse_json_integer,
    project_record,
    record_id,
    record_time,
    sequence_of,
)
from shared.provenance.merkle import CompactRange
from shared.provenance.notes import Checkpoint


class BrokenError(Exception):
    """The chain is broken.

    Args:
        broken_at: RecordID of the place of the first bad record, of the first missing one at the end, the second
            record's Hash on a fork, or ``checkpoint``.
        reason: in words.
    """

    def __init__(self, broken_at: str, reason: str) -> None:
        super().__init__(reason)
        self.broken_at = broken_at


class UnreadableError(Exception):
    """The export is no JSON array of records."""


@dataclass(slots=True)
class _Progress:
    """The walk so far.

    Attributes:
        sequence: records seen.
        last_hash: Hash of the last one, the genesis hash at first.
        time: its own time.
        claimed: which place claims each predecessor, and its Hash.
    """

    last_hash: str
    sequence: int = 0
    time: str = ""
    claimed: dict[str, tuple[str, str]] = field(default_factory=dict)


def load(text: str) -> list[dict[str, Any]]:
    """Return the records of an export.

    Raises:
        UnreadableError: it is no JSON array of objects, or an object has a key twice.
    """
    try:
        records = json.loads(text, parse_int=parse_json_integer, object_pairs_hook=_reject_duplicate_names)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"the export is not JSON: {error}") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise UnreadableError("the export is not a JSON array of records")
    return records


def verify(
    records: Sequence[Mapping[str, Any]],
    workspace: str,
    target: str,
    scope_key: str = "",
    checkpoint: Checkpoint | None = None,
) -> int:
    """Walk exported records from the chain's genesis on, and return how many there are.

    Args:
        records: the whole chain, oldest first, ``Hash`` included.
        workspace: the workspace's id.
        target: the container.
        scope_key: the scope of a domain chain.
        checkpoint: opened and checked; the chain must begin with what it was signed for.

    Raises:
        BrokenError: at the first bad record, the first missing one, or the checkpoint.
    """
    seen = _Progress(genesis_hash(workspace, target, scope_key))
    tree = CompactRange()
    for hashed in _verify_records(records, seen):
        if checkpoint is not None and tree.size < checkpoint.size:
            tree.append([bytes.fromhex(hashed)])
    if checkpoint is not None:
        _compare_checkpoint(tree, checkpoint)
    return seen.sequence


def _verify_records(records: Sequence[Mapping[str, Any]], seen: _Progress) -> Iterator[str]:
    for index, record in enumerate(records):
        reason = _content_fault(record)
        if not reason:
            _check_fork(record, seen)
            reason = _link_fault(record, seen) or _fields_fault(record, seen)
        if reason:
            raise BrokenError(_locate(records, index, seen), reason)
        stored = str(record["Hash"])
        seen.sequence += 1
        seen.claimed[seen.last_hash] = (record_id(seen.sequence), stored)
        seen.last_hash = stored
        seen.time = record_time(record)
        yield stored


def _locate(records: Sequence[Mapping[str, Any]], index: int, seen: _Progress) -> str:
    """Return the RecordID of the place of a bad record, as far as an export shows it.

    That is the one behind the last sound record, unless records are missing before the bad one: then it is the
    RecordID that the bad one has.
    """
    expected, said = record_id(seen.sequence + 1), records[index].get("RecordID")
    number = sequence_of(said)
    if number is None or number <= seen.sequence or records[index].get("PreviousHash") == seen.last_hash:
        return expected
    missing = all(record.get("RecordID") != expected for record in records[index:])
    return record_id(number) if missing else expected


def _content_fault(record: Mapping[str, Any]) -> str:
    """Return what is wrong with a record by itself, empty when its content has its digest."""
    here = str(record.get("RecordID"))
    content = {name: value for name, value in record.items() if name != "Hash"}
    if is_too_deep(content):
        return f"{here} has no canonical form: it is nested deeper than {MAX_DEPTH} levels"
    try:
        recomputed = digest(rfc8785.dumps(content))
    except (ValueError, RecursionError) as error:
        return f"{here} has no canonical form: {error}"
    if recomputed == record.get("Hash"):
        return ""
    return f"the content of {here} does not have the digest that stands as its Hash"


def _check_fork(record: Mapping[str, Any], seen: _Progress) -> None:
    stored = str(record["Hash"])
    other, its_hash = seen.claimed.get(str(record.get("PreviousHash")), ("", stored))
    if stored != its_hash:
        raise BrokenError(stored, f"fork: a second record claims the predecessor of {other}")


def _link_fault(record: Mapping[str, Any], seen: _Progress) -> str:
    """Return what is wrong with a record's place, empty when it follows the last one."""
    here, expected = str(record.get("RecordID")), record_id(seen.sequence + 1)
    if here != expected:
        number = sequence_of(here)
        again = number is not None and number <= seen.sequence
        return f"{here} stands where {expected} belongs{', a second time' if again else ''}"
    if record.get("PreviousHash") != seen.last_hash:
        before = record_id(seen.sequence) if seen.sequence else "the genesis hash of this workspace, target and scope"
        return f"{here} does not link to {before}"
    return ""


def _fields_fault(record: Mapping[str, Any], seen: _Progress) -> str:
    """Return what is wrong with what filters look at in a record, its own time above all."""
    here, time = str(record.get("RecordID")), record_time(record)
    mistimed = "" if is_time(time) else describe_invalid_time(here)
    return (
        describe_non_text_fields(here, project_record(record))
        or mistimed
        or (describe_earlier_time(here, seen.sequence) if time < seen.time else "")
    )


def _compare_checkpoint(tree: CompactRange, checkpoint: Checkpoint) -> None:
    if tree.size < checkpoint.size:
        missing = record_id(tree.size + 1)
        raise BrokenError(missing, f"{missing} is missing: the checkpoint counts {checkpoint.size} records")
    if tree.root() != checkpoint.root:
        raise BrokenError("checkpoint", "the chain is not the one that the checkpoint was signed for")


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members
