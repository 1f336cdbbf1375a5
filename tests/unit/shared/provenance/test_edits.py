"""Tests that verification finds a change of any byte in any column, and names the changed record."""

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.provenance.hash_rule import format_record_id
from shared.provenance.records import build_record_draft
from shared.provenance.verifier import ChainVerdict
from tests.unit.shared.provenance.chains import BATCH, build_event, build_parallel_options, open_ledger

EVENTS = (
    {**build_event(1), "BeforeState": {"ph": 7.25, "note": 'a "quoted" text', "flags": [True, None, {"deep": 1e-7}]}},
    {**build_event(2), "Name": "Grüße", "Description": "\u2028 and \x00"},
    {"ActionType": "Read", "EntityType": "Batch", "EntityID": "null"},
    {"ActionType": "", "EntityType": "\x7f\\", "EntityID": "B-1", "NodeID": "n"},
)
AMENDMENT = {"AmendedBy": "ann", "EntityType": "Batch", "EntityID": "B-1", "ReasonCategory": "other"}
COLUMNS = ("canonical", "hash", "timestamp", "user_id", "action_type", "entity_type", "entity_id",
           "reason_category", "status", "amendment_id")  # fmt: skip


@pytest.fixture(scope="module")
def folder_with_chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a file with a chain that has many kinds of events."""
    made = tmp_path_factory.mktemp("edits")

    async def fill_chain() -> None:
        async with open_ledger(made) as ledger:
            for body in EVENTS:
                await ledger.events.append_to_chain(BATCH, 'o"editor', body)
            await ledger.events.log.append(BATCH, build_record_draft({**AMENDMENT, "Status": "pending"}, "AmendedAt"))
            assert (await ledger.verify(BATCH)).chain_valid

    asyncio.run(fill_chain())
    return made


@given(st.integers(1, len(EVENTS) + 1), st.sampled_from(COLUMNS), st.integers(0), st.integers(0, 255))
def test_verification_finds_any_edited_byte(
    folder_with_chain: Path, sequence: int, column: str, place: int, byte: int
) -> None:
    """Verification finds a changed byte of the content, the Hash or a filter field, and an added filter field."""
    stored = read_value(folder_with_chain, sequence, column)
    raw = bytearray(stored.encode() if isinstance(stored, str) else stored or b"")
    if raw:
        raw[place % len(raw)] = byte
    else:
        raw.append(byte)
    same = stored is not None and bytes(raw) == (stored if isinstance(stored, bytes) else stored.encode())
    # Bytes that are not valid text can be stored as text, too.
    kind = "BLOB" if isinstance(stored, bytes) else "TEXT"
    verdict = verify_edited(folder_with_chain, sequence, column, bytes(raw), f"CAST(? AS {kind})")
    assert verdict.chain_valid == same
    if not same:
        assert (verdict.broken_at, verdict.fork_detected) == (format_record_id(sequence), False)


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("sequence", range(1, len(EVENTS) + 2))
def test_a_value_with_a_changed_column_type_is_found(folder_with_chain: Path, sequence: int, column: str) -> None:
    """Verification finds a value with a changed column type, because filters would not match it."""
    stored = read_value(folder_with_chain, sequence, column)
    if stored is None:
        edited: Any = b""
    else:
        edited = stored.encode() if isinstance(stored, str) else stored.decode()
    verdict = verify_edited(folder_with_chain, sequence, column, edited)
    assert (verdict.chain_valid, verdict.broken_at) == (False, format_record_id(sequence))


def read_value(folder_with_chain: Path, sequence: int, column: str) -> Any:
    """Return the stored value of a record's column."""
    with closing(sqlite3.connect(folder_with_chain / "provenance.sqlite")) as connection:
        sql = f"SELECT {column} FROM records WHERE sequence = ?"
        return connection.execute(sql, (sequence,)).fetchone()[0]


def verify_edited(
    folder_with_chain: Path, sequence: int, column: str, edited: Any, expression: str = "?"
) -> ChainVerdict:
    """Change one stored value, verify the chain, restore the value, and return the verdict."""
    stored = read_value(folder_with_chain, sequence, column)

    async def verify() -> ChainVerdict:
        async with (
            open_ledger(folder_with_chain) as ledger,
            open_ledger(folder_with_chain, build_parallel_options(2)) as in_windows,
        ):
            ledger.tamper(lambda file: write_value(file, edited, expression))
            try:
                verdict = await ledger.verify(BATCH)
                assert await in_windows.verify(BATCH) == verdict
                return verdict
            finally:
                ledger.tamper(lambda file: write_value(file, stored, "?"))

    def write_value(file: sqlite3.Connection, value: Any, expression: str) -> None:
        """Write a value, converted by an SQL expression, into a column of a record."""
        file.execute(f"UPDATE records SET {column} = {expression} WHERE sequence = ?", (value, sequence))

    return asyncio.run(verify())
