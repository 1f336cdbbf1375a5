"""Tests of replies with records of the audit log."""

import csv
import io

from functions.provenance_replies import (
    CSV_COLUMNS,
    MAX_LINK,
    _encode_records_as_csv,
    build_created_reply,
    build_export_file_name,
    compute_max_csv_size,
)
from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, ChainRecord, Target
from shared.provenance.records import build_event_draft, seal_record

CHAIN = ChainKey(Target.DOMAIN_EVENTS, "line 1/ä")


def build_record(entity: str = "B-1") -> ChainRecord:
    """Return the first record of a chain."""
    draft = build_event_draft("=ann", {"ActionType": "Update", "EntityType": "Batch", "EntityID": entity})
    genesis = compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)
    return seal_record(draft, 1, "2026-01-05T08:00:00.000000Z", genesis, "append-1")


def test_a_created_record_links_to_its_checkpoint() -> None:
    """A new record links to its checkpoint with the encoded scope, unless proxies would reject the link."""
    reply = build_created_reply(CHAIN, build_record())
    assert (reply.status, reply.headers["Content-Type"]) == (201, "application/json")
    assert reply.headers["Link"] == (
        '</oi-api/provenance/checkpoint?target=DomainEvents&scopeKey=line+1%2F%C3%A4>; rel="checkpoint"'
    )
    long_scope = ChainKey(Target.DOMAIN_EVENTS, "x" * MAX_LINK)
    assert "Link" not in build_created_reply(long_scope, build_record()).headers


def test_a_csv_file_has_eight_columns_and_no_formulas() -> None:
    """The CSV file has eight columns; text that begins like a formula is escaped; all characters are allowed."""
    record = build_record('a,"b"\r\nc')
    content = _encode_records_as_csv([record])
    header, row = csv.reader(io.StringIO(content.decode(), newline=""))
    assert tuple(header) == CSV_COLUMNS
    values = dict(zip(header, row, strict=True))
    assert (values["RecordID"], values["UserID"], values["EntityID"]) == ("000000000001", "'=ann", 'a,"b"\r\nc')
    assert values["Hash"] == record.hash
    assert len(content) <= compute_max_csv_size(record) + len(",".join(CSV_COLUMNS)) + 2


def test_an_export_file_name_is_safe_on_each_system() -> None:
    """In file names, underscores replace unsafe characters of the scope; without a scope, the target is used."""
    assert build_export_file_name(CHAIN) == "provenance-line_1__.csv"
    assert build_export_file_name(ChainKey(Target.PLATFORM_CONFIG)) == "provenance-PlatformConfig.csv"
