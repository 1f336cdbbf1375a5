"""Simple implementations of the rules for records and chains; tests compare the service's fast ones with them."""

from collections.abc import Iterable, Mapping
from typing import Any

from shared.provenance.canonical import encode_canonical_object
from shared.provenance.hash_rule import compute_record_hash, format_record_id
from shared.provenance.records import EVENT_FIELDS


def build_event_record(sequence: int, timestamp: str, user_id: str, event: Mapping[str, Any]) -> dict[str, Any]:
    """Build the record of an event without ``PreviousHash`` and ``Hash``.

    All other properties of the record are equal to those of :func:`shared.provenance.records.build_event_draft`.
    """
    return {
        "RecordID": format_record_id(sequence),
        "Timestamp": timestamp,
        "UserID": user_id,
        **{name: value for name in EVENT_FIELDS if (value := event.get(name)) is not None},
    }


def find_first_fault(records: Iterable[Mapping[str, Any]], genesis: str) -> str | None:
    """Verify the records of a chain from the first on; return a description of the first fault, or None.

    Args:
        records: all records of the chain in order, with their ``Hash``.
        genesis: genesis hash of the chain, from :func:`compute_genesis_hash`.
    """
    previous = genesis
    for sequence, record in enumerate(records, start=1):
        if record["RecordID"] != format_record_id(sequence):
            return f"{format_record_id(sequence)} is missing"
        if record["PreviousHash"] != previous:
            return f"{record['RecordID']} does not link to the record before it"
        if (
            compute_record_hash(encode_canonical_object({key: value for key, value in record.items() if key != "Hash"}))
            != record["Hash"]
        ):
            return f"{record['RecordID']} does not match the digest of its content"
        previous = record["Hash"]
    return None
