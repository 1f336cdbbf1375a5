"""Hypothesis state machine: after any operations, the archive returns the same rows as the query table."""

import asyncio
import tempfile
from datetime import timedelta
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from shared.cold_data.archive import Archive, Compaction
from shared.telemetry.models import HubEvent
from tests.random_examples import scale_examples
from tests.unit.shared.cold_data.archived import NOON, build_event, open_folder_store, read_contents, read_rows
from tests.unit.shared.cold_data.test_archive import QUIET, build_crashing_store, compute_later_time

MINUTES = timedelta(minutes=1)


class ArchiveMachine(RuleBasedStateMachine):
    """State machine that delivers events repeatedly in random batches while compaction runs and crashes."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = tempfile.TemporaryDirectory()
        self._path = Path(self._folder.name)
        self._events: list[HubEvent] = []
        self._delivered = 0
        self._expected: list[str] = []
        self._ids: set[str] = set()

    @rule(ids=st.lists(st.integers(0, 30), min_size=1, max_size=6), gap=st.integers(0, 40))
    def append_events(self, ids: list[int], gap: int) -> None:
        """Append new events to the hub, enqueued over ``gap`` minutes."""
        for number in ids:
            sequence = len(self._events) + 1
            last = self._events[-1].enqueued_at if self._events else NOON
            at = last + gap * MINUTES / len(ids)
            payload = {"sequence": sequence}
            self._events.append(build_event(sequence, f"m-{number}", at=at, enqueued_at=at, payload=payload))

    @rule(size=st.integers(1, 8))
    def deliver_next_events(self, size: int) -> None:
        """Deliver the next events of the hub to the archive."""
        first, self._delivered = self._delivered, min(self._delivered + size, len(self._events))
        self._run(first, self._delivered)
        for each in range(first, self._delivered):
            message_id = self._events[each].body.split(b'"ID":"')[1].split(b'"')[0].decode()
            if message_id not in self._ids:
                self._ids.add(message_id)
                self._expected.append(f'{{"sequence":{each + 1}}}')

    @rule(first=st.integers(0, 100), size=st.integers(1, 30))
    def deliver_earlier_events(self, first: int, size: int) -> None:
        """Deliver events to the archive again, divided into different batches than before."""
        if self._delivered:
            first %= self._delivered
            self._run(first, min(first + size, self._delivered))

    @rule(changes_before_crash=st.one_of(st.none(), st.integers(0, 5)))
    def compact(self, changes_before_crash: int | None) -> None:
        """Run the compaction, which crashes after the given number of changes, or not at all."""
        store = (
            open_folder_store(self._path)
            if changes_before_crash is None
            else build_crashing_store(self._path, changes_before_crash)
        )
        asyncio.run(Compaction(store, QUIET).merge_due_hours_and_count_them(compute_later_time()))

    @invariant()
    def holds_each_message_once(self) -> None:
        """Check that a read returns each message once, with its first content."""
        found = [row["payload"] for row in asyncio.run(read_rows(open_folder_store(self._path)))]
        assert found == self._expected

    def teardown(self) -> None:
        """Deliver all events three times and compact; check that neither counts nor files change."""
        store = open_folder_store(self._path)
        for _ in range(3):
            self._run(0, self._delivered)
        self.holds_each_message_once()
        files = asyncio.run(read_contents(store))
        self._run(0, self._delivered)
        assert asyncio.run(read_contents(store)) == files
        self._folder.cleanup()

    def _run(self, first: int, end: int) -> None:
        asyncio.run(Archive(open_folder_store(self._path)).store_events(self._events[first:end]))


TestArchive = ArchiveMachine.TestCase
TestArchive.settings = settings(max_examples=scale_examples(12), stateful_step_count=15, deadline=None)
