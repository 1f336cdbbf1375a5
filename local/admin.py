"""The host's administration: run a timer function now."""

import ipaddress
import json
from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from local.worker import LoadedFunction

_FUNCTIONS = "/admin/functions/"


class Admin:
    """Answers ``POST /admin/functions/{name}``, as the Functions host does, to callers on this machine only."""

    def __init__(self, functions: Mapping[str, LoadedFunction], timers: Mapping[str, Callable[[], None]]) -> None:
        self._functions = functions
        self._timers = timers

    def handle(self, scope: MutableMapping[str, Any], raw_path: str, body: bytes) -> tuple[int, str]:
        """Return the status and text of a request under ``/admin/``."""
        if not _from_this_machine(scope):
            return 403, "The administration answers callers on this machine only."
        name = raw_path.removeprefix(_FUNCTIONS)
        if scope["method"] != "POST" or not raw_path.startswith(_FUNCTIONS) or name not in self._functions:
            return 404, ""
        if body and not _is_input(body):
            return 400, 'The body must be JSON such as {"input": ""}, or empty.'
        if name not in self._timers:
            return 400, f"{name} is a {self._functions[name].kind} function; only timers can be run."
        self._timers[name]()
        return 202, ""


def _from_this_machine(scope: MutableMapping[str, Any]) -> bool:
    """Tell callers on this machine from others, and from web pages that a browser on this machine shows."""
    if any(name == b"origin" for name, _ in scope["headers"]):
        return False
    client = scope.get("client")
    return client is not None and ipaddress.ip_address(client[0]).is_loopback


def _is_input(body: bytes) -> bool:
    try:
        return isinstance(json.loads(body), dict)
    except ValueError:
        return False
