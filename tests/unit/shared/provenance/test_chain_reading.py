"""Tests of reading stored chains record by record."""

from collections.abc import Callable, Iterable
from dataclasses import replace

import pytest

from shared.provenance.chain_reading import find_last_record, read_record_time, verify_records_sequentially
from shared.provenance.chain_verification import ChainVerification
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, Row, Tip
from shared.runtime import SYSTEM_RUNTIME
from tests.unit.shared.provenance.chains import PLATFORM, WORKSPACE, Ledger

COUNT = 7
"""Number of records that the fixture ``ledger`` writes."""


def start_verification(leaves: int = 0) -> ChainVerification:
    """Return a new verification of the chain ``PLATFORM``; it begins at the first record."""
    return ChainVerification(compute_genesis_hash(WORKSPACE, PLATFORM.target, PLATFORM.scope_key), leaves)


async def test_records_are_verified_up_to_the_requested_one(ledger: Ledger) -> None:
    """The verification ends at the requested record, or at the last stored one."""
    for last in (1, 4, COUNT, COUNT + 3):
        verification = start_verification()
        await verify_records_sequentially(ledger.store, PLATFORM, verification, last)
        assert (verification.sequence, verification.fault) == (min(last, COUNT), None)


async def test_the_verification_ends_at_the_first_faulty_record(ledger: Ledger) -> None:
    """No record after the first faulty record is verified."""
    ledger.tamper(lambda file: file.execute("UPDATE records SET hash = 'x' WHERE sequence = 3"))
    verification = start_verification()
    await verify_records_sequentially(ledger.store, PLATFORM, verification, COUNT)
    assert verification.sequence == 2
    assert verification.fault is not None


async def test_a_repeated_stream_of_rows_gives_the_result_of_one_pass(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the store passes the rows again after a failure, the verification result does not change."""
    expected = start_verification(leaves=COUNT)
    await verify_records_sequentially(ledger.store, PLATFORM, expected, COUNT)
    stream = ledger.store.stream_rows

    async def stream_twice(chain: ChainKey, first: int, last: int, work: Callable[[Iterable[Row]], None]) -> None:
        await stream(chain, first, last - 2, work)
        await stream(chain, first, last, work)

    monkeypatch.setattr(ledger.store, "stream_rows", stream_twice)
    verification = start_verification(leaves=COUNT)
    await verify_records_sequentially(ledger.store, PLATFORM, verification, COUNT)
    assert verification == expected


async def test_the_last_record_is_the_one_of_the_head_item(ledger: Ledger) -> None:
    """The last record of a chain is the one that its head item states; it is None for an empty chain."""
    tip = await ledger.store.read_tip(PLATFORM)
    record = await find_last_record(ledger.store, PLATFORM, tip)
    assert record is not None
    assert (record.sequence, record.hash) == (COUNT, tip.hash)
    assert await read_record_time(record, SYSTEM_RUNTIME) == tip.timestamp
    assert await find_last_record(ledger.store, PLATFORM, Tip()) is None
    assert await find_last_record(ledger.store, PLATFORM, replace(tip, sequence=COUNT + 1)) is None
