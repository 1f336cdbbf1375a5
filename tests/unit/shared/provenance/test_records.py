"""Tests of building, linking and verifying records."""

import hashlib
import json
from typing import Any

import orjson
import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError
from shared.provenance.hash_rule import (
    compute_genesis_hash,
    compute_record_hash,
    format_record_id,
    get_filter_fields,
    sequence_from_record_id,
)
from shared.provenance.ports import ChainRecord
from shared.provenance.records import (
    EVENT_FIELDS,
    MAX_RECORD_BYTES,
    build_event_draft,
    build_record_draft,
    parse_record,
    record_to_json,
    seal_record,
)
from tests.unit.shared.provenance.record_rules import build_event_record, find_first_fault

GENESIS = compute_genesis_hash("plant-a", "PlatformConfig")
EVENT = {"ActionType": "A", "EntityType": "T", "EntityID": "1"}
AT = "2026-01-05T08:00:00.000000Z"
TEXT = st.text(st.characters(codec="utf-8"))
NUMBER = st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
VALUE = st.recursive(
    st.none() | st.booleans() | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)
STATE = st.dictionaries(TEXT, VALUE, max_size=3)
FIELDS: dict[str, st.SearchStrategy[Any]] = {
    name: st.none() | (STATE if name.endswith("State") else TEXT) for name in EVENT_FIELDS
}


def build_chain(length: int) -> list[dict[str, Any]]:
    """Return a valid chain of the given length."""
    records: list[dict[str, Any]] = []
    for sequence in range(1, length + 1):
        made = build_event_draft("admin", EVENT | {"Name": f"n{sequence}"})
        record = seal_record(made, sequence, AT, records[-1]["Hash"] if records else GENESIS, f"a{sequence}")
        records.append(parse_record(record.canonical, record.hash))
    return records


def test_a_chain_starts_from_workspace_target_and_scope() -> None:
    """The genesis hash is the SHA-256 of four lines: version, workspace, target and scope."""
    text = b"oi-provenance/v1\nplant-a\nDomainEvents\nbatch 7"
    assert compute_genesis_hash("plant-a", "DomainEvents", "batch 7") == hashlib.sha256(text).hexdigest()
    bare = hashlib.sha256(b"oi-provenance/v1\nplant-a\nDomainEvents\n").hexdigest()
    assert compute_genesis_hash("plant-a", "DomainEvents") == bare


def test_a_record_is_hashed_over_its_canonical_form() -> None:
    """A Hash is the digest of the record's properties in UTF-16 order, with PreviousHash and without Hash."""
    record = seal_record(build_record_draft({"UserID": "é", "AfterState": {"b": 1.0, "a": 1e-7}}), 1, AT, "00", "x")
    expected = (
        '{"AfterState":{"a":1e-7,"b":1},"PreviousHash":"00","RecordID":"000000000001",'
        f'"Timestamp":"{AT}","UserID":"é"}}'
    )
    assert record.canonical.decode() == expected
    assert record.hash == hashlib.sha256(expected.encode()).hexdigest()


def test_a_sealed_record_is_canonical() -> None:
    """A record that is assembled from serialised parts has the same bytes as with the library rfc8785."""
    states = {"BeforeState": {"é": 1, "a": [1e20, None]}, "AfterState": {"\u20ac": {}, "\U0001f600": "\x1f"}}
    record = seal_record(build_event_draft("u", EVENT | states), 7, AT, "ff", "x")
    whole = build_event_record(7, AT, "u", EVENT | states) | {"PreviousHash": "ff"}
    assert record.canonical == rfc8785.dumps(whole)


@given(TEXT, st.fixed_dictionaries({}, optional=FIELDS), st.integers(1, 10**12 - 1))
@example("", {}, 1)
def test_any_sealed_event_is_canonical(user_id: str, event: dict[str, Any], sequence: int) -> None:
    """For any event, the record has the bytes that rfc8785 gives, the digest of these bytes, and its filter fields."""
    made = build_event_draft(user_id, event)
    record = seal_record(made, sequence, AT, GENESIS, "x")
    whole = build_event_record(sequence, AT, user_id, event) | {"PreviousHash": GENESIS}
    assert record.canonical == rfc8785.dumps(whole)
    assert record.hash == compute_record_hash(record.canonical)
    assert record.projection == get_filter_fields(whole)
    assert len(record.canonical) == made.size


@pytest.mark.parametrize("time_field", ["AmendedAt", "ApprovedAt", "RejectedAt"])
@given(STATE)
def test_any_sealed_amendment_is_canonical(time_field: str, state: dict[str, Any]) -> None:
    """For any amendment, the record has the bytes that rfc8785 gives, although its time is in another property."""
    body: dict[str, Any] = {"ScopeKey": "s", "OriginalRecord": state, "Status": "pending", "ReasonText": "r"}
    made = build_record_draft(body, time_field)
    record = seal_record(made, 7, AT, GENESIS, "x")
    links = {"RecordID": format_record_id(7), time_field: AT, "PreviousHash": GENESIS}
    assert record.canonical == rfc8785.dumps(body | links)
    assert record.projection == get_filter_fields(body | links)
    assert len(record.canonical) <= made.size


