"""Tests of verifying a window, a range of records of a chain."""

import pytest

from shared.provenance.chain_reading import verify_records_sequentially
from shared.provenance.chain_verification import ChainVerification
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.window_verification import WindowRequest, WindowResult, verify_window
from tests.unit.shared.provenance.chains import PLATFORM, WORKSPACE, Ledger

FIRST, LAST = 5, 7


async def verify_before_window(ledger: Ledger, leaves: int = 0) -> ChainVerification:
    """Verify the records before the window."""
    verification = ChainVerification(compute_genesis_hash(WORKSPACE, PLATFORM.target, PLATFORM.scope_key), leaves)
    await verify_records_sequentially(ledger.store, PLATFORM, verification, FIRST - 1)
    return verification


async def test_a_valid_window_continues_a_verification(ledger: Ledger) -> None:
    """A verification that uses a window's result has the state of one that verified the window itself."""
    result = await verify_window(ledger.store, WindowRequest(PLATFORM, FIRST, LAST, LAST))
    with_window, alone = [await verify_before_window(ledger, LAST) for _ in range(2)]
    assert result.advance_verification_if_valid(with_window, LAST)
    await verify_records_sequentially(ledger.store, PLATFORM, alone, LAST)
    assert with_window == alone


async def test_a_window_after_a_different_record_is_not_used(ledger: Ledger) -> None:
    """The result of a window (range of records) is not used if the hash of the record before the window differs."""
    result = await verify_window(ledger.store, WindowRequest(PLATFORM, FIRST, LAST, 0))
    verification = await verify_before_window(ledger)
    verification.last_hash = "0" * 64
    assert not result.advance_verification_if_valid(verification, LAST)
    assert verification.sequence == FIRST - 1


@pytest.mark.parametrize("sequence", [FIRST, LAST])
async def test_a_window_with_a_faulty_record_is_invalid(ledger: Ledger, sequence: int) -> None:
    """Verifying a window (range of records) with an edited record gives no result."""
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET user_id = 'nobody' WHERE sequence = {sequence}"))
    assert await verify_window(ledger.store, WindowRequest(PLATFORM, FIRST, LAST, 0)) == WindowResult()


async def test_a_window_beyond_the_end_is_invalid(ledger: Ledger) -> None:
    """Verifying a window (range of records) with missing records gives no result."""
    assert await verify_window(ledger.store, WindowRequest(PLATFORM, FIRST, LAST + 1, 0)) == WindowResult()
