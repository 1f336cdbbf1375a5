"""Simulated world: service instances and clients, whose steps are determined by one seed."""

import asyncio
import random
import shutil
from collections.abc import Collection, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import orjson

from shared.http.messages import Reply, Request
from tests.simulation.component import Component
from tests.simulation.cosmos_world import WorldAccount
from tests.simulation.crash_points import list_suspended_awaits
from tests.simulation.durable import DurableFunctions
from tests.simulation.engine import TelemetryRow
from tests.simulation.environment import Template, make_folder, remove_logged_failures, run_in_world
from tests.simulation.event_loop import MILLISECOND, SimulatedLoop
from tests.simulation.faults import Faults, draw_delay
from tests.simulation.instance import Instance
from tests.simulation.receiver import Receiver
from tests.simulation.scheduler import MICROSECONDS, Scheduler

MOST_STEPS: Final = 400_000
_SLOW_TICK_SECONDS: Final = 30
_LONGEST_TRIP: Final = 20 * MILLISECOND
_LONGEST_RESTART: Final = 20 * MICROSECONDS
_LONGEST_PAUSE: Final = 60 * MICROSECONDS
"""Longer than the lease of a background job, which therefore ends during some pauses."""
_LONGEST_JUMP: Final = timedelta(minutes=50)
_INTERNAL_ERROR: Final = 500
_USUAL_GAP: Final = 30
"""Usual number of steps between two opportunities for a crash or a clock that is set."""
_CRASHES_PER_DISTURBANCE: Final = 10
_MOST_AIMED_CRASHES: Final = 3


class ConnectionLostError(Exception):
    """Error of a request without a reply; the service may have processed the request."""


class ViolationError(Exception):
    """Error with the text of a violated invariant."""


@dataclass
class CrashPoints:
    """Points of a run at which a process can crash.

    Attributes:
        seen: sides of thread-pool jobs that were reached.
        crashed: points at which a process died.
        aimed: points at which a process died because the world aimed at them, in order.
    """

    seen: set[str] = field(default_factory=set)
    crashed: set[str] = field(default_factory=set)
    aimed: list[str] = field(default_factory=list)


