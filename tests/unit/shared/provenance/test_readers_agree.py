"""Tests that verification, queries, record checks and the offline verifier agree about any stored content."""

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st
from oi.verification.export import BrokenError, parse_export, verify_export_and_count_records

from shared.provenance.canonical import try_canonicalise_record
from shared.provenance.chain_verification import ChainVerification, to_rows
from shared.provenance.hash_rule import (
    MAX_DEPTH,
    compute_genesis_hash,
    compute_record_hash,
    format_record_id,
    get_filter_fields,
)
from shared.provenance.ports import ChainRecord
from shared.provenance.records import (
    build_damaged_record_placeholder,
    build_event_draft,
    record_to_json,
    seal_record,
    try_normalise_record,
)
from shared.provenance.verifier import ChainVerdict, add_record_verdict
from shared.text_formats.strict_json import MAX_DEPTH as MOST_OF_A_REQUEST

GENESIS = compute_genesis_hash("plant-a", "PlatformConfig")
AT = "2026-01-05T08:00:00.000000Z"
SOUND = ChainVerdict(chain_valid=True, empty=False, fork_detected=False, reason="")
FIRST = seal_record(
    build_event_draft("u", {"ActionType": "A", "EntityType": "T", "EntityID": "1"}), 1, AT, GENESIS, "a"
)
REST = f'"PreviousHash":"{FIRST.hash}","RecordID":"{format_record_id(2)}","Timestamp":"{AT}","UserID":"u"'


def build_second_record(state: str, *, before: str = "", behind: str = "") -> bytes:
    """Return the JSON text of the second record, with the given notation of the property ``AfterState``."""
    return f'{before}{{"AfterState":{state},{REST}}}{behind}'.encode("utf-8", "surrogatepass")


def build_nested_record(count: int) -> bytes:
    """Return the JSON text of a record that is nested to the given depth."""
    return build_second_record("[" * (count - 1) + "]" * (count - 1))


NUMBERS = ["1E2", "-0", "-0.0", "1.0", "1e400", "NaN", "9007199254740993", "9007199254740992", "1" + "0" * 20,
           "1" + "0" * 21, "1" + "0" * 400, "9" * 5_000, "0.10000000000000000555", "1e21", "5e-324"]  # fmt: skip
FORMS = {
    **{f"the number {number[:30]}": build_second_record(number) for number in NUMBERS},
    **{
        f"{count} levels": build_nested_record(count)
        for count in (99, 127, 128, 129, 130, 253, 254, 255, 256, 300, 900, 50_000)
    },
    "a name twice": build_second_record('1,"AfterState":1'),
    "a name twice, spelled otherwise": build_second_record('1,"After\\u0053tate":1'),
    "a name twice below": build_second_record('{"a":1,"a":1}'),
    "a Hash inside": build_second_record('1,"Hash":"x"'),
    "a list": build_second_record("1", before="[", behind="]"),
    "a mark before": build_second_record("1", before="\ufeff"),
    "a blank before": build_second_record("1", before=" "),
    "a line behind": build_second_record("1", behind="\n"),
    "a blank within": build_second_record(" 1"),
    "half a character": build_second_record('"\\ud800"'),
    "half a character as bytes": build_second_record('"\ud800"'),
    "bytes that are no text": build_second_record("1") + b"\xff",
    "two octets a character": build_second_record("1").decode().encode("utf-16"),
    "an escape": build_second_record('"\\u0041"'),
    "another order": f'{{{REST},"AfterState":1}}'.encode(),
    "order by UTF-16": build_second_record('{"\U0001f600":1,"\ufb33":2}'),
    "order by code points": build_second_record('{"\ufb33":2,"\U0001f600":1}'),
    "an empty object": b"{}",
    "nothing": b"",
}
TEXT = st.text(st.characters(codec="utf-8"), max_size=4)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
WRITTEN = st.sampled_from(
    (
        json.dumps,
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")),
        lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":"), sort_keys=True),
        lambda value: json.dumps(value, indent=1),
    )
)


