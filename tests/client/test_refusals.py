"""Tests of the reaction of senders to errors about a batch of messages, with the texts of the service."""

import json
from typing import Any

import pytest
from oi.errors import build_api_error
from oi.refusals import interpret_refusal

from shared.auth.telemetry_binding import TelemetryBinding
from shared.errors import WorkspaceError


def find_rejected_lines(messages: list[dict[str, Any]], number: int, device: str | None) -> set[int]:
    """Return the lines of a batch that a sender rejects after the service has refused the device of one line."""
    binding = TelemetryBinding(("press",), ("allowed",))
    with pytest.raises(WorkspaceError) as raised:
        binding.check_may_send_for_devices([(f"line {number}", device)], "press")
    error = build_api_error(403, {"code": raised.value.code, "detail": raised.value.detail, **raised.value.members})
    lines = [json.dumps(each).encode() + b"\n" for each in messages]
    return set(interpret_refusal(error, "press").map_rejected_lines_to_reasons(lines))


def test_all_messages_of_a_refused_device_are_rejected() -> None:
    """If the service refuses a device, only the messages with exactly this device id are rejected."""
    devices = ["allowed", "it's", ["it's"], {"id": "it's"}, None, 7, "it's"]
    assert find_rejected_lines([{"deviceId": each} for each in devices], 2, "it's") == {2, 7}


def test_messages_without_a_device_id_are_rejected_together() -> None:
    """If a message without a device id is refused, messages that cannot contain a device id are rejected, too."""
    messages: list[dict[str, Any]] = [{"a": 1, "b": {}}, {"a": 2}, {"a": {"unit": "allowed"}}, {"unit": "allowed"}, {}]
    assert find_rejected_lines(messages, 1, None) == {1, 2, 5}


@pytest.mark.parametrize(
    "messages",
    [
        [{"unit": "x"}, {"unit": "allowed"}],
        [{"deviceId": "gateway", "unit": "x"}, {"deviceId": "gateway", "unit": "allowed"}],
        [{"deviceId": ["gateway"], "unit": "x"}, {"deviceId": ["gateway"], "unit": "allowed"}],
    ],
)
def test_a_device_at_another_pointer_rejects_one_message(messages: list[dict[str, Any]]) -> None:
    """If the connection reads the device id at another pointer, only the message that the error names is rejected."""
    assert find_rejected_lines(messages, 1, "x") == {1}


@pytest.mark.parametrize(
    ("detail", "reason"),
    [
        ("Line 11: this credential is not bound to the device 'x'.", "This credential is not bound to the device 'x'."),
        ("Line 11 has more than 262144 bytes.", "The message has more than 262144 bytes."),
    ],
)
def test_the_reason_of_a_rejected_message_contains_no_line_number(detail: str, reason: str) -> None:
    """The reason that is stored with a rejected message does not contain its line number in the request."""
    error = build_api_error(403, {"code": "DEVICE_NOT_ALLOWED", "detail": detail})
    assert interpret_refusal(error, "press").lines == {11: reason}
