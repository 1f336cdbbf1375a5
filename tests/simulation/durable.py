"""Simulated Durable Functions service that runs orchestrators and runs each activity at least once."""

import asyncio
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from azure.durable_functions import RetryOptions

from shared.errors import WorkspaceError
from shared.wiring import Services
from tests.simulation.jobs import ProcessDiedError, WorkFailedError, run_on_instance
from tests.simulation.scheduler import MICROSECONDS
from tests.virtual_time import START

if TYPE_CHECKING:
    from tests.simulation.world import World

_MODULES: Final = ("functions.download_jobs", "functions.bundle_jobs", "functions.import_jobs")
_LONGEST_TRIP_SECONDS: Final = 0.05
_LONGEST_LOCK_SECONDS: Final = 30
"""Longest time after which an activity of a dead process runs again."""


class DurableError(Exception):
    """Error of a request to the simulated Durable Functions; the request may still have been executed."""


class ActivityFailedError(Exception):
    """Error that an orchestrator gets after all attempts of an activity have failed."""


@dataclass(frozen=True)
class Activity:
    """Call of an activity, with its retries."""

    name: str
    retry: RetryOptions
    data: Any


@dataclass(frozen=True)
class Timer:
    """Timer of an orchestration; its time is in microseconds of the simulated clock."""

    until: int


@dataclass(frozen=True)
class All:
    """Task that completes when several concurrent activities have completed."""

    activities: tuple[Activity, ...]


@dataclass
class Orchestration:
    """One run of an orchestrator.

    Attributes:
        data: its input.
        is_terminated: True if it was terminated; then its results are no longer used.
        is_restarted: True if it restarts with an empty history.
        now: time of its current step in microseconds of the world.
    """

    data: Any
    is_terminated: bool = False
    is_restarted: bool = False
    now: int = 0


