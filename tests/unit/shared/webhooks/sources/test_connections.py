"""Tests of webhook events about connections."""

from typing import Any

import pytest

from shared.webhooks.sources.connections import build_next, to_event

AT = "2026-03-01T12:00:00.000000Z"
BEFORE = {"version": "v", "statuses": {"rig": "LIVE", "press": "LIVE"}, "unpublished": []}


def build_current(**statuses: str) -> dict[str, dict[str, Any]]:
    """Return the current statuses of connections."""
    return {
        lookup: {"status": status, "lastMessage": None, "surfaces": ["cooling"]} for lookup, status in statuses.items()
    }


def test_without_a_change_nothing_is_stored() -> None:
    """If no status has changed, a run stores nothing."""
    assert build_next(BEFORE, build_current(rig="LIVE", press="LIVE"), AT) is None


def test_the_first_run_reports_nothing() -> None:
    """The first run of the source only stores statuses, because earlier changes precede the subscription."""
    assert build_next({}, build_current(rig="STALE"), AT) == {
        "version": AT,
        "statuses": {"rig": "STALE"},
        "unpublished": [],
    }


@pytest.mark.parametrize(
    ("statuses", "changed"),
    [
        ({"rig": "STALE", "press": "LIVE"}, ["rig"]),
        ({"rig": "LIVE"}, []),
        ({"rig": "LIVE", "press": "LIVE", "new": "NEVER"}, []),
    ],
)
def test_only_changes_of_known_connections_are_reported(statuses: dict[str, str], changed: list[str]) -> None:
    """New and removed connections have no event, but the stored statuses are updated."""
    after = build_next(BEFORE, build_current(**statuses), AT)
    assert after is not None
    assert ([each["connection"] for each in after["unpublished"]], after["statuses"]) == (changed, statuses)


def test_a_change_becomes_an_event() -> None:
    """A status change has one event; if it is published again, it has the same key, so that it is delivered once."""
    after = build_next(BEFORE, build_current(rig="STALE", press="LIVE"), AT)
    assert after is not None
    event = to_event(after["unpublished"][0], after["version"])
    assert event.key == f"connection.status-changed/{AT}/rig"
    assert event.data == {"connection": "rig", "before": "LIVE", "after": "STALE", "lastMessage": None}
    assert (event.surfaces, event.connections) == (frozenset({"cooling"}), frozenset({"rig"}))
