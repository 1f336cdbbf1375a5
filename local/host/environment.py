"""App settings in the environment, and host.json."""

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from emulators.durable.settings import DurableSettings
from local.errors import StartError

_REFERENCE = re.compile(r"%([^%]+)%")
_DEFAULT_PREFIX = "api"
_DEFAULT_BATCH = 100


@dataclass(frozen=True, slots=True)
class HostJson:
    """Settings of host.json that this host supports.

    Attributes:
        route_prefix: prefix of every route; ``api`` by default.
        max_event_batch_size: most events in an Event Hub batch; 100 by default.
        durable: settings of Durable Functions.
    """

    route_prefix: str
    max_event_batch_size: int
    durable: DurableSettings = field(default_factory=DurableSettings)


def read_host_json(folder: Path) -> HostJson:
    """Return the host settings of an app's folder; defaults without a host.json.

    Raises:
        StartError: the file is not a JSON object.
    """
    extensions = _read_object(folder / "host.json").get("extensions", {})
    return HostJson(
        route_prefix=str(extensions.get("http", {}).get("routePrefix", _DEFAULT_PREFIX)),
        max_event_batch_size=int(extensions.get("eventHubs", {}).get("maxEventBatchSize", _DEFAULT_BATCH)),
        durable=_durable(extensions.get("durableTask", {})),
    )


def _durable(section: Mapping[str, Any]) -> DurableSettings:
    default = DurableSettings()
    settings = DurableSettings(
        hub=resolve_settings(str(section.get("hubName", default.hub))),
        max_activities=int(section.get("maxConcurrentActivityFunctions", default.max_activities)),
        max_orchestrators=int(section.get("maxConcurrentOrchestratorFunctions", default.max_orchestrators)),
        version=section.get("defaultVersion"),
    )
    if min(settings.max_activities, settings.max_orchestrators) < 1:
        raise StartError(
            "host.json: maxConcurrentActivityFunctions and maxConcurrentOrchestratorFunctions must be at least 1"
        )
    return settings


def load_local_settings(folder: Path) -> None:
    """Set the ``Values`` of local.settings.json in the environment; existing variables have priority.

    Raises:
        StartError: the file is not a JSON object.
    """
    for name, value in _read_object(folder / "local.settings.json").get("Values", {}).items():
        os.environ.setdefault(name, str(value))


def resolve_settings(text: str) -> str:
    """Return the text of a binding with every ``%SETTING%`` replaced by its app setting.

    Raises:
        StartError: the setting does not exist.
    """
    return _REFERENCE.sub(_setting, text)


def _setting(reference: re.Match[str]) -> str:
    try:
        return os.environ[reference[1]]
    except KeyError:
        raise StartError(f"a binding refers to the app setting {reference[1]}, which is not set") from None


def _read_object(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StartError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise StartError(f"{path} is not a JSON object")
    return document
