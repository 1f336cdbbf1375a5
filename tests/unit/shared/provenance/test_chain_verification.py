"""Tests that verification reports damaged records and all other records can be read."""

import json
import sqlite3
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from oi.verification.command import main

from shared.errors import WorkspaceError
from shared.provenance.amendments import AmendmentPolicy, Amendments
from shared.provenance.canonical import encode_canonical_json
from shared.provenance.chain_verification import ChainVerification, to_rows
from shared.provenance.hash_rule import compute_record_hash, format_record_id
from shared.provenance.merkle_proofs import Proofs
from shared.provenance.models import AmendmentBody
from shared.provenance.ports import ChainKey, Filters, Target
from shared.provenance.queries import AuditQueryResult, export_records, query_records
from tests.unit.shared.provenance.chains import BATCH, PLATFORM, WORKSPACE, Ledger, open_ledger

COUNT = 6
CHAIN = "(SELECT chain FROM chains WHERE target = 'PlatformConfig')"
POLICY = AmendmentPolicy(approval_required=True, reason_text_required=False, reason_categories=("other",))
AMENDMENT = AmendmentBody.model_validate(
    {
        "EntityType": "T",
        "EntityID": "e",
        "OriginalRecord": {},
        "AmendedRecord": {},
        "ChangedFields": ["x"],
        "ReasonCategory": "other",
        "ReasonText": "r",
    }
)


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[Ledger]:
    """Provide a chain of six records in a table without constraints, and a second chain."""
    async with open_ledger(tmp_path) as opened:
        await opened.fill(PLATFORM, COUNT)
        await opened.fill(BATCH, 2)
        opened.tamper(_remove_constraints)
        yield opened


def _remove_constraints(connection: sqlite3.Connection) -> None:
    """Recreate the table without its constraints."""
    (text,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'records'").fetchone()
    connection.execute("ALTER TABLE records RENAME TO kept")
    free = (
        text.replace("NOT NULL", "")
        .replace("CHECK (typeof(sequence) = 'integer' AND sequence > 0)", "")
        .replace("WITHOUT ROWID", "")
    )
    connection.execute(free.replace(",\n  PRIMARY KEY (chain, sequence)", ""))
    connection.execute("INSERT INTO records SELECT * FROM kept")
    connection.execute("DROP TABLE kept")


def damage_column(column: str, value: str) -> Callable[[sqlite3.Connection], Any]:
    """Return a function that damages one column of the fourth record."""
    sql = f"UPDATE records SET {column} = {value} WHERE chain = {CHAIN} AND sequence = 4"
    return lambda connection: connection.execute(sql)


SHOWN = "shown as it is"
DAMAGED = "a stand-in is shown"
REWRITTEN = "shown in its canonical form"
DAMAGE = {
    "no content": ("canonical", "NULL", DAMAGED),
    "empty content": ("canonical", "x''", DAMAGED),
    "bytes that are no text": ("canonical", "x'00ff00ff'", DAMAGED),
    "text that is no text": ("canonical", "CAST(x'7bff7d' AS TEXT)", DAMAGED),
    "a number": ("canonical", "5", DAMAGED),
    "a list": ("canonical", 'CAST(\'[{"RecordID":"000000000004"}]\' AS BLOB)', DAMAGED),
    "two objects": ("canonical", 'CAST(\'{"a":1},{"b":2}\' AS BLOB)', DAMAGED),
    "a blank behind": ("canonical", "CAST(canonical || ' ' AS BLOB)", REWRITTEN),
    "a blank within": ("canonical", "CAST(replace(canonical, '{', '{ ') AS BLOB)", REWRITTEN),
    "an empty object": ("canonical", "CAST('{}' AS BLOB)", DAMAGED),
    "no hash": ("hash", "NULL", SHOWN),
    "a hash of bytes": ("hash", "x'00ff'", DAMAGED),
    "a hash that is no text": ("hash", "CAST(x'ff22' AS TEXT)", DAMAGED),
    "a hash that ends its string": ("hash", '\'","x":"\'', DAMAGED),
    "no time": ("timestamp", "NULL", SHOWN),
    "a time of bytes": ("timestamp", "x'ff'", SHOWN),
    "a time that is no text": ("timestamp", "CAST(x'ff' AS TEXT)", SHOWN),
    "no actor": ("user_id", "NULL", SHOWN),
    "an actor that is no text": ("user_id", "CAST(x'ff' AS TEXT)", SHOWN),
}


def parse_records(answer: AuditQueryResult) -> list[dict[str, Any]]:
    """Return the records of a chain, parsed from the JSON of a reply."""
    found: list[dict[str, Any]] = json.loads(answer.to_json_array())
    return found


@pytest.mark.parametrize(("count", "reason"), [(1, "1 record, all sound"), (2, "2 records, all sound")])
async def test_the_reason_of_a_sound_chain_counts_its_records(ledger: Ledger, count: int, reason: str) -> None:
    """The reason of a sound chain states the number of its records, in the singular for one record."""
    chain = ChainKey(Target.DOMAIN_EVENTS, f"counted {count}")
    await ledger.fill(chain, count)
    verdict = await ledger.verify(chain)
    assert (verdict.chain_valid, verdict.reason) == (True, reason)


async def test_the_reason_of_a_missing_record_counts_the_records_in_the_singular(ledger: Ledger) -> None:
    """If the only record is missing, the head item, or else the checkpoint, counts "1 record"."""
    chain = ChainKey(Target.DOMAIN_EVENTS, "counted")
    await ledger.fill(chain, 1)
    await ledger.checkpoints.create_if_grown(chain)
    ledger.tamper(lambda file: file.execute("DELETE FROM records"))
    assert (await ledger.verify(chain)).reason.endswith("is missing: the head item counts 1 record")
    ledger.tamper(lambda file: file.execute("DELETE FROM chains"))
    assert (await ledger.verify(chain)).reason.endswith(" counts 1 record")


@pytest.mark.parametrize("value", [0, False])
async def test_bytes_in_a_filter_field_never_equal_a_number_in_the_content(ledger: Ledger, value: Any) -> None:
    """A record with bytes as a filter field is invalid, whatever its content; no checkpoint covers it."""
    last = (await ledger.records(PLATFORM))[-1]
    canonical = encode_canonical_json(json.loads(last.canonical) | {"EntityID": value})
    digest = compute_record_hash(canonical)

    def forge_last_record(connection: sqlite3.Connection) -> None:
        edit = f"UPDATE records SET canonical = ?, hash = ?, entity_id = x'00' WHERE chain = {CHAIN} AND sequence = ?"
        connection.execute(edit, (canonical, digest, COUNT))
        connection.execute(f"UPDATE chains SET hash = ? WHERE chain = {CHAIN}", (digest,))

    ledger.tamper(forge_last_record)
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.broken_at, verdict.reason) == (
        format_record_id(COUNT),
        f"filter fields of {format_record_id(COUNT)} are not text: EntityID",
    )
    with pytest.raises(WorkspaceError) as refusal:
        await ledger.checkpoints.create_if_grown(PLATFORM)
    assert refusal.value.code == "CHECKPOINT_REFUSED"


