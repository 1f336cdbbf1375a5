"""Tests of appends to chains with a forged head item or a future time, which are rejected."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.errors import Kind, WorkspaceError
from shared.http.problems import build_error_headers
from shared.provenance.append_guards import reject_forged_head
from shared.provenance.hash_rule import LAST_SEQUENCE
from shared.provenance.records import build_event_draft, seal_record
from shared.runtime import SYSTEM_RUNTIME
from shared.timestamps import format_rfc3339, now
from tests.unit.shared.provenance.chains import (
    OF_PLATFORM,
    PLATFORM,
    Ledger,
    build_event,
    change_head_item,
    open_reopened_ledger,
)

COUNT = 4


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide two chains without a checkpoint; the next append reads their head items from the store again."""
    async with open_reopened_ledger(tmp_path, COUNT) as opened:
        yield opened


async def read_rejection_detail(ledger: Ledger) -> str:
    """Append an event, check that it is rejected, with Retry-After only if waiting helps, and return the detail."""
    with pytest.raises(WorkspaceError) as refusal:
        await ledger.events.append_to_chain(PLATFORM, "editor", build_event(9))
    assert (refusal.value.kind, refusal.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")
    is_forged = "an operator must verify the chain" in refusal.value.detail
    assert ("Retry-After" in build_error_headers(refusal.value)) is not is_forged
    return refusal.value.detail


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00.000000Z", "soon"])
async def test_an_append_after_a_forged_time_is_rejected(ledger: Ledger, time: str) -> None:
    """If the head item has a future time that is not the last record's, an append is rejected."""
    change_head_item(ledger, f"UPDATE chains SET timestamp = '{time}'")
    assert "an operator must verify" in await read_rejection_detail(ledger)
    assert len(await ledger.records(PLATFORM)) == COUNT


@pytest.mark.parametrize("sequence", [2**63 - 1, LAST_SEQUENCE, -1, -(2**63)])
async def test_a_head_item_beyond_the_largest_record_id_is_rejected(ledger: Ledger, sequence: int) -> None:
    """A head item whose sequence number has over 12 digits causes an ordinary rejection, not a database error."""
    change_head_item(ledger, f"UPDATE chains SET sequence = {sequence}")
    assert "an operator must verify" in await read_rejection_detail(ledger)
    assert not (await ledger.verify(PLATFORM)).chain_valid


HASH_OF_FIRST = f"(SELECT hash FROM records WHERE sequence = 1 AND chain = (SELECT chain FROM chains {OF_PLATFORM}))"


@pytest.mark.parametrize("said", ["'x'", "''", f"'{'0' * 64}'", HASH_OF_FIRST])
async def test_an_append_after_a_forged_hash_is_rejected(ledger: Ledger, said: str) -> None:
    """If the head item has a hash other than the last record's, appends are rejected until the item is repaired."""
    true = (await ledger.records(PLATFORM))[-1].hash
    change_head_item(ledger, f"UPDATE chains SET hash = {said}")
    assert "an operator must verify" in await read_rejection_detail(ledger)
    change_head_item(ledger, f"UPDATE chains SET hash = '{true}'")
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(9))
    assert (await ledger.verify(PLATFORM)).chain_valid


async def test_a_cached_tip_does_not_hide_a_forged_hash(ledger: Ledger) -> None:
    """If the head item was changed, a process with a cached tip reads it again before the next append."""
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(8))
    change_head_item(ledger, "UPDATE chains SET hash = 'x'")
    assert "an operator must verify" in await read_rejection_detail(ledger)
    assert len(await ledger.records(PLATFORM)) == COUNT + 1


@pytest.mark.parametrize("missing", [1, 2])
async def test_an_append_is_rejected_if_a_record_follows_the_head_item(ledger: Ledger, missing: int) -> None:
    """If a record is stored after the head item's record, an append fails at once, because a retry cannot succeed."""
    number = COUNT - missing
    last = f"(SELECT hash FROM records WHERE chain = chains.chain AND sequence = {number})"
    change_head_item(ledger, f"UPDATE chains SET sequence = {number}, hash = {last}")
    assert "does not match its last record" in await read_rejection_detail(ledger)


async def test_a_cached_tip_does_not_hide_a_record_that_follows_the_head_item(ledger: Ledger) -> None:
    """If a record is inserted after the head item's record, a process with a cached tip rejects the next append."""
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(8))
    chain = f"(SELECT chain FROM chains {OF_PLATFORM})"
    move = f"UPDATE records SET sequence = {COUNT + 9} WHERE sequence = 2 AND chain = {chain}"
    ledger.tamper(lambda file: file.execute(move))
    assert "has a record that its head row does not include" in await read_rejection_detail(ledger)


async def test_an_append_of_another_process_is_no_forged_head(ledger: Ledger) -> None:
    """If another process appends after the tip was read, the head item is not reported as forged."""
    tip = await ledger.store.read_tip(PLATFORM)
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(8))
    await reject_forged_head(ledger.store, PLATFORM, tip, format_rfc3339(now()), SYSTEM_RUNTIME)


async def test_an_operator_can_remove_future_records(ledger: Ledger) -> None:
    """After an operator removes records with a future time and resets the head item, appends succeed."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    tip = await ledger.store.read_tip(PLATFORM)
    made = seal_record(
        build_event_draft("u", build_event(9)), COUNT + 1, "2999-01-01T00:00:00.000000Z", tip.hash, "ahead"
    )
    await ledger.store.append(PLATFORM, [made], tip)
    assert "more than an hour ahead" in await read_rejection_detail(ledger)
    chain = f"(SELECT chain FROM chains {OF_PLATFORM})"
    left = f"(SELECT sequence, hash, timestamp FROM records WHERE chain = {chain} ORDER BY sequence DESC LIMIT 1)"
    ledger.tamper(lambda file: file.execute(f"DELETE FROM records WHERE sequence > {COUNT} AND chain = {chain}"))
    change_head_item(ledger, f"UPDATE chains SET (sequence, hash, timestamp) = {left}")
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(9))
    assert (await ledger.verify(PLATFORM)).chain_valid
