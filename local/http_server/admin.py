"""The host's administration: run a timer function now."""

import ipaddress
import json
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from local.host.worker import LoadedFunction
from local.http_server.authority import is_loopback_host
from shared.errors import Kind, WorkspaceError, invalid

_FUNCTIONS = "/admin/functions/"


class Admin:
    """Answers ``POST /admin/functions/{name}``, as the Functions host does, to callers on this machine only."""

    def __init__(self, functions: Mapping[str, LoadedFunction], timers: Mapping[str, Callable[[], None]]) -> None:
        self._functions = functions
        self._timers = timers

    def handle(self, scope: MutableMapping[str, Any], raw_path: str, body: bytes) -> None:
        """Do what a request under ``/admin/`` asks for.

        Raises:
            WorkspaceError: ADMINISTRATION_IS_LOCAL; ROUTE_NOT_FOUND; INVALID_REQUEST.
        """
        if not is_local_request(scope):
            detail = "The administration answers callers on this machine only."
            raise WorkspaceError(Kind.FORBIDDEN, "ADMINISTRATION_IS_LOCAL", detail)
        name = raw_path.removeprefix(_FUNCTIONS)
        if scope["method"] != "POST" or not raw_path.startswith(_FUNCTIONS) or name not in self._functions:
            raise WorkspaceError(Kind.NOT_FOUND, "ROUTE_NOT_FOUND", "There is nothing at this address.")
        if body and not _is_input(body):
            raise invalid("body", 'JSON such as {"input": ""} is expected, or nothing')
        if name not in self._timers:
            raise invalid("name", f"{name} is a {self._functions[name].kind} function; only timers can be run")
        self._timers[name]()


def is_local_request(scope: Mapping[str, Any]) -> bool:
    """Tell callers on this machine from others, and from web pages that a browser on this machine shows.

    A page whose name was made to resolve to this machine sends no ``Origin`` to it, but its name as ``Host``.
    """
    if any(name == b"origin" or (name == b"host" and not is_loopback_host(value)) for name, value in scope["headers"]):
        return False
    client = scope.get("client")
    return client is not None and ipaddress.ip_address(client[0]).is_loopback


def _is_input(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
