"""Tests that verification reports each kind of tampering at the right record, with a reason."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
import rfc8785
from oi.verification.command import main

from shared.provenance.canonical import encode_canonical_json
from shared.provenance.chain_verification import ChainFault, build_fork_fault
from shared.provenance.hash_rule import compute_genesis_hash, compute_record_hash, format_record_id
from shared.provenance.parallel_verification import DEFAULT_PARALLEL
from shared.provenance.ports import Filters
from shared.provenance.queries import export_records
from shared.provenance.verifier import ChainVerdict
from tests.unit.shared.provenance.chains import (
    BATCH,
    PLATFORM,
    WORKSPACE,
    Ledger,
    build_event,
    build_parallel_options,
    filter_columns,
    open_filled_ledger,
)

COUNT = 9
CHAIN = "(SELECT chain FROM chains WHERE target = 'PlatformConfig')"
type Tampering = Callable[[sqlite3.Connection], Any]


@pytest.fixture(
    params=[DEFAULT_PARALLEL, build_parallel_options(1), build_parallel_options(2), build_parallel_options(4)],
    ids=["whole", "by1", "by2", "by4"],
)
async def ledger(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[Ledger]:
    """Provide a chain of nine records and a second chain, once for serial and once for parallel verification."""
    async with open_filled_ledger(tmp_path, COUNT, request.param) as opened:
        yield opened


def execute_sql(*statements: str) -> Tampering:
    """Return a function that runs SQL statements on the database file; ``@`` stands for the number of the chain."""

    def work(connection: sqlite3.Connection) -> None:
        for statement in statements:
            connection.execute(statement.replace("@", CHAIN))

    return work


def reseal_records(
    first: int, change: Callable[[dict[str, Any]], None], *, last: int = COUNT, head: bool = True
) -> Tampering:
    """Return a function that changes a record and then corrects hashes, links and filter fields."""

    def work(connection: sqlite3.Connection) -> None:
        rows = dict(connection.execute(f"SELECT sequence, canonical FROM records WHERE chain = {CHAIN}"))
        previous = json.loads(rows[first])["PreviousHash"]
        for sequence in range(first, last + 1):
            value = json.loads(rows[sequence])
            value["PreviousHash"] = previous
            if sequence == first:
                change(value)
            previous = replace_row(connection, sequence, value)
        if head:
            connection.execute("UPDATE chains SET hash = ? WHERE target = 'PlatformConfig'", (previous,))

    return work


def replace_row(
    connection: sqlite3.Connection, sequence: int, value: dict[str, Any], canonical: bytes | None = None
) -> str:
    """Replace a stored record with one whose Hash and filter fields are correct but whose links are possibly wrong."""
    # Also deeper than the service's limit.
    text = canonical or rfc8785.dumps(value)
    fields = filter_columns(value)
    columns = ", ".join(f"{name} = ?" for name in ("canonical", "hash", *fields))
    values = (text, compute_record_hash(text), *fields.values(), sequence)
    connection.execute(f"UPDATE records SET {columns} WHERE chain = {CHAIN} AND sequence = ?", values)
    return compute_record_hash(text)


def swap_records(first: int, second: int) -> Tampering:
    """Return a function that swaps two records."""
    moves = ((first, 99), (second, first), (99, second))
    return execute_sql(
        *(f"UPDATE records SET sequence = {to} WHERE chain = @ AND sequence = {place}" for place, to in moves)
    )


def nest_record(depth: int) -> Callable[[dict[str, Any]], None]:
    """Return a function that adds a property with the given depth to a record."""
    state: Any = {}
    for _ in range(depth - 2):
        state = [state]
    return lambda value: value.update(AfterState={"n": state} if depth > 2 else state)


def set_invalid_property(first: int, name: str, value: Any) -> Tampering:
    """Return a function that sets a property to an invalid value and corrects hashes and filter fields."""
    return reseal_records(first, lambda record: record.update({name: value}))


def replace_content(source_condition: str, sequence: int) -> Tampering:
    """Return a function that replaces a record's content with that of the row for which an SQL condition is true."""
    names = "canonical, hash, timestamp, user_id, action_type, entity_type, entity_id"
    columns = f"({names}) = (SELECT {names} FROM records WHERE {source_condition})"
    return execute_sql(f"UPDATE records SET {columns} WHERE chain = @ AND sequence = {sequence}")


