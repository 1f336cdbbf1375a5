"""Tests of replies with records of the audit log."""

import csv
import io

import pytest

from functions.provenance_replies import (
    CSV_COLUMNS,
    MAX_LINK,
    _encode_records_as_csv,
    build_created_reply,
    build_export_file_name,
    compute_max_csv_bytes,
)
from shared.provenance.appender import AppendResult
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, ChainRecord, Target
from shared.provenance.records import (
    build_damaged_record_placeholder,
    build_event_draft,
    build_record_draft,
    seal_record,
)

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "line 1/ä")


def build_record(entity: str = "B-1") -> ChainRecord:
    """Return the first record of a chain."""
    draft = build_event_draft("=ann", {"ActionType": "Update", "EntityType": "Batch", "EntityID": entity})
    genesis = compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)
    return seal_record(draft, 1, "2026-01-05T08:00:00.000000Z", genesis, "append-1")


async def test_a_created_record_links_to_its_checkpoint() -> None:
    """A new record links to its checkpoint with the encoded scope, unless proxies would reject the link."""
    appended = AppendResult(build_record(), repeated=False)
    reply = await build_created_reply(CHAIN, appended)
    assert (reply.status, reply.headers["Content-Type"]) == (201, "application/json")
    assert reply.headers["Link"] == (
        '</oi-api/provenance/checkpoint?target=DomainEvents&scopeKey=line+1%2F%C3%A4>; rel="checkpoint"'
    )
    long_scope = ChainKey(Target.DOMAIN_EVENTS, "x" * MAX_LINK)
    assert "Link" not in (await build_created_reply(long_scope, appended)).headers


def read_csv_row(record: ChainRecord) -> dict[str, str]:
    """Encode a record as CSV, check the size limit, and return the cells of its row by column."""
    content = _encode_records_as_csv([record])
    header, row = csv.reader(io.StringIO(content.decode(), newline=""))
    assert len(content) <= compute_max_csv_bytes(record) + len(",".join(CSV_COLUMNS)) + 2
    return dict(zip(header, row, strict=True))


def test_a_csv_file_has_eight_columns_and_no_formulas() -> None:
    """The CSV file has eight columns; text that begins like a formula is escaped; all characters are allowed."""
    record = build_record('a,"b"\r\nc')
    values = read_csv_row(record)
    assert tuple(values) == CSV_COLUMNS
    assert (values["RecordID"], values["UserID"], values["EntityID"]) == ("000000000001", "'=ann", 'a,"b"\r\nc')
    assert values["Hash"] == record.hash


@pytest.mark.parametrize("forged", [{}, {"UserID": "mallory", "Timestamp": "2020", "ActionType": "", "EntityID": "x"}])
def test_a_forged_filter_field_is_not_exported(forged: dict[str, str]) -> None:
    """The cells of a row and the size limit derive from the content of the record, not from its filter fields."""
    record = build_record('"' * 500)
    assert read_csv_row(record._replace(projection=forged)) == read_csv_row(record)


def test_a_cell_of_a_null_value_is_empty() -> None:
    """The cell of a property that is null in an altered record is empty."""
    record = build_record()
    row = read_csv_row(record._replace(canonical=record.canonical.replace(b'"UserID":"=ann"', b'"UserID":null')))
    assert row["UserID"] == ""


def test_a_row_of_an_amendment_has_its_author_and_time() -> None:
    """The columns UserID and Timestamp of an amendment contain AmendedBy and AmendedAt."""
    draft = build_record_draft({"AmendedBy": "ann", "EntityType": "Batch", "EntityID": "B-1"}, "AmendedAt")
    row = read_csv_row(seal_record(draft, 1, "2026-01-05T08:00:00.000000Z", "0" * 64, "append-1"))
    assert (row["UserID"], row["Timestamp"]) == ("ann", "2026-01-05T08:00:00.000000Z")


def test_the_row_of_a_damaged_record_has_no_content() -> None:
    """The row of a record that cannot be parsed has only the RecordID and the stored Hash."""
    damaged = build_record()._replace(canonical=b"x")
    row = read_csv_row(build_damaged_record_placeholder(damaged))
    assert {name: cell for name, cell in row.items() if cell} == {"RecordID": "000000000001", "Hash": damaged.hash}
    assert compute_max_csv_bytes(damaged) >= len(",".join(row.values())) + 2


def test_an_export_file_name_is_safe_on_each_system() -> None:
    """In file names, underscores replace unsafe characters of the scope; without a scope, the target is used."""
    assert build_export_file_name(CHAIN) == "provenance-line_1__.csv"
    assert build_export_file_name(ChainKey(Target.PLATFORM_CONFIG)) == "provenance-PlatformConfig.csv"