class World:
    """Simulated world that tests some components of the service; one seed determines all random decisions.

    Args:
        seed: decides every step.
        components: classes of the components; None to let the seed choose.
        template: folder of a new workspace, and the tokens of its members.
        aims: crash points of the code; the seed decides whether the world aims at one of them.
        targets: crash points at which the world aims instead; None for the decision of the seed.

    Attributes:
        random: source of the decisions about the world.
        scheduler: scheduler of all loops.
        faults: faults of the world.
        stores_fail: whether the stores of the world fail sometimes.
        clock_shift: how far the clocks of all hosts were set.
        background_jobs: names of the background jobs that run.
        processes: every process by its loop.
        points: crash points that were reached.
        lines: the trace.
        receiver: receiver of webhooks.
        measured: values that queries return, by the text of the query.
        telemetry: rows of the table Telemetry, which queries of the live stream's replay return.
        tick_seconds: seconds between two ticks of the timer of the background jobs.
        account: Cosmos DB account of all processes; None if the stores are files only.
        durable: Durable Functions service of all processes.
    """

    def __init__(
        self,
        seed: int,
        components: Sequence[type[Component]],
        template: Template,
        aims: Sequence[str] = (),
        targets: Collection[str] | None = None,
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.scheduler = Scheduler(random.Random(self.random.getrandbits(64)))
        self.faults = Faults.draw(self.random, seed)
        self.stores_fail = any((self.faults.busy, self.faults.full, self.faults.commit_lost))
        self.clock_shift = timedelta()
        self.processes: dict[SimulatedLoop, Instance] = {}
        self.points = CrashPoints()
        self.lines: list[str] = []
        self.template = template
        self.folder = make_folder(template)
        self.account = None if template.account is None else WorldAccount(self, template.account)
        self.receiver = Receiver()
        self.measured: dict[str, float] = {}
        self.telemetry: list[TelemetryRow] = []
        self.tick_seconds = 5
        self.durable = DurableFunctions(self)
        self._clients = SimulatedLoop(self.scheduler, "clients")
        drawn = (self.random.choice(aims),) if aims and self.random.random() < 0.5 else ()
        self._aims = set(drawn if targets is None else targets)
        self._error: BaseException | None = None
        self._next_disturbance = self._draw_steps_until_disturbance()
        self._instances = [Instance(self, number, self.folder) for number in range(self.random.choice((1, 2, 2, 3)))]
        self.components = [component(self) for component in components]
        for instance in self._instances:
            self._attach_components(instance)
        self.background_jobs = frozenset(job for each in self.components for job in each.background_jobs)

    def trace(self, line: str) -> None:
        """Append a line to the trace."""
        self.lines.append(f"{self.scheduler.now} {line}")

    def require(self, holds: bool, invariant: str) -> None:  # noqa: FBT001  the condition is the subject
        """Raise ViolationError with this text if an invariant does not hold.

        Raises:
            ViolationError: the invariant does not hold.
        """
        if not holds:
            raise ViolationError(invariant)

    def run(self) -> None:
        """Run the clients with faults, then complete the work without faults, and check the invariants.

        Raises:
            ViolationError: an invariant does not hold.
        """
        with run_in_world(lambda: self.scheduler.current, self.processes):
            self._run()

    def _run(self) -> None:
        try:
            self._run_all([client for each in self.components for client in each.start()], None)
            self.trace("faults end")
            self.faults.stop()
            if self.account is not None:
                self.account.stop_faults()
            self._aims.clear()
            seconds = max(each.settle_seconds for each in self.components)
            deadline = self.scheduler.now + seconds * MICROSECONDS
            self._run_all([each.complete_work() for each in self.components], deadline)
            if self.account is not None:
                self.account.export(self.folder)
            for component in self.components:
                component.check_invariants(self.folder)
            self.trace(f"end after {self.scheduler.steps} steps")
        finally:
            for instance in self._instances:
                instance.end()
            shutil.rmtree(self.folder)
            if self.account is not None:
                self.account.close()

    def _run_all(self, coroutines: Sequence[Coroutine[Any, Any, None]], deadline: int | None) -> None:
        """Run steps until all given coroutines have ended."""
        tasks = [self._clients.create_task(each) for each in coroutines]
        waiting = len(tasks)

        def record_end(task: asyncio.Task[None]) -> None:
            nonlocal waiting
            waiting -= 1
            if (error := task.exception()) is not None:
                self._error = error

        for task in tasks:
            task.add_done_callback(record_end)
        scheduler = self.scheduler
        while waiting:
            if not scheduler.run_step():
                raise ViolationError("all work has stopped, but clients still wait")
            if scheduler.steps >= MOST_STEPS:
                raise ViolationError("the work does not end")
            if self._error is not None:
                raise self._error
            if deadline is not None and scheduler.now > deadline:
                raise ViolationError("the work does not finish in time after the last fault")
            if self._aims or scheduler.steps >= self._next_disturbance:
                self._inject_disturbance()

    def step_within_job(self) -> None:
        """Run one step of the world while a job waits; in reality, other work would run in other threads."""
        self.scheduler.run_step()
        self._inject_disturbance()

    def _inject_disturbance(self) -> None:
        """Crash a process or change the clocks, if the next disturbance is due."""
        if self._aims:
            self._crash_at_target()
        if self.scheduler.steps < self._next_disturbance:
            return
        self._next_disturbance = self.scheduler.steps + self._draw_steps_until_disturbance()
        if self._draw_fault(self.faults.clock_jump):
            self.clock_shift = _LONGEST_JUMP * self.random.random()
            self.trace(f"clocks are set to {self.clock_shift} ahead")
        instance = self.choose_instance()
        if self._draw_fault(self.faults.crash * _CRASHES_PER_DISTURBANCE) and instance.is_alive:
            instance.crash("")
        if self._draw_fault(self.faults.pause):
            self._pause_instance(self.choose_instance())

    def _pause_instance(self, instance: Instance) -> None:
        duration = int(self.random.random() * _LONGEST_PAUSE)
        self.trace(f"{instance.loop.name} pauses for {duration}")
        instance.loop.pause(duration)

    def _draw_steps_until_disturbance(self) -> int:
        """Return a random number of steps until the next disturbance."""
        return int(self.random.expovariate(1 / _USUAL_GAP)) + 1

    def _crash_at_target(self) -> None:
        loop = self.scheduler.last
        if loop is None or (instance := self.processes.get(loop)) is None or not instance.is_alive:
            return
        # Only the task that ran can have reached another await.
        task = loop.last_task
        if task is None or task.done():
            return
        point = next((place for place in list_suspended_awaits(task.get_coro()) if place in self._aims), "")
        if point:
            self._use_target(point)
            instance.crash("")
            self._aims -= self.points.crashed

    def is_aimed_at(self, point: str) -> bool:
        """Return whether the simulation must crash a process at this start or end of a job."""
        if point not in self._aims:
            return False
        self._use_target(point)
        return True

    def _use_target(self, point: str) -> None:
        self._aims.discard(point)
        self.points.aimed.append(point)
        if len(self.points.aimed) == _MOST_AIMED_CRASHES:
            self._aims.clear()

    def record_crash(self, instance: Instance, points: Sequence[str]) -> None:
        """Record a crash, and start a new process after a random delay."""
        self.points.crashed.update(points)
        self.trace(f"{instance.loop.name} dies at {' '.join(points)}")
        self.scheduler.call_after(
            int(self.random.random() ** 3 * _LONGEST_RESTART), lambda: self._restart_instance(instance)
        )

    def _restart_instance(self, old: Instance) -> None:
        self.trace(f"{old.loop.name} starts")
        self._instances[old.number] = Instance(self, old.number, self.folder)
        self._attach_components(self._instances[old.number])

    def _attach_components(self, instance: Instance) -> None:
        for component in self.components:
            component.attach(instance.services)

    def slow_down_background_jobs(self) -> None:
        """Run the background jobs less often, for components that wait for hours of virtual time."""
        self.tick_seconds = _SLOW_TICK_SECONDS

    def choose_instance(self) -> Instance:
        """Return a random instance for a request; its process may have crashed."""
        return self.random.choice(self._instances)

    def start_task(self, work: Coroutine[Any, Any, None]) -> None:
        """Start work outside of all simulated processes; an error in it ends the simulation."""

        def record_end(task: asyncio.Task[None]) -> None:
            if (error := task.exception()) is not None:
                self._error = error

        self._clients.create_task(work).add_done_callback(record_end)

    async def sleep(self, seconds: float) -> None:
        """Wait for a number of virtual seconds."""
        await asyncio.sleep(seconds)

    async def send(
        self, member: str, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> "ApiReply":
        """Send a request of a member to an instance over an unreliable network.

        Only a request with an idempotency key, or one that changes nothing twice, can arrive twice: a POST without a
        key does what it says each time.

        Raises:
            ConnectionLostError: no reply arrived.
            ViolationError: the service failed unexpectedly.
        """
        path, _, query = path.partition("?")
        content = body if isinstance(body, bytes) else b"" if body is None else orjson.dumps(body)
        authorization = {"authorization": f"Bearer {self.template.tokens[member]}"} if member else {}
        fixed = {"content-type": "application/json", "host": "plant.example", **authorization}
        request = Request(method, f"/{path}", query, fixed | dict(headers or {}), content)
        self.trace(f"{member} {method} {path} {(headers or {}).get('idempotency-key', '')}")
        future: asyncio.Future[Reply] = self._clients.create_future()
        is_repeatable = method != "POST" or "idempotency-key" in request.headers
        copies = 2 if is_repeatable and self._draw_fault(self.faults.delivered_twice) else 1
        for _ in range(copies):
            self._deliver_request(request, future)
        reply = await future
        self.trace(f"{member} {method} {path} -> {reply.status}")
        if reply.status == _INTERNAL_ERROR:
            raise ViolationError(f"{method} {path} failed: {remove_logged_failures()}")
        return ApiReply(reply)

    def _draw_fault(self, probability: float) -> bool:
        return probability > 0 and self.random.random() < probability

    def _deliver_request(self, request: Request, future: "asyncio.Future[Reply]") -> None:
        """Deliver a request after a random delay; the request can be lost."""
        delay = draw_delay(self.random, self.faults, _LONGEST_TRIP)
        if self._draw_fault(self.faults.request_lost):
            self._lose_reply(future)
            return
        instance = self.choose_instance()
        self.scheduler.call_after(delay, lambda: self._receive(instance.number, request, future))

    def _receive(self, number: int, request: Request, future: "asyncio.Future[Reply]") -> None:
        instance = self._instances[number]
        if not instance.is_alive:
            self._lose_reply(future)
            return
        task = instance.loop.create_task(instance.serve_request(request), context=None)
        task.add_done_callback(lambda ended: self._send_reply(ended, future))
        # If the process dies, the client notices after a while.
        self._watch_for_crash(instance, future)

    def _watch_for_crash(self, instance: Instance, future: "asyncio.Future[Reply]") -> None:
        def check_instance() -> None:
            if future.done():
                return
            if instance.is_alive:
                self.scheduler.call_after(MICROSECONDS, check_instance)
            else:
                self._lose_reply(future)

        self.scheduler.call_after(MICROSECONDS, check_instance)

    def _send_reply(self, task: "asyncio.Task[Reply]", future: "asyncio.Future[Reply]") -> None:
        if self._draw_fault(self.faults.reply_lost):
            self._lose_reply(future)
            return
        delay = draw_delay(self.random, self.faults, _LONGEST_TRIP)
        self.scheduler.call_after(delay, lambda: self._clients.call_soon(_resolve_future, future, task.result()))

    def _lose_reply(self, future: "asyncio.Future[Reply]") -> None:
        delay = MICROSECONDS + draw_delay(self.random, self.faults, _LONGEST_TRIP)
        self.scheduler.call_after(delay, lambda: self._clients.call_soon(_fail_with_lost_connection, future))


@dataclass(frozen=True)
class ApiReply:
    """Reply of the service as a client receives it."""

    reply: Reply

    @property
    def status(self) -> int:
        """HTTP status of the reply."""
        return self.reply.status

    @property
    def json(self) -> Any:
        """Body of the reply, parsed as JSON."""
        return orjson.loads(self.reply.body)

    @property
    def code(self) -> str:
        """Error code of a problem document; empty for any other reply."""
        return str(self.json.get("code", "")) if self.status >= 400 else ""

    def get_header(self, name: str) -> str:
        """Return a header of the reply; empty if it is missing."""
        return next((value for key, value in self.reply.headers.items() if key.lower() == name), "")


def _resolve_future(future: "asyncio.Future[Reply]", reply: Reply) -> None:
    if not future.done():
        future.set_result(reply)


def _fail_with_lost_connection(future: "asyncio.Future[Reply]") -> None:
    if not future.done():
        future.set_exception(ConnectionLostError())
