"""Composition of the emulator: the object that a host starts for an app with Durable Functions."""

import fcntl
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from emulators.durable.clock import SystemClock
from emulators.durable.engine import DurableEngine, DurableSettings
from emulators.durable.functions import app_functions_from
from emulators.durable.management import Management
from emulators.durable.management_urls import ManagementUrls, load_system_key
from emulators.durable.ports import (
    DurableFunction,
    FunctionInvoker,
    OpenDatabase,
    RequestCheck,
    StopSignal,
    WriteCheck,
)
from emulators.durable.store import SCHEMA, OrchestrationStore
from emulators.durable.webhooks import Webhooks
from shared.observability.logs import get_logger

_LOGGER = get_logger("emulators.durable")
_LOCK_POLL_SECONDS = 0.5
_FILE = "durable.sqlite"


@dataclass(frozen=True, slots=True)
class HostPorts[F: DurableFunction]:
    """Services of the host that the emulator uses.

    Attributes:
        invoke: calls a function of the app.
        open_database: opens the SQLite file.
        check_writable: checks that the SQLite file accepts writes.
        may_manage: returns whether a caller may use the management API.
    """

    invoke: FunctionInvoker[F]
    open_database: OpenDatabase
    check_writable: WriteCheck
    may_manage: RequestCheck


class DurableExtension[F: DurableFunction]:
    """Durable Task emulator of one host.

    Args:
        functions: all functions of the app.
        ports: services of the host.
        data_dir: folder of all state.
        origin: address of the host.
        settings: the task hub and its limits.
        stopping: set when the host stops.
    """

    def __init__(
        self,
        functions: Iterable[F],
        ports: HostPorts[F],
        data_dir: Path,
        origin: str,
        settings: DurableSettings,
        stopping: StopSignal,
    ) -> None:
        self._data_dir = data_dir
        self._ports = ports
        self._stopping = stopping
        app = app_functions_from(functions, ports.invoke, settings.version)
        self._urls = ManagementUrls(origin, settings.hub, load_system_key(data_dir / "durable.key"))
        clock = SystemClock()
        self._store = OrchestrationStore(ports.open_database(data_dir / _FILE, SCHEMA))
        self._engine = DurableEngine(self._store, app, settings, clock, stopping)
        management = Management(self._store, clock, self._engine.wake)
        self.webhooks = Webhooks(management, self._urls, app.names, ports.may_manage)

    def client_bindings(self, function: F) -> dict[str, str]:
        """Return the values of a function's durable client bindings, as JSON texts by name."""
        return {name: self._urls.binding(hub) for name, hub in function.clients.items()}

    async def run(self) -> None:
        """Run orchestrations until the host stops; of several hosts on one folder, only one runs them."""
        descriptor = os.open(self._data_dir / "durable.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if await self._acquire_lock(descriptor):
                await self._engine.run()
        finally:
            os.close(descriptor)

    async def check(self) -> None:
        """Check that the history file accepts writes.

        Raises:
            sqlite3.Error: the file does not accept writes.
        """
        await self._ports.check_writable(self._data_dir / _FILE)

    async def close(self) -> None:
        """Close the file."""
        await self._store.close()

    async def _acquire_lock(self, descriptor: int) -> bool:
        """Wait for the lock of this folder; return False if this host stops before it has the lock."""
        is_logged = False
        while not self._stopping.is_set():
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not is_logged:
                    _LOGGER.info("another host runs the orchestrations of this data directory; this host waits")
                    is_logged = True
                await self._stopping.wait_for(_LOCK_POLL_SECONDS)
            else:
                return True
        return False


def uses_durable_functions(functions: Iterable[DurableFunction]) -> bool:
    """Return whether an app uses Durable Functions."""
    kinds = {"orchestrationTrigger", "activityTrigger"}
    return any(function.kind in kinds or function.clients for function in functions)
