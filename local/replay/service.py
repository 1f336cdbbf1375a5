"""Receivers of a replay: the local host over a data directory, or a service at a URL."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import Protocol

import aiohttp

from local.host.running_hosts import find_host
from local.replay.errors import ReplayError
from shared.catalog.models import Connection
from shared.errors import WorkspaceError
from shared.settings import Settings


class NoHostError(ReplayError):
    """Missing local host over the data directory."""


class ServiceEndpoint(Protocol):
    """Service at an address."""

    @property
    def address(self) -> str:
        """Base URL without a trailing slash."""
        ...

    def is_running(self) -> bool:
        """Return whether the service still has the address."""
        ...


class TargetService(Protocol):
    """Receiver of requests."""

    def locate(self) -> ServiceEndpoint:
        """Return the current address of the service.

        Raises:
            NoHostError: no host is running.
        """
        ...


class RemoteService:
    """Service at a given URL."""

    def __init__(self, url: str) -> None:
        self.address = url.rstrip("/")

    def locate(self) -> ServiceEndpoint:
        """Return itself."""
        return self

    def is_running(self) -> bool:
        """Return True, because the user chose the URL."""
        return True


class LocalService:
    """Local host that runs over a data directory."""

    def __init__(self, data_dir: Path) -> None:
        self._data_dir = data_dir

    def locate(self) -> ServiceEndpoint:
        """Return a running host."""
        host = find_host(self._data_dir)
        if host is None:
            raise NoHostError(
                f"no local host runs over {self._data_dir}; start it with: make run, "
                "or set its folder with --data-dir (DATA_DIR), or a service with --url"
            )
        return host


def checked_session() -> aiohttp.ClientSession:
    """Return an HTTP session that sends nothing to another process on the port of a stopped host.

    Each request has its endpoint as ``trace_request_ctx``. If the host still runs after the connection is made, the
    connection leads to it.
    """
    trace = aiohttp.TraceConfig()
    trace.on_connection_create_end.append(_check_connection)
    return aiohttp.ClientSession(trace_configs=[trace])


async def _check_connection(
    _session: aiohttp.ClientSession, context: SimpleNamespace, _params: aiohttp.TraceConnectionCreateEndParams
) -> None:
    if not context.trace_request_ctx.is_running():
        raise aiohttp.ClientConnectionError("the local host has ended")


async def declared_connection(data_dir: Path, lookup: str) -> Connection:
    """Return a connection of the workspace in a data directory.

    Raises:
        ReplayError: the connection is unknown or disabled, or the catalog cannot be read.
    """
    from shared.wiring import Services  # noqa: PLC0415  slow import that --url does not need

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
        raise ReplayError(f"the connection {lookup!r} is disabled and accepts no telemetry")
    return stored.value
