"""Tests that verification finds forged records with valid hashes in every chain store."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.key_files import FileNoteSigner
from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import try_canonicalise_record
from shared.provenance.chain_log import ChainLog
from shared.provenance.checkpoints import Checkpoints
from shared.provenance.hash_rule import compute_record_hash, format_record_id
from shared.provenance.ports import ChainRecord, ChainStore, Filters
from shared.provenance.queries import query_records
from shared.provenance.records import build_event_draft, parse_record, seal_record
from shared.provenance.verifier import ChainVerdict, ChainVerifier
from shared.runtime import Runtime
from shared.timestamps import format_rfc3339
from tests.adapters.test_chain import MANY, OPENERS, PLATFORM, append_records

COUNT = 3
LAST = format_record_id(COUNT + 1)
EVENT = {"ActionType": "A", "EntityType": "T", "EntityID": "1", "AfterState": {"n": 5}}
NOW = datetime(2026, 1, 5, 9, tzinfo=UTC)
"""An hour after the records that a filled chain has, less what they took."""


@pytest.fixture(params=[name for name in OPENERS if name != "cosmos endpoint"])
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ChainStore]:
    """Provide a chain of three records; each test runs with each kind of store."""
    async with OPENERS[request.param](tmp_path) as opened_store:
        await append_records(opened_store, PLATFORM, COUNT)
        yield opened_store


async def get_workspace_id() -> str:
    """Return the id of the workspace, from which the first hash of its chains is computed."""
    return "plant-a"


async def verify_chain(store: ChainStore, sequence: int | None = None, at: datetime = NOW) -> ChainVerdict:
    """Verify the chain with ``at`` as the current time, and return the verdict."""
    return await ChainVerifier(store, get_workspace_id, runtime=Runtime(now=lambda: at)).verify(PLATFORM, sequence)


async def store_forged_record(
    store: ChainStore, time: str, *, old_text: bytes = b"", new_text: bytes = b""
) -> ChainRecord:
    """Replace a text in the last record, and store the record with its new hash and a head document that matches."""
    tip = await store.read_tip(PLATFORM)
    record = seal_record(build_event_draft("u", EVENT), tip.sequence + 1, time, tip.hash, f"forged-{tip.sequence}")
    text = record.canonical.replace(old_text, new_text) if old_text else record.canonical
    forged = record._replace(canonical=text, hash=compute_record_hash(text))
    await store.append(PLATFORM, [forged], tip)
    return forged


async def get_rejection_detail(store: ChainStore, at: datetime = NOW) -> str:
    """Append with ``at`` as the current time, check that the append is rejected, and return the error detail."""
    with pytest.raises(WorkspaceError) as refusal:
        await ChainLog(store, get_workspace_id, runtime=Runtime(now=lambda: at)).append(
            PLATFORM, build_event_draft("u", EVENT)
        )
    assert (refusal.value.kind, refusal.value.code) == (Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE")
    assert (await store.read_tip(PLATFORM)).sequence == COUNT + 1
    return refusal.value.detail


def build_checkpoints(store: ChainStore, folder: Path, at: datetime) -> Checkpoints:
    """Return a service that signs checkpoints, with the time ``at`` as the current time."""
    notes, signer = FileCheckpointStore(folder / "notes"), FileNoteSigner(folder / "key.pem", folder / "notes")
    return Checkpoints(store, notes, signer, get_workspace_id, runtime=Runtime(now=lambda: at))


TEXTS = {
    "129 levels": (b'{"n":5}', b'{"n":%b}' % (b"[" * 127 + b"]" * 127)),
    "255 levels": (b'{"n":5}', b'{"n":%b}' % (b"[" * 253 + b"]" * 253)),
    "900 levels": (b'{"n":5}', b'{"n":%b}' % (b"[" * 898 + b"]" * 898)),
    "a name twice": (b'{"ActionType"', b'{"ActionType":"A","ActionType"'),
    "a Hash inside": (b',"PreviousHash"', b',"Hash":"x","PreviousHash"'),
    "a number of another form": (b'"n":5', b'"n":5E0'),
    "a zero below zero": (b'"n":5', b'"n":-0'),
    "a number that is not to be held": (b'"n":5', b'"n":9007199254740993'),
    "a blank": (b'{"n"', b'{ "n"'),
    "a list": (b'{"ActionType"', b'[{"ActionType"'),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_a_record_that_is_not_canonical_breaks_the_chain(store: ChainStore, name: str) -> None:
    """If a record is not in canonical form, its chain is invalid, whatever digest the record has."""
    forged = await store_forged_record(store, format_rfc3339(NOW), old_text=TEXTS[name][0], new_text=TEXTS[name][1])
    form = try_canonicalise_record(forged.canonical)
    verdict = await verify_chain(store, COUNT + 1)
    assert (verdict.chain_valid, verdict.broken_at) == (False, LAST)
    assert verdict.reason == f"{LAST} is not stored in its canonical form"
    assert (verdict.valid, verdict.recomputed_hash) == (False, None if form is None else compute_record_hash(form))
    shown = await query_records(store, PLATFORM, Filters())
    assert verdict.record == parse_record(shown.records[0].canonical, shown.records[0].hash)
    assert list(shown.damaged) == ([LAST] if form is None else [])
    assert ("Damaged" in (verdict.record or {})) == (form is None)


async def test_a_changed_record_with_a_matching_hash_breaks_only_its_chain(store: ChainStore) -> None:
    """A record with other bytes but a matching Hash is valid alone, but makes its chain invalid."""
    tip = await store.read_tip(PLATFORM)
    record = seal_record(build_event_draft("u", EVENT), tip.sequence + 1, format_rfc3339(NOW), tip.hash, "forged")
    await store.append(PLATFORM, [record._replace(canonical=record.canonical.replace(b":5", b": 5.0"))], tip)
    verdict = await verify_chain(store, COUNT + 1)
    assert (verdict.chain_valid, verdict.valid, verdict.recomputed_hash) == (False, True, record.hash)
    assert verdict.reason == f"{LAST} is not stored in its canonical form"
    assert verdict.record == parse_record(record.canonical, record.hash)


TIMES = ("zzzz", "", "2026-01-05T09:00:00Z", "2026-W02-1T09:00:00.000000Z", "2026-02-30T09:00:00.000000Z",
         "2026-01-05t09:00:00.000000z", "2026-01-05T09:00:00.000000+00:00", "2999-01-01T24:00:00.000000Z")  # fmt: skip


@pytest.mark.parametrize("time", TIMES)
async def test_a_record_time_in_another_format_is_rejected(store: ChainStore, tmp_path: Path, time: str) -> None:
    """If a record's time has another format, verification fails, and appends and checkpoints are rejected."""
    await store_forged_record(store, time)
    verdict = await verify_chain(store)
    assert (verdict.chain_valid, verdict.broken_at) == (False, LAST)
    assert verdict.reason == f"the time of {LAST} does not have the format 2026-01-05T08:00:00.000000Z"
    with pytest.raises(WorkspaceError) as refusal:
        await build_checkpoints(store, tmp_path, NOW).create_if_grown(PLATFORM)
    assert refusal.value.code == "CHECKPOINT_REFUSED"
    assert "verify the chain" in await get_rejection_detail(store)


