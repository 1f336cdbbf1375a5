"""Functions that run work on an instance without a request, as triggers do, and that report a crash to the caller."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from shared.errors import Kind, WorkspaceError
from shared.wiring import Services

if TYPE_CHECKING:
    from tests.simulation.instance import Instance
    from tests.simulation.world import World

_POLL_SECONDS = 1.0


class WorkFailedError(Exception):
    """Error of failed work, or of work whose process crashed; the work may have had effects."""


class ProcessDiedError(WorkFailedError):
    """Error of work whose process crashed or did not run; the work may have had effects."""


async def run_on_instance[T](world: "World", work: Callable[[Services], Awaitable[T]]) -> T:
    """Run a function in the process of a random instance, with the services of that instance.

    Args:
        world: world of the instance.
        work: function that receives the services of the instance.

    Raises:
        WorkFailedError: the function failed because a store is unavailable.
        ProcessDiedError: the process died.
    """
    instance = world.choose_instance()
    caller = asyncio.get_running_loop()
    ended: asyncio.Future[asyncio.Task[T]] = caller.create_future()
    if not instance.is_alive:
        raise ProcessDiedError("the simulated process has crashed")
    world.scheduler.call_after(0, lambda: _start_work(instance, work, caller, ended))
    while not ended.done():
        await asyncio.wait([ended], timeout=_POLL_SECONDS)
        if not ended.done() and not instance.is_alive:
            raise ProcessDiedError("the process died")
    try:
        return ended.result().result()
    except (WorkspaceError, OSError) as error:
        if isinstance(error, WorkspaceError) and error.kind is not Kind.UNAVAILABLE:
            raise
        raise WorkFailedError(str(error)) from error


def _start_work[T](
    instance: "Instance",
    work: Callable[[Services], Awaitable[T]],
    caller: asyncio.AbstractEventLoop,
    ended: "asyncio.Future[asyncio.Task[T]]",
) -> None:
    if not instance.is_alive:
        return

    async def run() -> T:
        return await work(instance.services)

    task = instance.loop.create_task(run())
    task.add_done_callback(lambda done: caller.call_soon(ended.set_result, done))