def insert_fork_beside(connection: sqlite3.Connection) -> None:
    """Insert a changed copy of the fifth record beside it, with the same sequence number and predecessor."""
    connection.execute("CREATE TABLE forged AS SELECT * FROM records")
    connection.execute("DROP TABLE records")
    connection.execute("ALTER TABLE forged RENAME TO records")
    names = [row[1] for row in connection.execute("PRAGMA table_info(records)")]
    fifth = connection.execute(f"SELECT * FROM records WHERE chain = {CHAIN} AND sequence = 5").fetchone()
    row = dict(zip(names, fifth, strict=True))
    value = json.loads(row["canonical"]) | {"Description": "the other story"}
    row |= {
        "canonical": encode_canonical_json(value),
        "hash": compute_record_hash(encode_canonical_json(value)),
        "append_id": "forged",
    }
    connection.execute(f"INSERT INTO records VALUES ({', '.join('?' * len(names))})", [row[name] for name in names])


def insert_fork_in_place(connection: sqlite3.Connection) -> None:
    """Replace the sixth record with one that has the same predecessor as the fifth record."""
    (text,) = connection.execute(f"SELECT canonical FROM records WHERE chain = {CHAIN} AND sequence = 5").fetchone()
    replace_row(connection, 6, json.loads(text) | {"RecordID": format_record_id(6)})


def add_space_to_last_record(connection: sqlite3.Connection) -> None:
    """Add a space to the stored JSON of the last record, and correct its Hash and the head item."""
    (text,) = connection.execute(f"SELECT canonical FROM records WHERE chain = {CHAIN} AND sequence = 9").fetchone()
    hashed = replace_row(connection, 9, json.loads(text), text.replace(b":", b": ", 1))
    connection.execute("UPDATE chains SET hash = ? WHERE target = 'PlatformConfig'", (hashed,))


