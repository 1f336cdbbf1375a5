"""Tests that checkpoints are signed once for each size, computed in steps, and never signed for a broken chain."""

import asyncio
import base64
import json
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.key_files import FileNoteSigner, get_public_key_folder, rotate_checkpoint_key
from shared.backends.embedded.provenance import CHANGED
from shared.backends.embedded.provenance_overview import SqliteChainOverview
from shared.errors import Kind, WorkspaceError
from shared.provenance.canonical import encode_canonical_json
from shared.provenance.checkpoints import (
    Checkpoints,
    RetrySchedule,
    build_checkpoint_name,
    build_checkpoint_name_prefix,
)
from shared.provenance.hash_rule import compute_genesis_hash, compute_record_hash, format_record_id
from shared.provenance.merkle import CompactRange
from shared.provenance.notes import VerifierKey
from shared.provenance.ports import ChainKey, ChainStore, Target
from shared.runtime import Runtime
from shared.timestamps import now
from tests.unit.shared.provenance.chains import (
    BATCH,
    PLATFORM,
    WORKSPACE,
    Ledger,
    get_workspace_id,
    open_ledger,
    read_leaves,
)


def list_notes(folder: Path) -> list[Path]:
    """Return all checkpoint files in a folder and its subfolders."""
    return [file for file in folder.rglob("*") if file.is_file() and file.name.isdigit()]


async def test_the_newest_of_many_checkpoints_is_found(tmp_path: Path) -> None:
    """The newest of many checkpoints is found, even if a crash left an empty folder."""
    store = FileCheckpointStore(tmp_path)
    for size in (9, 999, 1_000, 1_000_000, 999_999_999):
        assert await store.create_if_missing(build_checkpoint_name(PLATFORM, size), str(size).encode())
        newest = await store.find_newest(build_checkpoint_name_prefix(PLATFORM))
        assert newest is not None
        assert (newest.name, newest.note) == (build_checkpoint_name(PLATFORM, size), str(size).encode())
    for file in list_notes(tmp_path):
        assert len(file.relative_to(tmp_path / build_checkpoint_name_prefix(PLATFORM)).parts) == 3
    await store.save_working_state(f"{build_checkpoint_name_prefix(PLATFORM)}tree", b"")
    (tmp_path / build_checkpoint_name_prefix(PLATFORM) / "001000" / "000").mkdir(parents=True)
    newest = await store.find_newest(build_checkpoint_name_prefix(PLATFORM))
    assert newest is not None
    assert newest.note == b"999999999"


async def test_a_checkpoint_is_a_signed_note(ledger: Ledger) -> None:
    """A checkpoint has origin, size and root, a blank line, and an ECDSA signature with the key's id, as in C2SP."""
    made = await ledger.checkpoints.create_if_grown(BATCH)
    assert made is not None
    text, _, signature = made.note.decode().rpartition("\n\n")
    origin, size, root = text.split("\n")
    assert origin == "oi-provenance/plant-a/DomainEvents/batch%2F7%20%2B%C3%BC"
    tree = CompactRange()
    tree.append(await read_leaves(ledger, BATCH))
    assert (size, base64.b64decode(root)) == ("3", tree.compute_root())
    dash, name, encoded = signature.removesuffix("\n").split(" ")
    key = await ledger.checkpoints.load_verifier_key()
    raw = base64.b64decode(encoded)
    assert (dash, name, raw[:4]) == ("\u2014", "oi-provenance/plant-a", key.key_id)
    key.parse_public_key().verify(raw[4:], f"{text}\n".encode(), ec.ECDSA(hashes.SHA256()))
    assert VerifierKey.parse(str(key)) == key
    assert str(key).split("+", 2)[2].startswith("AjBZ")


async def test_checkpoints_are_created_for_grown_chains(ledger: Ledger) -> None:
    """A checkpoint is signed once for each size of a chain; after the chain has grown, a new checkpoint is signed."""
    assert await ledger.checkpoints.create_all_and_count_them() == 2
    assert await ledger.checkpoints.create_all_and_count_them() == 0
    await ledger.fill(PLATFORM, 1)
    assert await ledger.checkpoints.create_all_and_count_them() == 1
    current = await ledger.checkpoints.load_newest_verified(PLATFORM)
    assert (current.checkpoint.size, current.stored.name) == (8, build_checkpoint_name(PLATFORM, 8))
    assert current.last_hash == (await ledger.records(PLATFORM))[-1].hash


