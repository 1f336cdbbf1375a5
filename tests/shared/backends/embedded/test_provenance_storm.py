"""Writers in processes that are killed at random and come back: the chain keeps every answer, once."""

import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from shared.backends.embedded.provenance import SqliteAuditLog
from shared.provenance.ports import ChainKey, Target
from shared.provenance.records import first_fault, genesis_hash
from shared.provenance.verification import Verifier

ROOT = Path(__file__).parents[4]
SCRIPT = Path(__file__).with_name("storm_process.py")
PROCESSES, WRITERS = 4, 64
CHAIN = ChainKey(Target.DOMAIN_EVENTS, "storm")
type Answers = dict[tuple[str, int], tuple[str, str]]


async def workspace() -> str:
    """Return the workspace's id."""
    return "plant-a"


@dataclass
class Crew:
    """Some writers of one process after another.

    Attributes:
        file: of the chain.
        writers: their names.
        answers: RecordID and Hash of each event that was answered, by writer and number.
    """

    file: Path
    writers: list[str]
    answers: Answers = field(default_factory=dict)

    def start(self) -> None:
        """Start a process whose writers go on after their last answer; what was cut off is asked for again."""
        following = Counter(dict.fromkeys(self.writers, 0))
        for name, number in self.answers:
            following[name] = max(following[name], number + 1)
        arguments = [str(part) for pair in following.items() for part in pair]
        command = [sys.executable, str(SCRIPT), str(self.file), *arguments]
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
                    self.answers[parts[0], int(parts[1])] = (parts[2], parts[3])


def storm(file: Path, seconds: float, seed: int) -> tuple[Answers, int]:
    """Let the crews write for a while, killing one now and then; return what was answered, and the kills."""
    chance, kills = random.Random(seed), 0
    names = [f"w{number}" for number in range(WRITERS)]
    crews = [Crew(file, names[first::PROCESSES]) for first in range(PROCESSES)]
    for crew in crews:
        crew.start()
    try:
        ends_at = time.monotonic() + seconds
        while time.monotonic() < ends_at:
            # How long a process lives is part of what is drawn.
            threading.Event().wait(chance.uniform(0.2, 1.5))
            crew = chance.choice(crews)
            crew.kill()
            kills += 1
            crew.start()
    finally:
        for crew in crews:
            crew.kill()
    return {key: answer for crew in crews for key, answer in crew.answers.items()}, kills


async def stored(file: Path) -> list[dict[str, Any]]:
    """Return the chain, after verification in the service's way."""
    log = SqliteAuditLog(file, workspace)
    verdict = await Verifier(log.store, workspace).verify(CHAIN)
    records = await log.records(CHAIN.target, CHAIN.scope_key)
    await log.close()
    assert verdict.chain_valid, verdict.reason
    return records


def check(records: list[dict[str, Any]], answers: Answers) -> None:
    """Fail unless the chain is whole, has each answer where it was said to be, and no event twice or out of turn."""
    assert first_fault(records, genesis_hash("plant-a", CHAIN.target, CHAIN.scope_key)) is None
    following: Counter[str] = Counter()
    places: Answers = {}
    for record in records:
        name, number = record["EntityType"], int(record["EntityID"])
        assert number == following[name], f"{name} wrote {number} where {following[name]} comes next"
        following[name] += 1
        places[name, number] = (record["RecordID"], record["Hash"])
    assert answers.items() <= places.items()
    unanswered = len(places) - len(answers)
    assert 0 <= unanswered <= WRITERS


@pytest.mark.parametrize("seconds", [4.0, pytest.param(60.0, marks=pytest.mark.soak)])
async def test_no_kill_loses_doubles_or_forks(tmp_path: Path, seconds: float) -> None:
    """64 writers in 4 processes that are killed and come back: no lost answer, no duplicate, no gap, no fork."""
    seed = random.randrange(2**32)
    print("seed", seed)  # noqa: T201  shown when it fails
    file = tmp_path / "provenance.sqlite"
    answers, kills = storm(file, seconds, seed)
    assert kills >= 2
    assert len(answers) >= WRITERS
    check(await stored(file), answers)
