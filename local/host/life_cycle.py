"""Life cycle of the local host: start, serve requests, finish running requests, stop.

This module is separate from the command, which reads options and settings and prints the addresses.
"""

import asyncio
import contextlib
import math
import os
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Coroutine, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from emulators.durable.extension import has_durable_functions
from local.errors import StartError
from local.host import worker
from local.host.event_hubs import PartitionLoop
from local.host.hub_access import HubAccess
from local.host.live_stream import HubProgress, LiveStreamGateway, ReplayPrelude, load_or_create_access_key
from local.host.processes import KustoProcess, find_running_host, lock_data_dir, record_running_host
from local.host.shutdown import ShutdownSignal
from local.host.timers import Timer, TimerStatusFile, delete_expired_data_hourly
from local.host.triggers import (
    HostJson,
    LocalDurableExtension,
    Triggers,
    bind_durable_clients,
    create_durable_extension,
    group_functions_by_trigger,
    read_host_json,
)
from local.http_server.admin import AdminHandler
from local.http_server.application import HttpApp
from local.http_server.files import SignedLinkHandler
from local.http_server.server import Application, Server, build_server_url, open_listening_socket
from local.sign_in.codes import build_sign_in_link, open_sign_in_codes
from local.sign_in.exchange import SignInExchange
from shared.backends.embedded.file_links import FileLinks
from shared.backends.embedded.hub_file import PARTITIONS
from shared.backends.embedded.hub_signals import HUB_SIGNALS, HubPartition
from shared.errors import WorkspaceError
from shared.observability.logs import get_logger
from shared.observability.readiness import add_readiness_probe
from shared.settings import EMBEDDED_ENGINE_URL_FILE
from shared.telemetry.models import IMPULSES_HUB
from shared.wiring import get_load_shedder

if TYPE_CHECKING:
    from local.host.first_run import QueryChecks

_LOGGER = get_logger("local.host")
_DRAIN_SECONDS = 3.5
_INVOKERS_SECONDS = 2.0
"""Seconds in which running triggers may finish, before the HTTP server, which they may call, stops."""

_CANCEL_SECONDS = 0.3
_END_SECONDS = 4.8
"""Maximum seconds from the signal to the end of the process; the documentation promises five."""

_FIRST_CHECKS_SECONDS = 10.0
"""Maximum seconds for which the first start with a small workspace waits for the check of its queries."""

_CONSOLE = "pages_console"
"""Name of the function that serves the web console; an app without this function has no sign-in links."""

_LOOPBACK_NETWORKS = "127.0.0.0/8,::1/128"
"""Networks that webhooks may reach by default, so that webhook receivers can be tested locally."""

_HUB_FILE = "hub.sqlite"
_LIVE_ENDPOINT, _LIVE_KEY = "WEB_PUBSUB_ENDPOINT", "WEB_PUBSUB_ACCESS_KEY"
_MIN_CHILD_SECONDS, _MAX_CHILD_SECONDS = 0.5, 4.5


@dataclass(frozen=True, slots=True)
class HostOptions:
    """Options of the local host.

    Attributes:
        host: address to listen on.
        port: port to listen on, 0 for any free port.
        data_dir: absolute path of the folder with all state.
        workspace_file: workspace document for a new data directory; None to create no workspace.
        app: folder of the function app.
        with_sign_in_link: whether to create a sign-in link for the web console after the start.
        telemetry_retention_days: age in days, since ingestion, at which the Kusto emulator deletes a message.
        hub_retention_hours: hours after which the hub deletes events that all consumer groups have read.
    """

    host: str
    port: int
    data_dir: Path
    workspace_file: Path | None
    app: Path
    with_sign_in_link: bool
    telemetry_retention_days: float
    hub_retention_hours: float


