"""Entry point of the Durable Task emulator: the object that the local Functions host creates and runs."""

import fcntl
import os
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from emulators.durable.clock import SystemClock
from emulators.durable.engine import DurableEngine, DurableSettings
from emulators.durable.functions import select_app_functions
from emulators.durable.management import Management
from emulators.durable.management_urls import ManagementUrls, load_or_create_system_key
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
    """Functions of the local Functions host that the Durable Task emulator calls.

    Attributes:
        invoke: calls a function of the app and returns its result.
        open_database: opens the SQLite file of orchestrations.
        check_writable: raises sqlite3.Error if the SQLite file does not accept writes.
        may_manage: returns whether a caller may use the management API.
    """

    invoke: FunctionInvoker[F]
    open_database: OpenDatabase
    check_writable: WriteCheck
    may_manage: RequestCheck


class DurableExtension[F: DurableFunction]:
    """Durable Task emulator for one local Functions host.

    Args:
        functions: all functions of the app.
        ports: functions of the host that the emulator calls.
        data_dir: folder for the SQLite file, the system key and the lock file.
        origin: scheme, host name and port of the host, for management URLs.
        settings: name of the task hub, and concurrency limits.
        stopping: signal that the host is stopping.
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
        app = select_app_functions(functions, ports.invoke, settings.version)
        self._urls = ManagementUrls(origin, settings.hub, load_or_create_system_key(data_dir / "durable.key"))
        clock = SystemClock()
        self._store = OrchestrationStore(ports.open_database(data_dir / _FILE, SCHEMA))
        self._engine = DurableEngine(self._store, app, settings, clock, stopping)
        self._management = Management(self._store, clock, self._engine.wake)
        self.webhooks = Webhooks(self._management, self._urls, app.function_names, ports.may_manage)

    def build_client_binding_json_by_name(self, function: F) -> dict[str, str]:
        """Return the JSON text for each ``durableClient`` binding of a function, by binding name."""
        return {name: self._urls.build_client_binding_json(hub) for name, hub in function.clients.items()}

    async def run(self) -> None:
        """Run orchestrations until the host stops.

        If several hosts share a data directory, only one of them runs orchestrations.
        """
        descriptor = os.open(self._data_dir / "durable.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if await self._try_acquire_lock(descriptor):
                await self._engine.run()
        finally:
            os.close(descriptor)

    async def check_database(self) -> None:
        """Check that the SQLite file of orchestrations accepts writes.

        Raises:
            sqlite3.Error: the file does not accept writes.
        """
        await self._ports.check_writable(self._data_dir / _FILE)

    async def close(self) -> None:
        """Close the SQLite file of orchestrations."""
        await self._store.close()

    async def _try_acquire_lock(self, file_descriptor: int) -> bool:
        """Wait for the lock of the data directory; return True with the lock, or False if this host stops meanwhile."""
        is_logged = False
        while not self._stopping.is_set():
            try:
                fcntl.flock(file_descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                if not is_logged:
                    _LOGGER.info("another host runs the orchestrations of this data directory; this host waits")
                    is_logged = True
                await self._stopping.wait_until_set(_LOCK_POLL_SECONDS)
            else:
                return True
        return False


def has_durable_functions(functions: Iterable[DurableFunction]) -> bool:
    """Return whether an app has an orchestrator, an activity or a durable client binding."""
    kinds = {"orchestrationTrigger", "activityTrigger"}
    return any(function.kind in kinds or function.clients for function in functions)
