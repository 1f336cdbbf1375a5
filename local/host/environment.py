"""The app's surroundings: app settings in the environment, and host.json."""

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
    """What this host heeds of host.json.

    Attributes:
        route_prefix: stands before every route; ``api`` where host.json is silent.
        max_event_batch_size: most events that one Event Hub batch holds; 100 where host.json is silent.
        durable: how Durable Functions run.
    """

    route_prefix: str
    max_event_batch_size: int
    durable: DurableSettings = field(default_factory=DurableSettings)


def read_host_json(folder: Path) -> HostJson:
    """Return the host settings of an app's folder; defaults where it has no host.json.

    Raises:
        StartError: the file is not a JSON object.
    """
    extensions = _object(folder / "host.json").get("extensions", {})
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
        raise StartError("host.json: at least one activity and one orchestrator must be allowed to run at once")
    return settings


def load_local_settings(folder: Path) -> None:
    """Put the ``Values`` of local.settings.json into the environment; what stands there already stays.

    Raises:
        StartError: the file is not a JSON object.
    """
    for name, value in _object(folder / "local.settings.json").get("Values", {}).items():
        os.environ.setdefault(name, str(value))


def resolve_settings(text: str) -> str:
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