@pytest.mark.parametrize("name", FORMS)
def test_all_readers_agree_on_each_notation_of_a_record(name: str) -> None:
    """Each stored notation of a record is either valid for all readers or invalid for all, with any forged Hash."""
    for hashed in compute_possible_hashes(FORMS[name]):
        assert_readers_agree(FORMS[name], hashed)


@given(VALUES, WRITTEN, st.integers(0, 140))
@example(1e16, json.dumps, 0)
def test_all_readers_agree_on_records_with_any_value(value: Any, written: Any, depth: int) -> None:
    """All readers agree about a record with any value in any notation at any depth."""
    text = build_second_record("[" * depth + written(value) + "]" * depth)
    for hashed in compute_possible_hashes(text):
        assert_readers_agree(text, hashed)


@pytest.mark.parametrize("name", ["EntityID", "UserID", "ReasonCategory"])
@pytest.mark.parametrize("value", [0, False, 1.5, None, [], {}])
def test_all_readers_reject_a_filter_field_that_is_not_text(name: str, value: Any) -> None:
    """A filter field that is not text is invalid for all readers, also if the stored field equals the content."""
    content = json.loads(FIRST.canonical) | {"PreviousHash": FIRST.hash, "RecordID": format_record_id(2), name: value}
    text = rfc8785.dumps(content)
    is_valid, _, shown = read_with_all_readers(text, compute_record_hash(text))
    assert (is_valid, is_valid_offline(shown)) == (False, False)


def compute_possible_hashes(text: bytes) -> set[str]:
    """Return the Hashes that a forger could store: of the bytes of the text, and of the record parsed from it."""
    return {compute_record_hash(text), compute_record_hash(try_canonicalise_record(text) or b"")}


def assert_readers_agree(text: bytes, stored_hash: str) -> None:
    """Check that each reader returns the verdict that the published hash rule requires."""
    form = try_canonicalise_record(text)
    is_valid, verdict, shown = read_with_all_readers(text, stored_hash)
    # The rule: a record is valid if it is stored in canonical form with the digest of that form.
    assert is_valid == (form == text and compute_record_hash(text) == stored_hash)
    assert verdict.valid == (form is not None and compute_record_hash(form) == stored_hash)
    assert verdict.recomputed_hash == (None if form is None else compute_record_hash(form))
    # An export contains the values, but not their stored form.
    assert is_valid_offline(shown) == verdict.valid
    given = json.loads(shown)[1]
    assert ("Damaged" in given) == (form is None)
    assert verdict.record == parse_export(shown)[1]
    content = {member: value for member, value in parse_export(shown)[1].items() if member != "Hash"}
    assert (compute_record_hash(rfc8785.dumps(content)) == stored_hash) == verdict.valid


def read_with_all_readers(text: bytes, stored_hash: str) -> tuple[bool, ChainVerdict, str]:
    """Return the chain's verdict, the second record's verdict, and the text of the export."""
    try:
        fields = get_filter_fields(json.loads(text))
    except (ValueError, TypeError, AttributeError, RecursionError):
        fields = {}
    record = ChainRecord(2, text, stored_hash, "b", fields)
    walk = ChainVerification(GENESIS)
    walk.verify_rows(to_rows([FIRST, record]))
    shown = [try_normalise_record(one) or build_damaged_record_placeholder(one) for one in (FIRST, record)]
    export = b"[%b]" % b",".join(map(record_to_json, shown))
    return walk.fault is None and walk.sequence == 2, add_record_verdict(SOUND, record), export.decode()


def is_valid_offline(export: str) -> bool:
    """Return whether the offline verifier accepts an export."""
    try:
        return verify_export_and_count_records(parse_export(export), "plant-a", "PlatformConfig") == 2
    except BrokenError as error:
        if error.broken_at != format_record_id(2):
            raise
        return False


def test_requests_and_records_have_the_same_depth_limit() -> None:
    """A request with the maximum depth becomes a record that each reader accepts."""
    assert MOST_OF_A_REQUEST < MAX_DEPTH
