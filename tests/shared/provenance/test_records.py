"""The hash rule of audit records."""

import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.errors import Kind, WorkspaceError
from shared.provenance.records import canonical_bytes, event_record, first_fault, genesis_hash, record_id, seal

GENESIS = genesis_hash("plant-a", "PlatformConfig")
EVENT = {"ActionType": "A", "EntityType": "T", "EntityID": "1"}
WHOLE = st.integers(-(2**53) + 1, 2**53 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | WHOLE | st.floats(-1e15, 1e15) | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=10,
)


def chain(length: int) -> list[dict[str, Any]]:
    """Return a sound chain."""
    records: list[dict[str, Any]] = []
    for sequence in range(1, length + 1):
        record = event_record(sequence, "2026-01-05T08:00:00.000000Z", "admin", EVENT | {"Name": f"n{sequence}"})
        records.append(seal(record, records[-1]["Hash"] if records else GENESIS).record)
    return records


def test_a_chain_starts_from_workspace_target_and_scope() -> None:
    """The first PreviousHash is SHA-256 over four lines; each part changes it."""
    text = b"oi-provenance/v1\nplant-a\nDomainEvents\nbatch 7"
    assert genesis_hash("plant-a", "DomainEvents", "batch 7") == hashlib.sha256(text).hexdigest()
    assert (
        genesis_hash("plant-a", "DomainEvents")
        == hashlib.sha256(b"oi-provenance/v1\nplant-a\nDomainEvents\n").hexdigest()
    )


def test_a_record_is_hashed_over_its_canonical_form() -> None:
    """Members in UTF-16 order without spaces, PreviousHash inside, Hash outside."""
    record = {"RecordID": record_id(1), "UserID": "é", "AfterState": {"b": 1.0, "a": 1e-7}}
    sealed = seal(record, "00")
    assert sealed.canonical.decode() == (
        '{"AfterState":{"a":1e-7,"b":1},"PreviousHash":"00","RecordID":"000000000001","UserID":"é"}'
    )
    assert sealed.hash == "1b7b5d63ad1b9effdd2ec483fd58b92b72cd2de61c7e32a6a38b90b925a10fbc"


def test_an_event_gives_no_more_than_its_own_fields() -> None:
    """Server-owned and unknown fields of an event are dropped, null optional ones left out."""
    event = EVENT | {"UserID": "eve", "RecordID": "9", "Hash": "x", "Extra": 1, "Name": None, "NodeID": "n"}
    assert event_record(3, "now", "admin", event) == {
        "RecordID": "000000000003", "Timestamp": "now", "UserID": "admin", **EVENT, "NodeID": "n",
    }  # fmt: skip


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), JSON))
def test_what_is_read_back_has_the_same_canonical_form(value: dict[str, Any]) -> None:
    """Canonical bytes parse to a value with the same canonical bytes."""
    canonical = canonical_bytes(value)
    assert canonical_bytes(json.loads(canonical)) == canonical


@pytest.mark.parametrize(
    "value",
    [
        2**53,
        -(2**53),
        1e20,
        9007199254740992.0,
        pytest.param(10**5000, id="huge"),
        float("nan"),
        float("inf"),
        "\ud800",
        {"\udfff": 1},
    ],
)
def test_what_has_no_canonical_form_is_refused(value: Any) -> None:
    """Integers that JSON rounds, NaN, infinity and lone surrogates are the caller's error."""
    with pytest.raises(WorkspaceError) as caught:
        canonical_bytes({"state": value})
    assert caught.value.kind is Kind.INVALID


def test_bottomless_nesting_is_refused() -> None:
    """A body nested beyond what can be walked is the caller's error, not a crash."""
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(WorkspaceError) as caught:
        canonical_bytes({"state": value})
    assert caught.value.kind is Kind.INVALID


def test_a_sound_chain_has_no_fault() -> None:
    """Walking what was sealed finds nothing, an empty chain neither."""
    assert first_fault(chain(5), GENESIS) is None
    assert first_fault([], GENESIS) is None


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda records: records.pop(2), "000000000003 is missing"),
        (lambda records: records.pop(0), "000000000001 is missing"),
        (lambda records: records[2].update(Name="other"), "000000000003 does not have the digest of its content"),
        (lambda records: records[2].update(Hash="0" * 64), "000000000003 does not have the digest of its content"),
        (lambda records: records[2].update(PreviousHash="0" * 64), "000000000003 does not link"),
        (lambda records: records.insert(3, records[2]), "000000000004 is missing"),
    ],
)
def test_a_damaged_chain_is_found_out(damage: Any, told: str) -> None:
    """Each kind of tampering is found at the record where it begins."""
    records = chain(5)
    damage(records)
    fault = first_fault(records, GENESIS)
    assert fault is not None
    assert told in fault


def test_another_workspaces_chain_is_found_out() -> None:
    """A chain does not begin from another workspace's id."""
    assert (
        first_fault(chain(1), genesis_hash("plant-b", "PlatformConfig"))
        == "000000000001 does not link to the record before it"
    )
