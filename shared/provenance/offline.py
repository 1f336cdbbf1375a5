"""Verification of exported records without the service: it needs only the standard library and two packages.

The packages are ``cryptography`` and ``rfc8785``. This code is independent of the verification in the service, so that
two implementations of the rules must agree.
"""

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
    sequence_from_record_id,
)
from shared.provenance.merkle import CompactRange
from shared.provenance.notes import CheckpointContent


class BrokenError(Exception):
    """The chain is broken.

    Args:
        broken_at: RecordID of the first invalid or missing record, Hash of the second record of a fork, or
            ``checkpoint``.
        reason: description of the fault.
    """

    def __init__(self, broken_at: str, reason: str) -> None:
        super().__init__(reason)
        self.broken_at = broken_at


class UnreadableError(Exception):
    """The export is not a JSON array of records."""


@dataclass(slots=True)
class _Progress:
    """State of the verification.

    Attributes:
        sequence: number of verified records.
        last_hash: Hash of the last verified record, initially the genesis hash.
        time: time of the last verified record.
        successors: RecordID and Hash of each verified record, by its PreviousHash.
    """

    last_hash: str
    sequence: int = 0
    time: str = ""
    successors: dict[str, tuple[str, str]] = field(default_factory=dict)


def load(text: str) -> list[dict[str, Any]]:
    """Parse an export and return its records.

    Raises:
        UnreadableError: if the text is not a JSON array of objects, or an object has a duplicate name.
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
    checkpoint: CheckpointContent | None = None,
) -> int:
    """Verify exported records from the chain's genesis hash on and return their number.

    Args:
        records: the whole chain, oldest first, including ``Hash``.
        workspace: the workspace's id.
        target: container of the chain.
        scope_key: scope of a domain chain.
        checkpoint: content of a checkpoint with a verified signature; the chain must begin with the records that it
            covers.

    Raises:
        BrokenError: at the first invalid record, the first missing one, or the checkpoint.
    """
    progress = _Progress(genesis_hash(workspace, target, scope_key))
    tree = CompactRange()
    for hashed in _verify_records(records, progress):
        if checkpoint is not None and tree.size < checkpoint.size:
            tree.append([bytes.fromhex(hashed)])
    if checkpoint is not None:
        _compare_checkpoint(tree, checkpoint)
    return progress.sequence


def _verify_records(records: Sequence[Mapping[str, Any]], progress: _Progress) -> Iterator[str]:
    for index, record in enumerate(records):
        reason = _check_content(record)
        if not reason:
            _check_fork(record, progress)
            reason = _check_link(record, progress) or _check_fields(record, progress)
        if reason:
            raise BrokenError(_locate(records, index, progress), reason)
        stored = str(record["Hash"])
        progress.sequence += 1
        progress.successors[progress.last_hash] = (record_id(progress.sequence), stored)
        progress.last_hash = stored
        progress.time = record_time(record)
        yield stored


def _locate(records: Sequence[Mapping[str, Any]], index: int, progress: _Progress) -> str:
    """Return the RecordID that names the position of an invalid record, as far as the export shows the position.

    This is the position after the last valid record. If records before the invalid one are missing, it is the RecordID
    of the invalid one.
    """
    expected, stated = record_id(progress.sequence + 1), records[index].get("RecordID")
    number = sequence_from_record_id(stated)
    if number is None or number <= progress.sequence or records[index].get("PreviousHash") == progress.last_hash:
        return expected
    missing = all(record.get("RecordID") != expected for record in records[index:])
    return record_id(number) if missing else expected


def _check_content(record: Mapping[str, Any]) -> str:
    """Describe a fault in the content of one record; return an empty string if there is none."""
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
    return f"the digest of the content of {here} differs from its Hash"


def _check_fork(record: Mapping[str, Any], progress: _Progress) -> None:
    stored = str(record["Hash"])
    other, its_hash = progress.successors.get(str(record.get("PreviousHash")), ("", stored))
    if stored != its_hash:
        raise BrokenError(stored, f"fork: a second record claims the predecessor of {other}")


def _check_link(record: Mapping[str, Any], progress: _Progress) -> str:
    """Describe a fault in a record's RecordID or PreviousHash; return an empty string if there is none."""
    here, expected = str(record.get("RecordID")), record_id(progress.sequence + 1)
    if here != expected:
        number = sequence_from_record_id(here)
        again = number is not None and number <= progress.sequence
        return f"{here} is in the place of {expected}{', a second time' if again else ''}"
    if record.get("PreviousHash") != progress.last_hash:
        before = (
            record_id(progress.sequence)
            if progress.sequence
            else "the genesis hash of this workspace, target and scope"
        )
        return f"{here} does not link to {before}"
    return ""


def _check_fields(record: Mapping[str, Any], progress: _Progress) -> str:
    """Describe a fault in a record's time or filter fields; return an empty string if there is none."""
    here, time = str(record.get("RecordID")), record_time(record)
    mistimed = "" if is_time(time) else describe_invalid_time(here)
    return (
        describe_non_text_fields(here, project_record(record))
        or mistimed
        or (describe_earlier_time(here, progress.sequence) if time < progress.time else "")
    )


def _compare_checkpoint(tree: CompactRange, checkpoint: CheckpointContent) -> None:
    if tree.size < checkpoint.size:
        missing = record_id(tree.size + 1)
        raise BrokenError(missing, f"{missing} is missing: the checkpoint counts {checkpoint.size} records")
    if tree.root() != checkpoint.root:
        raise BrokenError("checkpoint", "the checkpoint was signed for another chain")


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a duplicate key")
    return members
