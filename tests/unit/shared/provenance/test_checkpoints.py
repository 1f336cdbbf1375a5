"""Checkpoints and proofs: signed once, incremental, never of a broken chain."""

import base64
import json
import sqlite3
from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from shared.backends.embedded.checkpoint_files import FileCheckpointStore
from shared.backends.embedded.provenance import CHANGED
from shared.errors import WorkspaceError
from shared.provenance import chain_trees
from shared.provenance.canonical import fast_jcs
from shared.provenance.chain_trees import ChainTrees, Proofs, Tiles
from shared.provenance.checkpoints import RetrySchedule, checkpoint_name, name_prefix
from shared.provenance.hash_rule import digest, genesis_hash, record_id
from shared.provenance.merkle import CompactRange, is_consistent, is_included
from shared.provenance.notes import NoteError, VerifierKey, open_checkpoint, origin_of, verify_note
from shared.provenance.ports import ChainKey, ChainStore, Target
from shared.timestamps import now
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, WORKSPACE, Ledger, ledger


@pytest.fixture
async def plant(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Two chains."""
    async with ledger(tmp_path) as opened:
        await opened.fill(PLATFORM, 7)
        await opened.fill(BATCH, 3)
        yield opened


async def leaves(plant: Ledger, chain: ChainKey) -> list[bytes]:
    """Return the leaf data of a chain."""
    return [bytes.fromhex(record.hash) for record in await plant.records(chain)]


def notes_in(folder: Path) -> list[Path]:
    """Return the files of notes under a folder."""
    return [file for file in folder.rglob("*") if file.is_file() and file.name.isdigit()]


async def test_the_newest_of_many_is_found(tmp_path: Path) -> None:
    """Sizes far apart lie in folders of their own; one left empty by a crash does not hide what came before."""
    store = FileCheckpointStore(tmp_path)
    for size in (9, 999, 1_000, 1_000_000, 999_999_999):
        assert await store.create(checkpoint_name(PLATFORM, size), str(size).encode())
        newest = await store.newest(name_prefix(PLATFORM))
        assert newest is not None
        assert (newest.name, newest.note) == (checkpoint_name(PLATFORM, size), str(size).encode())
    for file in notes_in(tmp_path):
        assert len(file.relative_to(tmp_path / name_prefix(PLATFORM)).parts) == 3
    await store.save_state(f"{name_prefix(PLATFORM)}tree", b"")
    (tmp_path / name_prefix(PLATFORM) / "001000" / "000").mkdir(parents=True)
    newest = await store.newest(name_prefix(PLATFORM))
    assert newest is not None
    assert newest.note == b"999999999"


async def test_a_checkpoint_is_a_signed_note(plant: Ledger) -> None:
    """Origin, size and root, a blank line, and an ECDSA signature with the key's id, all as C2SP writes them."""
    made = await plant.checkpoints.create(BATCH)
    assert made is not None
    text, _, signature = made.note.decode().rpartition("\n\n")
    origin, size, root = text.split("\n")
    assert origin == "oi-provenance/plant-a/DomainEvents/batch%2F7%20%2B%C3%BC"
    tree = CompactRange()
    tree.append(await leaves(plant, BATCH))
    assert (size, base64.b64decode(root)) == ("3", tree.root())
    dash, name, encoded = signature.removesuffix("\n").split(" ")
    key = await plant.checkpoints.verifier_key()
    raw = base64.b64decode(encoded)
    assert (dash, name, raw[:4]) == ("\u2014", "oi-provenance/plant-a", key.key_id)
    key.public_key().verify(raw[4:], f"{text}\n".encode(), ec.ECDSA(hashes.SHA256()))
    assert VerifierKey.parse(str(key)) == key
    assert str(key).split("+", 2)[2].startswith("AjBZ")


async def test_checkpoints_are_made_of_what_grew(plant: Ledger) -> None:
    """Each chain is signed once a size, again after it grew."""
    assert await plant.checkpoints.create_all() == 2
    assert await plant.checkpoints.create_all() == 0
    await plant.fill(PLATFORM, 1)
    assert await plant.checkpoints.create_all() == 1
    current = await plant.checkpoints.current(PLATFORM)
    assert (current.checkpoint.size, current.stored.name) == (8, checkpoint_name(PLATFORM, 8))
    assert current.last_hash == (await plant.records(PLATFORM))[-1].hash


async def test_working_state_is_not_trusted(plant: Ledger) -> None:
    """A state that was changed, cut or lost is made anew, and the next checkpoint is right."""
    await plant.checkpoints.create(PLATFORM)
    state = plant.folder / "checkpoints" / f"{name_prefix(PLATFORM)}tree.state"
    said = json.loads(state.read_text())
    spoilt: list[dict[str, Any]] = [{"nodes": said["nodes"][::-1]}, {"last": "ab"}, {"last": "x"}, {"last": 5}]
    spoilt += [{"last": genesis_hash(WORKSPACE, "PlatformConfig")}]
    for text in ("", "{}", '{"size":7,"nodes":[]}', *(json.dumps(said | change) for change in spoilt)):
        state.write_text(text)
        await plant.fill(PLATFORM, 1)
        made = await plant.checkpoints.create(PLATFORM)
        assert made is not None
        tree = CompactRange()
        tree.append(await leaves(plant, PLATFORM))
        assert (await plant.checkpoints.open(PLATFORM, made)).root == tree.root()


@pytest.mark.parametrize("state", ["kept", "lost", "of an earlier version"])
@pytest.mark.parametrize("appended", [1, 4, 7])
async def test_a_chain_that_was_rolled_back_and_went_on_is_not_signed(plant: Ledger, state: str, appended: int) -> None:
    """An older copy of the file that grew past the last checkpoint is another chain, with working state and without."""
    older = await plant.records(PLATFORM)
    await plant.fill(PLATFORM, 4)
    await plant.checkpoints.create(PLATFORM)
    last = older[-1]

    def rolled_back(file: sqlite3.Connection) -> None:
        file.execute("DELETE FROM records WHERE chain = 1 AND sequence > ?", (last.sequence,))
        head = (last.sequence, last.hash, last.projection["Timestamp"])
        file.execute("UPDATE chains SET (sequence, hash, timestamp) = (?, ?, ?) WHERE chain = 1", head)

    plant.tamper(rolled_back)
    spoil(plant, state)
    await plant.fill(PLATFORM, 4 + appended)
    await refused_to_sign(plant)


@pytest.mark.parametrize("state", ["kept", "lost", "of an earlier version"])
@pytest.mark.parametrize("mended", ["Hash and head", "Hash", "nothing"])
async def test_a_last_record_that_was_edited_is_not_grown_from(plant: Ledger, state: str, mended: str) -> None:
    """The record that a checkpoint ends with is compared with the leaf that was signed."""
    await plant.checkpoints.create(PLATFORM)
    last = (await plant.records(PLATFORM))[-1]
    text = fast_jcs(json.loads(last.canonical) | {"Description": "edited"})

    def edited(file: sqlite3.Connection) -> None:
        row = "chain = 1 AND sequence = 7"
        file.execute(f"UPDATE records SET canonical = ? WHERE {row}", (text,))
        if mended != "nothing":
            file.execute(f"UPDATE records SET hash = ? WHERE {row}", (digest(text),))
        if mended == "Hash and head":
            file.execute("UPDATE chains SET hash = ? WHERE chain = 1", (digest(text),))

    if mended == "Hash and head":
        plant.tamper(edited)
        await plant.fill(PLATFORM, 2)
    else:
        await plant.fill(PLATFORM, 2)
        plant.tamper(edited)
    spoil(plant, state)
    await refused_to_sign(plant)


def spoil(plant: Ledger, how: str) -> None:
    """Lose the working state, or bring it to the form that had no last leaf."""
    file = plant.folder / "checkpoints" / f"{name_prefix(PLATFORM)}tree.state"
    if how == "lost":
        file.unlink()
    elif how != "kept":
        said = json.loads(file.read_text())
        tree = CompactRange(said["size"], [bytes.fromhex(node) for node in said["nodes"]])
        tree.append([bytes.fromhex(said["last"])])
        file.write_text(json.dumps({"size": tree.size, "nodes": [node.hex() for node in tree.nodes]}))


async def refused_to_sign(plant: Ledger) -> None:
    """Check that no checkpoint is made, and that the newest stays as it is."""
    before = await plant.checkpoints.find_newest(PLATFORM)
    with pytest.raises(WorkspaceError) as caught:
        await plant.checkpoints.create(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert await plant.checkpoints.find_newest(PLATFORM) == before


async def test_a_time_that_goes_back_behind_a_checkpoint_is_not_signed(plant: Ledger) -> None:
    """The first new record is compared with the last one that was signed."""
    await plant.checkpoints.create(PLATFORM)
    await plant.fill(PLATFORM, 1)
    last = (await plant.records(PLATFORM))[-1]
    value = json.loads(last.canonical) | {"Timestamp": "2026-01-01T00:00:00.000000Z"}

    def rewritten(file: sqlite3.Connection) -> None:
        text = fast_jcs(value)
        fields = (text, digest(text), value["Timestamp"])
        sql = "UPDATE records SET (canonical, hash, timestamp) = (?, ?, ?) WHERE chain = 1 AND sequence = ?"
        file.execute(sql, (*fields, last.sequence))
        file.execute("UPDATE chains SET (hash, timestamp) = (?, ?) WHERE chain = 1", fields[1:])

    plant.tamper(rewritten)
    with pytest.raises(WorkspaceError, match="earlier than the time of") as caught:
        await plant.checkpoints.create(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert (await plant.verify(PLATFORM)).broken_at == record_id(last.sequence)


async def test_a_broken_chain_is_not_signed(plant: Ledger) -> None:
    """Records that are not sound stop the signer, until they are; other chains go on."""
    await plant.checkpoints.create(PLATFORM)
    await plant.fill(PLATFORM, 2)
    plant.tamper(lambda file: file.execute("UPDATE records SET user_id = 'x' WHERE chain = 1 AND sequence = 9"))
    with pytest.raises(WorkspaceError) as caught:
        await plant.checkpoints.create(PLATFORM)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    assert await plant.checkpoints.create_all() == 1
    plant.tamper(lambda file: file.execute("UPDATE records SET user_id = 'editor' WHERE chain = 1 AND sequence = 9"))
    assert await plant.checkpoints.create_all() == 1


async def test_a_note_of_another_is_not_opened(plant: Ledger, tmp_path: Path) -> None:
    """Another key, another chain, changed text and no note at all are refused."""
    made = await plant.checkpoints.create(PLATFORM)
    assert made is not None
    key = await plant.checkpoints.verifier_key()
    origin = origin_of(WORKSPACE, "PlatformConfig")
    assert open_checkpoint(made.note, key, origin).size == 7
    async with ledger(tmp_path / "second") as second:
        stranger = await second.checkpoints.verifier_key()
    for note, by, of in (
        (made.note, stranger, origin), (made.note, key, origin + "x"),
        (made.note.replace(b"\n7\n", b"\n8\n"), key, origin),
        (made.note[:-1], key, origin), (b"", key, origin), (b"\xff", key, origin), (made.note * 2, key, origin),
        (made.note.replace(b"\n\n", b"\n"), key, origin), (made.note + b"\x00", key, origin),
    ):  # fmt: skip
        with pytest.raises(NoteError):
            open_checkpoint(note, by, of)


async def test_signatures_of_others_are_ignored(plant: Ledger) -> None:
    """A witness may sign below: lines of unknown keys do not count."""
    made = await plant.checkpoints.create(PLATFORM)
    assert made is not None
    other = made.note + b"\xe2\x80\x94 witness.example AAAAAAAA\n"
    assert verify_note(other, await plant.checkpoints.verifier_key()).startswith(
        "oi-provenance/plant-a/PlatformConfig\n7\n"
    )


@pytest.mark.parametrize("text", ["", "a", "a+b+c", "a+00000000+AQID", "n+00000000+Ag=="])
def test_what_is_no_verifier_key_is_refused(text: str) -> None:
    """Wrong form, signature type, key or id."""
    with pytest.raises(NoteError):
        VerifierKey.parse(text)


async def test_proofs_hold_against_the_signed_roots(plant: Ledger) -> None:
    """Every record is proved to be in a checkpoint, and the checkpoint to contain the one before."""
    first = await plant.checkpoints.create(PLATFORM)
    await plant.fill(PLATFORM, 6)
    second = await plant.checkpoints.create(PLATFORM)
    assert first is not None
    assert second is not None
    old, new = [await plant.checkpoints.open(PLATFORM, stored) for stored in (first, second)]
    proofs = Proofs(plant.store, ChainTrees(plant.store))
    for index, leaf in enumerate(await leaves(plant, PLATFORM)):
        proof = await proofs.prove_inclusion(PLATFORM, index + 1, new.size)
        assert is_included(leaf, proof.leaf_index, proof.size, proof.hashes, new.root)
    between = await proofs.prove_consistency(PLATFORM, old.size, new.size)
    assert is_consistent(old.size, new.size, old.root, new.root, between.hashes)


async def test_proofs_read_what_they_read_before_no_more(plant: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots of complete subtrees are kept: a second proof reads the rest alone, and is the same as before."""
    monkeypatch.setattr(chain_trees, "SUBTREE_LEAVES", 4)
    await plant.fill(PLATFORM, 30)
    proofs, reads = Proofs(plant.store, ChainTrees(plant.store)), []
    read = plant.store.hashes

    async def counted(chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        reads.append(limit)
        return await read(chain, after, limit=limit)

    monkeypatch.setattr(plant.store, "hashes", counted)
    first = await proofs.prove_inclusion(PLATFORM, 3, 37)
    before = sum(reads)
    reads.clear()
    assert await proofs.prove_inclusion(PLATFORM, 3, 37) == first
    assert (before, sum(reads)) == (36, 4)
    tree = CompactRange()
    tree.append(await leaves(plant, PLATFORM))
    for sequence in (1, 4, 5, 32, 33, 37):
        proof = await proofs.prove_inclusion(PLATFORM, sequence, 37)
        leaf = (await leaves(plant, PLATFORM))[sequence - 1]
        assert is_included(leaf, sequence - 1, 37, proof.hashes, tree.root())


async def test_proofs_after_a_start_read_what_checkpoints_left(plant: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """Roots of subtrees are kept beside the checkpoints; damaged or lost ones are made anew and mended later."""
    for name, size in (("SUBTREE_LEAVES", 4), ("TILE_ROOTS", 4), ("TILE_LEAVES", 16)):
        monkeypatch.setattr(chain_trees, name, size)
    notes = FileCheckpointStore(plant.folder / "checkpoints")
    await plant.checkpoints.create(PLATFORM)
    await plant.fill(PLATFORM, 30)
    await plant.checkpoints.create(PLATFORM)
    tiles = sorted((plant.folder / "checkpoints" / name_prefix(PLATFORM)).glob("roots-*.state"))
    assert [len(await Tiles(notes, name_prefix).load(PLATFORM, tile)) for tile in range(4)] == [4, 4, 1, 0]
    tree = CompactRange()
    tree.append(every := await leaves(plant, PLATFORM))
    reads: list[int] = []
    read = plant.store.hashes

    async def counted(chain: ChainKey, after: int, *, limit: int) -> Sequence[str]:
        reads.append(limit)
        return await read(chain, after, limit=limit)

    monkeypatch.setattr(plant.store, "hashes", counted)

    async def hashes_read() -> int:
        reads.clear()
        proof = await Proofs(plant.store, ChainTrees(plant.store, Tiles(notes, name_prefix))).prove_inclusion(
            PLATFORM, 3, 37
        )
        assert is_included(every[2], 2, 37, proof.hashes, tree.root())
        return sum(reads)

    assert await hashes_read() == 4
    content = tiles[0].read_bytes()
    tiles[0].write_bytes(content[:40] + bytes([content[40] ^ 1]) + content[41:])
    assert await hashes_read() == 4 + 12
    for tile in tiles:
        tile.unlink()
    assert await hashes_read() == 36
    await plant.fill(PLATFORM, 3)
    await plant.checkpoints.create(PLATFORM)
    assert await hashes_read() == 4


@pytest.mark.parametrize(("sequence", "size"), [(0, 5), (6, 5), (1, 0), (1, 8), (-1, -1)])
async def test_proofs_beyond_the_chain_are_refused(plant: Ledger, sequence: int, size: int) -> None:
    """Sizes and places that the chain does not have are the caller's error."""
    with pytest.raises(WorkspaceError):
        await Proofs(plant.store, ChainTrees(plant.store)).prove_inclusion(PLATFORM, sequence, size)
    with pytest.raises(WorkspaceError):
        await Proofs(plant.store, ChainTrees(plant.store)).prove_consistency(PLATFORM, sequence, size)


async def test_notes_are_created_once(tmp_path: Path) -> None:
    """A name that is taken keeps its note, which nobody may write to."""
    store = FileCheckpointStore(tmp_path)
    name = checkpoint_name(ChainKey(Target.DOMAIN_EVENTS, "../../etc/passwd"), 5)
    assert ".." not in name
    assert await store.create(name, b"first")
    assert not await store.create(name, b"second")
    stored = await store.newest(name[:-12])
    assert stored is not None
    assert (stored.name, stored.note) == (name, b"first")
    (file,) = notes_in(tmp_path)
    assert file.stat().st_mode & 0o222 == 0
    assert await store.newest("DomainEvents/none/") is None


class Counting:
    """Counts what is asked of a store that it stands before."""

    def __init__(self, store: ChainStore) -> None:
        self._store = store
        self.asked: list[str] = []

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        return getattr(self._store, name)


async def test_a_sweep_with_nothing_grown_asks_once(plant: Ledger) -> None:
    """The chains that changed are asked for, and nothing else; a broken one changes nothing about that."""
    for scope in range(20):
        await plant.fill(ChainKey(Target.DOMAIN_EVENTS, f"s{scope}"), 1)
    plant.tamper(lambda file: file.execute("UPDATE records SET user_id = 'x' WHERE chain = 1"))
    moment = now()
    store = Counting(plant.store)
    checkpoints = plant.checkpoints
    checkpoints._store = cast("ChainStore", store)
    checkpoints._clock = lambda: moment
    assert await checkpoints.create_all() == 21
    moment += timedelta(hours=1)
    assert await checkpoints.create_all() == 0
    store.asked.clear()
    listed = [chain async for chain, _ in plant.store.tips(checkpoints._swept_from)]
    assert listed == []
    sweeps = [len(store.asked) for _ in range(8) if await checkpoints.create_all() == 0]
    assert [after - before for before, after in pairwise([0, *sweeps])].count(1) >= 5
    (broken,) = checkpoints._failures._known
    assert broken == PLATFORM


async def test_a_broken_chain_is_tried_less_and_less_often(plant: Ledger) -> None:
    """It is tried at the next sweep, then after 2, 4, 8 more, and at most 64 apart; when it is mended it is signed."""
    failures, tried = RetrySchedule(), []
    failures.add(PLATFORM)
    for sweep in range(1, 300):
        if failures.start_sweep():
            tried.append(sweep)
            failures.add(PLATFORM)
    assert tried[:7] == [1, 3, 7, 15, 31, 63, 127]
    assert {after - before for before, after in pairwise(tried[6:])} == {64}
    failures.remove(PLATFORM)
    assert failures.start_sweep() == []


async def test_changed_heads_are_found_without_reading_all(plant: Ledger) -> None:
    """The list of chains that changed comes from an index, a page at a time, each chain once."""
    plan: list[str] = []
    plant.tamper(lambda file: plan.extend(row[3] for row in file.execute(f"EXPLAIN QUERY PLAN {CHANGED}", ("", 0, 9))))
    assert len(plan) == 1
    assert "USING INDEX chains_by_time" in plan[0]
    rows = [(number + 9, str(number)) for number in range(520)]
    plant.tamper(lambda file: file.executemany("INSERT INTO chains VALUES (?, 'DomainEvents', ?, 1, '', 'z')", rows))
    chains = [chain async for chain, _ in plant.store.tips()]
    assert len(chains) == len(set(chains)) == 522
