"""The app's surroundings: app settings in the environment, and host.json."""

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local.errors import StartError

_REFERENCE = re.compile(r"%([^%]+)%")
_DEFAULT_PREFIX = "api"
_DEFAULT_BATCH = 100


@dataclass(frozen=True, slots=True)
class HostJson:
    """What this host heeds of host.json.

    Attributes:
        route_prefix: stands before every route; ``api`` where host.json is silent.
        max_event_batch_size: most events that one Event Hub batch holds; 100 where host.json is silent.
    """

    route_prefix: str
    max_event_batch_size: int


def read_host_json(folder: Path) -> HostJson:
    """Return the host settings of an app's folder; defaults where it has no host.json.

    Raises:
        StartError: the file is not a JSON object.
    """
    extensions = _object(folder / "host.json").get("extensions", {})
    return HostJson(
        route_prefix=str(extensions.get("http", {}).get("routePrefix", _DEFAULT_PREFIX)),
        max_event_batch_size=int(extensions.get("eventHubs", {}).get("maxEventBatchSize", _DEFAULT_BATCH)),
    )


def load_local_settings(folder: Path) -> None:
    """Put the ``Values`` of local.settings.json into the environment; what stands there already stays.

    Raises:
        StartError: the file is not a JSON object.
    """
    for name, value in _object(folder / "local.settings.json").get("Values", {}).items():
        os.environ.setdefault(name, str(value))


def resolved(text: str) -> str:
    """Return a binding's text with every ``%SETTING%`` replaced by the app setting of that name.

    Raises:
        StartError: no such setting.
    """
    return _REFERENCE.sub(_setting, text)


def _setting(reference: re.Match[str]) -> str:
    try:
        return os.environ[reference[1]]
    except KeyError:
        raise StartError(f"a binding names the app setting {reference[1]}, which is not set") from None


def _object(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StartError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise StartError(f"{path} is not a JSON object")
    return document
