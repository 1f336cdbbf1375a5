"""Verification of exported audit records without the service.

The module needs only the standard library, ``cryptography`` and ``rfc8785``. This code is independent of the
verification in the service, so that two implementations of the rules must agree.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

import rfc8785

from oi.counts import format_count
from oi.json_text import build_object_rejecting_duplicates
from oi.verification.hash_rule import (
    MAX_DEPTH,
    compute_genesis_hash,
    compute_record_hash,
    describe_invalid_time,
    describe_non_text_fields,
    describe_time_order_fault,
    format_record_id,
    get_filter_fields,
    get_record_time,
    is_nested_too_deeply,
    is_record_time,
    parse_integer_or_exact_float,
    sequence_from_record_id,
)
from oi.verification.json_arrays import UnreadableError
from oi.verification.merkle import CompactRange
from oi.verification.notes import CheckpointContent

AMENDMENTS: Final = "DomainAmendments"
"""Target of the chains of amendments."""


class BrokenError(Exception):
    """An exported audit chain or an audit bundle is broken.

    Args:
        broken_at: RecordID of the first invalid or missing record, Hash of the second record of a fork,
            ``checkpoint``, or the name of a bundle's file.
        reason: description of the fault.
    """

    def __init__(self, broken_at: str, reason: str) -> None:
        super().__init__(reason)
        self.broken_at = broken_at


@dataclass(slots=True)
class _VerificationProgress:
    """State of the verification of exported records.

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


def parse_export(json_text: str) -> list[dict[str, Any]]:
    """Parse an export and return its records.

    Raises:
        UnreadableError: the text is not a JSON array of objects, or an object has a duplicate name.
    """
    return _require_records(_parse_json(json_text))


def parse_record_or_export(json_text: str) -> list[dict[str, Any]]:
    """Parse a file that contains one record or an export with at least one record; return the records.

    Raises:
        UnreadableError: as :func:`parse_export`, or the export is empty.
    """
    value = _parse_json(json_text)
    records = _require_records(value if isinstance(value, list) else [value])
    if not records:
        raise UnreadableError("the file contains no record")
    return records


def _parse_json(json_text: str) -> Any:
    try:
        return json.loads(
            json_text, parse_int=parse_integer_or_exact_float, object_pairs_hook=build_object_rejecting_duplicates
        )
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"the file is not JSON: {error}") from None


def _require_records(value: Any) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(record, dict) for record in value):
        raise UnreadableError("the file is not a JSON array of records")
    return value


def verify_export_and_count_records(
    records: Iterable[Mapping[str, Any]],
    workspace: str,
    target: str,
    scope_key: str = "",
    checkpoint: CheckpointContent | None = None,
) -> int:
    """Verify exported records from the chain's genesis hash on and return their number.

    Args:
        records: all records of the chain, oldest first, each with its ``Hash``; they are iterated once.
        workspace: the workspace's id.
        target: container of the chain.
        scope_key: scope of the chain, such as ``line-1``; empty for a chain of the whole workspace.
        checkpoint: content of a checkpoint with a verified signature; the chain must begin with the records that the
            checkpoint covers.

    Raises:
        BrokenError: a record is invalid or missing, or the checkpoint does not match; the error states the position.
    """
    progress = _VerificationProgress(compute_genesis_hash(workspace, target, scope_key))
    tree, signatures = CompactRange(), DecisionSignatures(is_complete=True)
    for record in _iterate_verified_records(records, progress):
        if checkpoint is not None and tree.size < checkpoint.size:
            tree.append([bytes.fromhex(record["Hash"])])
        if target == AMENDMENTS:
            signatures.add_record(record)
    if checkpoint is not None:
        _check_checkpoint_matches(tree, checkpoint)
    signatures.check()
    return progress.sequence


class DecisionSignatures:
    """Check of the electronic signatures of decisions: each must contain the hash of the decided amendment.

    A decision is the record of an approval or rejection.

    Args:
        is_complete: True if all records of a chain of amendments will be added. If False, the signature of a decision
            is not checked if its amendment was not added.
    """

    def __init__(self, *, is_complete: bool) -> None:
        self._is_complete = is_complete
        self._hashes: dict[str, str] = {}
        self._unconfirmed: list[tuple[str, str, str]] = []

    def add_record(self, record: Mapping[str, Any]) -> None:
        """Add a verified record; the caller adds the records in the order of the chain."""
        here = str(record.get("RecordID"))
        self._hashes[here] = str(record.get("Hash"))
        if "AmendmentID" not in record or "Signature" not in record:
            return
        signature, amendment = record["Signature"], str(record["AmendmentID"])
        named = str(signature.get("RecordHash")) if isinstance(signature, dict) else ""
        if self._hashes.get(amendment) != named:
            # Cut after the first surplus character, because many long texts would need much memory.
            self._unconfirmed.append((here, amendment[: len(here) + 1], named[: len(self._hashes[here]) + 1]))

    def check(self) -> None:
        """Check the signatures of all added records.

        Raises:
            BrokenError: a signature contains the hash of another record.
        """
        for here, amendment, named in self._unconfirmed:
            if (self._is_complete or amendment in self._hashes) and named != self._hashes.get(amendment):
                raise BrokenError(here, f"{here}: the signature names another record")


