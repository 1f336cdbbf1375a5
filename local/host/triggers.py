"""Configuration of a function app: local settings, host.json, and the functions by type of their trigger."""

import json
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from emulators.durable.engine import DurableSettings
from emulators.durable.extension import DurableExtension, HostPorts
from emulators.durable.ports import FunctionCallError
from local.errors import StartError
from local.host.event_hubs import DEFAULT_GROUP, EventHubSetting
from local.host.shutdown import ShutdownSignal
from local.host.timers import TimerSetting
from local.host.worker import FunctionFailed, LoadedFunction, invoke_function
from local.host.worker_protocol import TypedData
from local.http_server.admin import is_local_request
from local.http_server.routes import RouteTable
from shared.backends.embedded.sqlite import SqliteDatabase
from shared.backends.embedded.sqlite_checks import check_write_lock_is_available
from shared.background.runner import Schedule
from shared.observability.logs import fields, get_logger
from shared.telemetry.models import IMPULSES_HUB

_REFERENCE = re.compile(r"%([^%]+)%")
_DEFAULT_PREFIX = "api"
_DEFAULT_BATCH = 100
type LocalDurableExtension = DurableExtension[LoadedFunction]
_LOGGER = get_logger("local.triggers")
TABLE_GROUP = "adx"
"""Consumer group of the Kusto emulator, which fills the telemetry table with the impulses of the hub."""

_ARCHIVE_GROUP = "archive"
_COLLECT_SECONDS = {(IMPULSES_HUB, _ARCHIVE_GROUP): 5.0}
"""Maximum number of seconds for which a consumer group collects events while they arrive, by hub and group.

The archive writes a file for each batch. It also leaves the processors to ingestion during a burst.
"""


@dataclass(frozen=True, slots=True)
class HostJson:
    """Settings in host.json that the local host supports.

    Attributes:
        route_prefix: prefix of every route; ``api`` by default.
        max_event_batch_size: maximum number of events in an Event Hub batch; 100 by default.
        durable: settings of Durable Functions.
    """

    route_prefix: str
    max_event_batch_size: int
    durable: DurableSettings = field(default_factory=DurableSettings)


def read_host_json(folder: Path) -> HostJson:
    """Read host.json in an app's folder; return the defaults if the file is missing.

    Raises:
        StartError: the file is not a JSON object, or a setting is invalid.
    """
    extensions = _read_section(_read_json_object_or_empty(folder / "host.json"), "extensions")
    return HostJson(
        route_prefix=_read_text(_read_section(extensions, "http"), "routePrefix", _DEFAULT_PREFIX),
        max_event_batch_size=_read_count(_read_section(extensions, "eventHubs"), "maxEventBatchSize", _DEFAULT_BATCH),
        durable=_parse_durable_settings(_read_section(extensions, "durableTask")),
    )


def _parse_durable_settings(section: Mapping[str, Any]) -> DurableSettings:
    default = DurableSettings()
    return DurableSettings(
        hub=replace_setting_references(_read_text(section, "hubName", default.hub)),
        max_activities=_read_count(section, "maxConcurrentActivityFunctions", default.max_activities),
        max_orchestrators=_read_count(section, "maxConcurrentOrchestratorFunctions", default.max_orchestrators),
        version=_read_text(section, "defaultVersion", default.version),
    )


def _read_section(section: Mapping[str, Any], name: str, file_name: str = "host.json") -> Mapping[str, Any]:
    """Return an object in a settings file; null counts as missing, and a missing object is empty."""
    value = section.get(name)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise StartError(f"{file_name}: {name} must be a JSON object")
    return value


