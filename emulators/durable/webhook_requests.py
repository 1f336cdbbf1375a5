"""Requests of the Durable Task HTTP API and their parameters."""

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
"""Identifies the start of the next page of a list."""

_MIN_SECONDS, _MAX_SECONDS = 0.01, 230.0
_PAGE_SIZE, _MAX_PAGE_SIZE, _MAX_DIGITS = 100, 1_000, 10


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """Request with a valid system key.

    Attributes:
        method: the HTTP method.
        segments: the decoded path below the API.
        query: query parameters; the last value of repeated ones.
        headers: by name in lower case.
        body: as sent.
    """

    method: str
    segments: list[str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def normalize_json(body: bytes) -> str | None:
    """Return a body as JSON text, None if it is not JSON."""
    try:
        return json.dumps(json.loads(body, parse_constant=_reject_constant))
    except (ValueError, RecursionError):
        return None


def _reject_constant(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def parse_seconds(call: WebhookRequest, name: str) -> float | None:
    """Return a parameter in seconds, limited to the supported range; None if it is missing or not a number."""
    try:
        given = float(call.query.get(name, ""))
    except ValueError:
        return None
    return min(max(given, _MIN_SECONDS), _MAX_SECONDS) if math.isfinite(given) else None


def parse_page_size(call: WebhookRequest) -> int:
    """Return the number of instances in a page."""
    given = call.query.get("top", "")
    is_valid = given.isdecimal() and len(given) < _MAX_DIGITS and int(given) > 0
    return min(int(given), _MAX_PAGE_SIZE) if is_valid else _PAGE_SIZE


def is_true(call: WebhookRequest, name: str) -> bool:
    """Return whether a parameter is ``true``."""
    return call.query.get(name, "").lower() == "true"


def wants_input(call: WebhookRequest) -> bool:
    """Return whether the status includes inputs, which is the default."""
    return call.query.get("showInput", "").lower() != "false"


def parse_filter(call: WebhookRequest) -> InstanceFilter:
    """Return the conditions of a query; invalid ones are ignored, as in the extension."""
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
    """Return the continuation token for the page after an instance."""
    return base64.urlsafe_b64encode(last.encode()).decode()


def read_token(token: str) -> str | None:
    """Return the instance id in a token, an empty id for an empty token, None for an invalid token."""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        return None