ROW = "WHERE chain = @ AND sequence = "
MATRIX: dict[str, tuple[Tampering, str, str]] = {
    "edited field": (
        execute_sql(f"UPDATE records SET canonical = CAST(replace(canonical, 'editor', 'nobody') AS BLOB) {ROW} 4"),
        format_record_id(4),
        "the digest of the content of 000000000004 differs",
    ),
    "edited hash": (
        execute_sql(f"UPDATE records SET hash = '{'0' * 64}' {ROW} 4"),
        format_record_id(4),
        "the digest of the content",
    ),
    "edited field and hash": (
        reseal_records(4, lambda value: value.update(UserID="nobody"), last=4, head=False),
        format_record_id(5),
        "000000000005 does not link to 000000000004",
    ),
    "edited projection": (
        execute_sql(f"UPDATE records SET user_id = 'nobody' {ROW} 4"),
        format_record_id(4),
        "differ from its content: UserID",
    ),
    "deleted projection": (
        execute_sql(f"UPDATE records SET action_type = NULL {ROW} 4"),
        format_record_id(4),
        "differ from its content: ActionType",
    ),
    "deleted middle": (execute_sql(f"DELETE FROM records {ROW} 4"), format_record_id(5), "000000000004 is missing"),
    "deleted tail": (
        execute_sql("DELETE FROM records WHERE chain = @ AND sequence > 7"),
        format_record_id(8),
        "head item counts 9",
    ),
    "deleted tail and last left": (
        execute_sql("DELETE FROM records WHERE chain = @ AND sequence IN (7, 8)"),
        format_record_id(9),
        "000000000007 is missing",
    ),
    "all deleted but the head": (
        execute_sql("DELETE FROM records WHERE chain = @"),
        format_record_id(1),
        "000000000001 is missing",
    ),
    "swapped": (swap_records(4, 5), format_record_id(4), "000000000005 is stored in the place of 000000000004"),
    "swapped far apart": (
        swap_records(5, 8),
        format_record_id(5),
        "000000000008 is stored in the place of 000000000005",
    ),
    "another RecordID": (
        reseal_records(5, lambda value: value.update(RecordID=format_record_id(6)), last=5, head=False),
        format_record_id(5),
        "000000000006 is stored in the place of 000000000005",
    ),
    "another RecordID, all mended": (
        reseal_records(5, lambda value: value.update(RecordID=format_record_id(8))),
        format_record_id(5),
        "000000000008 is stored in the place of 000000000005",
    ),
    "no RecordID": (
        reseal_records(5, lambda value: value.update(RecordID="five")),
        format_record_id(5),
        "five is stored in the place of 000000000005",
    ),
    "an actor that is null": (
        set_invalid_property(5, "UserID", None),
        format_record_id(5),
        "filter fields of 000000000005 are not text: UserID",
    ),
    "a type that is null, of the last": (
        set_invalid_property(9, "EntityType", None),
        format_record_id(9),
        "filter fields of 000000000009 are not text: EntityType",
    ),
    "duplicated": (
        replace_content("chain = @ AND sequence = 5", 6),
        format_record_id(6),
        "000000000005 is stored in the place of 000000000006",
    ),
    "truncated head": (
        execute_sql("DELETE FROM records WHERE chain = @ AND sequence < 4"),
        format_record_id(4),
        "000000000001 is missing",
    ),
    "copied from another scope": (
        replace_content("chain <> @ AND sequence = 5", 5),
        format_record_id(5),
        "does not link",
    ),
    "first copied from another scope": (
        replace_content("chain <> @ AND sequence = 1", 1),
        format_record_id(1),
        "genesis hash",
    ),
    "wrong canonical bytes": (add_space_to_last_record, format_record_id(9), "not stored in its canonical form"),
    "head names another hash": (
        execute_sql(f"UPDATE chains SET hash = '{'0' * 64}' WHERE chain = @"),
        format_record_id(9),
        "in the head item",
    ),
    "head counts too few": (
        execute_sql(
            "UPDATE chains SET sequence = 8 WHERE chain = @",
            f"UPDATE chains SET hash = (SELECT hash FROM records {ROW} 8) WHERE chain = @",
        ),
        format_record_id(9),
        "past the end",
    ),
    "time set back": (
        reseal_records(5, lambda value: value.update(Timestamp="2026-01-01T00:00:00.000000Z")),
        format_record_id(5),
        "the time of 000000000005 is earlier than the time of 000000000004",
    ),
    "time set forward": (
        reseal_records(5, lambda value: value.update(Timestamp="9999-01-01T00:00:00.000000Z")),
        format_record_id(6),
        "the time of 000000000006 is earlier than the time of 000000000005",
    ),
    **{
        f"a time of the form {time!r} at {place}": (
            set_invalid_property(place, "Timestamp", time),
            format_record_id(place),
            f"the time of {format_record_id(place)} does not have the format 2026-01-05T08:00:00.000000Z",
        )
        for place, time in (
            (9, "zzzz"),
            (9, "2999-01-01T00:00:00Z"),
            (9, "2999-W01-1T00:00:00.000000Z"),
            (9, "2999-02-30T00:00:00.000000Z"),
            (9, "2999-01-01T00:00:00,000000Z"),
            (9, "2999-01-01t00:00:00.000000z"),
            (5, "2999-01-01T00:00:00.000000+00:00Z"),
            (1, ""),
        )
    },
    **{
        f"{levels} levels at {place}": (
            reseal_records(place, nest_record(levels)),
            format_record_id(place),
            "not stored in its canonical form",
        )
        for place, levels in ((5, 129), (9, 130), (9, 254), (9, 255), (9, 256), (9, 300), (9, 900))
    },
    "last rewritten": (
        reseal_records(9, lambda value: value.update(UserID="nobody"), head=False),
        format_record_id(9),
        "in the head item",
    ),
}


@pytest.mark.parametrize("name", MATRIX)
async def test_each_tampering_is_found(ledger: Ledger, name: str) -> None:
    """For each kind of tampering, verification reports the first invalid record with a reason.

    The other chain is still valid.
    """
    tampering, broken_at, reason = MATRIX[name]
    assert (await ledger.verify(PLATFORM)).chain_valid
    ledger.tamper(tampering)
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.fork_detected) == (False, False, False)
    assert verdict.broken_at == broken_at
    assert reason in verdict.reason
    assert await verify_in_steps(ledger) == verdict
    assert (await ledger.verify(BATCH)).chain_valid


async def verify_in_steps(ledger: Ledger) -> ChainVerdict:
    """Verify a chain in steps of two records, as the background verification does in larger steps."""
    run = await ledger.verifier.start(PLATFORM)
    while not await ledger.verifier.verify_next_records_and_check_end(run, 2):
        pass
    return await ledger.verifier.finish(run)


