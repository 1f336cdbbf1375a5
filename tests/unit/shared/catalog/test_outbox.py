"""Tests of the outbox, which appends audit events after catalog changes."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from types import MappingProxyType
from typing import Any

import pytest

from shared.catalog.outbox import (
    DIGESTS_DESCRIPTION,
    EventAnnouncer,
    check_event_can_be_appended,
    convert_large_integers_to_text,
    flush_outbox_and_count_events,
)
from shared.catalog.ports import CONTEXT, UNAUDITED, PendingEvent
from shared.errors import Kind, WorkspaceError
from shared.provenance.ports import Target
from shared.provenance.records import MAX_RECORD_BYTES, build_event_draft, seal_record


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
        self.can_announce = True
        self.is_appended = asyncio.Event()
        self.announcer = EventAnnouncer(self.announce)

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
        if append_id in self.failures and event.get("Description") != DIGESTS_DESCRIPTION:
            raise WorkspaceError(self.failures[append_id], "FAILED", "The append fails.")
        self.log.append((append_id, dict(event)))
        self.is_appended.set()
        return {}

    async def announce(self, events: Sequence[PendingEvent]) -> None:
        """Record announced events, or raise an error if the test has set it."""
        if not self.can_announce:
            raise WorkspaceError(Kind.UNAVAILABLE, "WEBHOOKS_UNAVAILABLE", "The announcement fails.")
        self.announced += [event.append_id for event in events]


def build_event(append_id: str, item: str = "", members: Mapping[str, Any] = MappingProxyType({})) -> PendingEvent:
    """Return a pending event about an item."""
    content = {"ActionType": "A", "EntityType": "T", "EntityID": item or append_id, **members}
    return PendingEvent(append_id, Target.PLATFORM_CONFIG, "ann", content)


async def test_appended_events_are_announced_and_deleted() -> None:
    """An appended event is announced and deleted; its audit record does not contain the data for the announcement."""
    outbox = Outbox([build_event("1", members={CONTEXT: {"editedBy": "ann"}}), build_event("2")], {})
    assert await flush_outbox_and_count_events(outbox, outbox, outbox.announcer) == 2
    assert (outbox.pending, outbox.announced) == ([], ["1", "2"])
    assert [CONTEXT in event for _, event in outbox.log] == [False, False]


async def test_an_event_without_a_chain_is_only_announced() -> None:
    """Without provenance, events about warm queries are announced but not appended."""
    outbox = Outbox([PendingEvent("1", UNAUDITED, "ann", {})], {})
    assert await flush_outbox_and_count_events(outbox, outbox, outbox.announcer) == 1
    assert (outbox.log, outbox.announced) == ([], ["1"])


async def test_an_unavailable_audit_log_leaves_later_events_pending() -> None:
    """If the audit log is unavailable, the event and all later events stay pending, but are announced once."""
    outbox = Outbox([build_event("1", "item"), build_event("2", "item")], {"1": Kind.UNAVAILABLE})
    for _ in range(2):
        with pytest.raises(WorkspaceError):
            await flush_outbox_and_count_events(outbox, outbox, outbox.announcer)
        assert [event.append_id for event in outbox.pending] == ["1", "2"]
        assert (outbox.log, outbox.announced) == ([], ["1", "2"])


async def test_an_event_that_is_not_announced_stays_pending() -> None:
    """If an announcement fails, the event is appended, and stays pending until it is announced."""
    outbox = Outbox([build_event("1")], {})
    outbox.can_announce = False
    with pytest.raises(WorkspaceError):
        await flush_outbox_and_count_events(outbox, outbox, outbox.announcer)
    assert ([append_id for append_id, _ in outbox.log], len(outbox.pending)) == (["1"], 1)
    outbox.can_announce = True
    assert await flush_outbox_and_count_events(outbox, outbox, outbox.announcer) == 1
    assert (outbox.pending, outbox.announced) == ([], ["1"])


async def test_an_unexpected_error_of_an_announcement_blocks_no_append() -> None:
    """If an announcement fails unexpectedly, the events are appended, and stay pending until they are announced."""

    async def fail(_: Sequence[PendingEvent]) -> None:
        raise RuntimeError

    outbox = Outbox([build_event("1")], {})
    with pytest.raises(RuntimeError):
        await flush_outbox_and_count_events(outbox, outbox, EventAnnouncer(fail))
    assert ([append_id for append_id, _ in outbox.log], len(outbox.pending)) == (["1"], 1)


async def test_an_append_does_not_wait_for_a_slow_announcement() -> None:
    """Pending events are appended while their announcement still runs, and deleted after it has ended."""
    outbox = Outbox([build_event("1")], {})

    async def announce_after_append(_: Sequence[PendingEvent]) -> None:
        async with asyncio.timeout(10):
            await outbox.is_appended.wait()
        assert len(outbox.pending) == 1

    assert await flush_outbox_and_count_events(outbox, outbox, EventAnnouncer(announce_after_append)) == 1
    assert outbox.pending == []


async def test_a_rejected_event_blocks_no_other_event() -> None:
    """If a chain rejects an event, it stays pending, and its error is raised after other events are appended."""
    outbox = Outbox([build_event("1", "a"), build_event("2", "b"), build_event("3", "a")], {"1": Kind.INVALID})
    with pytest.raises(WorkspaceError):
        await flush_outbox_and_count_events(outbox, outbox, outbox.announcer)
    assert [event.append_id for event in outbox.pending] == ["1"]
    assert outbox.announced == ["1", "2", "3"]


async def test_an_unavailable_chain_does_not_block_other_chains() -> None:
    """While one chain is unavailable, pending events of other chains are appended."""
    blocked, other = build_event("1"), replace(build_event("2"), target=Target.ACCESS_CONTROL)
    outbox = Outbox([blocked, other], {"1": Kind.UNAVAILABLE})
    with pytest.raises(WorkspaceError):
        await flush_outbox_and_count_events(outbox, outbox, outbox.announcer)
    assert outbox.pending == [blocked]
    assert outbox.announced == ["1", "2"]


async def test_an_event_that_is_too_large_is_appended_with_digests_of_its_states() -> None:
    """If the record of a pending event would be too large, it has the SHA-256 and size of each state instead."""
    states = {"BeforeState": {"b": 1, "a": 2**60}, "AfterState": {}}
    outbox = Outbox([build_event("1", members=states), build_event("2")], {"1": Kind.TOO_LARGE})
    assert await flush_outbox_and_count_events(outbox, outbox, outbox.announcer) == 2
    canonical = b'{"a":"1152921504606846976","b":1}'
    assert outbox.pending == []
    assert outbox.log[0][1] == {
        **build_event("1").event,
        "BeforeState": {"sha256": sha256(canonical).hexdigest(), "bytes": len(canonical)},
        "AfterState": {"sha256": sha256(b"{}").hexdigest(), "bytes": 2},
        "Description": DIGESTS_DESCRIPTION,
    }


def build_states(before: int | None, after: int | None) -> dict[str, Any]:
    """Return states with texts of these lengths; None omits the state."""
    texts = {"BeforeState": before, "AfterState": after}
    return {name: {"text": "a" * length} for name, length in texts.items() if length is not None}


@pytest.mark.parametrize(
    ("before", "after"), [(700_000, 700_000), (2_000_000, None), (2_000_000, 10), (None, 1_400_000)]
)
def test_a_change_whose_event_fits_is_accepted(before: int | None, after: int | None) -> None:
    """An event is accepted if it fits into a record, or if only its state before the change is too large."""
    check_event_can_be_appended(build_event("1", members=build_states(before, after)))


@pytest.mark.parametrize(
    ("before", "after"), [(800_000, 800_000), (2_000_000, 2_000_000), (10, 1_500_000), (None, 1_500_000)]
)
def test_a_change_whose_event_is_too_large_is_refused(before: int | None, after: int | None) -> None:
    """An event that does not fit into a record is refused with an error that names the item."""
    with pytest.raises(WorkspaceError, match="T 'pump'") as caught:
        check_event_can_be_appended(build_event("1", "pump", build_states(before, after)))
    assert (caught.value.kind, caught.value.code) == (Kind.TOO_LARGE, "RECORD_TOO_LARGE")


def test_the_check_agrees_with_the_size_of_the_record() -> None:
    """The largest accepted event has a record of at most the maximum size, and the next larger one is refused."""
    event = build_event("1")
    free = MAX_RECORD_BYTES - build_event_draft("ann", {**event.event, "AfterState": {"text": ""}}).size
    largest, larger = (replace(event, event={**event.event, **build_states(None, free + n)}) for n in (0, 1))
    check_event_can_be_appended(largest)
    record = seal_record(
        build_event_draft("ann", largest.event), 10**12 - 1, "2026-03-01T12:00:00.000000Z", "0" * 64, "1"
    )
    assert len(record.canonical) <= MAX_RECORD_BYTES
    with pytest.raises(WorkspaceError):
        check_event_can_be_appended(larger)


def test_an_event_without_a_chain_has_no_maximum_size() -> None:
    """Without provenance, no record is made, so that a change of a warm query has no maximum size."""
    check_event_can_be_appended(PendingEvent("1", UNAUDITED, "ann", build_states(None, 2_000_000)))


def test_large_integers_become_text_in_audit_events() -> None:
    """An integer beyond 2^53-1 is recorded as text, because canonical JSON cannot represent it exactly."""
    value = {"a": [2**53, -(2**53), 2**53 - 1, 1.5, True], "b": None}
    assert convert_large_integers_to_text(value) == {
        "a": ["9007199254740992", "-9007199254740992", 2**53 - 1, 1.5, True],
        "b": None,
    }
