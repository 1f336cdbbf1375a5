"""Adapter between the Durable Task emulator and the local host."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from emulators.durable.extension import DurableExtension, HostPorts
from emulators.durable.ports import FunctionCallError
from emulators.durable.settings import DurableSettings
from local.host.shutdown import ShutdownSignal
from local.host.worker import FunctionFailed, LoadedFunction, invoke
from local.host.worker_protocol import TypedData
from local.http_server.admin import is_local_request
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.backends.embedded.sqlite_checks import check_write_lock

type LocalDurableExtension = DurableExtension[LoadedFunction]


async def invoke_with_text(function: LoadedFunction, text: str, /) -> str | None:
    """Call a function with a text through the worker library.

    Raises:
        emulators.durable.ports.FunctionCallError: the function raised an exception.
    """
    try:
        result = await invoke(function, TypedData(string=text))
    except FunctionFailed as failure:
        raise FunctionCallError(str(failure), failure.stack_trace) from None
    return None if result is None else str(result.value)


def create_extension(
    functions: Iterable[LoadedFunction],
    data_dir: Path,
    origin: str,
    settings: DurableSettings,
    stopping: ShutdownSignal,
) -> LocalDurableExtension:
    """Return the Durable Task emulator over the host's functions and data directory."""
    ports = HostPorts(invoke_with_text, SqliteDatabase, check_write_lock, is_local_request)
    return DurableExtension(functions, ports, data_dir, origin, settings, stopping)


def bind_clients(extension: LocalDurableExtension, function: LoadedFunction) -> LoadedFunction:
    """Return a function with the values of its durable client bindings."""
    values = {name: TypedData(string=text) for name, text in extension.client_bindings(function).items()}
    return replace(function, inputs=values) if values else function