@pytest.mark.parametrize("field", ["\ud800", b"x"])
async def test_a_filter_field_that_json_cannot_contain_is_a_fault(ledger: Ledger, field: Any) -> None:
    """A filter field with half of a surrogate pair, or with bytes, makes its record invalid."""
    first = (await ledger.records(PLATFORM))[0]
    verification = ChainVerification(json.loads(first.canonical)["PreviousHash"])
    verification.verify_rows(to_rows([first._replace(projection={**first.projection, "EntityID": field})]))
    assert verification.fault is not None
    assert "the filter fields of 000000000001 differ from its content" in verification.fault.reason


@pytest.mark.parametrize("name", DAMAGE)
async def test_a_damaged_record_is_named_and_others_are_readable(
    ledger: Ledger, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Verification fails at a damaged record; queries, exports and the offline verifier show a placeholder."""
    column, value, how = DAMAGE[name]
    sound = parse_records(await query_records(ledger.store, PLATFORM, Filters()))
    ledger.tamper(damage_column(column, value))
    for named in (None, 4):
        verdict = await ledger.verify(PLATFORM, named)
        assert (verdict.chain_valid, verdict.broken_at, verdict.empty) == (False, format_record_id(4), False)
        json.dumps(verdict.to_reply_json(PLATFORM)).encode()
    for filters in (Filters(), Filters(start="2020-01-01T00:00:00Z", end="2999-01-01T00:00:00Z")):
        await query_records(ledger.store, PLATFORM, filters)
    answer = await query_records(ledger.store, PLATFORM, Filters())
    shown = parse_records(answer)
    assert [record for record in shown if record["RecordID"] != format_record_id(4)] == [*sound[:2], *sound[3:]]
    assert list(answer.damaged) == ([format_record_id(4)] if how == DAMAGED else [])
    assert ("Damaged" in shown[2]) == (how == DAMAGED)
    if column not in ("canonical", "hash"):
        return
    assert how != REWRITTEN or shown == sound
    file = ledger.folder / "export.json"
    file.write_bytes((await export_records(ledger.store, PLATFORM, Filters())).to_json_array())
    status = main([str(file), "--workspace", WORKSPACE, "--target", "PlatformConfig"])
    # An export contains the values, but not their stored form.
    assert status == (0 if how == REWRITTEN else 1)
    assert how == REWRITTEN or f"broken at {format_record_id(4)}:" in capsys.readouterr().out


MENDED = {
    "a name twice": b'{"RecordID":"000000000004","RecordID":"000000000004"}',
    "a name twice, spelled otherwise": b'{"RecordID":"000000000004","Record\\u0049D":"000000000004"}',
    "a name twice below": b'{"AfterState":[{"a":1,"a":2}],"RecordID":"000000000004"}',
    "a Hash of its own": b'{"Hash":"x","RecordID":"000000000004"}',
    "an integer of many digits": b'{"RecordID":"000000000004","n":%b}' % (b"9" * 5_000),
    "lists in lists": b'{"RecordID":"000000000004","n":%b}' % (b"[" * 900 + b"]" * 900),
}


@pytest.mark.parametrize("name", MENDED)
async def test_a_record_with_duplicate_names_is_damaged(
    ledger: Ledger, name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A record whose JSON has duplicate names counts as damaged, even if its digest matches."""
    content = MENDED[name]
    sound = parse_records(await query_records(ledger.store, PLATFORM, Filters()))
    sql = f"UPDATE records SET canonical = ?, hash = ? WHERE chain = {CHAIN} AND sequence = 4"
    ledger.tamper(lambda file: file.execute(sql, (content, compute_record_hash(content))))
    verdict = await ledger.verify(PLATFORM, 4)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(4))
    answer = await export_records(ledger.store, PLATFORM, Filters())
    shown = json.loads(answer.to_json_array(), object_pairs_hook=_reject_duplicate_names)
    assert [record for record in shown[::-1] if record["RecordID"] != format_record_id(4)] == [*sound[:2], *sound[3:]]
    assert list(answer.damaged) == [format_record_id(4)]
    file = ledger.folder / "export.json"
    file.write_bytes(answer.to_json_array())
    assert main([str(file), "--workspace", WORKSPACE, "--target", "PlatformConfig"]) == 1
    assert f"broken at {format_record_id(4)}:" in capsys.readouterr().out