def _iterate_verified_records(
    records: Iterable[Mapping[str, Any]], progress: _VerificationProgress
) -> Iterator[Mapping[str, Any]]:
    """Verify records one after the other; yield each, or raise a BrokenError at the first fault."""
    rest = iter(records)
    for record in rest:
        reason = _describe_content_fault_or_empty(record)
        if not reason:
            _check_no_fork(record, progress)
            reason = _describe_link_fault_or_empty(record, progress) or _describe_field_fault_or_empty(record, progress)
        if reason:
            raise BrokenError(_find_broken_record_id(record, rest, progress), reason)
        stored = str(record["Hash"])
        progress.sequence += 1
        progress.successors[progress.last_hash] = (format_record_id(progress.sequence), stored)
        progress.last_hash = stored
        progress.time = get_record_time(record)
        yield record


def _find_broken_record_id(
    faulty: Mapping[str, Any], later_records: Iterator[Mapping[str, Any]], progress: _VerificationProgress
) -> str:
    """Return the RecordID of the first invalid or missing record; ``faulty`` is the record that failed verification.

    This is normally the RecordID that follows the last valid record. If records are missing before the invalid record,
    it is the RecordID in the invalid record.
    """
    expected, stated = format_record_id(progress.sequence + 1), faulty.get("RecordID")
    number = sequence_from_record_id(stated)
    if number is None or number <= progress.sequence or faulty.get("PreviousHash") == progress.last_hash:
        return expected
    missing = stated != expected and all(
        record.get("RecordID") != expected for record in _iterate_readable_records(later_records)
    )
    return format_record_id(number) if missing else expected


def _iterate_readable_records(records: Iterator[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield records until one cannot be read; then stop without an error, because an earlier fault is reported."""
    with suppress(BrokenError):
        yield from records


def _describe_content_fault_or_empty(record: Mapping[str, Any]) -> str:
    """Describe a fault in the content of one record; return an empty string if the content is valid."""
    here = str(record.get("RecordID"))
    content = {name: value for name, value in record.items() if name != "Hash"}
    if is_nested_too_deeply(content):
        return f"{here} has no canonical form: it is nested deeper than {MAX_DEPTH} levels"
    try:
        recomputed = compute_record_hash(rfc8785.dumps(content))
    except (ValueError, RecursionError) as error:
        return f"{here} has no canonical form: {error}"
    if recomputed == record.get("Hash"):
        return ""
    return f"the digest of the content of {here} differs from its Hash"


def describe_record_fault_or_empty(record: Mapping[str, Any]) -> str:
    """Describe a fault in one record, without comparison with other records; return an empty string if it is valid."""
    return _describe_content_fault_or_empty(record) or _describe_own_field_fault_or_empty(record)


def _check_no_fork(record: Mapping[str, Any], progress: _VerificationProgress) -> None:
    """Raise a BrokenError if a verified record with another Hash has the same PreviousHash as this record."""
    stored = str(record["Hash"])
    other, its_hash = progress.successors.get(str(record.get("PreviousHash")), ("", stored))
    if stored != its_hash:
        raise BrokenError(stored, f"fork: this record and {other} have the same PreviousHash")


def _describe_link_fault_or_empty(record: Mapping[str, Any], progress: _VerificationProgress) -> str:
    """Describe a fault in a record's RecordID or PreviousHash; return an empty string if both are valid."""
    here, expected = str(record.get("RecordID")), format_record_id(progress.sequence + 1)
    if here != expected:
        number = sequence_from_record_id(here)
        again = number is not None and number <= progress.sequence
        return f"{here} is in the place of {expected}{', a second time' if again else ''}"
    if record.get("PreviousHash") != progress.last_hash:
        before = (
            format_record_id(progress.sequence)
            if progress.sequence
            else "the genesis hash of this workspace, target and scope"
        )
        return f"{here} does not link to {before}"
    return ""


def _describe_field_fault_or_empty(record: Mapping[str, Any], progress: _VerificationProgress) -> str:
    """Describe a fault in a record's time or in the properties by which queries filter; empty if all are valid."""
    here, time = str(record.get("RecordID")), get_record_time(record)
    return _describe_own_field_fault_or_empty(record) or (
        describe_time_order_fault(here, progress.sequence) if time < progress.time else ""
    )


def _describe_own_field_fault_or_empty(record: Mapping[str, Any]) -> str:
    """Describe a fault in one record's filter properties or in its time's format; empty if all are valid."""
    here = str(record.get("RecordID"))
    mistimed = "" if is_record_time(get_record_time(record)) else describe_invalid_time(here)
    return describe_non_text_fields(here, get_filter_fields(record)) or mistimed


def _check_checkpoint_matches(tree: CompactRange, checkpoint: CheckpointContent) -> None:
    if tree.size < checkpoint.size:
        missing = format_record_id(tree.size + 1)
        raise BrokenError(
            missing, f"{missing} is missing: the checkpoint counts {format_count(checkpoint.size, 'record')}"
        )
    if tree.compute_root() != checkpoint.root:
        raise BrokenError("checkpoint", "the checkpoint was signed for other records than those in the export")
