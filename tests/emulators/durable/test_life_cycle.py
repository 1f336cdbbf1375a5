"""Tests of concurrency, shutdown and errors of the Durable Task engine."""

import asyncio
import json
import sqlite3
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from emulators.durable import turns
from emulators.durable.engine import DurableSettings
from emulators.durable.management import InstanceFilter
from emulators.durable.management_urls import load_system_key
from tests.emulators.durable.hosts import DurableHost
from tests.emulators.durable.worlds import World

type Steps = Generator[Any, Any, Any]

pytestmark = pytest.mark.filterwarnings("ignore:azure.functions df_loads was called")  # a hint of the SDK, once


async def test_concurrent_activities_are_limited(tmp_path: Path) -> None:
    """At most MaxConcurrentActivityFunctions activities run at the same time, and all of them complete."""
    world = World(tmp_path / "durable.sqlite", DurableSettings(max_activities=3))
    running: list[int] = [0, 0]

    @world.functions.activity
    async def slow(value: int) -> int:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0)
        running[0] -= 1
        return value

    @world.functions.orchestrator
    def wide(context: Any) -> Steps:
        return (yield context.task_all([context.call_activity("slow", number) for number in range(30)]))

    await world.start("wide")
    assert (await world.wait_for_end())["output"] == list(range(30))
    assert running == [0, 3]
    await world.kill()


async def test_waiting_completions_share_a_replay(world: World) -> None:
    """Several completed activities are processed in one replay, because each replay reads the whole history."""

    @world.functions.activity
    def quick(value: int) -> int:
        return value

    @world.functions.orchestrator
    def wide(context: Any) -> Steps:
        return (yield context.task_all([context.call_activity("quick", number) for number in range(300)]))

    await world.start("wide")
    assert (await world.wait_for_end())["output"] == list(range(300))
    assert world.functions.replays < 300


async def test_terminated_orchestration_starts_no_activities(tmp_path: Path) -> None:
    """If an orchestration is terminated, its activities that have not started do not run."""
    world = World(tmp_path / "durable.sqlite", DurableSettings(max_activities=1))
    begun = asyncio.Event()
    gate = asyncio.Event()

    @world.functions.activity
    async def blocked(value: int) -> int:
        begun.set()
        await gate.wait()
        return value

    @world.functions.orchestrator
    def wide(context: Any) -> Steps:
        yield context.task_all([context.call_activity("blocked", number) for number in range(5)])

    await world.start("wide")
    await begun.wait()
    await world.management.terminate("one", json.dumps("enough"))
    gate.set()
    assert (await world.wait_for_end())["runtimeStatus"] == "Terminated"
    await world.start("wide", instance="two")
    await world.wait_for_end("two")
    assert len(world.functions.called) == 1 + 5
    await world.kill()


async def test_a_terminated_sub_orchestration_fails_its_caller(world: World) -> None:
    """If a sub-orchestration is terminated, its caller gets a failure."""

    @world.functions.orchestrator
    def inner(context: Any) -> Steps:
        yield context.wait_for_external_event("never")

    @world.functions.orchestrator
    def outer(context: Any) -> Steps:
        yield context.call_sub_orchestrator("inner", None, "child")

    await world.start("outer")
    await world.wait_for_replays(2)

    async def terminated() -> bool:
        return await world.management.terminate("child", json.dumps("enough")) is not None

    await world.wait_until(terminated)
    assert "enough" in (await world.wait_for_end())["output"]


async def test_the_size_of_a_history_is_limited(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the history of an orchestration exceeds the limit, the orchestration fails."""
    monkeypatch.setattr(turns, "MAX_HISTORY", 40)

    @world.functions.activity
    def quick(value: int) -> int:
        return value

    @world.functions.orchestrator
    def endless(context: Any) -> Steps:
        while True:
            yield context.call_activity("quick", 1)

    await world.start("endless")
    assert "more than 40 events; let it continue as new" in (await world.wait_for_end())["output"]


async def test_invalid_state_fails_the_orchestration(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """If an orchestrator's result does not have the form of the SDK's results, the orchestration fails."""

    @world.functions.orchestrator
    def strange(context: Any) -> None: ...

    async def answer(_name: str, _context: str) -> str:
        return '["no state"]'

    monkeypatch.setattr(world.functions, "run_orchestrator", answer)
    await world.start("strange")
    assert "is not in the format of the Durable Functions SDK" in (await world.wait_for_end())["output"]


async def test_a_locked_file_loses_no_result(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the database file is locked, the engine repeats its writes, and no result is lost."""
    monkeypatch.setattr("emulators.durable.engine._RETRY_SECONDS", 0.01)
    failures = iter([True, True, True])

    @world.functions.activity
    def quick(value: int) -> int:
        return value

    @world.functions.orchestrator
    def single(context: Any) -> Steps:
        return (yield context.call_activity("quick", 1))

    write = world.store.database.write

    async def failing(work: Any) -> Any:
        if next(failures, False):
            raise sqlite3.OperationalError("database is locked")
        return await write(work)

    await world.start("single")
    monkeypatch.setattr(world.store.database, "write", failing)
    assert (await world.wait_for_end())["output"] == 1


def test_the_next_host_repeats_activities_after_a_stop(durable: DurableHost) -> None:
    """After SIGTERM the host ends within five seconds, and the next host repeats unfinished activities."""
    links = durable.start("fan_out", 12)
    durable.host.wait_until(lambda: len(durable.host.records()) == 12)
    durable.host.process.terminate()
    assert durable.host.process.wait(timeout=10) == 0
    levels = [json.loads(line)["level"] for line in durable.host.log().splitlines()]
    assert set(levels) <= {"INFO"}, durable.host.log()
    (durable.host.data_dir / "open").touch()
    durable.begin()
    assert durable.wait_for_end(links)["output"] == [number * number for number in range(12)]


def test_second_host_takes_over(durable: DurableHost) -> None:
    """If two hosts use one data folder, the second runs no orchestrations until the first has ended."""
    first = durable.host
    (first.data_dir / "open").touch()
    durable.begin()
    links = durable.start("fan_out", 4)
    assert durable.wait_for_end(links)["output"] == [0, 1, 4, 9]
    assert len(durable.host.records()) == 4
    first.kill()
    assert durable.wait_for_end(durable.start("chain", 5))["output"][0] == 40


def test_an_empty_key_file_is_filled(tmp_path: Path) -> None:
    """If a crash left the key file empty, the next start writes a key into it."""
    path = tmp_path / "durable.key"
    path.touch()
    key = load_system_key(path)
    assert len(key) > 40
    assert load_system_key(path) == key


async def test_old_ended_orchestrations_are_purged(world: World) -> None:
    """A purge by age deletes only orchestrations that have ended and started before the given time."""

    @world.functions.orchestrator
    def quick(_context: Any) -> str:
        return "done"

    @world.functions.orchestrator
    def patient(context: Any) -> Steps:
        return (yield context.wait_for_external_event("go"))

    for name, instance in (("quick", "old"), ("patient", "running")):
        await world.start(name, instance=instance)
    await world.wait_for_end("old")
    world.clock.advance(timedelta(days=8).total_seconds())
    await world.start("quick", instance="recent")
    await world.wait_for_end("recent")
    created_to = world.clock.now() - timedelta(days=7)
    assert await world.management.purge_all(InstanceFilter(created_to=created_to)) == 1
    found = [await world.management.find_instance(each) for each in ("old", "running", "recent")]
    assert [each is not None for each in found] == [False, True, True]
