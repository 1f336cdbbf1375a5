"""Tests of the outbox, which appends audit events after catalog changes."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import pytest

from shared.catalog.outbox import convert_large_integers_to_text, flush_outbox
from shared.catalog.ports import CONTEXT, UNAUDITED, PendingEvent
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import Target


class Outbox:
    """Fake store of pending events that is also the audit log to which they are appended.

    Args:
        events: pending events.
        failures: kinds of the errors of appends, by append id.
    """

    def __init__(self, events: Sequence[PendingEvent], failures: Mapping[str, Kind]) -> None:
        self.pending = list(events)
        self.failures = failures
        self.log: list[tuple[str, dict[str, Any]]] = []
        self.announced: list[str] = []

    async def list_pending_events(self) -> Sequence[PendingEvent]:
        """Return the events that are not appended yet."""
        return list(self.pending)

    async def delete_pending_events(self, append_ids: Sequence[str]) -> None:
        """Delete appended events."""
        self.pending = [event for event in self.pending if event.append_id not in append_ids]

    async def append(
        self, target: Target, user_id: str, event: Mapping[str, Any], *, append_id: str, scope_key: str = ""
    ) -> Mapping[str, Any]:
        """Append an event, or raise the error that the test has set."""
        del target, user_id, scope_key
        if append_id in self.failures:
            raise WorkspaceError(self.failures[append_id], "FAILED", "The append fails.")
        self.log.append((append_id, dict(event)))
        return {}

    async def announce(self, events: Sequence[PendingEvent]) -> None:
        """Record announced events."""
        self.announced += [event.append_id for event in events]


def build_event(append_id: str, item: str = "", members: Mapping[str, Any] = MappingProxyType({})) -> PendingEvent:
    """Return a pending event about an item."""
    content = {"ActionType": "A", "EntityType": "T", "EntityID": item or append_id, **members}
    return PendingEvent(append_id, Target.PLATFORM_CONFIG, "ann", content)


async def test_appended_events_are_announced_and_deleted() -> None:
    """An appended event is announced and deleted; its audit record does not contain the data for the announcement."""
    outbox = Outbox([build_event("1", members={CONTEXT: {"editedBy": "ann"}}), build_event("2")], {})
    assert await flush_outbox(outbox, outbox, outbox.announce) == 2
    assert (outbox.pending, outbox.announced) == ([], ["1", "2"])
    assert [CONTEXT in event for _, event in outbox.log] == [False, False]


async def test_an_event_without_a_chain_is_only_announced() -> None:
    """Without provenance, events about warm queries are announced but not appended."""
    outbox = Outbox([PendingEvent("1", UNAUDITED, "ann", {})], {})
    assert await flush_outbox(outbox, outbox, outbox.announce) == 1
    assert (outbox.log, outbox.announced) == ([], ["1"])


async def test_an_unavailable_audit_log_leaves_later_events_pending() -> None:
    """If the audit log is unavailable, the event and all later events stay pending, so that they stay in order."""
    outbox = Outbox([build_event("1", "item"), build_event("2", "item")], {"1": Kind.UNAVAILABLE})
    with pytest.raises(WorkspaceError):
        await flush_outbox(outbox, outbox, outbox.announce)
    assert [event.append_id for event in outbox.pending] == ["1", "2"]
    assert (outbox.log, outbox.announced) == ([], [])


async def test_a_rejected_event_blocks_no_other_event() -> None:
    """If a chain rejects an event, it stays pending, and its error is raised after other events are appended."""
    outbox = Outbox([build_event("1", "a"), build_event("2", "b"), build_event("3", "a")], {"1": Kind.INVALID})
    with pytest.raises(WorkspaceError):
        await flush_outbox(outbox, outbox, outbox.announce)
    assert [event.append_id for event in outbox.pending] == ["1"]
    assert outbox.announced == ["2", "3"]


def test_large_integers_become_text_in_audit_events() -> None:
    """An integer beyond 2^53-1 is recorded as text, because canonical JSON cannot represent it exactly."""
    value = {"a": [2**53, -(2**53), 2**53 - 1, 1.5, True], "b": None}
    assert convert_large_integers_to_text(value) == {
        "a": ["9007199254740992", "-9007199254740992", 2**53 - 1, 1.5, True],
        "b": None,
    }