def _reject_duplicate_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    assert len(dict(pairs)) == len(pairs)
    return dict(pairs)


async def test_content_stored_as_text_is_reported_and_shown(ledger: Ledger) -> None:
    """If content was changed from bytes to text in the database, verification reports it; queries still show it."""
    sound = parse_records(await query_records(ledger.store, PLATFORM, Filters()))
    ledger.tamper(damage_column("canonical", "CAST(canonical AS TEXT)"))
    verdict = await ledger.verify(PLATFORM, 4)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(4))
    assert "not stored in its canonical form" in verdict.reason
    answer = await query_records(ledger.store, PLATFORM, Filters())
    assert (parse_records(answer), list(answer.damaged)) == (sound, [])


@pytest.mark.parametrize("column", ["sequence", "hash", "timestamp"])
@pytest.mark.parametrize("value", ["x'ff'", "CAST(x'ff' AS TEXT)", "'many'"])
async def test_a_damaged_head_item_is_found(ledger: Ledger, column: str, value: str) -> None:
    """If the head item of a chain contradicts the chain's records, even only in the time, verification fails."""
    ledger.tamper(lambda file: file.execute(f"UPDATE chains SET {column} = {value} WHERE target = 'PlatformConfig'"))
    verdict = await ledger.verify(PLATFORM)
    assert not verdict.chain_valid
    assert len(parse_records(await query_records(ledger.store, PLATFORM, Filters()))) == COUNT
    assert BATCH in [chain async for chain, _ in ledger.store.iterate_tips()]
    await ledger.checkpoints.create_all_and_count_them()
    assert (await ledger.checkpoints.load_newest_verified(BATCH)).checkpoint.size == 2


async def test_a_head_item_without_a_valid_target_is_ignored(ledger: Ledger) -> None:
    """A head item without a valid target is left out of the list of chains."""
    ledger.tamper(lambda file: file.execute("INSERT INTO chains VALUES (99, 'Nothing', '', 1, '', '2026')"))
    assert {chain async for chain, _ in ledger.store.iterate_tips()} == {PLATFORM, BATCH}


