"""Tests of concurrency, shutdown and errors of the Durable Task engine."""

import asyncio
import json
import sqlite3
from collections.abc import Generator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

import pytest
from azure.durable_functions import DurableOrchestrationClient

from emulators.durable import turns
from emulators.durable.engine import DurableSettings
from emulators.durable.management_urls import ManagementUrls, load_or_create_system_key
from emulators.durable.turns import FunctionNames
from emulators.durable.webhooks import Webhooks
from functions import orchestration_history
from functions.durable_runner import CLIENT
from tests.emulators.durable.engine_harness import EngineHarness
from tests.emulators.durable.hosts import DurableHost

type Steps = Generator[Any, Any, Any]

pytestmark = pytest.mark.filterwarnings("ignore:azure.functions df_loads was called")  # a hint of the SDK, once


async def test_the_number_of_concurrent_activities_is_limited(tmp_path: Path) -> None:
    """At most MaxConcurrentActivityFunctions activities run at the same time, and all of them complete."""
    harness = EngineHarness(tmp_path / "durable.sqlite", DurableSettings(max_activities=3))
    running: list[int] = [0, 0]

    @harness.functions.register_activity
    async def count_concurrent_calls(value: int) -> int:
        running[0] += 1
        running[1] = max(running)
        await asyncio.sleep(0)
        running[0] -= 1
        return value

    @harness.functions.register_orchestrator
    def start_many_activities(context: Any) -> Steps:
        return (
            yield context.task_all([context.call_activity("count_concurrent_calls", number) for number in range(30)])
        )

    await harness.start_orchestration("start_many_activities")
    assert (await harness.wait_for_end())["output"] == list(range(30))
    assert running == [0, 3]
    await harness.kill_engine()


async def test_completed_activities_are_processed_in_one_replay(harness: EngineHarness) -> None:
    """Several completed activities are processed in one replay, because each replay reads the whole history."""

    @harness.functions.register_activity
    def return_value(value: int) -> int:
        return value

    @harness.functions.register_orchestrator
    def start_many_activities(context: Any) -> Steps:
        return (yield context.task_all([context.call_activity("return_value", number) for number in range(300)]))

    await harness.start_orchestration("start_many_activities")
    assert (await harness.wait_for_end())["output"] == list(range(300))
    assert harness.functions.replays < 300


async def test_terminated_orchestration_starts_no_activities(tmp_path: Path) -> None:
    """If an orchestration is terminated, its activities that have not started do not run."""
    harness = EngineHarness(tmp_path / "durable.sqlite", DurableSettings(max_activities=1))
    begun = asyncio.Event()
    gate = asyncio.Event()

    @harness.functions.register_activity
    async def wait_for_release(value: int) -> int:
        begun.set()
        await gate.wait()
        return value

    @harness.functions.register_orchestrator
    def start_many_activities(context: Any) -> Steps:
        yield context.task_all([context.call_activity("wait_for_release", number) for number in range(5)])

    await harness.start_orchestration("start_many_activities")
    await begun.wait()
    await harness.management.terminate_and_find_previous_status("one", json.dumps("enough"))
    gate.set()
    assert (await harness.wait_for_end())["runtimeStatus"] == "Terminated"
    await harness.start_orchestration("start_many_activities", instance="two")
    await harness.wait_for_end("two")
    assert len(harness.functions.called) == 1 + 5
    await harness.kill_engine()


async def test_a_terminated_sub_orchestration_fails_its_caller(harness: EngineHarness) -> None:
    """If a sub-orchestration is terminated, its caller gets a failure."""

    @harness.functions.register_orchestrator
    def wait_for_event(context: Any) -> Steps:
        yield context.wait_for_external_event("never")

    @harness.functions.register_orchestrator
    def call_sub_orchestration(context: Any) -> Steps:
        yield context.call_sub_orchestrator("wait_for_event", None, "child")

    await harness.start_orchestration("call_sub_orchestration")
    await harness.wait_for_replays(2)

    async def is_terminated() -> bool:
        return await harness.management.terminate_and_find_previous_status("child", json.dumps("enough")) is not None

    await harness.wait_until(is_terminated)
    assert "enough" in (await harness.wait_for_end())["output"]


