"""Tests of the rules for telemetry that callers submit."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.auth.telemetry_binding import TelemetryBinding
from shared.catalog.models import TelemetryPolicy
from shared.errors import FieldError, Kind, WorkspaceError
from shared.telemetry.message_parser import AcceptedMessage
from shared.telemetry.submission_rules import check_binding, check_messages
from tests.unit.shared.telemetry.fakes import build_connection

NOW = datetime(2026, 1, 5, 8, tzinfo=UTC)
RIG = build_connection("rig", source={"devices": ["rig-*"]})
DEFAULT = TelemetryPolicy()


def build_message(place: str = "", *, ahead: float = 0, device: str | None = None) -> AcceptedMessage:
    """Return a message whose timestamp is the given seconds in the future."""
    return AcceptedMessage(NOW + timedelta(seconds=ahead), None, device, b"{}", place)


def test_the_policy_can_require_bound_credentials() -> None:
    """If the policy requires bound credentials, an unbound one is rejected; a bound one may use its connections."""
    strict = TelemetryPolicy.model_validate({"requireBoundKeys": True})
    check_binding(DEFAULT, None, "rig")
    check_binding(strict, TelemetryBinding(("rig",)), "rig")
    for binding, code in ((None, "BOUND_KEY_REQUIRED"), (TelemetryBinding(("x",)), "CONNECTION_NOT_ALLOWED")):
        with pytest.raises(WorkspaceError) as caught:
            check_binding(strict, binding, "rig")
        assert (caught.value.kind, caught.value.code) == (Kind.FORBIDDEN, code)


@pytest.mark.parametrize("seconds", [0, 300])
def test_timestamps_far_in_the_future_are_rejected(seconds: int) -> None:
    """A timestamp can be in the future by at most the number of seconds in the policy."""
    policy = TelemetryPolicy.model_validate({"maxAheadSeconds": seconds})
    check_messages([build_message(ahead=seconds), build_message(ahead=-1e9)], RIG, policy, None, NOW)
    late = [build_message("[0]"), build_message("[1]", ahead=seconds + 0.001)]
    with pytest.raises(WorkspaceError) as caught:
        check_messages(late, RIG, policy, None, NOW)
    assert caught.value.kind is Kind.INVALID
    assert [error["field"] for error in caught.value.members["errors"]] == ["[1].timestamp"]  # type: ignore[attr-defined]


def test_the_policy_can_require_declared_devices() -> None:
    """If the policy requires declared devices, a device must be declared, unless the connection declares no devices."""
    strict = TelemetryPolicy.model_validate({"requireDeclaredDevices": True})
    check_messages([build_message(device="other")], RIG, DEFAULT, None, NOW)
    check_messages([build_message(device="rig-1")], RIG, strict, None, NOW)
    check_messages([build_message(device="other")], build_connection("free"), strict, None, NOW)
    with pytest.raises(WorkspaceError, match="is not declared"):
        check_messages([build_message(device="other")], RIG, strict, None, NOW)


def test_a_message_without_a_device_has_the_lookup_as_device() -> None:
    """If a message has no device id, the devices of the binding must match the lookup of the connection."""
    check_messages([build_message()], RIG, DEFAULT, TelemetryBinding(("rig",), ("rig",)), NOW)
    with pytest.raises(WorkspaceError) as caught:
        check_messages([build_message("line 7")], RIG, DEFAULT, TelemetryBinding(("rig",), ("x",)), NOW)
    assert caught.value.members["field"] == "line 7"


def test_the_number_of_errors_is_limited() -> None:
    """At most 100 errors of a request are listed."""
    late = [build_message(f"[{number}]", ahead=1e6) for number in range(500)]
    with pytest.raises(WorkspaceError) as caught:
        check_messages(late, RIG, DEFAULT, None, NOW)
    assert len(caught.value.members["errors"]) == 100  # type: ignore[arg-type]


def test_errors_of_other_messages_are_listed_too() -> None:
    """One reply lists both the messages that cannot be parsed and the messages that break a rule."""
    with pytest.raises(WorkspaceError) as caught:
        check_messages([build_message("[0]", ahead=1e6)], RIG, DEFAULT, None, NOW, [FieldError("[1].x", "is wrong")])
    errors = caught.value.members["errors"]
    assert [error["field"] for error in errors] == ["[1].x", "[0].timestamp"]  # type: ignore[attr-defined]
