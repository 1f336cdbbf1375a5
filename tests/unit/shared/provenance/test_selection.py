"""Tests of selecting a chain by target and scope."""

from typing import Any

import pytest

from shared.errors import ValidationErrors, WorkspaceError
from shared.provenance.ports import ChainKey, Target
from shared.provenance.selection import (
    MAX_SCOPE_CHARACTERS,
    check_target_and_scope,
    parse_requested_sequence,
    resolve_amendments_chain,
    resolve_chain_to_read,
    resolve_chain_to_write,
)


def get_error_code(target: str | None, scope_key: str | None) -> str:
    """Return the error code for the given target and scope, or an empty text if they are valid."""
    faults = ValidationErrors()
    check_target_and_scope(faults, target, scope_key)
    try:
        faults.raise_all()
    except WorkspaceError as error:
        return error.code
    return ""


@pytest.mark.parametrize(
    ("target", "scope_key", "chain"),
    [
        (None, None, ChainKey(Target.PLATFORM_CONFIG)),
        (None, "line-1", ChainKey(Target.DOMAIN_EVENTS, "line-1")),
        ("AccessControl", None, ChainKey(Target.ACCESS_CONTROL)),
        ("DomainAmendments", "line-1", ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")),
    ],
)
def test_a_chain_is_selected_by_target_and_scope(target: str | None, scope_key: str | None, chain: ChainKey) -> None:
    """A scope alone selects its DomainEvents chain; neither scope nor target selects the PlatformConfig chain."""
    assert get_error_code(target, scope_key) == ""
    assert resolve_chain_to_read(target, scope_key) == chain


@pytest.mark.parametrize(
    ("target", "scope_key", "code"),
    [
        ("Other", None, "TARGET_UNKNOWN"),
        ("PlatformConfig", "line-1", "TARGET_SCOPE_MISMATCH"),
        ("DomainEvents", None, "TARGET_SCOPE_MISMATCH"),
        (None, "", "SCOPE_KEY_REQUIRED"),
        ("Other", "", "SCOPE_KEY_REQUIRED"),
        (None, "x" * MAX_SCOPE_CHARACTERS, ""),
        (None, "x" * (MAX_SCOPE_CHARACTERS + 1), "INVALID_REQUEST"),
    ],
)
def test_target_and_scope_must_match(target: str | None, scope_key: str | None, code: str) -> None:
    """Targets of the workspace have no scope; all other targets need one. An empty scope has its own error code."""
    assert get_error_code(target, scope_key) == code


@pytest.mark.parametrize("scope_field", ["scopeKey", "ScopeKey"])
def test_the_error_about_a_missing_scope_names_its_field(scope_field: str) -> None:
    """The error about a missing scope names the property of the body or the parameter that states the scope."""
    faults = ValidationErrors()
    check_target_and_scope(faults, "DomainEvents", None, scope_field)
    with pytest.raises(WorkspaceError) as raised:
        faults.raise_all()
    message = f"DomainEvents requires a scope (`{scope_field}`)"
    assert raised.value.members["errors"] == [{"field": "target", "message": message}]


def test_amendments_are_written_through_their_own_routes() -> None:
    """The route for events rejects the target of amendments, which have routes of their own."""
    assert resolve_chain_to_write("DomainEvents", "s") == ChainKey(Target.DOMAIN_EVENTS, "s")
    with pytest.raises(WorkspaceError) as raised:
        resolve_chain_to_write("DomainAmendments", "s")
    assert raised.value.code == "TARGET_READ_ONLY"


@pytest.mark.parametrize("scope_key", [None, ""])
def test_amendments_have_a_scope(scope_key: str | None) -> None:
    """Amendments require a scope, because there is no chain of amendments for the whole workspace."""
    with pytest.raises(WorkspaceError) as raised:
        resolve_amendments_chain(scope_key)
    assert raised.value.code == "SCOPE_KEY_REQUIRED"


@pytest.mark.parametrize(("body", "sequence"), [({}, None), ({"RecordID": "000000000007"}, 7)])
def test_a_record_id_is_optional(body: dict[str, Any], sequence: int | None) -> None:
    """Without a RecordID, a request for verification concerns the whole chain."""
    assert parse_requested_sequence(body) == sequence


@pytest.mark.parametrize("value", [None, 7, "7", "00000000000x", "0000000000007", ""])
def test_a_malformed_record_id_is_rejected(value: Any) -> None:
    """A malformed RecordID is rejected; null counts as malformed, not as missing."""
    with pytest.raises(WorkspaceError) as raised:
        parse_requested_sequence({"RecordID": value})
    assert "12 digits" in raised.value.detail
