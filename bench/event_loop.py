"""Benchmark: longest time for which one expensive request blocks the event loop, which delays all other replies."""

import os
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from bench.adversarial import Attack, build_attacks
from bench.figures import Figure
from bench.running import RunningService, run_service

MOST_MILLISECONDS: Final = 50
_PATIENCE_SECONDS: Final = 240
_REPEATS: Final = 3
_QUIET_SECONDS: Final = 1.0


@dataclass(slots=True)
class HealthzProbe:
    """Process that calls ``/healthz`` again and again; a slow reply means that the event loop was blocked.

    Attributes:
        process: the process, which prints a line for each call.
        replies: start and duration of each call so far, in seconds of ``time.monotonic``.
    """

    process: subprocess.Popen[str]
    replies: list[tuple[float, float]] = field(default_factory=list)

    def find_longest_call_milliseconds(self, since: float, until: float) -> float:
        """Return the duration in milliseconds of the longest call that overlaps a time interval."""
        self._read_calls_until(until)
        spans = [seconds for begun, seconds in self.replies if begun + seconds >= since and begun <= until]
        return max(spans, default=0.0) * 1000

    def _read_calls_until(self, until: float) -> None:
        """Read lines from the process, and add each call to ``replies``, until a call started after ``until``."""
        assert self.process.stdout is not None  # noqa: S101  it is a pipe
        while not self.replies or self.replies[-1][0] <= until:
            begun, seconds = self.process.stdout.readline().split()
            self.replies.append((float(begun), float(seconds)))


@contextmanager
def run_healthz_probe(url: str) -> Iterator[HealthzProbe]:
    """Context manager: run a process that calls ``/healthz`` repeatedly; yield the `HealthzProbe` of the process."""
    command = [sys.executable, "-m", "bench.healthz_probe", url]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield HealthzProbe(process)
        finally:
            process.terminate()


def measure_event_loop() -> Iterator[Figure]:
    """Send the attacks (expensive requests) one by one; measure the longest call of ``/healthz`` during each attack."""
    chosen = os.environ.get("EVENT_LOOP_ONLY", "")
    with run_service() as running, run_healthz_probe(running.url) as probe:
        time.sleep(_QUIET_SECONDS)
        quiet = probe.find_longest_call_milliseconds(time.monotonic() - _QUIET_SECONDS, time.monotonic())
        longest: dict[str, float] = {}
        failures: dict[str, int] = {}
        for attack in build_attacks():
            if any(part in attack.name for part in chosen.split(",")):
                longest[attack.name], status = _send_attack_and_measure_blocking(running, probe, attack)
                if status >= 500 or (attack.must_be_rejected and status < 400):
                    failures[attack.name] = status
    slowest = sorted(longest, key=lambda name: longest[name], reverse=True)[:20]
    detail = {"quiet": round(quiet, 1), "longest": {name: round(longest[name], 1) for name in slowest}}
    yield Figure("event_loop_blocked", longest[slowest[0]], "ms", at_most=MOST_MILLISECONDS, detail=detail)
    yield Figure("event_loop_failures", len(failures), "requests", at_most=0, detail=failures)


class _AttackResult(NamedTuple):
    """Milliseconds for which an attack blocked the event loop, and the HTTP status of the reply."""

    blocked_milliseconds: float
    status: int


def _send_attack_and_measure_blocking(running: RunningService, probe: HealthzProbe, attack: Attack) -> _AttackResult:
    """Send an attack and measure for how long it blocks the event loop.

    An attack that exceeds the bound is repeated; the result is the shortest time, because other processes can only
    lengthen it.
    """
    longest = float("inf")
    status = 0
    for _ in range(_REPEATS):
        since = time.monotonic()
        status = send_attack_and_get_status(running, attack)
        longest = min(longest, probe.find_longest_call_milliseconds(since, time.monotonic()))
        if longest <= MOST_MILLISECONDS:
            break
    return _AttackResult(longest, status)


def send_attack_and_get_status(running: RunningService, attack: Attack) -> int:
    """Send an attack and return the HTTP status of the reply."""
    headers = {"Content-Type": "application/json", **running.headers, **attack.headers}
    url = running.url + attack.path
    request = urllib.request.Request(url, attack.body or None, headers, method=attack.method)  # noqa: S310  our own
    try:
        with urllib.request.urlopen(request, timeout=_PATIENCE_SECONDS) as reply:  # noqa: S310  our own
            reply.read()
            return int(reply.status)
    except urllib.error.HTTPError as error:
        with error:
            error.read()
            return error.code