@pytest.mark.parametrize("tampering", [insert_fork_beside, insert_fork_in_place])
async def test_a_fork_is_found(ledger: Ledger, tampering: Tampering) -> None:
    """If two records have the same predecessor, verification reports the second record by its Hash."""
    before = {record.hash for record in await ledger.records(PLATFORM)}
    ledger.tamper(tampering)
    verdict = await ledger.verify(PLATFORM)
    (forged,) = {record.hash for record in await ledger.records(PLATFORM)} - before
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (False, True, forged)
    assert "this record and 000000000005" in verdict.reason


@pytest.mark.parametrize("is_fork", [False, True])
async def test_the_flag_of_a_fault_decides_whether_it_is_a_fork(ledger: Ledger, *, is_fork: bool) -> None:
    """ForkDetected depends on the flag of the fault, not on the text of its reason."""
    run = await ledger.verifier.start(PLATFORM)
    run.verification.fault = ChainFault(
        format_record_id(1), "a fault whose reason contains the word fork", is_fork=is_fork
    )
    verdict = await ledger.verifier.finish(run)
    assert (verdict.chain_valid, verdict.fork_detected) == (False, is_fork)
    assert build_fork_fault("hash", 1).is_fork


def copy_past_the_end(connection: sqlite3.Connection) -> None:
    """Copy the third record to the position after the last record."""
    names = [row[1] for row in connection.execute("PRAGMA table_info(records)")]
    copied = ", ".join({"sequence": "10", "append_id": "'copy'"}.get(name, name) for name in names)
    connection.execute(f"INSERT INTO records SELECT {copied} FROM records WHERE chain = {CHAIN} AND sequence = 3")


def insert_fork_past_the_end(connection: sqlite3.Connection) -> None:
    """Insert a changed copy of the third record after the last record."""
    copy_past_the_end(connection)
    (text,) = connection.execute(f"SELECT canonical FROM records WHERE chain = {CHAIN} AND sequence = 3").fetchone()
    replace_row(connection, 10, json.loads(text) | {"Description": "the other story"})


def count_extra_record_in_head(connection: sqlite3.Connection) -> None:
    """Change the head item so that it also counts the record after the end of the chain."""
    row = f"FROM records WHERE chain = chains.chain AND sequence = 10) {OF_PLATFORM}"
    connection.execute(f"UPDATE chains SET sequence = 10, hash = (SELECT hash {row}")


OF_PLATFORM = "WHERE target = 'PlatformConfig'"


@pytest.mark.parametrize("head", [lambda _: None, count_extra_record_in_head], ids=["head as it was", "head moved"])
@pytest.mark.parametrize("tampering", [copy_past_the_end, insert_fork_past_the_end], ids=["copy", "fork"])
async def test_a_copy_after_the_end_is_not_a_fork(
    ledger: Ledger, tampering: Tampering, head: Tampering, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever the head item says, a copied record is reported by its RecordID, and a changed copy by its Hash."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    ledger.tamper(tampering)
    ledger.tamper(head)
    last = (await ledger.records(PLATFORM))[-1]
    fork = tampering is insert_fork_past_the_end
    broken_at = last.hash if fork else format_record_id(10)
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (False, fork, broken_at)
    assert await verify_offline(ledger) == 1
    said = capsys.readouterr().out
    assert f"broken at {broken_at}:" in said
    assert ("fork" in said) == fork


async def test_an_edited_record_after_a_fork_is_reported_with_the_fork(ledger: Ledger) -> None:
    """If an edited record follows a fork, BrokenAt is the edited record, and ForkDetected is true."""
    ledger.tamper(insert_fork_beside)
    ledger.tamper(execute_sql(f"UPDATE records SET user_id = 'nobody' {ROW} 8"))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.broken_at, verdict.fork_detected) == (format_record_id(8), True)


CONSISTENT: dict[str, tuple[Tampering, str | None, str]] = {
    "tail and head cut": (
        execute_sql(
            "DELETE FROM records WHERE chain = @ AND sequence > 6",
            "UPDATE chains SET sequence = 6 WHERE chain = @",
            f"UPDATE chains SET hash = (SELECT hash FROM records {ROW} 6) WHERE chain = @",
        ),
        format_record_id(7),
        "counts 9 records",
    ),
    "all gone": (
        execute_sql("DELETE FROM records WHERE chain = @", "DELETE FROM chains WHERE chain = @"),
        format_record_id(1),
        "counts 9 records",
    ),
    "rewritten whole": (
        reseal_records(1, lambda value: value.update(UserID="nobody")),
        None,
        "was signed for other records than those in the store",
    ),
    "rewritten from the middle": (
        reseal_records(5, lambda value: value.update(UserID="nobody")),
        None,
        "was signed for other records than those in the store",
    ),
}