@pytest.mark.parametrize(
    "time_ahead", [timedelta(hours=1, microseconds=1), timedelta(days=365_000)], ids=["hour", "ages"]
)
async def test_a_future_time_blocks_appends_until_this_time(
    store: ChainStore, tmp_path: Path, time_ahead: timedelta
) -> None:
    """If a record has a future time, appends and checkpoints are rejected until this time."""
    await store_forged_record(store, format_rfc3339(NOW + time_ahead))
    verdict = await verify_chain(store, COUNT + 1)
    assert (verdict.chain_valid, verdict.broken_at, verdict.valid) == (False, LAST, True)
    assert verdict.reason == f"{LAST} has a time more than an hour ahead of this host's clock"
    assert "more than an hour ahead" in await get_rejection_detail(store)
    with pytest.raises(WorkspaceError) as refusal:
        await build_checkpoints(store, tmp_path, NOW).create_if_grown(PLATFORM)
    assert refusal.value.code == "CHECKPOINT_REFUSED"
    later = NOW + time_ahead
    await ChainLog(store, get_workspace_id, runtime=Runtime(now=lambda: later)).append(
        PLATFORM, build_event_draft("u", EVENT)
    )
    assert (await verify_chain(store, at=later)).chain_valid
    assert await build_checkpoints(store, tmp_path, later).create_if_grown(PLATFORM)


async def test_the_first_of_several_future_times_is_reported(store: ChainStore) -> None:
    """If several records have future times, verification reports the first of these records."""
    for hours in (1, 2, 2, 3):
        await store_forged_record(store, format_rfc3339(NOW + timedelta(hours=hours)))
    assert (await verify_chain(store)).broken_at == format_record_id(COUNT + 2)


async def test_appends_succeed_if_clocks_differ_by_up_to_an_hour(store: ChainStore, tmp_path: Path) -> None:
    """If the clock of a process is up to an hour slow, its new records get the time of the previous record."""
    time = format_rfc3339(NOW + timedelta(hours=1))
    await store_forged_record(store, time)
    made = await ChainLog(store, get_workspace_id, runtime=Runtime(now=lambda: NOW)).append(
        PLATFORM, build_event_draft("u", EVENT)
    )
    assert made.record.projection["Timestamp"] == time
    assert (await verify_chain(store)).chain_valid
    assert await build_checkpoints(store, tmp_path, NOW).create_if_grown(PLATFORM)


async def test_after_a_clock_correction_appends_wait_for_the_last_record_time(store: ChainStore) -> None:
    """If a process corrects its fast clock, it rejects appends until the time of the last record."""
    at = NOW + timedelta(days=1)
    log = ChainLog(store, get_workspace_id, runtime=Runtime(now=lambda: at))
    await log.append(PLATFORM, build_event_draft("u", EVENT))
    at = NOW
    with pytest.raises(WorkspaceError) as refusal:
        await log.append(PLATFORM, build_event_draft("u", EVENT))
    assert refusal.value.code == "PROVENANCE_UNAVAILABLE"
    assert len((await store.read(PLATFORM, 0, limit=99, max_bytes=MANY)).records) == COUNT + 1
    at = NOW + timedelta(hours=23)
    await log.append(PLATFORM, build_event_draft("u", EVENT))
    assert (await verify_chain(store, at=at)).chain_valid
