"""Tests of credentials that are bound to connections and devices."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.auth.telemetry_binding import TelemetryBinding, binding_from_claims, binding_from_json
from shared.errors import Kind, WorkspaceError

TEXTS = st.lists(st.text(max_size=10), min_size=1, max_size=5).map(tuple)
BINDINGS = st.builds(TelemetryBinding, TEXTS, st.none() | TEXTS)


@given(BINDINGS)
def test_a_binding_survives_claims_and_storage(binding: TelemetryBinding) -> None:
    """A binding that is converted to claims or to its stored form, and back, is equal to the original."""
    assert binding_from_claims(binding.to_claims()) == binding
    assert binding_from_json(binding.to_json()) == binding


def test_credentials_without_a_binding_are_unbound() -> None:
    """Claims and stored keys without a binding are read as unbound."""
    assert binding_from_claims({"AccessRights": []}) is None
    assert binding_from_json(None) is None


@pytest.mark.parametrize(
    "claims",
    [{"Connections": "pump"}, {"Connections": None}, {"Devices": ["a"]}, {"Connections": ["a"], "Devices": "a"}],
)
def test_a_malformed_binding_is_rejected(claims: dict[str, Any]) -> None:
    """A token with a malformed binding is rejected, because as an unbound token it would have more rights."""
    with pytest.raises(ValueError, match="list of strings"):
        binding_from_claims(claims)


@pytest.mark.parametrize(
    ("connections", "devices", "field"),
    [
        (("a" * 9_990,), None, ""),
        (("a" * 9_993,), None, "connections"),
        (("a" * 9_000,), ("b" * 1_000,), "connections"),
        (("a",), ("\N{LATIN SMALL LETTER U WITH DIAERESIS}" * 1_700,), "devices"),
    ],
)
def test_a_binding_must_fit_into_a_token(
    connections: tuple[str, ...], devices: tuple[str, ...] | None, field: str
) -> None:
    """Connections and devices of more than 10,000 bytes of JSON are rejected; the error names the larger list."""
    binding = TelemetryBinding(connections, devices)
    if not field:
        binding.check_size_for_token()
        return
    with pytest.raises(WorkspaceError, match="at most 10000 bytes") as caught:
        binding.check_size_for_token()
    assert caught.value.detail.startswith(f"{field}: ")


def test_a_bound_credential_uses_only_its_connections() -> None:
    """A bound credential can use only connections whose lookup (id in URLs) is in its binding."""
    binding = TelemetryBinding(("pump", "press"))
    binding.check_may_send_to_connection("press")
    for lookup in ("Press", "pump-2", ""):
        with pytest.raises(WorkspaceError) as caught:
            binding.check_may_send_to_connection(lookup)
        assert (caught.value.kind, caught.value.code) == (Kind.FORBIDDEN, "CONNECTION_NOT_ALLOWED")


@pytest.mark.parametrize(
    ("pattern", "device", "allowed"),
    [
        ("rig-*", "rig-1", True),
        ("rig-*", "Rig-1", False),
        ("rig-?", "rig-12", False),
        ("rig-[12]", "rig-2", True),
        ("*", "", True),
        ("rig", "rig-1", False),
    ],
)
def test_device_ids_match_the_patterns_of_a_binding(pattern: str, device: str, allowed: bool) -> None:  # noqa: FBT001  a table of cases
    """Device ids must match the shell patterns of the binding, with exact letter case."""
    binding = TelemetryBinding(("pump",), (pattern, "other"))
    if allowed:
        binding.check_may_send_for_devices([("[0]", device)], "pump")
        return
    with pytest.raises(WorkspaceError, match=r"\[1\]") as caught:
        binding.check_may_send_for_devices([("[0]", "other"), ("[1]", device)], "pump")
    assert (caught.value.kind, caught.value.code) == (Kind.FORBIDDEN, "DEVICE_NOT_ALLOWED")


def test_a_binding_without_device_patterns_allows_all_devices() -> None:
    """A binding without device patterns allows each device of its connections."""
    TelemetryBinding(("pump",)).check_may_send_for_devices([("", "anything")], "pump")


def test_a_message_without_a_device_id_has_the_lookup_as_device_id() -> None:
    """If a message has no device id, the error names the connection's lookup and states the missing id."""
    binding = TelemetryBinding(("pump",), ("rig",))
    with pytest.raises(
        WorkspaceError, match=r"'pump' \(the connection's lookup, because the message has no device id\)"
    ):
        binding.check_may_send_for_devices([("[0]", None)], "pump")
    TelemetryBinding(("pump",), ("pump",)).check_may_send_for_devices([("[0]", None)], "pump")


@pytest.mark.parametrize(
    ("place", "beginning"),
    [("", "This credential"), ("[1]", "Message [1]: this credential"), ("line 2", "Line 2: this credential")],
)
def test_the_error_names_the_message_with_a_forbidden_device(place: str, beginning: str) -> None:
    """The error states which message of a request has a forbidden device."""
    with pytest.raises(WorkspaceError) as error:
        TelemetryBinding(("pump",), ("p-*",)).check_may_send_for_devices([(place, "x")], "pump")
    assert error.value.detail == f"{beginning} is not bound to the device 'x'."
