"""Durable Task engine with the replay of the SDK and a manual clock, for tests."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from azure.durable_functions import Orchestrator

from emulators.durable.engine import DurableEngine, DurableSettings
from emulators.durable.events import build_history_document, build_status_document
from emulators.durable.management import Management
from emulators.durable.ports import FunctionCallError
from emulators.durable.records import NewInstance, create_random_id
from emulators.durable.store import SCHEMA, OrchestrationStore
from emulators.durable.turns import FunctionNames, OrchestratorFailed
from local.host.shutdown import ShutdownSignal
from shared.backends.embedded.sqlite import SqliteDatabase


class ManualClock:
    """Fake clock that only a test advances."""

    def __init__(self) -> None:
        self._now = datetime(2030, 1, 1, tzinfo=UTC)
        self._wakes: set[asyncio.Event] = set()

    def now(self) -> datetime:
        """Return the current time."""
        return self._now

    async def wait_until_due_or_woken(self, due: datetime | None, wake: asyncio.Event) -> None:  # noqa: ARG002  the clock wakes the engine
        """Wait until the event is set or the clock reaches the due time."""
        self._wakes.add(wake)
        await wake.wait()

    def advance(self, seconds: float) -> None:
        """Advance the clock."""
        self._now += timedelta(seconds=seconds)
        for wake in self._wakes:
            wake.set()


class SdkFunctions:
    """Functions of a test: orchestrators, which the SDK replays, and activities."""

    def __init__(self) -> None:
        self.orchestrators: dict[str, Callable[..., Any]] = {}
        self.activities: dict[str, Callable[[Any], Any]] = {}
        self.called: list[tuple[str, Any]] = []
        self.replays = 0
        self.before_call: Callable[[], None] = lambda: None

    def register_orchestrator(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Register an orchestrator function under its name."""
        self.orchestrators[function.__name__] = function
        return function

    def register_activity(self, function: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Register an activity function, synchronous or asynchronous."""
        self.activities[function.__name__] = function
        return function

    @property
    def function_names(self) -> FunctionNames:
        """Return the names of the registered functions."""
        return FunctionNames(frozenset(self.activities), frozenset(self.orchestrators))

    async def run_orchestrator(self, name: str, context: str) -> str:
        """Replay an orchestrator with the SDK."""
        self.before_call()
        self.replays += 1
        try:
            return str(Orchestrator.create(self.orchestrators[name])(context))
        except Exception as error:  # noqa: BLE001  any exception of the app
            raise OrchestratorFailed(str(error)) from None

    async def run_activity(self, name: str, input_text: str) -> str | None:
        """Call a registered activity function."""
        self.before_call()
        value = json.loads(input_text)
        self.called.append((name, value))
        try:
            result = self.activities[name](value)
            return json.dumps(await result if asyncio.iscoroutine(result) else result)
        except Exception as error:  # noqa: BLE001  any exception of the app
            raise FunctionCallError(f"{type(error).__name__}: {error}", "a stack trace") from None


class EngineHarness:
    """Durable Task engine in a test, which can kill the engine and restart it with the same database file."""

    def __init__(self, path: Path, settings: DurableSettings | None = None) -> None:
        self.functions = SdkFunctions()
        self.clock = ManualClock()
        self._path = path
        self._settings = settings or DurableSettings()
        self._engine: asyncio.Task[None] | None = None
        self.start_engine()

    def start_engine(self) -> None:
        """Start an engine that uses the database file of this test."""
        self._stopping = ShutdownSignal()
        self.store = OrchestrationStore(SqliteDatabase(self._path, SCHEMA))
        engine = DurableEngine(self.store, self.functions, self._settings, self.clock, self._stopping)
        self.management = Management(self.store, self.clock, engine.wake)
        self._engine = asyncio.create_task(engine.run())

    async def kill_engine(self) -> None:
        """Stop the engine at once, as a crash between two transactions does."""
        assert self._engine is not None
        self._engine.cancel()
        await asyncio.wait([self._engine])
        await self.store.close()

    async def start_orchestration(self, name: str, input_value: object = None, instance: str = "one") -> bool:
        """Start an orchestration; its input is JSON text within JSON, as the SDK's client sends it."""
        text = None if input_value is None else json.dumps(json.dumps(input_value))
        return await self.management.try_start_instance(NewInstance(instance, create_random_id(), name, None, text))

    async def raise_event(self, name: str, data: object, instance: str = "one") -> None:
        """Raise an event with JSON data, as an HTTP client does."""
        await self.management.raise_event_and_find_previous_status(instance, name, json.dumps(data))

    async def read_status(self, instance: str = "one") -> dict[str, Any]:
        """Return the JSON status of an orchestration instance."""
        found = await self.management.find_instance(instance)
        assert found is not None
        history = build_history_document(await self.management.load_history_events(instance), show_output=True)
        return build_status_document(found, show_input=True, history=history)

    async def wait_until(self, condition: Callable[[], Awaitable[bool]], *, tick: float = 0.0) -> None:
        """Wait until a condition is true; after each failed check, advance the clock."""
        async with asyncio.timeout(30):
            while not await condition():
                self.clock.advance(tick)
                await asyncio.sleep(0.001)

    async def wait_for_end(self, instance: str = "one", *, tick: float = 0.0) -> dict[str, Any]:
        """Wait until an orchestration has ended and return its status."""

        async def has_ended() -> bool:
            found = await self.management.find_instance(instance)
            return found is not None and found.status.has_ended

        await self.wait_until(has_ended, tick=tick)
        return await self.read_status(instance)

    async def wait_for_replays(self, replays: int) -> None:
        """Wait until the SDK has made this number of replays."""

        async def is_reached() -> bool:
            return self.functions.replays >= replays

        await self.wait_until(is_reached)
