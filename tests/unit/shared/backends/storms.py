"""Storms: writers in processes that are killed at random and come back, and the model that their history must fit."""

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

from shared.provenance.ports import ChainKey, ChainStore, Target
from shared.provenance.records import find_first_fault, genesis_hash, parse_record
from shared.provenance.verifier import ChainVerifier

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("storm_process.py")
PROCESSES, WRITERS = 4, 64
CHAIN = ChainKey(Target.DOMAIN_EVENTS, "storm")
READ_SECONDS = 1.5
"""How long a writer's process waits for a reply of Cosmos DB."""

SEGMENT_BYTES = 400_000
GROWTH_SECONDS = 60.0
LEAST_KILLS = 2


class Answer(NamedTuple):
    """What a writer was told about an event.

    Attributes:
        record_id: where the event stands.
        hash: of its record.
        asked: when it was asked for, seconds of the machine's own clock; 0 where a process before may have asked.
        answered: when it was answered.
    """

    record_id: str
    hash: str
    asked: float
    answered: float


type Answers = dict[tuple[str, int], Answer]


async def workspace() -> str:
    """Return the workspace's id."""
    return "plant-a"


@dataclass
class Crew:
    """Some writers, of one process after another.

    Attributes:
        place: kind and address of the store, as the process takes them.
        writers: their names.
        answers: of each event that was answered, by writer and number.
    """

    place: tuple[str, str]
    writers: list[str]
    answers: Answers = field(default_factory=dict)

    def start(self) -> None:
        """Start a process whose writers go on after their last answer; what was cut off is asked for again."""
        following = Counter(dict.fromkeys(self.writers, 0))
        for name, number in self.answers:
            following[name] = max(following[name], number + 1)
        arguments = [str(part) for pair in following.items() for part in pair]
        command = [sys.executable, str(SCRIPT), *self.place, *arguments]
        self.process = subprocess.Popen(command, cwd=ROOT, env={"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE)
        self.reader = threading.Thread(target=self._read)
        self.reader.start()

    def kill(self) -> None:
        """End the process as a power cut does; what it answered until then counts."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.reader.join()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                parts = line.decode().split()
                if parts[-1:] == ["."]:
                    self.answers[parts[0], int(parts[1])] = Answer(parts[2], parts[3], float(parts[4]), float(parts[5]))


def storm(place: tuple[str, str], seconds: float, chance: random.Random) -> Answers:
    """Let the crews write for a while, killing one now and then; return what was answered.

    Args:
        place: kind and address of the store.
        seconds: how long at least; as long as it takes for some kills, too.
        chance: draws whom to kill, and when.
    """
    names = [f"w{number}" for number in range(WRITERS)]
    crews = [Crew(place, names[first::PROCESSES]) for first in range(PROCESSES)]
    ends_at, kills = time.monotonic() + seconds, 0
    try:
        for crew in crews:
            crew.start()
        while time.monotonic() < ends_at or kills < LEAST_KILLS:
            _wait_for_answers(crews)
            crew = chance.choice(crews)
            # How long a process lives is part of what is drawn.
            threading.Event().wait(chance.uniform(0.0, 1.2))
            crew.kill()
            kills += 1
            crew.start()
        _wait_for_answers(crews)
    finally:
        for crew in crews:
            crew.kill()
    return {key: answer for crew in crews for key, answer in crew.answers.items()}


def _wait_for_answers(crews: Sequence[Crew]) -> None:
    """Return once some writer was answered; a storm in which nobody gets to write shows nothing."""
    before, deadline = sum(len(crew.answers) for crew in crews), time.monotonic() + GROWTH_SECONDS
    while sum(len(crew.answers) for crew in crews) == before:
        assert all(crew.process.poll() is None for crew in crews), "a writer's process ended by itself"
        assert time.monotonic() < deadline, "no append was answered"
        threading.Event().wait(0.01)


async def stored(store: ChainStore) -> list[dict[str, Any]]:
    """Return the chain, after verification in the service's way."""
    verdict = await ChainVerifier(store, workspace).verify(CHAIN)
    assert verdict.chain_valid, verdict.reason
    records: list[dict[str, Any]] = []
    while (page := await store.read(CHAIN, len(records), limit=1_000, max_bytes=2**30)).records:
        records += [parse_record(record.canonical, record.hash) for record in page.records]
    assert (await store.tip(CHAIN)).sequence == len(records)
    return records


def check(records: Sequence[dict[str, Any]], answers: Answers) -> None:
    """Fail unless the history fits the model.

    The chain is whole by the published rule, holds each answered event where it was said to be, no event twice or out
    of its writer's order, at most one more of each writer (asked for, never answered), and an event that was answered
    before another was asked for stands before it.
    """
    assert find_first_fault(records, genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)) is None
    times = [record["Timestamp"] for record in records]
    assert times == sorted(times)
    places = _places(records)
    for event, answer in answers.items():
        assert places[event] == (answer.record_id, answer.hash), f"{event} is not where it was answered to be"
    assert 0 <= len(places) - len(answers) <= WRITERS
    _check_real_time([answers[event] for event in places if event in answers])


def _places(records: Sequence[dict[str, Any]]) -> dict[tuple[str, int], tuple[str, str]]:
    """Return where each event stands, in the chain's order."""
    following: Counter[str] = Counter()
    places: dict[tuple[str, int], tuple[str, str]] = {}
    for record in records:
        name, number = record["EntityType"], int(record["EntityID"])
        assert number == following[name], f"{name} wrote {number} where {following[name]} comes next"
        following[name] += 1
        places[name, number] = (record["RecordID"], record["Hash"])
    return places


def _check_real_time(in_order: Sequence[Answer]) -> None:
    earliest_answer_behind = float("inf")
    for answer in reversed(in_order):
        assert answer.asked <= earliest_answer_behind, f"{answer.record_id} stands before what was answered earlier"
        earliest_answer_behind = min(earliest_answer_behind, answer.answered)