def forge_record_after_head(sequence: int, **changes: Any) -> Callable[[sqlite3.Connection], None]:
    """Return a function that stores a forged record after the head item, linked to the last record."""

    def work(connection: sqlite3.Connection) -> None:
        sql = f"SELECT canonical, hash FROM records WHERE chain = {CHAIN} AND sequence = {COUNT}"
        text, previous = connection.execute(sql).fetchone()
        value = json.loads(text) | {"RecordID": format_record_id(sequence), "PreviousHash": previous} | changes
        content = encode_canonical_json(value)
        row = (sequence, f"forged-{sequence}", content, compute_record_hash(content))
        connection.execute(
            f"INSERT INTO records (chain, sequence, append_id, canonical, hash) VALUES ({CHAIN}, ?, ?, ?, ?)", row
        )

    return work


async def test_a_record_after_the_head_item_is_found(ledger: Ledger) -> None:
    """A record after the head item, at any position, makes the chain invalid and is reported by its RecordID."""
    ledger.tamper(forge_record_after_head(COUNT + 1))
    ledger.tamper(forge_record_after_head(COUNT + 5))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (
        False,
        False,
        format_record_id(COUNT + 1),
    )
    assert "past the end" in verdict.reason


async def test_a_fork_after_the_head_item_is_found(ledger: Ledger) -> None:
    """A record after the head item is reported by its Hash if another record has the same PreviousHash."""
    claimed = json.loads((await ledger.records(PLATFORM))[2].canonical)["PreviousHash"]
    ledger.tamper(forge_record_after_head(COUNT + 3, PreviousHash=claimed))
    forged = (await ledger.records(PLATFORM))[-1]
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.chain_valid, verdict.fork_detected, verdict.broken_at) == (False, True, forged.hash)
    assert "this record and 000000000003" in verdict.reason


async def test_a_record_after_the_head_item_is_reported_before_a_fork(ledger: Ledger) -> None:
    """If there is both a record after the head item and a fork, the record is reported first."""
    claimed = json.loads((await ledger.records(PLATFORM))[2].canonical)["PreviousHash"]
    ledger.tamper(forge_record_after_head(COUNT + 1))
    ledger.tamper(forge_record_after_head(COUNT + 2, PreviousHash=claimed))
    verdict = await ledger.verify(PLATFORM)
    assert (verdict.fork_detected, verdict.broken_at) == (True, format_record_id(COUNT + 1))


async def test_invalid_data_after_the_head_item_are_found(ledger: Ledger) -> None:
    """Invalid data after the head item make the chain invalid and are shown as a placeholder."""
    ledger.tamper(forge_record_after_head(COUNT + 1))
    ledger.tamper(lambda file: file.execute(f"UPDATE records SET canonical = 7 WHERE sequence = {COUNT + 1}"))
    assert (await ledger.verify(PLATFORM)).broken_at == format_record_id(COUNT + 1)
    assert (await query_records(ledger.store, PLATFORM, Filters())).damaged == [format_record_id(COUNT + 1)]


async def test_a_record_with_an_invalid_hash_gets_no_proof(ledger: Ledger) -> None:
    """If a stored Hash is invalid, there is no proof and no new checkpoint."""
    ledger.tamper(damage_column("hash", "'none'"))
    with pytest.raises(WorkspaceError) as caught:
        await Proofs(ledger.store, ledger.checkpoints.trees).prove_inclusion(PLATFORM, 1, COUNT)
    assert caught.value.code == "CHECKPOINT_REFUSED"
    with pytest.raises(WorkspaceError):
        await ledger.checkpoints.create_if_grown(PLATFORM)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE records SET canonical = 5 WHERE entity_id = 'e'",
        "UPDATE records SET canonical = replace(canonical, 'maker', 'other') WHERE entity_id = 'e'",
        (
            f"UPDATE records SET canonical = CAST('{{}}' AS BLOB), hash = '{compute_record_hash(b'{}')}' "
            "WHERE entity_id = 'e'"
        ),
    ],
)
async def test_a_damaged_amendment_cannot_be_decided(ledger: Ledger, sql: str) -> None:
    """A damaged amendment cannot be decided, because it is uncertain who its author is."""
    amendments = Amendments(ledger.events.log, ledger.store)
    chain = ChainKey(Target.DOMAIN_AMENDMENTS, "s")
    made = await amendments.create(chain, "maker", AMENDMENT, POLICY)
    ledger.tamper(lambda file: file.execute(sql))
    with pytest.raises(WorkspaceError) as caught:
        await amendments.approve(chain, format_record_id(made.record.sequence), "checker")
    assert caught.value.code == "RECORD_DAMAGED"
    assert len(await ledger.records(chain)) == 1
