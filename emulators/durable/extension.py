"""The parts of the stand-in, joined: what the host starts when an app uses Durable Functions."""

import fcntl
import os
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from emulators.durable.clock import Clock, SystemClock
from emulators.durable.engine import DurableEngine
from emulators.durable.functions import AppFunctions, app_functions
from emulators.durable.key import load_system_key
from emulators.durable.links import ManagementUrls
from emulators.durable.management import Management
from emulators.durable.settings import DurableSettings
from emulators.durable.store import OrchestrationStore
from emulators.durable.webhooks import Webhooks
from local.host.shutdown import ShutdownSignal
from local.host.worker import LoadedFunction
from local.host.worker_protocol import TypedData
from shared.backends.embedded.sqlite_checks import check_write_lock
from shared.observability.logs import get_logger

_LOGGER = get_logger("emulators.durable")
_TURN_SECONDS = 0.5
_FILE = "durable.sqlite"


class DurableExtension:
    """The Durable Task stand-in of one host."""

    def __init__(
        self,
        functions: Iterable[LoadedFunction],
        data_dir: Path,
        origin: str,
        settings: DurableSettings,
        stopping: ShutdownSignal,
    ) -> None:
        """Take the app's functions, the folder of all state, and the address that the host is reached at."""
        self._data_dir = data_dir
        self._stopping = stopping
        self._app: AppFunctions = app_functions(functions, settings.version)
        self._links = ManagementUrls(origin, settings.hub, load_system_key(data_dir / "durable.key"))
        clock: Clock = SystemClock()
        self._store = OrchestrationStore(data_dir / _FILE)
        self._engine = DurableEngine(self._store, self._app, settings, clock, stopping)
        management = Management(self._store, clock, self._engine.wake)
        self.webhooks = Webhooks(management, self._links, self._app.names)

    def bind_clients(self, function: LoadedFunction) -> LoadedFunction:
        """Return a function with the values of its durable client bindings."""
        values = {name: TypedData(string=self._links.binding(hub)) for name, hub in function.clients.items()}
        return replace(function, inputs=values) if values else function

    async def run(self) -> None:
        """Run orchestrations until the host stops; of several hosts on one folder, one at a time does."""
        descriptor = os.open(self._data_dir / "durable.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if await self._owned(descriptor):
                await self._engine.run()
        finally:
            os.close(descriptor)

    async def check(self) -> None:
        """Return when a writer gets into the file.

        Raises:
            sqlite3.Error: none does.
        """
        await check_write_lock(self._data_dir / _FILE)

    async def close(self) -> None:
        """Close the file."""
        await self._store.close()

    async def _owned(self, descriptor: int) -> bool:
        """Wait until no other host runs the orchestrations of this folder; False when this one stops before."""
        told = False
        while not self._stopping.is_set():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not told:
                    _LOGGER.info("another host runs the orchestrations of this data directory; this one waits")
                    told = True
                await self._stopping.wait_for(_TURN_SECONDS)
            else:
                return True
        return False


def uses_durable_functions(functions: Iterable[LoadedFunction]) -> bool:
    """Return whether an app uses Durable Functions."""
    kinds = {"orchestrationTrigger", "activityTrigger"}
    return any(function.kind in kinds or function.clients for function in functions)
