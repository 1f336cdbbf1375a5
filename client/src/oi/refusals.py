"""Interprets the errors with which the service rejects a batch of messages, and decides the sender's next action."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from oi.errors import (
    ApiError,
    ForbiddenError,
    InvalidRequestError,
    OverloadedError,
    SignInError,
    TooManyRequestsError,
)
from oi.requests import is_service_unreachable

_LINE = re.compile(r"[Ll]ine (\d{1,6})\b")
_STORAGE_FULL = 507
_ERRORS = 400
_BAD_REQUEST, _CONTENT_TOO_LARGE = 400, 413
_DEVICE_NOT_ALLOWED = "DEVICE_NOT_ALLOWED"
_CONNECTION_CODES = frozenset({"CONNECTION_DISABLED", "CONNECTION_NOT_ALLOWED", "CONNECTION_NOT_FOUND"})
_KEY_CODES = frozenset({"ACCESS_RIGHT_MISSING", "BOUND_KEY_REQUIRED"})
_NO_DEVICE_ID = "because the message has no device id"
"""Part of the service's error about a message that has no device id, so that the connection's lookup is its device."""


class Action(Enum):
    """Action that a sender must take after the service has rejected a batch."""

    RETRY = "send everything again later"
    READ_KEY = "read the key again, then send everything again"
    HOLD_CONNECTION = "send the other connections, and this one again later"
    SEND_FEWER = "send fewer messages in one request"
    REJECT_LINES = "store the named messages as rejected, and send the others"


@dataclass(frozen=True, slots=True)
class Refusal:
    """Interpretation of the error with which the service rejected a batch of messages.

    Attributes:
        action: action that the sender must take.
        text: explanation of the error for the log.
        lines: reasons for the rejection of single messages, by line number in the batch, from 1; only for
            ``REJECT_LINES``.
        concerns_device: True if the reason for a message applies to all messages of the same device.
        concerns_connection: True if the service refuses all messages of the connection, only for ``HOLD_CONNECTION``.
        reason_if_single: reason for the rejection of a batch of only one message, only for ``SEND_FEWER``; empty if
            this message must be sent again later.
    """

    action: Action
    text: str
    lines: Mapping[int, str] = field(default_factory=dict)
    concerns_device: bool = False
    concerns_connection: bool = False
    reason_if_single: str = ""

    def map_rejected_lines_to_reasons(self, lines: Sequence[bytes]) -> dict[int, str]:
        """Return the reasons for all messages of a batch that must be rejected, by line number from 1.

        ``lines`` contains the messages of the batch as NDJSON lines.

        If a device is not allowed, the service reports only the first message of this device. The result contains all
        messages that certainly have the same device, so that they are not sent again one by one.
        """
        found = {number: reason for number, reason in self.lines.items() if number <= len(lines)}
        if not self.concerns_device:
            return found
        messages = [json.loads(line) for line in lines]
        for named, reason in list(found.items()):
            for number, message in enumerate(messages, 1):
                if self._has_same_device(messages[named - 1], message):
                    found.setdefault(number, reason)
        return found

    def _has_same_device(self, refused_message: Mapping[str, Any], other_message: Mapping[str, Any]) -> bool:
        """Return whether two messages certainly have the same device; that of ``refused_message`` is not allowed."""
        # A connection can read the device id at another pointer than /deviceId, which is unknown here.
        device = refused_message.get("deviceId")
        if isinstance(device, str):
            return other_message.get("deviceId") == device and repr(device) in self.text
        if _NO_DEVICE_ID not in self.text:
            return False
        # Only a property that the refused message lacks, or one inside another property, could be a device id.
        return other_message.keys() <= refused_message.keys() and not any(
            isinstance(each, (dict, list)) for each in other_message.values()
        )


def interpret_refusal(error: ApiError, lookup: str) -> Refusal:
    """Interpret the error with which the service rejected telemetry of a connection."""
    if is_service_unreachable(error):
        return Refusal(Action.RETRY, f"The service cannot be reached: {error}")
    if error.status < _ERRORS:
        # For example a page about maintenance, or a redirect to a sign-in page.
        return Refusal(Action.RETRY, f"The reply does not come from the service: {error}")
    if isinstance(error, SignInError) or _is_key_insufficient(error):
        return Refusal(
            Action.READ_KEY,
            f"The service rejects the API key: {error} Create a key that is bound to the connections, and replace it.",
        )
    if isinstance(error, (TooManyRequestsError, OverloadedError)) or error.status == _STORAGE_FULL:
        return Refusal(Action.RETRY, f"The service accepts no more messages now: {error}")
    return _interpret_refused_messages(error, f"The service refuses messages of the connection {lookup}: {error}")


def _is_key_insufficient(error: ApiError) -> bool:
    """Return whether the error states that the API key lacks the right to send telemetry of any connection."""
    # The request for a token reports a missing right of the key as an invalid `scopes`.
    return error.code in _KEY_CODES or any(each.get("field") == "scopes" for each in error.errors)


def _interpret_refused_messages(error: ApiError, explanation: str) -> Refusal:
    """Interpret an error that concerns the messages of a batch, or their connection.

    ``explanation`` is the text about the error for the log.
    """
    if isinstance(error, (InvalidRequestError, ForbiddenError)) and (lines := _map_reported_lines_to_reasons(error)):
        return Refusal(Action.REJECT_LINES, explanation, lines, concerns_device=error.code == _DEVICE_NOT_ALLOWED)
    if error.status == _CONTENT_TOO_LARGE:
        return Refusal(Action.SEND_FEWER, explanation, reason_if_single=str(error))
    if error.status == _BAD_REQUEST and any(each.get("field") == "body" for each in error.errors):
        # The body may also have been damaged on the way, so a single message is not rejected for it.
        return Refusal(Action.SEND_FEWER, explanation)
    return Refusal(Action.HOLD_CONNECTION, explanation, concerns_connection=error.code in _CONNECTION_CODES)


def _map_reported_lines_to_reasons(error: ApiError) -> dict[int, str]:
    """Return the lines of a batch that an error reply reports, by line number, with the reason for each."""
    found: dict[int, str] = {}
    for each in error.errors:
        if match := _LINE.match(str(each.get("field", ""))):
            found.setdefault(int(match[1]), str(each.get("message", "")))
    if not found and (match := _LINE.match(error.detail)):
        found[int(match[1])] = _remove_line_number(error.detail)
    return found


def _remove_line_number(detail: str) -> str:
    """Replace a line number at the start of an explanation: "Line 3: bad time" becomes "Bad time".

    The explanation is stored with the message, which then is no longer a line of a request.
    """
    rest = _LINE.sub("The message", detail, count=1).removeprefix("The message: ")
    return rest[:1].upper() + rest[1:]
