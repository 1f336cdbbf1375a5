"""Verifies exported records with the standard library, ``cryptography`` and ``rfc8785`` alone."""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import rfc8785

from shared.provenance.hash_rule import digest, earlier, genesis_hash, json_integer, own_time, record_id, sequence_of
from shared.provenance.merkle import CompactRange
from shared.provenance.notes import Checkpoint


class BrokenError(Exception):
    """The chain is broken.

    Args:
        broken_at: RecordID of the first bad record, of the first missing one at the end, the second record's Hash on a
            fork, or ``checkpoint``.
        reason: in words.
    """

    def __init__(self, broken_at: str, reason: str) -> None:
        super().__init__(reason)
        self.broken_at = broken_at


class UnreadableError(Exception):
    """The export is no JSON array of records."""


@dataclass(slots=True)
class _Seen:
    """The walk so far.

    Attributes:
        sequence: records seen.
        last_hash: Hash of the last one, the genesis hash at first.
        time: its own time.
        claimed: which record claims each predecessor, and its Hash.
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
        records = json.loads(text, parse_int=json_integer, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"the export is not JSON: {error}") from None
    if not isinstance(records, list) or not all(isinstance(record, dict) for record in records):
        raise UnreadableError("the export is not a JSON array of records")
    return records


def verify(
    records: Iterable[Mapping[str, Any]],
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
    seen = _Seen(genesis_hash(workspace, target, scope_key))
    tree = CompactRange()
    for hashed in _walked(records, seen):
        if checkpoint is not None and tree.size < checkpoint.size:
            tree.append([bytes.fromhex(hashed)])
    if checkpoint is not None:
        _compare(tree, checkpoint)
    return seen.sequence


def _walked(records: Iterable[Mapping[str, Any]], seen: _Seen) -> Iterator[str]:
    for record in records:
        stored = record.get("Hash")
        here = str(record.get("RecordID"))
        if not isinstance(stored, str) or _recomputed(record, here) != stored:
            raise BrokenError(here, f"the content of {here} does not have the digest that stands as its Hash")
        _check_link(record, here, stored, seen)
        seen.claimed[seen.last_hash] = (here, stored)
        seen.sequence += 1
        seen.last_hash = stored
        seen.time = own_time(record)
        yield stored


def _recomputed(record: Mapping[str, Any], here: str) -> str:
    content = {name: value for name, value in record.items() if name != "Hash"}
    try:
        return digest(rfc8785.dumps(content))
    except (ValueError, RecursionError) as error:
        raise BrokenError(here, f"{here} has no canonical form: {error}") from None


def _check_link(record: Mapping[str, Any], here: str, stored: str, seen: _Seen) -> None:
    expected = record_id(seen.sequence + 1)
    claimed = str(record.get("PreviousHash"))
    other, its_hash = seen.claimed.get(claimed, ("", stored))
    if stored != its_hash:
        raise BrokenError(stored, f"fork: a second record claims the predecessor of {other}")
    if here != expected:
        number = sequence_of(here)
        if number is not None and number <= seen.sequence:
            raise BrokenError(expected, f"{here} stands where {expected} belongs, a second time")
        raise BrokenError(here, f"{here} stands where {expected} belongs")
    if claimed != seen.last_hash:
        before = record_id(seen.sequence) if seen.sequence else "the genesis hash of this workspace, target and scope"
        raise BrokenError(here, f"{here} does not link to {before}")
    if own_time(record) < seen.time:
        raise BrokenError(here, earlier(here, seen.sequence))


def _compare(tree: CompactRange, checkpoint: Checkpoint) -> None:
    if tree.size < checkpoint.size:
        missing = record_id(tree.size + 1)
        raise BrokenError(missing, f"{missing} is missing: the checkpoint counts {checkpoint.size} records")
    if tree.root() != checkpoint.root:
        raise BrokenError("checkpoint", "the chain is not the one that the checkpoint was signed for")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a key twice")
    return members
