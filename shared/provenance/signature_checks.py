"""Check of the signatures in a chain of amendments: each must contain the hash of the decided amendment.

This check is separate from the verification of records, because a signature concerns two records of the chain.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from shared.provenance.canonical import parse_json_if_canonical
from shared.provenance.chain_verification import ChainFault
from shared.provenance.hash_rule import format_record_id, sequence_from_record_id
from shared.provenance.ports import ChainKey, ChainRecord, ChainStore
from shared.provenance.signatures import MEMBER, RECORD_HASH
from shared.runtime import Runtime

_PAGE_RECORDS: Final = 1_000
_PAGE_BYTES: Final = 8_000_000


class _SignedDecision(NamedTuple):
    """Signed decision: its RecordID, the RecordID of its amendment, and the hash that its signature contains."""

    record_id: str
    amendment: object
    record_hash: object


async def find_signature_hash_fault(
    store: ChainStore, chain: ChainKey, first_sequence: int, last_sequence: int, runtime: Runtime
) -> ChainFault | None:
    """Return the fault of the first signature whose hash differs from the hash of the decided amendment.

    Return None if all hashes match.

    Args:
        store: store of the chain, whose records are verified already.
        chain: key of a scope's chain of amendments.
        first_sequence: sequence number of the first signed decision.
        last_sequence: sequence number of the last signed decision.
        runtime: source of worker threads.

    Raises:
        WorkspaceError: UNAVAILABLE if the store does not respond.
    """
    after = first_sequence - 1
    while after < last_sequence:
        page = await store.read(chain, after, limit=min(_PAGE_RECORDS, last_sequence - after), max_bytes=_PAGE_BYTES)
        if not page.records:
            return None
        known = {format_record_id(record.sequence): record.hash for record in page.records}
        for decision in await runtime.run_in_thread(_list_signed_decisions, page.records):
            amendment_hash = await _find_amendment_hash(store, chain, decision.amendment, known)
            if amendment_hash is None or decision.record_hash != amendment_hash:
                here = decision.record_id
                return ChainFault(here, f"{here}: the signature names another record")
        after = page.records[-1].sequence
    return None


def _list_signed_decisions(records: Sequence[ChainRecord]) -> list[_SignedDecision]:
    return list(_iterate_signed_decisions(records))


def _iterate_signed_decisions(records: Sequence[ChainRecord]) -> Iterator[_SignedDecision]:
    for record in records:
        content = parse_json_if_canonical(record.canonical)
        if type(content) is dict and is_signed_decision(content):
            signature = content[MEMBER]
            named = signature.get(RECORD_HASH) if isinstance(signature, dict) else None
            yield _SignedDecision(format_record_id(record.sequence), content["AmendmentID"], named)


def is_signed_decision(content: Mapping[str, object]) -> bool:
    """Return whether a record is a decision about an amendment and has a signature, which is possibly invalid."""
    return MEMBER in content and "AmendmentID" in content


async def _find_amendment_hash(
    store: ChainStore, chain: ChainKey, amendment_id: object, known_hashes: Mapping[str, str]
) -> str | None:
    """Return the stored hash of the amendment with this RecordID; None if the amendment does not exist.

    ``known_hashes`` has hashes of records that are already read, by RecordID.
    """
    if isinstance(amendment_id, str) and amendment_id in known_hashes:
        return known_hashes[amendment_id]
    sequence = sequence_from_record_id(amendment_id)
    if not sequence:
        return None
    page = await store.read(chain, sequence - 1, limit=1, max_bytes=1)
    return next((record.hash for record in page.records if record.sequence == sequence), None)
