"""Requests of the Durable Task HTTP API, and how their parameters are read."""

import base64
import binascii
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from emulators.durable.management import InstanceFilter
from emulators.durable.records import OrchestrationStatus

TOKEN = "x-ms-continuation-token"  # noqa: S105  the name of a header
"""Names where the next page of a list begins."""

_LEAST_PAUSE, _LONGEST_WAIT = 0.01, 230.0
_PAGE, _MOST, _DIGITS = 100, 1_000, 10


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """A request that holds the key.

    Attributes:
        method: the HTTP method.
        segments: the decoded path below the API.
        query: its parameters; of repeated ones the last.
        headers: by lower-case name.
        body: as sent.
    """

    method: str
    segments: list[str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def normalize_json(body: bytes) -> str | None:
    """Return a body as JSON text, None where it is none."""
    try:
        return json.dumps(json.loads(body, parse_constant=_refuse))
    except (ValueError, RecursionError):
        return None


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def parse_seconds(call: WebhookRequest, name: str) -> float | None:
    """Return a parameter in seconds within sensible bounds, None where it is not there or no number."""
    try:
        given = float(call.query.get(name, ""))
    except ValueError:
        return None
    return min(max(given, _LEAST_PAUSE), _LONGEST_WAIT) if math.isfinite(given) else None


def parse_page_size(call: WebhookRequest) -> int:
    """Return how many instances a page of a list holds."""
    given = call.query.get("top", "")
    sound = given.isdecimal() and len(given) < _DIGITS and int(given) > 0
    return min(int(given), _MOST) if sound else _PAGE


def is_true(call: WebhookRequest, name: str) -> bool:
    """Return whether a parameter says true."""
    return call.query.get(name, "").lower() == "true"


def wants_input(call: WebhookRequest) -> bool:
    """Return whether the caller wants inputs, which is so unless it says no."""
    return call.query.get("showInput", "").lower() != "false"


def parse_filter(call: WebhookRequest) -> InstanceFilter:
    """Return the conditions of a query; what does not parse is left out, as the extension does."""
    named = {status.lower(): status for status in OrchestrationStatus}
    given = call.query.get("runtimeStatus", "").split(",")
    return InstanceFilter(
        created_from=_instant(call.query.get("createdTimeFrom", "")),
        created_to=_instant(call.query.get("createdTimeTo", "")),
        statuses=[named[name.strip().lower()] for name in given if name.strip().lower() in named],
        prefix=call.query.get("instanceIdPrefix", ""),
    )


def _instant(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def build_token(last: str) -> str:
    """Return the token of the page behind an instance's id."""
    return base64.urlsafe_b64encode(last.encode()).decode()


def read_token(token: str) -> str | None:
    """Return the id that a token stands for, an empty one for no token, None where no token is like that."""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        return None
