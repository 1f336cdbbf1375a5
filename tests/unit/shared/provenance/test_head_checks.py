"""Tests of forged or missing head items of chains, which verification finds."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.provenance.hash_rule import format_record_id
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import build_record_draft
from tests.unit.shared.provenance.chains import (
    BATCH,
    OF_PLATFORM,
    PLATFORM,
    Ledger,
    build_event,
    change_head_item,
    open_ledger,
    open_reopened_ledger,
)

COUNT = 4
OTHER = ChainKey(Target.DOMAIN_EVENTS, "other")


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide two chains without a checkpoint; the next append reads their head items from the store again."""
    async with open_reopened_ledger(tmp_path, COUNT) as opened:
        yield opened


@pytest.mark.parametrize("time", ["2099-01-01T00:00:00.000000Z", "2020-01-01T00:00:00.000000Z", "soon", ""])
async def test_a_forged_time_of_the_head_item_is_found(ledger: Ledger, time: str) -> None:
    """If the time of a head item differs from that of its record, verification fails."""
    change_head_item(ledger, f"UPDATE chains SET timestamp = '{time}'")
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(COUNT))
    assert verdict.reason == f"the time of {format_record_id(COUNT)} differs from the time in the head item"


@pytest.mark.parametrize("sequence", [-(2**63), -1, 0])
async def test_a_head_item_below_sequence_number_1_is_reported(ledger: Ledger, sequence: int) -> None:
    """If the head item's sequence number is below 1, verification reports record 1 as a record after the head item."""
    change_head_item(ledger, f"UPDATE chains SET sequence = {sequence}")
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))


@pytest.mark.parametrize("tampering", ["DELETE FROM chains", "UPDATE chains SET target = 'AccessControl'"])
async def test_a_chain_with_a_deleted_head_item_is_reported_as_broken(ledger: Ledger, tampering: str) -> None:
    """If a chain's head item was deleted, the chain is reported as broken instead of empty."""
    change_head_item(ledger, tampering)
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))
    assert verdict.reason == f"{format_record_id(1)} is stored, but this chain has no head item"
    assert (await ledger.verify(BATCH)).chain_valid
    assert (await ledger.verify(OTHER)).empty


async def test_the_chain_number_of_a_deleted_head_item_is_not_reused(ledger: Ledger) -> None:
    """The internal chain number in a deleted head item is not reused, so that new scopes get their own records."""
    await ledger.fill(OTHER, 2)
    ledger.tamper(lambda file: file.execute("DELETE FROM chains WHERE chain = (SELECT max(chain) FROM chains)"))
    begun = [ChainKey(Target.DOMAIN_EVENTS, f"begun later {number}") for number in range(3)]
    for chain in begun:
        await ledger.fill(chain, 2)
        verdict = await ledger.verify(chain)
        assert (verdict.chain_valid, verdict.reason) == (True, "2 records, all sound")
    assert (await ledger.verify(OTHER)).broken_at == format_record_id(1)


async def test_concurrently_created_scopes_have_different_chain_numbers(ledger: Ledger) -> None:
    """If two processes create chains in one database file at once, the chains get different numbers."""
    ledger.tamper(lambda file: file.execute("DELETE FROM chains WHERE chain = (SELECT max(chain) FROM chains)"))
    begun = [ChainKey(Target.DOMAIN_EVENTS, f"at once {number}") for number in range(12)]
    async with open_ledger(ledger.folder) as second:
        await asyncio.gather(*((ledger, second)[number % 2].fill(chain, 2) for number, chain in enumerate(begun)))
    for chain in begun:
        assert (await ledger.verify(chain)).reason == "2 records, all sound"


@pytest.mark.parametrize("number", ["'text'", "9223372036854775807", "-5", "x'00'"])
async def test_a_forged_chain_number_does_not_prevent_new_scopes(ledger: Ledger, number: str) -> None:
    """Records with a forged chain number, even the highest or none, do not prevent appends to new scopes."""
    ledger.tamper(
        lambda file: file.execute(
            f"UPDATE records SET chain = {number} WHERE chain = (SELECT chain FROM chains {OF_PLATFORM})"
        )
    )
    await ledger.fill(OTHER, 2)
    assert [record.sequence for record in await ledger.records(OTHER)] == [1, 2]