async def test_a_changed_working_state_is_computed_again(ledger: Ledger) -> None:
    """If the stored working state was changed, truncated or lost, it is computed again before the next checkpoint."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    whole = CompactRange()
    whole.append(await read_leaves(ledger, PLATFORM))
    without_last = {"size": whole.size, "nodes": [node.hex() for node in whole.nodes], "last": ""}
    state = ledger.folder / "checkpoints" / f"{build_checkpoint_name_prefix(PLATFORM)}tree.state"
    said = json.loads(state.read_text())
    spoilt: list[dict[str, Any]] = [{"nodes": said["nodes"][::-1]}, {"last": "ab"}, {"last": "x"}, {"last": 5}]
    spoilt += [{"last": compute_genesis_hash(WORKSPACE, "PlatformConfig")}]
    changed = (json.dumps(said | change) for change in spoilt)
    for text in (json.dumps(without_last), "", "{}", '{"size":7,"nodes":[]}', *changed):
        state.write_text(text)
        await ledger.fill(PLATFORM, 1)
        made = await ledger.checkpoints.create_if_grown(PLATFORM)
        assert made is not None
        tree = CompactRange()
        tree.append(await read_leaves(ledger, PLATFORM))
        assert (await ledger.checkpoints.verify_and_parse_checkpoint(PLATFORM, made)).root == tree.compute_root()


@pytest.mark.parametrize("state", ["kept", "lost", "of an earlier version"])
@pytest.mark.parametrize("appended", [1, 4, 7])
async def test_a_restored_older_chain_is_not_signed(ledger: Ledger, state: str, appended: int) -> None:
    """If a chain was replaced with an older copy that has grown since, no checkpoint is signed."""
    older = await ledger.records(PLATFORM)
    await ledger.fill(PLATFORM, 4)
    await ledger.checkpoints.create_if_grown(PLATFORM)
    last = older[-1]

    def restore_older_chain(file: sqlite3.Connection) -> None:
        file.execute("DELETE FROM records WHERE chain = 1 AND sequence > ?", (last.sequence,))
        head = (last.sequence, last.hash, last.projection["Timestamp"])
        file.execute("UPDATE chains SET (sequence, hash, timestamp) = (?, ?, ?) WHERE chain = 1", head)

    ledger.tamper(restore_older_chain)
    damage_state(ledger, state)
    await ledger.fill(PLATFORM, 4 + appended)
    await assert_not_signed(ledger)


@pytest.mark.parametrize("state", ["kept", "lost", "of an earlier version"])
@pytest.mark.parametrize("mended", ["Hash and head", "Hash", "nothing"])
async def test_an_edited_last_record_is_not_signed(ledger: Ledger, state: str, mended: str) -> None:
    """If the last record that a checkpoint covers was changed later, no further checkpoint is signed."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    last = (await ledger.records(PLATFORM))[-1]
    text = encode_canonical_json(json.loads(last.canonical) | {"Description": "edited"})

    def edit_last_record(file: sqlite3.Connection) -> None:
        row = "chain = 1 AND sequence = 7"
        file.execute(f"UPDATE records SET canonical = ? WHERE {row}", (text,))
        if mended != "nothing":
            file.execute(f"UPDATE records SET hash = ? WHERE {row}", (compute_record_hash(text),))
        if mended == "Hash and head":
            file.execute("UPDATE chains SET hash = ? WHERE chain = 1", (compute_record_hash(text),))

    if mended == "Hash and head":
        ledger.tamper(edit_last_record)
        await ledger.fill(PLATFORM, 2)
    else:
        await ledger.fill(PLATFORM, 2)
        ledger.tamper(edit_last_record)
    damage_state(ledger, state)
    await assert_not_signed(ledger)