@pytest.mark.parametrize("name", CONSISTENT)
async def test_consistent_rewrites_are_found_by_the_checkpoint(ledger: Ledger, name: str) -> None:
    """If a chain was rewritten with valid Hashes, it contradicts its newest checkpoint, which verification reports."""
    tampering, broken_at, reason = CONSISTENT[name]
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    assert (await ledger.verify(PLATFORM)).chain_valid
    ledger.tamper(tampering)
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.empty, verdict.fork_detected) == (False, False, False)
    assert verdict.broken_at == (broken_at or made.name)
    assert reason in verdict.reason


async def test_a_forged_checkpoint_is_found(ledger: Ledger) -> None:
    """A checkpoint that is not signed with the key of the workspace is not trusted."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    (file,) = (ledger.folder / "checkpoints").rglob(made.name[-12:])
    file.chmod(0o644)
    file.write_bytes(made.note.replace(b"\n9\n", b"\n8\n"))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.broken_at) == (False, made.name)
    assert "is not trusted" in verdict.reason


@pytest.mark.parametrize("name", [name for name in MATRIX if "projection" not in name and "head" not in name.split()])
async def test_the_offline_verifier_finds_faults_of_an_export(
    ledger: Ledger, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offline verifier finds the same faults in an export; with a checkpoint, it also finds removed records."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    tampering, broken_at, _ = MATRIX[name]
    ledger.tamper(tampering)
    broken_at = {"last rewritten": "checkpoint"}.get(name, broken_at)
    assert (await verify_offline(ledger)) == 1
    assert f"broken at {broken_at}:" in capsys.readouterr().out


async def test_the_offline_verifier_finds_forks_and_rewrites(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offline verifier reports a fork by its Hash, and a rewritten chain by its checkpoint."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    assert await verify_offline(ledger) == 0
    assert capsys.readouterr().out == "sound: 9 records, checkpoint of 9 agrees\n"
    ledger.tamper(reseal_records(1, lambda value: value.update(UserID="nobody")))
    assert await verify_offline(ledger) == 1
    assert "broken at checkpoint" in capsys.readouterr().out
    ledger.tamper(insert_fork_in_place)
    forged = (await ledger.records(PLATFORM))[5].hash
    assert await verify_offline(ledger) == 1
    assert f"broken at {forged}: fork" in capsys.readouterr().out


async def test_the_offline_verifier_names_records_after_the_checkpoint(
    ledger: Ledger, capsys: pytest.CaptureFixture[str]
) -> None:
    """The offline verifier says how many records the checkpoint does not cover, because they can be rewritten."""
    await ledger.checkpoints.create_if_grown(PLATFORM)
    await ledger.events.append_to_chain(PLATFORM, "editor", build_event(9))
    ledger.tamper(reseal_records(10, lambda value: value.update(UserID="nobody"), last=10))
    assert await verify_offline(ledger) == 0
    unsigned = "nothing signed covers the last 1, which could have been rewritten"
    assert capsys.readouterr().out == f"sound: 10 records, checkpoint of 9 agrees: {unsigned}\n"


async def verify_offline(ledger: Ledger) -> int:
    """Export the chain and verify the file against the newest checkpoint."""
    file, note, key = (ledger.folder / name for name in ("export.json", "note", "key"))
    file.write_bytes((await export_records(ledger.store, PLATFORM, Filters())).to_json_array())
    stored = await ledger.checkpoints.find_newest(PLATFORM)
    assert stored is not None
    note.write_bytes(stored.note)
    key.write_text(str(await ledger.checkpoints.load_verifier_key()))
    options = ["--workspace", WORKSPACE, "--target", "PlatformConfig", "--key", str(key), "--checkpoint", str(note)]
    return main([str(file), *options])


async def test_a_chain_starts_with_its_genesis_hash(ledger: Ledger) -> None:
    """The PreviousHash of the first record must be the chain's own genesis hash."""
    first = json.loads((await ledger.records(BATCH))[0].canonical)
    assert first["PreviousHash"] == compute_genesis_hash(WORKSPACE, BATCH.target, BATCH.scope_key)
