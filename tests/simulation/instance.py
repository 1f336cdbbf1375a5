"""Service instance in a simulated world: its event loop, runtime, services and crashes."""

import asyncio
import contextlib
import copy
import random
import sqlite3
from collections.abc import Callable
from concurrent.futures import Executor
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from functions import GROUPS
from functions.durable_runner import CLIENT
from shared.http.messages import Reply, Request
from shared.http.pipeline import RequestPipeline
from shared.runtime import Runtime
from shared.settings import Settings
from shared.wiring import Services
from tests.simulation.crash_points import list_suspended_awaits
from tests.simulation.database import BUSY_SECONDS, SimulatedConnection, build_error
from tests.simulation.durable import DurableClient
from tests.simulation.engine import SimulatedEngine
from tests.simulation.event_loop import MILLISECOND, SimulatedCrashError, SimulatedLoop, SimulatedPool
from tests.simulation.faults import draw_delay
from tests.simulation.receiver import ReceiverConnection
from tests.simulation.scheduler import MICROSECONDS
from tests.virtual_time import START

if TYPE_CHECKING:
    from tests.simulation.world import World

_LONGEST_FIRST_TICK: Final = 5 * MICROSECONDS
_LONGEST_JOB: Final = 3 * MILLISECOND
_LONGEST_SKEW: Final = 0.5
_GRAVEYARD: Final[list[object]] = []
"""Everything of dead processes: a coroutine that Python deletes would run its ``finally`` blocks."""


