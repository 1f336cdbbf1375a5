"""Tests of timer functions on a local host."""

import json
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx
import pytest

from local.host import timers
from local.host.shutdown import ShutdownSignal
from local.host.timers import Timer, TimerSetting, TimerStatusFile, delete_expired_data_hourly
from local.host.worker import LoadedFunction
from shared.background.runner import Schedule

TIMERS = """
def seen(timer):
    record([timer.past_due, timer.schedule_status, timer.schedule])

@app.timer_trigger(arg_name="timer", schedule="%RARE%")
async def rare(timer: func.TimerRequest) -> None:
    seen(timer)

@app.timer_trigger(arg_name="timer", schedule="*/1 * * * * *")
async def often(timer: func.TimerRequest) -> None:
    with open(DATA / "often", "a") as file:
        file.write("begin\\n")
    await asyncio.sleep(0.2)
    with open(DATA / "often", "a") as file:
        file.write("end\\n")

@app.timer_trigger(arg_name="timer", schedule="0 0 0 29 2 *", run_on_startup=True)
async def first(timer: func.TimerRequest) -> None:
    record("first")
    raise RuntimeError("timers may fail")

@app.route(route="other")
async def other(req: func.HttpRequest) -> func.HttpResponse:
    return func.HttpResponse("")
"""
RARE = {"RARE": "0 0 0 29 2 *"}


def test_a_timer_function_runs_on_request(start_host: Any, http: httpx.Client) -> None:
    """POST /admin/functions/{name} returns 202 and runs the timer function once, not marked as past due."""
    host = start_host(TIMERS, **RARE)
    host.wait_until(lambda: host.read_records() == ["first"])
    assert http.post(f"{host.url}/admin/functions/rare", json={"input": ""}).status_code == 202
    assert http.post(f"{host.url}/admin/functions/rare").status_code == 202
    host.wait_until(lambda: len(host.read_records()) == 3)
    _, (past_due, status, schedule), (_, second_status, _) = host.read_records()
    assert (past_due, status, schedule) == (False, {}, {"AdjustForDST": True})
    assert set(second_status) == {"Last", "Next", "LastUpdated"}
    assert datetime.fromisoformat(second_status["Next"]).strftime("%m-%d") == "02-29"


def test_only_timer_functions_run_on_request(start_host: Any, http: httpx.Client) -> None:
    """A run request gets 404 for an unknown function, 400 for one without a timer, and 403 from a web page."""
    host = start_host(TIMERS, **RARE)
    admin = f"{host.url}/admin/functions"
    assert http.post(f"{admin}/unknown").status_code == 404
    assert http.get(f"{admin}/rare").status_code == 404
    assert http.post(f"{admin}/other").status_code == 400
    assert http.post(f"{admin}/rare", content=b"{").status_code == 400
    assert http.post(f"{admin}/rare", headers={"origin": "http://evil.example"}).status_code == 403
    assert host.terminate() == 0
    assert host.read_records() == ["first"]