async def test_the_size_of_a_history_is_limited(harness: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the history of an orchestration exceeds the limit, the orchestration fails."""
    monkeypatch.setattr(turns, "MAX_HISTORY", 40)

    @harness.functions.register_activity
    def return_value(value: int) -> int:
        return value

    @harness.functions.register_orchestrator
    def call_activities_forever(context: Any) -> Steps:
        while True:
            yield context.call_activity("return_value", 1)

    await harness.start_orchestration("call_activities_forever")
    assert "more than 40 events; call continue_as_new" in (await harness.wait_for_end())["output"]


async def test_an_invalid_orchestrator_result_fails_the_orchestration(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If an orchestrator's result does not have the form of the SDK's results, the orchestration fails."""

    @harness.functions.register_orchestrator
    def return_nothing(context: Any) -> None: ...

    async def return_invalid_state(_name: str, _context: str) -> str:
        return '["no state"]'

    monkeypatch.setattr(harness.functions, "run_orchestrator", return_invalid_state)
    await harness.start_orchestration("return_nothing")
    assert "is not in the format of the Durable Functions SDK" in (await harness.wait_for_end())["output"]


async def test_a_locked_database_file_loses_no_activity_result(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the database file is locked, the engine repeats its writes, and no result is lost."""
    monkeypatch.setattr("emulators.durable.engine._RETRY_SECONDS", 0.01)
    failures = iter([True, True, True])

    @harness.functions.register_activity
    def return_value(value: int) -> int:
        return value

    @harness.functions.register_orchestrator
    def call_one_activity(context: Any) -> Steps:
        return (yield context.call_activity("return_value", 1))

    write = harness.store.database.write

    async def fail_as_locked(work: Any) -> Any:
        if next(failures, False):
            raise sqlite3.OperationalError("database is locked")
        return await write(work)

    await harness.start_orchestration("call_one_activity")
    monkeypatch.setattr(harness.store.database, "write", fail_as_locked)
    assert (await harness.wait_for_end())["output"] == 1


def test_the_next_host_repeats_activities_after_a_stop(durable: DurableHost) -> None:
    """After SIGTERM the host ends within five seconds, and the next host repeats the unfinished activities."""
    links = durable.start_orchestration("fan_out", 12)
    durable.host.wait_until(lambda: len(durable.host.read_records()) == 12)
    durable.host.process.terminate()
    assert durable.host.process.wait(timeout=10) == 0
    levels = [json.loads(line)["level"] for line in durable.host.read_log().splitlines()]
    assert set(levels) <= {"INFO"}, durable.host.read_log()
    (durable.host.data_dir / "open").touch()
    durable.start_host()
    assert durable.wait_for_end(links)["output"] == [number * number for number in range(12)]


def test_a_second_host_waits_until_the_first_has_ended(durable: DurableHost) -> None:
    """If two hosts use one data folder, the second host runs no orchestrations until the first host has ended."""
    first = durable.host
    (first.data_dir / "open").touch()
    durable.start_host()
    links = durable.start_orchestration("fan_out", 4)
    assert durable.wait_for_end(links)["output"] == [0, 1, 4, 9]
    assert len(durable.host.read_records()) == 4
    first.kill()
    assert durable.wait_for_end(durable.start_orchestration("chain", 5))["output"][0] == 40


def test_an_empty_file_of_the_system_key_gets_a_new_key(tmp_path: Path) -> None:
    """If a crash left the key file empty, the next start writes a key into it."""
    path = tmp_path / "durable.key"
    path.touch()
    key = load_or_create_system_key(path)
    assert len(key) > 40
    assert load_or_create_system_key(path) == key


def _build_client(harness: EngineHarness, monkeypatch: pytest.MonkeyPatch) -> DurableOrchestrationClient:
    """Build a client of the SDK that passes its DELETE requests to the HTTP API of the emulator without a network."""
    urls = ManagementUrls("http://host", "hub", "key")
    webhooks = Webhooks(harness.management, urls, FunctionNames(frozenset(), frozenset()), lambda _scope: True)
    client = DurableOrchestrationClient(urls.build_client_binding_json())

    async def delete(url: str) -> tuple[int, Any]:
        parts = urlsplit(url)
        scope = {"method": "DELETE", "query_string": parts.query.encode(), "headers": []}
        reply = await webhooks.handle_request(scope, parts.path, b"")
        return reply.status, reply.document

    monkeypatch.setattr(client, "_delete_async_request", delete)
    return client


async def test_the_history_job_deletes_only_old_ended_orchestrations(
    harness: EngineHarness, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The purge of the app's job deletes only orchestrations that have ended and started seven days ago or earlier."""

    @harness.functions.register_orchestrator
    def end_at_once(_context: Any) -> str:
        return "done"

    @harness.functions.register_orchestrator
    def wait_for_event(context: Any) -> Steps:
        return (yield context.wait_for_external_event("go"))

    for name, instance in (("end_at_once", "old"), ("wait_for_event", "running")):
        await harness.start_orchestration(name, instance=instance)
    await harness.wait_for_end("old")
    harness.clock.advance(timedelta(days=8).total_seconds())
    await harness.start_orchestration("end_at_once", instance="recent")
    await harness.wait_for_end("recent")
    services = SimpleNamespace(runtime=SimpleNamespace(now=harness.clock.now))
    monkeypatch.setattr(orchestration_history, "services", lambda: services)
    token = CLIENT.set(_build_client(harness, monkeypatch))
    await orchestration_history.get_history_job().run()
    CLIENT.reset(token)
    found = [await harness.management.find_instance(each) for each in ("old", "running", "recent")]
    assert [each is not None for each in found] == [False, True, True]