@dataclass
class Context:
    """Fake of ``DurableOrchestrationContext`` with the attributes and methods that the service's orchestrators use."""

    orchestration: Orchestration
    call_activity_with_retry: Callable[[str, RetryOptions, Any], Activity] = field(default=Activity)

    def get_input(self) -> Any:
        """Return the input of the orchestration."""
        return self.orchestration.data

    @property
    def current_utc_datetime(self) -> datetime:
        """Time of the orchestration's current step."""
        return START + timedelta(microseconds=self.orchestration.now)

    def create_timer(self, until: datetime) -> Timer:
        """Return a timer that expires at a given time."""
        return Timer((until - START) // timedelta(microseconds=1))

    def task_all(self, activities: Iterable[Activity]) -> All:
        """Return a task that completes when all given activities have completed."""
        return All(tuple(activities))

    def set_custom_status(self, status: Any) -> None:
        """Do nothing, because no test reads the status."""

    def continue_as_new(self, data: Any) -> None:
        """Restart the orchestration with an empty history after this run."""
        self.orchestration.data, self.orchestration.is_restarted = data, True


@cache
def list_functions() -> Mapping[str, Any]:
    """Return the orchestrators and activities of the service by name."""
    found: dict[str, Any] = {}
    for name in _MODULES:
        for value in vars(import_module(name)).values():
            function = getattr(value, "_function", None)
            if function is not None:
                code = function.get_user_function()
                found[function.get_function_name()] = getattr(code, "orchestrator_function", code)
    return found


class DurableFunctions:
    """Durable Functions service of a simulated world; it continues after all processes have crashed.

    An activity whose process dies runs again after a while. An activity whose result is lost runs again at once, and
    one that is delivered twice runs on two processes at the same time; only one result counts.

    Args:
        world: world of the service.
    """

    def __init__(self, world: "World") -> None:
        self._world = world
        self._running: dict[str, Orchestration] = {}
        self._activities = 0

    def start(self, orchestrator: str, instance: str, data: Any) -> bool:
        """Start an orchestration; return False if an orchestration with this id is running."""
        if instance in self._running:
            return False
        orchestration = self._running[instance] = Orchestration(data)
        self._world.start_task(self._run_orchestration(orchestrator, instance, orchestration))
        return True

    def is_running(self, instance: str) -> bool:
        """Return whether an orchestration with this id is running."""
        return instance in self._running

    def has_activities(self) -> bool:
        """Return whether any activity is running or will run again, also one of a terminated orchestration."""
        return self._activities > 0

    @contextmanager
    def _count_activity(self) -> Iterator[None]:
        self._activities += 1
        try:
            yield
        finally:
            self._activities -= 1

    def terminate(self, instance: str) -> None:
        """End an orchestration; its running activities continue."""
        orchestration = self._running.pop(instance, None)
        if orchestration is not None:
            orchestration.is_terminated = True

    async def _run_orchestration(self, orchestrator: str, instance: str, orchestration: Orchestration) -> None:
        self._world.trace(f"{orchestrator} {instance} starts")
        while True:
            orchestration.is_restarted = False
            await self._run_once(orchestrator, orchestration)
            if orchestration.is_terminated or not orchestration.is_restarted:
                break
        if not orchestration.is_terminated:
            del self._running[instance]
        self._world.trace(f"{orchestrator} {instance} ends")

    async def _run_once(self, orchestrator: str, orchestration: Orchestration) -> None:
        steps = list_functions()[orchestrator](Context(orchestration))
        result: Any = None
        failure: Exception | None = None
        while True:
            orchestration.now = self._world.scheduler.now
            try:
                step = steps.send(result) if failure is None else steps.throw(failure)
            except StopIteration:
                return
            result = failure = None
            try:
                result = await self._execute_step(step)
            except ActivityFailedError as error:
                failure = error
            if orchestration.is_terminated:
                return

    async def _execute_step(self, step: Activity | Timer | All) -> Any:
        match step:
            case Activity():
                return await self._execute_activity_with_retries(step)
            case Timer():
                return await self._world.sleep(max(0, step.until - self._world.scheduler.now) / MICROSECONDS)
            case All():
                results = await asyncio.gather(
                    *map(self._execute_activity_with_retries, step.activities), return_exceptions=True
                )
                errors = [each for each in results if isinstance(each, BaseException)]
                if errors:
                    raise errors[0]
                return results

    async def _execute_activity_with_retries(self, activity: Activity) -> Any:
        with self._count_activity():
            return await self._execute_with_retries(activity)

    async def _execute_with_retries(self, activity: Activity) -> Any:
        retry = activity.retry
        for attempt in range(retry.max_number_of_attempts):
            if attempt:
                await self._world.sleep(retry.first_retry_interval_in_milliseconds / 1000)
            try:
                return await self._execute_at_least_once(activity)
            except WorkFailedError as error:
                self._world.trace(f"{activity.name} failed: {error}")
        raise ActivityFailedError(activity.name)

    async def _execute_at_least_once(self, activity: Activity) -> Any:
        draw = self._world.random.random
        faults = self._world.faults
        while True:
            if draw() < faults.delivered_twice:
                self._world.start_task(self._execute_and_forget(activity))
            try:
                result = await self._execute_activity(activity)
            except ProcessDiedError:
                await self._world.sleep(draw() * _LONGEST_LOCK_SECONDS)
                continue
            if draw() >= faults.reply_lost:
                return result

    async def _execute_and_forget(self, activity: Activity) -> None:
        with self._count_activity():
            await self._world.sleep(self._world.random.random() * 2)
            try:
                await self._execute_activity(activity)
            except WorkFailedError as error:
                self._world.trace(f"the second {activity.name} failed: {error}")

    async def _execute_activity(self, activity: Activity) -> Any:
        function = list_functions()[activity.name]
        data = json.loads(json.dumps(activity.data))
        self._world.trace(f"{activity.name} {activity.data}")

        async def call_function(_: Services) -> Any:
            return await function(data)

        try:
            return json.loads(json.dumps(await run_on_instance(self._world, call_function)))
        except WorkspaceError as error:
            raise WorkFailedError(str(error)) from error


class DurableClient:
    """Client of Durable Functions over an unreliable network, with the methods that the service uses.

    Args:
        world: world of the client.
    """

    def __init__(self, world: "World") -> None:
        self._world = world

    async def start_new(self, orchestrator: str, instance_id: str, client_input: Any) -> str:
        """Start an orchestration; an error can be injected before or after the start."""

        def start() -> None:
            if not self._world.durable.start(orchestrator, instance_id, client_input):
                raise DurableError(f"an orchestration with the id {instance_id} is already running")

        await self._send(start)
        return instance_id

    async def terminate(self, instance_id: str, reason: str) -> None:  # noqa: ARG002  signature of the client
        """End an orchestration; an error can be injected before or after the end."""

        def terminate_instance() -> None:
            self._world.durable.terminate(instance_id)

        await self._send(terminate_instance)

    async def _send(self, request: Callable[[], None]) -> None:
        draw, faults = self._world.random.random, self._world.faults
        await asyncio.sleep(draw() * (10 if draw() < faults.slow else _LONGEST_TRIP_SECONDS))
        if draw() < faults.request_lost:
            raise DurableError("the request was lost")
        request()
        if draw() < faults.reply_lost:
            raise DurableError("the reply was lost")
