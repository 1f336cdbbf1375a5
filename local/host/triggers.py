"""Functions of an app by trigger: routes, timers and event hubs, with resolved app settings."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from local.errors import StartError
from local.host.environment import HostJson, resolve_settings
from local.host.event_hubs import DEFAULT_GROUP, EventHubSetting
from local.host.timers import TimerSetting
from local.host.worker import LoadedFunction
from local.http_server.routes import RouteTable
from shared.background.schedules import Schedule
from shared.observability.logs import fields, get_logger
from shared.telemetry.models import IMPULSES_HUB

_LOGGER = get_logger("local.triggers")
_OTHER_READERS = {IMPULSES_HUB: frozenset({"adx"})}
"""Consumer groups that do not belong to functions: the query table."""

_COLLECT_SECONDS = {(IMPULSES_HUB, "archive"): 1.0}
"""Wait after partial batches, for consumer groups with a high cost per batch: the archive writes files."""


@dataclass(frozen=True, slots=True)
class Triggers:
    """Functions of an app by trigger."""

    functions: Mapping[str, LoadedFunction]
    routes: RouteTable
    timers: tuple[TimerSetting, ...]
    event_hubs: tuple[EventHubSetting, ...]

    def groups(self) -> dict[str, frozenset[str]]:
        """Return the consumer groups by hub that must read an event before its deletion."""
        groups: dict[str, frozenset[str]] = dict(_OTHER_READERS)
        for setting in self.event_hubs:
            groups[setting.hub] = groups.get(setting.hub, frozenset()) | {setting.group}
        return groups


def sort_functions(functions: Iterable[LoadedFunction], host_json: HostJson) -> Triggers:
    """Return the functions by trigger; unsupported triggers are logged and ignored.

    Raises:
        StartError: a route, schedule or app setting is invalid.
    """
    by_name = {function.name: function for function in functions}
    routes = RouteTable()
    timers: list[TimerSetting] = []
    hubs: list[EventHubSetting] = []
    for function in by_name.values():
        if is_disabled(function.name):
            _LOGGER.info("the function is disabled", extra=fields(function=function.name))
            continue
        match function.kind:
            case "httpTrigger":
                routes.add(function, host_json.route_prefix)
            case "timerTrigger":
                timers.append(_timer(function))
            case "eventHubTrigger":
                hubs.append(_event_hub(function))
            case "orchestrationTrigger" | "activityTrigger":
                pass  # the Durable Task emulator runs them
            case kind:
                _LOGGER.warning(
                    "the local host does not support this trigger", extra=fields(function=function.name, kind=kind)
                )
    return Triggers(by_name, routes, tuple(timers), tuple(hubs))


def is_disabled(name: str) -> bool:
    """Return whether ``AzureWebJobs.NAME.Disabled`` (or with ``__`` for dots) disables a function.

    See learn.microsoft.com/azure/azure-functions/disable-function.
    """
    values = (os.environ.get(f"AzureWebJobs{mark}{name}{mark}Disabled", "") for mark in (".", "__"))
    return any(value.lower() in {"true", "1"} for value in values)


def _timer(function: LoadedFunction) -> TimerSetting:
    try:
        schedule = Schedule(resolve_settings(str(function.trigger["schedule"])))
    except ValueError as error:
        raise StartError(f"the timer {function.name}: {error}") from None
    return TimerSetting(function, schedule, bool(function.trigger.get("runOnStartup", False)))


def _event_hub(function: LoadedFunction) -> EventHubSetting:
    trigger = function.trigger
    hub = resolve_settings(str(trigger["eventHubName"]))
    group = resolve_settings(str(trigger.get("consumerGroup") or DEFAULT_GROUP))
    return EventHubSetting(
        function,
        hub=hub,
        group=group,
        many=str(trigger.get("cardinality", "many")).lower() == "many",
        binary=str(trigger.get("dataType", "")).lower() == "binary",
        collect_seconds=_COLLECT_SECONDS.get((hub, group), 0.0),
    )