def test_the_json_text_of_a_record_has_its_hash() -> None:
    """The JSON text of a record contains its properties and its Hash."""
    record = seal_record(build_event_draft("u", EVENT), 1, AT, GENESIS, "x")
    assert json.loads(record_to_json(record)) == parse_record(record.canonical, record.hash)


def test_large_floats_keep_their_value() -> None:
    """A float that canonical JSON writes as a long integer is still a float of the same value after parsing."""
    record = seal_record(build_event_draft("u", EVENT | {"AfterState": {"n": 1e20, "m": 2.0**60}}), 1, AT, GENESIS, "x")
    state = parse_record(record.canonical, record.hash)["AfterState"]
    assert (state, type(state["n"]), type(state["m"])) == ({"n": 1e20, "m": 2.0**60}, float, float)
    assert orjson.loads(orjson.dumps(state)) == state


def test_an_event_has_only_its_own_fields() -> None:
    """Fields that the server sets, unknown fields and optional fields with null are removed from an event."""
    event = EVENT | {"UserID": "eve", "RecordID": "9", "Hash": "x", "Extra": 1, "Name": None, "NodeID": "n"}
    assert build_event_record(3, "now", "admin", event) == {
        "RecordID": "000000000003", "Timestamp": "now", "UserID": "admin", **EVENT, "NodeID": "n",
    }  # fmt: skip
    record = seal_record(build_event_draft("admin", event), 3, "now", "", "x")
    assert set(json.loads(record.canonical)) == {
        "UserID", "NodeID", "RecordID", "PreviousHash", "Timestamp", *EVENT,
    }  # fmt: skip


@pytest.mark.parametrize("state", [2**53, {"deep": [1, -(2**53)]}, float("nan"), "\ud800", {"\udfff": 1}])
def test_a_state_without_canonical_form_is_rejected_by_name(state: Any) -> None:
    """The error about a state without a canonical form contains the property's name."""
    with pytest.raises(WorkspaceError) as caught:
        build_event_draft("u", EVENT | {"AfterState": {"here": state}})
    errors: Any = caught.value.members["errors"]
    assert caught.value.kind is Kind.INVALID
    assert errors[0]["field"].startswith("AfterState.here")


def test_a_too_large_record_is_rejected() -> None:
    """The size limit of a record applies to its canonical form, in which numbers may be longer than in the request."""
    with pytest.raises(WorkspaceError) as caught:
        build_event_draft("u", EVENT | {"AfterState": {"n": [1e20] * (MAX_RECORD_BYTES // 22)}})
    assert (caught.value.kind, caught.value.code) == (Kind.TOO_LARGE, "RECORD_TOO_LARGE")


def test_filter_fields_have_actor_and_time() -> None:
    """The filter fields of events, amendments and decisions contain their actor and time."""
    for actor, time in (("UserID", "Timestamp"), ("AmendedBy", "AmendedAt"), ("RejectedBy", "RejectedAt")):
        assert get_filter_fields({actor: "u", time: "t", "Other": 1}) == {"UserID": "u", "Timestamp": "t"}


@pytest.mark.parametrize("text", ["", None, 0, "1", "0" * 11, "0" * 13, "\u0660" * 12, "00000000000a", 12 * "1" + "\n"])
def test_malformed_record_ids_have_no_sequence(text: Any) -> None:
    """A text that is not 12 ASCII digits is not a RecordID, and gets no sequence number."""
    assert sequence_from_record_id(text) is None
    assert sequence_from_record_id(format_record_id(42)) == 42


def test_a_valid_chain_has_no_fault() -> None:
    """A sealed chain and an empty chain are valid."""
    assert find_first_fault(build_chain(5), GENESIS) is None
    assert find_first_fault([], GENESIS) is None


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda records: records.pop(2), "000000000003 is missing"),
        (lambda records: records[2].update(Name="other"), "000000000003 does not match the digest of its content"),
        (lambda records: records[2].update(PreviousHash="0" * 64), "000000000003 does not link"),
        (lambda records: records.insert(3, records[2]), "000000000004 is missing"),
    ],
)
def test_a_damaged_chain_has_a_fault(damage: Any, reason: str) -> None:
    """Each kind of tampering is reported at the first changed record."""
    records = build_chain(5)
    damage(records)
    assert reason in str(find_first_fault(records, GENESIS))


def test_append_ids_are_not_returned() -> None:
    """Replies do not contain the append id."""
    record: ChainRecord = seal_record(build_event_draft("u", EVENT), 1, AT, GENESIS, "secret-append-id")
    assert b"secret-append-id" not in record_to_json(record)