def damage_state(ledger: Ledger, how: str) -> None:
    """Delete the working state of checkpoints, or replace it with the format of an earlier version."""
    file = ledger.folder / "checkpoints" / f"{build_checkpoint_name_prefix(PLATFORM)}tree.state"
    if how == "lost":
        file.unlink()
    elif how != "kept":
        said = json.loads(file.read_text())
        tree = CompactRange(said["size"], [bytes.fromhex(node) for node in said["nodes"]])
        tree.append([bytes.fromhex(said["last"])])
        file.write_text(json.dumps({"size": tree.size, "nodes": [node.hex() for node in tree.nodes]}))


async def assert_not_signed(ledger: Ledger) -> None:
    """Check that no checkpoint is created and the newest one is unchanged."""
    before = await ledger.checkpoints.find_newest(PLATFORM)
    with pytest.raises(WorkspaceError) as caught:
        await ledger.checkpoints.create_if_grown(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert await ledger.checkpoints.find_newest(PLATFORM) == before


async def test_a_time_before_the_checkpoint_is_not_signed(ledger: Ledger) -> None:
    """If a new record has an earlier time than the last signed record, no checkpoint is signed."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 1)
    last = (await ledger.records(PLATFORM))[-1]
    value = json.loads(last.canonical) | {"Timestamp": "2026-01-01T00:00:00.000000Z"}

    def set_earlier_time(file: sqlite3.Connection) -> None:
        text = encode_canonical_json(value)
        fields = (text, compute_record_hash(text), value["Timestamp"])
        sql = "UPDATE records SET (canonical, hash, timestamp) = (?, ?, ?) WHERE chain = 1 AND sequence = ?"
        file.execute(sql, (*fields, last.sequence))
        file.execute("UPDATE chains SET (hash, timestamp) = (?, ?) WHERE chain = 1", fields[1:])

    ledger.tamper(set_earlier_time)
    with pytest.raises(WorkspaceError, match="earlier than the time of") as caught:
        await ledger.checkpoints.create_if_grown(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert (await ledger.verify(PLATFORM)).broken_at == format_record_id(last.sequence)


async def test_a_broken_chain_is_not_signed(ledger: Ledger) -> None:
    """A broken chain is not signed until it is repaired; other chains are signed."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.fill(PLATFORM, 2)
    ledger.tamper(lambda file: file.execute("UPDATE records SET user_id = 'x' WHERE chain = 1 AND sequence = 9"))
    with pytest.raises(WorkspaceError) as caught:
        await ledger.checkpoints.create_if_grown(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert await ledger.checkpoints.create_all_and_count_them() == 1
    ledger.tamper(lambda file: file.execute("UPDATE records SET user_id = 'editor' WHERE chain = 1 AND sequence = 9"))
    assert await ledger.checkpoints.create_all_and_count_them() == 1


async def test_a_rotation_does_not_replace_lost_public_keys(ledger: Ledger) -> None:
    """Without the public key of its checkpoint, a chain is broken after a rotation until that key is stored again."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    path = ledger.folder / "checkpoint-key.pem"
    [public] = get_public_key_folder(path).iterdir()
    content = public.read_bytes()
    for file in (path, public):
        file.unlink()
    with pytest.raises(WorkspaceError) as caught:
        await ledger.verify(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    rotate_checkpoint_key(path)
    assert "the newest checkpoint is not trusted" in (await ledger.verify(PLATFORM)).reason
    (public.parent / "old.pem").write_bytes(content)
    assert (await ledger.verify(PLATFORM)).chain_valid


async def test_an_existing_checkpoint_is_not_replaced(tmp_path: Path) -> None:
    """An existing checkpoint is not replaced, and its file cannot be written."""
    store = FileCheckpointStore(tmp_path)
    name = build_checkpoint_name(ChainKey(Target.DOMAIN_EVENTS, "../../etc/passwd"), 5)
    assert ".." not in name
    assert await store.create_if_missing(name, b"first")
    assert not await store.create_if_missing(name, b"second")
    stored = await store.find_newest(name[:-12])
    assert stored is not None
    assert (stored.name, stored.note) == (name, b"first")
    (file,) = list_notes(tmp_path)
    assert file.stat().st_mode & 0o222 == 0
    assert await store.find_newest("DomainEvents/none/") is None


class CallRecorder:
    """Wrapper of a store that records all calls."""

    def __init__(self, store: ChainStore) -> None:
        self._store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._store, name)


async def test_a_checkpoint_run_without_changes_makes_one_store_call(ledger: Ledger) -> None:
    """If no chain has grown, a run of the checkpoint job calls the store only once, even if a chain is broken."""
    for scope in range(20):
        await ledger.fill(ChainKey(Target.DOMAIN_EVENTS, f"s{scope}"), 1)
    ledger.tamper(lambda file: file.execute("UPDATE records SET user_id = 'x' WHERE chain = 1"))
    moment = now()
    store = CallRecorder(ledger.store)
    checkpoints = ledger.checkpoints
    checkpoints._store = cast("ChainStore", store)
    checkpoints._runtime = Runtime(now=lambda: moment)
    assert await checkpoints.create_all_and_count_them() == 21
    moment += timedelta(hours=2)
    assert await checkpoints.create_all_and_count_them() == 0
    store.asked.clear()
    listed = [chain async for chain, _ in ledger.store.iterate_tips(checkpoints._swept_from)]
    assert listed == []
    sweeps = [len(store.asked) for _ in range(8) if await checkpoints.create_all_and_count_them() == 0]
    assert [after - before for before, after in pairwise([0, *sweeps])].count(1) >= 5
    (broken,) = checkpoints._failures._known
    assert broken == PLATFORM


async def test_a_record_gets_a_checkpoint_if_the_clock_was_set_back_and_forward(ledger: Ledger) -> None:
    """A record that is appended while the clock is set back by up to an hour is in the next checkpoint."""
    chain = ChainKey(Target.DOMAIN_EVENTS, "tank-1")
    ahead = now() + timedelta(minutes=59)
    ledger.checkpoints._runtime = Runtime(now=lambda: ahead)
    await ledger.checkpoints.create_all_and_count_them()
    # The record has the current time, and the clock is ahead again when the next run starts.
    await ledger.fill(chain, 1)
    assert await ledger.checkpoints.create_all_and_count_them() == 1
    assert await ledger.checkpoints.count_covered_records(chain) == 1


async def test_a_broken_chain_is_retried_at_growing_intervals(ledger: Ledger) -> None:
    """The checkpoint of a broken chain is retried at intervals that double up to 64 runs, until a repair."""
    failures, tried = RetrySchedule(), []
    failures.add(PLATFORM)
    for sweep in range(1, 300):
        if failures.start_sweep_and_list_retries():
            tried.append(sweep)
            failures.add(PLATFORM)
    assert tried[:7] == [1, 3, 7, 15, 31, 63, 127]
    assert {after - before for before, after in pairwise(tried[6:])} == {64}
    failures.remove(PLATFORM)
    assert failures.start_sweep_and_list_retries() == []


async def test_changed_chains_are_listed_once_from_an_index(ledger: Ledger) -> None:
    """Changed chains are listed page by page from an index, each exactly once."""
    plan: list[str] = []
    ledger.tamper(lambda file: plan.extend(row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {CHANGED}", ("", 0, 9))))
    assert len(plan) == 1
    assert "USING INDEX chains_by_time" in plan[0]
    rows = [(number + 9, str(number)) for number in range(520)]
    ledger.tamper(lambda file: file.executemany("INSERT INTO chains VALUES (?, 'DomainEvents', ?, 1, '', 'z')", rows))
    chains = [chain async for chain, _ in ledger.store.iterate_tips()]
    assert len(chains) == len(set(chains)) == 522


async def test_new_sizes_are_stored_for_the_list_of_chains(tmp_path: Path) -> None:
    """The size of a new checkpoint is stored in the overview at once; if this fails, the next run stores it."""
    async with open_ledger(tmp_path) as ledger:
        await ledger.fill(PLATFORM, 3)
        stored: dict[ChainKey, int] = {}

        class Overview:
            """Fake overview of chains whose first call fails."""

            calls = 0

            async def save_checkpoint_sizes(self, sizes_by_chain: Mapping[ChainKey, int]) -> None:
                """Store the sizes of new checkpoints; the first call fails."""
                self.calls += 1
                if self.calls == 1:
                    raise WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "down")
                stored.update(sizes_by_chain)

        checkpoints = open_checkpoints(ledger, Overview())
        assert await checkpoints.create_if_grown(PLATFORM) is not None
        assert stored == {}
        assert await checkpoints.create_all_and_count_them() == 0
        assert stored == {PLATFORM: 3}


class FailingOverview:
    """Fake overview of chains that raises an error for certain chains.

    Attributes:
        errors: errors by chain.
        stored: stored sizes by chain.
    """

    def __init__(self) -> None:
        self.errors: dict[ChainKey, BaseException] = {}
        self.stored: dict[ChainKey, int] = {}

    async def save_checkpoint_sizes(self, sizes_by_chain: Mapping[ChainKey, int]) -> None:
        """Store the sizes of new checkpoints, or raise the error of a chain."""
        for chain in sizes_by_chain:
            if chain in self.errors:
                raise self.errors[chain]
        self.stored.update(sizes_by_chain)


def open_checkpoints(ledger: Ledger, overview: Any) -> Checkpoints:
    """Open the checkpoints of a ledger with an overview of its chains."""
    notes = FileCheckpointStore(ledger.folder / "checkpoints")
    signer = FileNoteSigner(ledger.folder / "checkpoint-key.pem", ledger.folder / "checkpoints")
    return Checkpoints(ledger.store, notes, signer, get_workspace_id, overview)


@pytest.mark.parametrize("error", [asyncio.CancelledError(), TypeError("writes")])
async def test_sizes_are_stored_after_a_cancellation_or_an_unexpected_error(
    ledger: Ledger, error: BaseException
) -> None:
    """If storing the size of a checkpoint is cancelled or fails with any error, a later run stores the size."""
    overview = FailingOverview()
    overview.errors[PLATFORM] = error
    checkpoints = open_checkpoints(ledger, overview)
    with suppress(asyncio.CancelledError):
        await checkpoints.create_if_grown(PLATFORM)
    assert overview.stored == {}
    overview.errors.clear()
    await checkpoints.create_all_and_count_them()
    assert overview.stored == {PLATFORM: 7, BATCH: 3}


async def test_a_bundle_stores_only_the_size_of_its_own_chain(ledger: Ledger) -> None:
    """The checkpoint of one chain does not wait until the sizes of other chains are stored."""
    overview = FailingOverview()
    overview.errors[BATCH] = WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "down")
    checkpoints = open_checkpoints(ledger, overview)
    await checkpoints.create_if_grown(BATCH)
    overview.errors.clear()
    await checkpoints.create_if_grown(PLATFORM)
    assert overview.stored == {PLATFORM: 7}


@pytest.mark.parametrize(
    "error", [WorkspaceError(Kind.UNAVAILABLE, "PROVENANCE_UNAVAILABLE", "down"), TypeError("writes")]
)
async def test_a_summary_that_cannot_be_changed_does_not_stop_other_sizes(ledger: Ledger, error: Exception) -> None:
    """If the size of one chain can never be stored, the sizes of other chains are stored after at most two runs."""
    overview = FailingOverview()
    for damaged, other in ((PLATFORM, BATCH), (BATCH, PLATFORM)):
        overview.errors = {damaged: error}
        overview.stored.clear()
        checkpoints = open_checkpoints(ledger, overview)
        for _ in range(2):
            await checkpoints.create_all_and_count_them()
        assert list(overview.stored) == [other]


async def test_sizes_that_a_process_did_not_store_are_stored_later(tmp_path: Path) -> None:
    """If a process ends between signing a checkpoint and storing its size, the next process stores the size."""
    overview = SqliteChainOverview(tmp_path / "provenance.sqlite")
    async with open_ledger(tmp_path) as ledger:
        await ledger.fill(PLATFORM, 3)
        await ledger.checkpoints.create_if_grown(PLATFORM)
        [summary] = await overview.list_chains(None, None, 10)
        assert summary.checkpoint_size is None
        checkpoints = open_checkpoints(ledger, overview)
        assert await checkpoints.create_all_and_count_them() == 0
        [summary] = await overview.list_chains(None, None, 10)
        assert summary.checkpoint_size == 3
    await overview.close()