@pytest.mark.parametrize("gone", range(1, COUNT))
async def test_records_without_head_item_and_first_record_are_found(ledger: Ledger, gone: int) -> None:
    """If any stored record possibly belongs to a chain without a head item, the chain is not reported as empty."""
    deleted = f"DELETE FROM records WHERE sequence <= {gone} AND chain = (SELECT chain FROM chains {OF_PLATFORM})"
    ledger.tamper(lambda file: file.executescript(f"{deleted}; DELETE FROM chains {OF_PLATFORM}"))
    for chain in (PLATFORM, OTHER):
        verdict = await ledger.verify(chain)
        assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(gone + 1))
        assert "has no head item and no first record" in verdict.reason
    assert (await ledger.verify(BATCH)).chain_valid
    assert (await ledger.verify(ChainKey(Target.DOMAIN_AMENDMENTS, "other"))).empty


RENUMBERED = {
    "two changed places": (
        "UPDATE records SET sequence = 99 WHERE sequence = 1 AND chain = @",
        "UPDATE records SET sequence = 1 WHERE sequence = 2 AND chain = @",
        "UPDATE records SET sequence = 2 WHERE sequence = 99 AND chain = @",
    ),
    "one left, renumbered": (
        "DELETE FROM records WHERE sequence <> 3 AND chain = @",
        "UPDATE records SET sequence = 1 WHERE chain = @",
    ),
    "the first moved on": (
        f"UPDATE records SET sequence = {COUNT + 1} WHERE sequence = 1 AND chain = @",
        "UPDATE records SET sequence = 1 WHERE sequence = 2 AND chain = @",
    ),
    "the first edited": (
        "DELETE FROM records WHERE sequence > 1 AND chain = @",
        "UPDATE records SET canonical = CAST(replace(canonical, 'editor', 'nobody') AS BLOB) WHERE chain = @",
        """UPDATE records SET canonical = CAST(replace(canonical, 'Hash":"', 'Hash":"0') AS BLOB) WHERE chain = @""",
    ),
}


@pytest.mark.parametrize("name", RENUMBERED)
async def test_moved_records_of_a_chain_without_head_item_are_found(ledger: Ledger, name: str) -> None:
    """If a chain's head item was deleted and its records were moved to another chain, it is not reported as empty."""
    statements = [one.replace("@", f"(SELECT chain FROM chains {OF_PLATFORM})") for one in RENUMBERED[name]]
    ledger.tamper(lambda file: file.executescript(";".join([*statements, f"DELETE FROM chains {OF_PLATFORM}"])))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(1))
    assert (await ledger.verify(BATCH)).chain_valid


async def test_orphaned_amendments_are_found_in_their_scope(ledger: Ledger) -> None:
    """Amendments whose head item is missing make only the chain of their own scope invalid."""
    mine, other = (ChainKey(Target.DOMAIN_AMENDMENTS, scope) for scope in ("mine", "other"))
    for _ in range(2):
        made = build_record_draft(
            {"ScopeKey": "mine", "AmendedBy": "ann", "EntityID": "B", "Status": "pending"}, "AmendedAt"
        )
        await ledger.events.log.append(mine, made)
    amendments = "WHERE target = 'DomainAmendments'"
    deleted = f"DELETE FROM records WHERE sequence = 1 AND chain = (SELECT chain FROM chains {amendments})"
    ledger.tamper(lambda file: file.executescript(f"{deleted}; DELETE FROM chains {amendments}"))
    verdict = await ledger.verify(mine)
    assert (verdict.chain_valid, verdict.empty, verdict.broken_at) == (False, False, format_record_id(2))
    assert (await ledger.verify(other)).empty
    assert (await ledger.verify(OTHER)).empty


async def test_a_restarted_chain_is_a_fork(ledger: Ledger) -> None:
    """If two records link to the genesis hash as first records, the chain is reported as forked."""
    [first, *_] = await ledger.records(BATCH)
    ledger.tamper(lambda file: file.execute("DELETE FROM chains WHERE target = 'DomainEvents'"))
    await ledger.events.append_to_chain(BATCH, "editor", build_event(9))
    verdict = await ledger.verify(BATCH)
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (False, True, first.hash)
