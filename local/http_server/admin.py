"""Administration API of the local host: runs a timer function immediately."""

import ipaddress
import json
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from local.host.worker import LoadedFunction
from local.http_server.request_head import is_loopback_host
from shared.errors import Kind, WorkspaceError, build_invalid_field_error

PREFIX = "/admin/"
_FUNCTIONS = f"{PREFIX}functions/"


class AdminHandler:
    """Handler of ``POST /admin/functions/{name}`` for callers on this machine, as on the Functions host."""

    def __init__(self, functions: Mapping[str, LoadedFunction], timers: Mapping[str, Callable[[], None]]) -> None:
        self._functions = functions
        self._timers = timers

    def handle(self, scope: MutableMapping[str, Any], raw_path: str, body: bytes) -> None:
        """Handle a request under ``/admin/``.

        Raises:
            WorkspaceError: ADMINISTRATION_IS_LOCAL if the caller is not on this machine; ROUTE_NOT_FOUND for another
                method or path, or an unknown function; INVALID_REQUEST if the body is not a JSON object, or the
                function is not a timer function.
        """
        if not is_local_request(scope):
            detail = "The administration API accepts callers on this machine only."
            raise WorkspaceError(Kind.FORBIDDEN, "ADMINISTRATION_IS_LOCAL", detail)
        name = raw_path.removeprefix(_FUNCTIONS)
        if scope["method"] != "POST" or not raw_path.startswith(_FUNCTIONS) or name not in self._functions:
            raise WorkspaceError(Kind.NOT_FOUND, "ROUTE_NOT_FOUND", "Route not found.")
        if body and not _is_json_object(body):
            raise build_invalid_field_error("body", 'must be empty or JSON such as {"input": ""}')
        if name not in self._timers:
            raise build_invalid_field_error(
                "name", f"{name} is a {self._functions[name].kind} function; only timer functions can be run"
            )
        self._timers[name]()


def is_local_request(scope: Mapping[str, Any]) -> bool:
    """Return whether a request comes from this machine and not from a web page in a browser.

    A web page whose DNS name resolves to this machine sends no ``Origin`` header; its ``Host`` header reveals the name.
    """
    if any(name == b"origin" or (name == b"host" and not is_loopback_host(value)) for name, value in scope["headers"]):
        return False
    client = scope.get("client")
    return client is not None and ipaddress.ip_address(client[0]).is_loopback


def _is_json_object(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