def _read_text[T: str | None](section: Mapping[str, Any], name: str, default: T) -> str | T:
    value = section.get(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise StartError(f"host.json: {name} must be a text")
    return value


def _read_count(section: Mapping[str, Any], name: str, default: int) -> int:
    value = section.get(name)
    if value is None:
        return default
    # The Functions host also accepts a number as a text.
    if isinstance(value, str) and value.isdecimal() and value.isascii():
        value = int(value)
    if not isinstance(value, int) or value < 1 or value is True:
        raise StartError(f"host.json: {name} must be a whole number of at least 1")
    return value


def load_local_settings(folder: Path) -> None:
    """Set the ``Values`` of local.settings.json in the environment; existing variables have priority.

    A value that is null counts as missing.

    Raises:
        StartError: the file is not a JSON object, or a value cannot be that of an environment variable.
    """
    file_name = "local.settings.json"
    for name, value in _read_section(_read_json_object_or_empty(folder / file_name), "Values", file_name).items():
        if isinstance(value, dict | list):
            raise StartError(f"{file_name}: {name} must be a text")
        if value is None:
            continue
        try:
            os.environ.setdefault(name, str(value))
        except (ValueError, OSError):
            raise StartError(f"{file_name}: {name!r} cannot be an environment variable with this value") from None


def replace_setting_references(text: str) -> str:
    """Replace every ``%NAME%`` in a binding's text by the value of the app setting NAME.

    Raises:
        StartError: the setting does not exist.
    """
    return _REFERENCE.sub(_get_referenced_setting, text)


def _get_referenced_setting(reference: re.Match[str]) -> str:
    try:
        return os.environ[reference[1]]
    except KeyError:
        raise StartError(
            f"a binding refers to the app setting {reference[1]}, which is not set; "
            "set it in the environment or in local.settings.json"
        ) from None


def _read_json_object_or_empty(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise StartError(f"{path} is not JSON: {error}") from None
    if not isinstance(document, dict):
        raise StartError(f"{path} is not a JSON object")
    return document


async def invoke_function_with_text(function: LoadedFunction, text: str, /) -> str | None:
    """Call a function with a text as input; return its result as text, or None if it has no result.

    Raises:
        emulators.durable.ports.FunctionCallError: the function raised an exception.
    """
    try:
        result = await invoke_function(function, TypedData(string=text))
    except FunctionFailed as failure:
        raise FunctionCallError(str(failure), failure.stack_trace) from None
    return None if result is None else str(result.value)


def create_durable_extension(
    functions: Iterable[LoadedFunction],
    data_dir: Path,
    origin: str,
    settings: DurableSettings,
    stopping: ShutdownSignal,
) -> LocalDurableExtension:
    """Create the Durable Task emulator, which runs durable functions and stores their state in the data directory."""
    ports = HostPorts(invoke_function_with_text, SqliteDatabase, check_write_lock_is_available, is_local_request)
    return DurableExtension(functions, ports, data_dir, origin, settings, stopping)


def bind_durable_clients(extension: LocalDurableExtension, function: LoadedFunction) -> LoadedFunction:
    """Return a copy of a function with a value in ``inputs`` for each of its Durable Functions client bindings."""
    values = {
        name: TypedData(string=text) for name, text in extension.build_client_binding_json_by_name(function).items()
    }
    return replace(function, inputs=values) if values else function


@dataclass(frozen=True, slots=True)
class Triggers:
    """Functions of an app, grouped by the type of their trigger."""

    functions: Mapping[str, LoadedFunction]
    routes: RouteTable
    timers: tuple[TimerSetting, ...]
    event_hubs: tuple[EventHubSetting, ...]

    def collect_consumer_groups_by_hub(self, *, is_hub_read_by_engine: bool) -> dict[str, frozenset[str]]:
        """Return, for each event hub, the consumer groups that must read an event before it may be deleted.

        Args:
            is_hub_read_by_engine: whether a query engine reads the hub ``impulses`` (normalised telemetry messages).
        """
        # The archive must contain each message, also after its function was disabled.
        readers = {_ARCHIVE_GROUP, TABLE_GROUP} if is_hub_read_by_engine else {_ARCHIVE_GROUP}
        groups: dict[str, frozenset[str]] = {IMPULSES_HUB: frozenset(readers)}
        for setting in self.event_hubs:
            groups[setting.hub] = groups.get(setting.hub, frozenset()) | {setting.group}
        return groups


def group_functions_by_trigger(functions: Iterable[LoadedFunction], host_json: HostJson) -> Triggers:
    """Group an app's functions by trigger type; functions with unsupported triggers are logged and ignored.

    Raises:
        StartError: a route, schedule or app setting is invalid.
    """
    by_name = {function.name: function for function in functions}
    routes = RouteTable()
    timers: list[TimerSetting] = []
    hubs: list[EventHubSetting] = []
    for function in by_name.values():
        if is_function_disabled(function.name):
            _LOGGER.info("the function is disabled", extra=fields(function=function.name))
            continue
        match function.kind:
            case "httpTrigger":
                routes.add(function, host_json.route_prefix)
            case "timerTrigger":
                timers.append(_parse_timer_setting(function))
            case "eventHubTrigger":
                hubs.append(_parse_event_hub_setting(function))
            case "orchestrationTrigger" | "activityTrigger":
                pass  # the Durable Task emulator runs them
            case kind:
                _LOGGER.warning(
                    "the local host does not support this trigger", extra=fields(function=function.name, kind=kind)
                )
    return Triggers(by_name, routes, tuple(timers), tuple(hubs))


def is_function_disabled(function_name: str) -> bool:
    """Return whether the environment variable ``AzureWebJobs.NAME.Disabled`` disables the function NAME.

    The name of the variable may contain ``__`` instead of each dot.

    See learn.microsoft.com/azure/azure-functions/disable-function.
    """
    values = (os.environ.get(f"AzureWebJobs{mark}{function_name}{mark}Disabled", "") for mark in (".", "__"))
    return any(value.lower() in {"true", "1"} for value in values)


def _parse_timer_setting(function: LoadedFunction) -> TimerSetting:
    try:
        schedule = Schedule(replace_setting_references(str(function.trigger["schedule"])))
    except ValueError as error:
        raise StartError(f"the schedule of the timer function {function.name} is invalid: {error}") from None
    return TimerSetting(function, schedule, bool(function.trigger.get("runOnStartup", False)))


def _parse_event_hub_setting(function: LoadedFunction) -> EventHubSetting:
    trigger = function.trigger
    hub = replace_setting_references(str(trigger["eventHubName"]))
    group = replace_setting_references(str(trigger.get("consumerGroup") or DEFAULT_GROUP))
    return EventHubSetting(
        function,
        hub=hub,
        group=group,
        many=str(trigger.get("cardinality", "many")).lower() == "many",
        binary=str(trigger.get("dataType", "")).lower() == "binary",
        collect_seconds=_COLLECT_SECONDS.get((hub, group), 0.0),
    )