class Instance:
    """Simulated process that serves requests and runs background jobs.

    Args:
        world: world of the process.
        number: number of the process; a restarted process keeps it.
        folder: folder of the embedded stores, which all processes share.

    Attributes:
        loop: event loop of the process.
        services: services of the process.
        connections: open SQLite connections.
    """

    def __init__(self, world: "World", number: int, folder: Path) -> None:
        self.number = number
        self.connections: list[SimulatedConnection] = []
        self._world = world
        self._random = random.Random(world.random.getrandbits(64))
        self._skew = timedelta(seconds=self._random.uniform(-_LONGEST_SKEW, _LONGEST_SKEW))
        self._booted = self._random.uniform(0, 10_000)
        self.loop = SimulatedLoop(world.scheduler, f"i{number}")
        world.processes[self.loop] = self
        self.services = Services(_build_settings(folder), self._build_runtime())
        if world.account is not None:
            world.account.attach(self.services, self.loop.name)
        self.services.outbound.__dict__["http"] = ReceiverConnection(world)
        self.services.queries.__dict__["engine"] = SimulatedEngine(world)
        self._durable = DurableClient(world)
        self._pipeline: RequestPipeline | None = None
        world.scheduler.call_after(int(self._random.random() * _LONGEST_FIRST_TICK), self._run_timer)

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return not self.loop.is_dead

    def _build_runtime(self) -> Runtime:
        return Runtime(
            now=self._read_clock,
            monotonic=lambda: self._booted + self._world.scheduler.now / MICROSECONDS,
            sleep=asyncio.sleep,
            block=self._block_loop,
            random_bytes=self._random.randbytes,
            uniform=self._random.uniform,
            open_pool=self._open_pool,
            threads=self._open_pool(8, "default"),
        )

    def _read_clock(self) -> datetime:
        return START + self._world.clock_shift + self._skew + timedelta(microseconds=self._world.scheduler.now)

    def _block_loop(self, seconds: float) -> None:
        self._world.scheduler.now += int(seconds * MICROSECONDS)

    def _open_pool(self, threads: int, name: str) -> Executor:  # noqa: ARG002  signature of Runtime.open_pool
        return SimulatedPool(self.loop, threads, self)

    async def serve_request(self, request: Request) -> Reply:
        """Process a client's request in this simulated process."""
        if self._pipeline is None:
            self._pipeline = self._build_pipeline()
        CLIENT.set(self._durable)
        return await self._pipeline.serve(request)

    def _build_pipeline(self) -> RequestPipeline:
        pipeline = copy.copy(_build_router())
        pipeline._authenticate = self.services.access.authenticator
        pipeline._require_feature = self.services.features.require_feature
        pipeline._limits = self.services.rate_limits.admit
        pipeline._runtime = self.services.runtime
        return pipeline

    def _run_timer(self) -> None:
        """Run the timer of the background jobs, as the Functions host does."""
        if not self.is_alive:
            return
        seconds = self._world.tick_seconds + self._random.random()
        self._world.scheduler.call_after(int(seconds * MICROSECONDS), self._run_timer)
        if self._world.background_jobs:
            self.loop.call_soon(self._start_background_jobs)

    def _start_background_jobs(self) -> None:
        runner = self.services.background.runner
        runner._jobs = [job for job in runner._jobs if job.name in self._world.background_jobs]
        self.loop.create_task(runner.run_due_jobs())

    def draw_job_delay(self) -> int:
        """Return a random delay in microseconds until the next job starts."""
        return draw_delay(self._random, self._world.faults, _LONGEST_JOB)

    def survives_job_start(self, site: str) -> bool:
        """Return False if the simulation crashes the process before the job at this site."""
        self._world.trace(f"{self.loop.name} job {site}")
        return self._survives_point(f"{site} before")

    def survives_job_end(self, site: str) -> bool:
        """Return False if the simulation crashes the process immediately after the job at this site."""
        return self._survives_point(f"{site} after")

    def _survives_point(self, point: str) -> bool:
        self._world.points.seen.add(point)
        if self._draw_fault(self._world.faults.crash) or self._world.is_aimed_at(point):
            self.crash(point)
        return self.is_alive

    def crash(self, point: str) -> None:
        """Crash the process: drop queued work, roll back open transactions, and start a new process later."""
        if self.is_alive:
            awaits = [
                place for task in self.loop.tasks if not task.done() for place in list_suspended_awaits(task.get_coro())
            ]
            self._world.record_crash(self, [*awaits, *filter(None, [point])])
            self.end()

    def end(self) -> None:
        """End the simulated process without any clean-up."""
        self.loop.crash()
        for connection in self.connections:
            # A connection that the code has closed is not closed again.
            with contextlib.suppress(sqlite3.ProgrammingError):
                connection.abandon()
        self.connections.clear()
        _GRAVEYARD.append(self)

    def wait_in_job(self, is_done: Callable[[], bool]) -> None:
        """Run steps of the world until a condition is met, while a job of this process waits for the condition.

        If the process is paused, the job also waits for the end of the pause.
        """
        while self.loop.paused_until or not is_done():
            self._world.step_within_job()
            self.check_alive()
        self._world.scheduler.current = self.loop

    def before_begin(self, statement: str) -> None:
        """Before a transaction starts, raise "database is locked" with the probability of the fault ``busy``."""
        if statement != "BEGIN" and self._draw_fault(self._world.faults.busy):
            self._block_loop(self._random.random() * BUSY_SECONDS)
            self._world.trace(f"{self.loop.name} busy")
            raise build_error(sqlite3.SQLITE_BUSY, "database is locked")

    def before_commit(self) -> None:
        """Before a commit, crash or raise "disk is full" if the simulation injects this fault."""
        self._crash_in_job("commit before")
        if self._draw_fault(self._world.faults.full):
            self._world.trace(f"{self.loop.name} full")
            raise build_error(sqlite3.SQLITE_FULL, "database or disk is full")

    def after_commit(self) -> None:
        """After a commit, crash or raise an error if the simulation injects this fault."""
        self._crash_in_job("commit after")
        if self._draw_fault(self._world.faults.commit_lost):
            self._world.trace(f"{self.loop.name} commit lost")
            raise build_error(sqlite3.SQLITE_IOERR, "disk I/O error")

    def _crash_in_job(self, point: str) -> None:
        if not self._survives_point(point):
            raise SimulatedCrashError

    def check_alive(self) -> None:
        """Raise SimulatedCrashError if the process has crashed."""
        if not self.is_alive:
            raise SimulatedCrashError

    def _draw_fault(self, probability: float) -> bool:
        return probability > 0 and self._random.random() < probability


@cache
def _build_router() -> RequestPipeline:
    """Return a pipeline with only the routes of the service, which all processes share."""
    unused: Any = None
    return RequestPipeline((endpoint for group in GROUPS for endpoint in group.endpoints), unused, unused)


@cache
def _build_settings(folder: Path) -> Settings:
    return Settings.read({"DATA_DIR": str(folder), "SIMULATORS_ENABLED": "false"})
