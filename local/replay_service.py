"""Where a replay sends its rows: the host that runs over a data directory, or a service that the caller names."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import aiohttp

from local.replay_error import ReplayError
from local.running_host import RunningHost, find_host
from shared.catalog.models import Connection
from shared.errors import WorkspaceError
from shared.settings import Settings


class NoHostError(ReplayError):
    """No local host runs over the data directory."""


class Service(Protocol):
    """The receiver of requests."""

    def locate(self) -> str:
        """Return the base address, without a slash at the end.

        Raises:
            NoHostError: there is none at present.
        """
        ...

    def trace_configs(self) -> list[aiohttp.TraceConfig]:
        """Return what an HTTP session needs to check each new connection."""
        ...


class NamedService:
    """The service at an address that the caller gives."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")

    def locate(self) -> str:
        """Return the address."""
        return self._url

    def trace_configs(self) -> list[aiohttp.TraceConfig]:
        """Return none: the caller chose the address."""
        return []


class LocalService:
    """The host that runs over a data directory, wherever it listens at the moment."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir
        self._host: RunningHost | None = None

    def locate(self) -> str:
        """Return the address of a running host."""
        if self._host is None or not self._host.is_running():
            self._host = find_host(self._data_dir)
        if self._host is None:
            raise NoHostError(
                f"no local host runs over {self._data_dir}; start it with: make run, "
                "or name its folder with --data-dir (DATA_DIR), or a service with --url"
            )
        return self._host.address

    def trace_configs(self) -> list[aiohttp.TraceConfig]:
        """Return the check that a new connection leads to the host.

        A host that still runs after the connection was made has held the port all along, so the connection is to it and
        not to a process that took over its port. Only then a key is sent.
        """
        trace = aiohttp.TraceConfig()
        trace.on_connection_create_end.append(self._check)
        return [trace]

    async def _check(
        self,
        _session: aiohttp.ClientSession,
        _context: SimpleNamespace,
        _params: aiohttp.TraceConnectionCreateEndParams,
    ) -> None:
        if self._host is None or not self._host.is_running():
            raise aiohttp.ClientConnectionError("the local host has ended")


async def declared_connection(data_dir: Path, lookup: str) -> Connection:
    """Return a connection of the workspace in a data directory.

    Raises:
        ReplayError: the workspace has no such connection, or it is disabled, or the catalog cannot be read.
    """
    from shared.wiring import Services  # noqa: PLC0415  takes half a second, which --url does not need

    services = Services(Settings.read({**os.environ, "DATA_DIR": str(data_dir)}))
    try:
        connections = (await services.catalog.current()).connections
    except WorkspaceError as error:
        raise ReplayError(f"{error.code}: {error.detail}") from None
    finally:
        await services.close()
    stored = connections.get(lookup)
    if stored is None:
        raise ReplayError(f"the workspace has no connection {lookup!r}; it has {', '.join(sorted(connections))}")
    if not stored.value.enabled:
        raise ReplayError(f"the connection {lookup!r} is disabled and takes no telemetry")
    return stored.value