class Host:
    """Local host of a function app: HTTP server, timers, Event Hub triggers and the Kusto emulator."""

    def __init__(self, options: HostOptions, announce: Callable[[str, str], None]) -> None:
        """Create a host.

        After its start, the host calls ``announce`` with its address and a sign-in link (or an empty text).
        """
        self._options = options
        self._announce = announce
        self._stopping = ShutdownSignal()
        self._closing = ShutdownSignal()
        self._has_console = False
        self._runs_engine = False
        self._failed = False
        self._end = math.inf
        self._tasks: set[asyncio.Task[None]] = set()
        self._invokers: set[asyncio.Task[None]] = set()

    async def run_and_return_success(self) -> bool:
        """Serve until SIGTERM or SIGINT, then finish running requests; return False if a task of the host failed.

        Raises:
            StartError: the host cannot start.
        """
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, self._stop_with_deadline)
        listener = open_listening_socket(self._options.host, self._options.port)
        _make_folder(self._options.data_dir)
        async with AsyncExitStack() as stack:
            stack.callback(listener.close)
            start = asyncio.create_task(self._start_components(listener, stack))
            try:
                if await self._is_started_before_host_stops(start):
                    await self._announce_address_until_stopped(listener)
            finally:
                # After a failed start, too, running parts must see that the shutdown is intended.
                self._stopping.set()
                await self._wait_for_running_work()
        return not self._failed

    async def _announce_address_until_stopped(self, listener: socket.socket) -> None:
        """Record and announce the address of the started host, then wait for the signal to stop."""
        origin = build_server_url(_to_connect_address(self._options.host), listener)
        with contextlib.ExitStack() as stack:
            with _convert_start_errors():
                stack.enter_context(record_running_host(self._options.data_dir, origin))
                link = await self._create_sign_in_link_if_requested(origin)
            self._announce(build_server_url(self._options.host, listener), link)
            await self._stopping.wait()

    async def _create_sign_in_link_if_requested(self, origin: str) -> str:
        """Create a sign-in link; return an empty text for an app without a console, or if no link was requested."""
        if not self._has_console or not self._options.with_sign_in_link:
            return ""
        return build_sign_in_link(origin, await open_sign_in_codes(self._options.data_dir).create())

    async def _is_started_before_host_stops(self, start_task: asyncio.Task[None]) -> bool:
        """Wait until the host has started; return False if the host is stopped before its start has finished."""
        stop = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((start_task, stop), return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if start_task.done():
            with _convert_start_errors():
                start_task.result()
            return True
        start_task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await start_task
        return False

    async def _start_components(self, listener: socket.socket, stack: AsyncExitStack) -> None:
        # The port is known now; the app, which is imported next, uses it in links.
        public_url = os.environ.get("PUBLIC_URL") or build_server_url(_to_connect_address(self._options.host), listener)
        url = _get_or_set_setting("FILES_URL", public_url)
        _get_or_set_setting("WEBHOOK_ALLOWED_NETWORKS", _LOOPBACK_NETWORKS)
        _get_or_set_setting("OWN_PORTS", str(listener.getsockname()[1]))
        await self._start_kusto(stack)
        serves_live_stream = self._try_configure_web_pubsub_emulator(listener)
        host_json = read_host_json(self._options.app)
        functions = await worker.load_app(self._options.app)
        durable = self._create_durable_extension_if_used(functions, listener, host_json, stack)
        triggers = group_functions_by_trigger(
            [bind_durable_clients(durable, each) for each in functions] if durable else functions, host_json
        )
        checks = None
        if self._options.workspace_file is not None:
            checks = await _seed_workspace_and_build_query_checks(self._options.workspace_file)
        timers = self._start_timers(triggers)
        progress = self._start_event_hubs(triggers, host_json, stack)
        admin = AdminHandler(triggers.functions, {name: timer.run_now for name, timer in timers.items()})
        if durable:
            self._start_trigger_task(durable.run())
        data_dir = self._options.data_dir
        files = SignedLinkHandler(
            data_dir / "blobs", FileLinks(url, data_dir / "files-key"), _require_owner_of_waiting_import
        )
        self._has_console = _CONSOLE in triggers.functions
        sign_in = SignInExchange(open_sign_in_codes(data_dir)) if self._has_console else None
        app: Application = HttpApp(
            triggers.routes, admin, files, durable.webhooks if durable else None, sign_in, get_load_shedder()
        )
        if serves_live_stream:
            if find_running_host(data_dir) is None:
                await _release_stream_reservations()
            live = LiveStreamGateway(app, os.environ[_LIVE_KEY], ReplayPrelude(progress))
            stack.push_async_callback(live.close)
            _install_direct_message_sender(live)
            app = live
        await self._start_http_server(app, listener, web_sockets=serves_live_stream)
        if checks is not None:
            await self._start_query_checks(checks, stack)

    async def _start_query_checks(self, checks: "QueryChecks", stack: AsyncExitStack) -> None:
        """Start the query checks in the background.

        At the first start with a small workspace, wait up to ten seconds for their results.
        """
        task = asyncio.create_task(checks.run())
        stack.callback(task.cancel)
        await asyncio.wait({task}, timeout=_FIRST_CHECKS_SECONDS if checks.must_delay_start else 0)

    def _create_durable_extension_if_used(
        self,
        functions: Collection[worker.LoadedFunction],
        listener: socket.socket,
        host_json: HostJson,
        stack: AsyncExitStack,
    ) -> LocalDurableExtension | None:
        """Create the Durable Task emulator; return None for an app without Durable Functions."""
        if not has_durable_functions(functions):
            return None
        origin = build_server_url(_to_connect_address(self._options.host), listener)
        durable = create_durable_extension(functions, self._options.data_dir, origin, host_json.durable, self._stopping)
        stack.push_async_callback(durable.close)
        add_readiness_probe("durable engine", durable.check_database)
        return durable

    async def _start_kusto(self, stack: AsyncExitStack) -> None:
        """Start the Kusto emulator, unless the setting KUSTO_URI names a query engine."""
        if os.environ.get("KUSTO_URI"):
            return
        stack.enter_context(await lock_data_dir(self._options.data_dir))
        child = KustoProcess(self._options.data_dir, retention_days=self._options.telemetry_retention_days)
        stack.push_async_callback(lambda: child.stop(self._compute_max_kusto_stop_seconds()))
        os.environ["KUSTO_URI"] = await child.start_and_get_address()
        self._runs_engine = True
        stack.callback(_subscribe_kusto_to_hub(self._options.data_dir / _HUB_FILE, child))
        # The workspace command in another process reads the address of the engine from this file.
        (self._options.data_dir / EMBEDDED_ENGINE_URL_FILE).write_text(os.environ["KUSTO_URI"], encoding="utf-8")
        self._start_task(child.supervise(self._stopping))

    def _try_configure_web_pubsub_emulator(self, listener: socket.socket) -> bool:
        """Configure the app to use the Web PubSub emulator, unless a real service is configured.

        Return whether the app uses the emulator.
        """
        if os.environ.get(_LIVE_ENDPOINT):
            return False
        os.environ[_LIVE_ENDPOINT] = build_server_url(_to_connect_address(self._options.host), listener)
        os.environ[_LIVE_KEY] = load_or_create_access_key(self._options.data_dir / "web-pubsub-key")
        return True

    def _start_timers(self, triggers: Triggers) -> dict[str, Timer]:
        statuses = TimerStatusFile(self._options.data_dir / "timers.json")
        timers = {setting.function.name: Timer(setting, statuses, self._stopping) for setting in triggers.timers}
        for timer in timers.values():
            self._start_trigger_task(timer.run())
        return timers

    def _start_event_hubs(self, triggers: Triggers, host_json: HostJson, stack: AsyncExitStack) -> HubProgress:
        hub = HubAccess(self._options.data_dir / _HUB_FILE, timedelta(hours=self._options.hub_retention_hours))
        stack.push_async_callback(hub.close)
        for setting in triggers.event_hubs:
            for partition in range(PARTITIONS):
                loop = PartitionLoop(setting, str(partition), hub, host_json.max_event_batch_size, self._stopping)
                self._start_trigger_task(loop.run())
        self._start_task(hub.watch_file(self._stopping))
        progress = HubProgress(hub, self._stopping, runs_engine=self._runs_engine)

        async def delete_read_events_and_count() -> int:
            is_read = await progress.is_hub_read_by_engine()
            return await hub.delete_old_events_and_count(
                triggers.collect_consumer_groups_by_hub(is_hub_read_by_engine=is_read)
            )

        self._start_task(delete_expired_data_hourly("hub events", delete_read_events_and_count, self._stopping))
        return progress

    async def _start_http_server(self, app: Application, listener: socket.socket, *, web_sockets: bool) -> None:
        server = Server(app, int(_DRAIN_SECONDS), web_sockets=web_sockets)
        self._start_task(server.serve([listener]))
        self._start_task(server.exit_on_shutdown(self._closing, self._compute_drain_seconds_left))
        await server.listening.wait()

    def _start_trigger_task(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start a task that invokes functions of the app.

        When the host stops, the HTTP server waits for these tasks, because functions may send requests to this host.
        """
        task = self._start_task(coroutine)
        self._invokers.add(task)
        task.add_done_callback(self._invokers.discard)

    def _start_task(self, coroutine: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._stop_if_task_failed)
        return task

    def _stop_if_task_failed(self, task: asyncio.Task[None]) -> None:
        """Stop the host if one of its tasks ended with an error."""
        self._tasks.discard(task)
        if task.cancelled() or task.exception() is None:
            return
        _LOGGER.critical("a part of the host failed; the host stops", exc_info=task.exception())
        self._failed = True
        self._stop_with_deadline()

    def _stop_with_deadline(self) -> None:
        """Stop the host; after 4.8 seconds, end the process even if a thread of the app still runs."""
        if not self._stopping.is_set():
            self._stopping.set()
            self._end = time.monotonic() + _END_SECONDS
            last_resort = threading.Timer(_END_SECONDS, os._exit, (int(self._failed),))
            last_resort.daemon = True
            last_resort.start()

    def _compute_drain_seconds_left(self) -> float:
        """Return the seconds for which running requests may still continue; before the host stops, the maximum."""
        remaining = self._end - _END_SECONDS + _DRAIN_SECONDS - time.monotonic()
        return min(max(remaining, 0.0), _DRAIN_SECONDS)

    def _compute_max_kusto_stop_seconds(self) -> float:
        """Return the maximum seconds to wait for the shutdown of the Kusto process, so that the host stops in time."""
        remaining = self._end - time.monotonic() - _CANCEL_SECONDS
        return min(max(remaining, _MIN_CHILD_SECONDS), _MAX_CHILD_SECONDS)

    async def _wait_for_running_work(self) -> None:
        """Wait for running requests and function calls.

        After the time limit, cancel the remaining tasks; events of cancelled function calls are delivered again later.
        """
        if self._invokers:
            await asyncio.wait(self._invokers, timeout=min(_INVOKERS_SECONDS, self._compute_drain_seconds_left()))
        self._closing.set()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=self._compute_drain_seconds_left())
        for task in late:
            task.cancel()
        if late:
            _LOGGER.warning("%d parts of the host did not stop in time and are cancelled", len(late))
            await asyncio.wait(late, timeout=_CANCEL_SECONDS)


def _get_or_set_setting(name: str, default: str) -> str:
    """Return the value of a setting in the environment; first set the default if it is absent or empty."""
    value = os.environ[name] = os.environ.get(name) or default
    return value


def _to_connect_address(host: str) -> str:
    """Return the address to which clients can connect for a listening address, such as 127.0.0.1 for 0.0.0.0."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1", "": "127.0.0.1"}.get(host, host)  # noqa: S104  compared, not bound


type _Unsubscribe = Callable[[], None]


def _subscribe_kusto_to_hub(hub_file: Path, child: KustoProcess) -> _Unsubscribe:
    """Notify the Kusto emulator of telemetry events that this process sends; return a function that unsubscribes it."""
    loop = asyncio.get_running_loop()

    def notify_kusto_process(hub_partitions: Collection[HubPartition]) -> None:
        if any(hub == IMPULSES_HUB for hub, _ in hub_partitions):
            loop.call_soon_threadsafe(child.notify_process_of_new_hub_events)

    return HUB_SIGNALS.subscribe(hub_file, notify_kusto_process)


def _install_direct_message_sender(live: LiveStreamGateway) -> None:
    """Make the app send live messages directly to the emulator, without HTTP, because both run in the same process."""
    from shared.wiring import services  # noqa: PLC0415  the settings are complete only now

    services().live_stream.set_message_sender(live.direct_sender)


async def _require_owner_of_waiting_import(upload_name: str) -> str:
    """Return the owner of an import whose file can still be uploaded: the import has neither started nor ended."""
    from shared.imports.uploads import require_waiting_import  # noqa: PLC0415  other apps need no imports
    from shared.wiring import services  # noqa: PLC0415  the settings are complete only now

    return (await require_waiting_import(services().downloads.jobs, upload_name)).owner


async def _release_stream_reservations() -> None:
    """Remove the quota reservations for live streams of an earlier host; these streams no longer exist.

    If the file of the reservations is damaged, it is deleted. Other failures are only logged, because the host can run
    with outdated reservations.
    """
    from shared.backends.embedded.sqlite import (  # noqa: PLC0415  only needed if the file exists
        delete_database_file,
        is_damaged_file_error,
    )
    from shared.settings import settings  # noqa: PLC0415  the environment is complete only now
    from shared.wiring import Services  # noqa: PLC0415  as above

    configured = settings()
    path = configured.data_dir / "rate-limits.sqlite"
    if not path.exists():
        return
    services = Services(configured)
    is_damaged = False
    try:
        await services.live_stream.release_stream_reservations()
    except WorkspaceError as error:
        is_damaged = is_damaged_file_error(error.__cause__)
        _LOGGER.warning("the quota reservations of earlier live streams cannot be removed: %s", error.__cause__)
    finally:
        await services.close()
    if is_damaged:
        delete_database_file(path)
        _LOGGER.warning("%s was damaged and is deleted; it contained only counts", path)


async def _seed_workspace_and_build_query_checks(workspace_file: Path) -> "QueryChecks":
    """Store the workspace document at the first start; return the checks of the workspace's queries, to be started."""
    from local.host import first_run  # noqa: PLC0415  the settings are complete only now
    from shared.settings import settings  # noqa: PLC0415  as above

    try:
        return await first_run.seed_data_dir_and_build_query_checks(settings(), workspace_file)
    except (OSError, ValueError) as error:
        raise StartError(f"the workspace cannot be seeded from {workspace_file}: {error}") from None


@contextlib.contextmanager
def _convert_start_errors() -> Iterator[None]:
    """Context manager: convert errors of files and stores, such as a full disk, to a StartError with the reason."""
    try:
        yield
    except (OSError, sqlite3.Error) as error:
        raise StartError(str(error)) from None
    except WorkspaceError as error:
        raise StartError(f"{error.code}: {error.detail}") from None


def _make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"the data directory {path} cannot be created: {error.strerror}") from None