def test_runs_of_a_timer_do_not_overlap(start_host: Any) -> None:
    """Runs of a timer follow its schedule without overlap; a failed run does not stop the schedule."""
    host = start_host(TIMERS, **RARE)
    ran = host.data_dir / "often"
    host.wait_until(lambda: ran.exists() and ran.read_text().count("end") >= 2)
    assert host.terminate() == 0
    lines = ran.read_text().split()
    assert lines == ["begin", "end"] * (len(lines) // 2)
    assert "timers may fail" in host.read_log()


def test_a_missed_run_of_a_timer_is_past_due(start_host: Any) -> None:
    """A timer whose last due time was missed runs when the host starts, and is marked as past due."""
    host = start_host("", **RARE)
    assert host.terminate() == 0
    yesterday = datetime.now(UTC) - timedelta(days=1)
    status = {"Last": yesterday.isoformat(), "Next": yesterday.isoformat(), "LastUpdated": yesterday.isoformat()}
    (host.data_dir / "timers.json").write_text(json.dumps({"rare": status}))
    host = start_host(TIMERS, **RARE)
    host.wait_until(lambda: len(host.read_records()) == 2)
    assert [True, status, {"AdjustForDST": True}] in host.read_records()


def test_a_missing_setting_of_a_schedule_is_named(start_host: Any) -> None:
    """If the app setting of a schedule is missing, the start fails with the setting's name."""
    host = start_host(TIMERS, ready=False)
    assert host.process.wait(timeout=30) == 1
    assert "RARE, which is not set" in host.read_log()


class VirtualClock(ShutdownSignal):
    """Fake shutdown signal whose waits advance a clock; ``steps`` are changes of the clock during waits by number."""

    def __init__(self, steps: dict[int, timedelta] | None = None) -> None:
        super().__init__()
        self.time = datetime(2026, 11, 30, 12, tzinfo=UTC)
        self._steps = steps or {}
        self._waits = 0

    async def wait_until_set(self, seconds: float) -> bool:
        """Advance the clock without waiting."""
        self._waits += 1
        self.time += timedelta(seconds=seconds) + self._steps.get(self._waits, timedelta())
        return self.is_set()


type RunTimer = Callable[[VirtualClock, Callable[[int], None]], Awaitable[list[str]]]


@pytest.fixture
def run_timer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunTimer:
    """Return a function that runs a timer every 15 seconds four times, and returns the times of the runs.

    It calls its second argument with the number of each run.
    """

    async def run_four_times(clock: VirtualClock, run: Callable[[int], None]) -> list[str]:
        runs: list[str] = []

        async def invoke_function(*_: Any) -> None:
            runs.append(f"{clock.time:%H:%M:%S}")
            run(len(runs))
            if len(runs) == 4:
                clock.set()

        monkeypatch.setattr(timers, "invoke_function", invoke_function)
        monkeypatch.setattr(timers, "now", lambda: clock.time)
        function = LoadedFunction("tick", "1", {"type": "timerTrigger", "name": "timer"}, None)
        setting = TimerSetting(function, Schedule("*/15 * * * * *"), run_on_startup=False)
        await Timer(setting, TimerStatusFile(tmp_path / "timers.json"), clock).run()
        return runs

    return run_four_times


async def test_a_timer_continues_after_the_clock_is_set_back(run_timer: RunTimer) -> None:
    """If the clock is set back while a timer waits, the timer runs at the next due time of the changed clock."""
    clock = VirtualClock({3: timedelta(minutes=-40)})
    assert await run_timer(clock, lambda _: None) == ["12:00:15", "12:00:30", "11:21:00", "11:21:15"]


async def test_a_timer_continues_after_the_clock_is_set_back_during_a_run(run_timer: RunTimer) -> None:
    """If the clock is set back during a run, the timer runs at the next due time of the changed clock."""
    clock = VirtualClock()

    def set_clock_back(run: int) -> None:
        if run == 2:
            clock.time -= timedelta(minutes=40)

    assert await run_timer(clock, set_clock_back) == ["12:00:15", "12:00:30", "11:20:45", "11:21:00"]


async def test_a_small_correction_of_the_clock_repeats_no_run(run_timer: RunTimer) -> None:
    """If the clock is set back by a second during a run, the timer does not run again at the same due time."""
    clock = VirtualClock()

    def correct_clock(run: int) -> None:
        if run == 2:
            clock.time -= timedelta(seconds=1)

    assert await run_timer(clock, correct_clock) == ["12:00:15", "12:00:30", "12:00:45", "12:01:00"]


class CountedPauses(ShutdownSignal):
    """Fake shutdown signal that records pauses and is set after the given number of pauses."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self.pauses: list[float] = []

    async def wait_until_set(self, seconds: float) -> bool:
        """Record a pause without waiting; set the signal at the last pause."""
        self.pauses.append(seconds)
        if len(self.pauses) == self._number:
            self.set()
        return self.is_set()


async def test_old_data_is_deleted_at_the_start_and_hourly() -> None:
    """Data is deleted at the start and every hour; after a failure, the next attempt is an hour later."""
    outcomes: list[int | sqlite3.Error] = [3, sqlite3.OperationalError("database is locked"), 0]

    async def delete() -> int:
        outcome = outcomes.pop(0)
        if isinstance(outcome, sqlite3.Error):
            raise outcome
        return outcome

    stopping = CountedPauses(3)
    await delete_expired_data_hourly("test data", delete, stopping)
    assert (outcomes, stopping.pauses) == ([], [3600.0] * 3)


async def test_nothing_is_deleted_after_the_shutdown() -> None:
    """A host that is already stopping deletes nothing."""

    async def delete() -> int:
        raise AssertionError

    stopping = ShutdownSignal()
    stopping.set()
    await delete_expired_data_hourly("test data", delete, stopping)
