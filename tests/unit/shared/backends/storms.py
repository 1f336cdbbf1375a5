"""Crash tests of chain stores: writers are killed at random, and the stored records are checked."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from shared.provenance.hash_rule import compute_genesis_hash
from shared.provenance.ports import ChainKey, ChainStore, Target
from shared.provenance.records import parse_record
from shared.provenance.verifier import ChainVerifier
from tests.unit.shared.provenance.record_rules import find_first_fault

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("storm_process.py")
PROCESSES, WRITERS = 4, 64
CHAIN = ChainKey(Target.DOMAIN_EVENTS, "storm")
READ_SECONDS = 1.5
"""How long a writer's process waits for a reply of Cosmos DB."""

SEGMENT_BYTES = 400_000
GROWTH_SECONDS = 60.0
LEAST_KILLS = 2


class Acknowledgement(NamedTuple):
    """Reply to a writer about one event.

    Attributes:
        record_id: id of the record.
        hash: hash of the record.
        requested_at: time of the request on the monotonic clock, in seconds; 0 if an earlier process may have sent it.
        acknowledged_at: time of the reply.
    """

    record_id: str
    hash: str
    requested_at: float
    acknowledged_at: float


type Acknowledgements = dict[tuple[str, int], Acknowledgement]


async def get_workspace_id() -> str:
    """Return the id of the workspace."""
    return "plant-a"


@dataclass
class WriterGroup:
    """Group of writers in one process, which the test kills and restarts.

    Attributes:
        store_arguments: kind and address of the store, as arguments of the process.
        writers: names of the writers.
        acknowledgements: replies by writer and number of the event.
    """

    store_arguments: tuple[str, str]
    writers: list[str]
    acknowledgements: Acknowledgements = field(default_factory=dict)

    def start(self) -> None:
        """Start a process whose writers repeat the interrupted event and then send further events."""
        following = Counter(dict.fromkeys(self.writers, 0))
        for name, number in self.acknowledgements:
            following[name] = max(following[name], number + 1)
        arguments = [str(part) for pair in following.items() for part in pair]
        command = [sys.executable, str(SCRIPT), *self.store_arguments, *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def kill(self) -> None:
        """Kill the process without warning; the replies that it has printed are kept."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                parts = line.decode().split()
                if parts[-1:] == ["."]:
                    self.acknowledgements[parts[0], int(parts[1])] = Acknowledgement(
                        parts[2], parts[3], float(parts[4]), float(parts[5])
                    )


def run_crash_test(store_arguments: tuple[str, str], seconds: float, randomness: random.Random) -> Acknowledgements:
    """Let groups of writers append for a while, kill some groups at random, and return the replies.

    Args:
        store_arguments: kind and address of the store.
        seconds: minimum duration; the test continues until some processes were killed.
        randomness: source of randomness.
    """
    names = [f"w{number}" for number in range(WRITERS)]
    groups = [WriterGroup(store_arguments, names[first::PROCESSES]) for first in range(PROCESSES)]
    ends_at, kills = time.monotonic() + seconds, 0
    try:
        for group in groups:
            group.start()
        while time.monotonic() < ends_at or kills < LEAST_KILLS:
            _wait_for_next_reply(groups)
            group = randomness.choice(groups)
            # The lifetime of a process is random, too.
            threading.Event().wait(randomness.uniform(0.0, 1.2))
            group.kill()
            kills += 1
            group.start()
        _wait_for_next_reply(groups)
    finally:
        for group in groups:
            group.kill()
    return {key: answer for group in groups for key, answer in group.acknowledgements.items()}


def _wait_for_next_reply(groups: Sequence[WriterGroup]) -> None:
    """Wait until a further append is acknowledged, because a test without writes proves nothing."""
    before, deadline = sum(len(group.acknowledgements) for group in groups), time.monotonic() + GROWTH_SECONDS
    while sum(len(group.acknowledgements) for group in groups) == before:
        assert all(group.process.poll() is None for group in groups), (
            "the process of a group of writers ended although it was not killed"
        )
        assert time.monotonic() < deadline, f"no append was acknowledged within {GROWTH_SECONDS} seconds"
        threading.Event().wait(0.01)


async def read_stored_records(store: ChainStore) -> list[dict[str, Any]]:
    """Verify the chain, and return its records."""
    verdict = await ChainVerifier(store, get_workspace_id).verify(CHAIN)
    assert verdict.chain_valid, verdict.reason
    records: list[dict[str, Any]] = []
    while (page := await store.read(CHAIN, len(records), limit=1_000, max_bytes=2**30)).records:
        records += [parse_record(record.canonical, record.hash) for record in page.records]
    assert (await store.read_tip(CHAIN)).sequence == len(records)
    return records


def check_records(records: Sequence[dict[str, Any]], acknowledgements: Acknowledgements) -> None:
    """Fail if the stored records do not match the acknowledged events.

    The chain is valid by the published rule. Each acknowledged event is in the record that the reply named. No event is
    stored twice or out of its writer's order, and at most one unacknowledged event of each writer is stored. An event
    that was acknowledged before the request of another event precedes that event.
    """
    assert find_first_fault(records, compute_genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)) is None
    times = [record["Timestamp"] for record in records]
    assert times == sorted(times)
    locations = _find_records_of_events(records)
    for event, answer in acknowledgements.items():
        assert locations[event] == (answer.record_id, answer.hash), f"{event} is not stored as acknowledged"
    assert 0 <= len(locations) - len(acknowledgements) <= WRITERS
    _check_order_in_real_time([acknowledgements[event] for event in locations if event in acknowledgements])


def _find_records_of_events(records: Sequence[dict[str, Any]]) -> dict[tuple[str, int], tuple[str, str]]:
    """Return the id and hash of the record that contains each event."""
    following: Counter[str] = Counter()
    locations: dict[tuple[str, int], tuple[str, str]] = {}
    for record in records:
        name, number = record["EntityType"], int(record["EntityID"])
        assert number == following[name], f"event {number} of writer {name} is stored before event {following[name]}"
        following[name] += 1
        locations[name, number] = (record["RecordID"], record["Hash"])
    return locations


def _check_order_in_real_time(in_order: Sequence[Acknowledgement]) -> None:
    earliest_later_reply = float("inf")
    for answer in reversed(in_order):
        assert answer.requested_at <= earliest_later_reply, (
            f"{answer.record_id} precedes an event that was acknowledged before its request"
        )
        earliest_later_reply = min(earliest_later_reply, answer.acknowledged_at)
