"""Selection of functions by trigger."""

import pytest

from local.host.environment import HostJson
from local.host.triggers import sort_functions
from local.host.worker import LoadedFunction

HUB = {"type": "eventHubTrigger", "name": "events", "eventHubName": "impulses", "consumerGroup": "archive"}
TIMER = {"type": "timerTrigger", "name": "timer", "schedule": "0 0 * * * *"}


@pytest.mark.parametrize("setting", ["AzureWebJobs.archive.Disabled", "AzureWebJobs__archive__Disabled"])
@pytest.mark.parametrize(
    ("value", "runs"), [("true", False), ("True", False), ("1", False), ("false", True), ("", True)]
)
def test_a_disabled_function_does_not_run(
    monkeypatch: pytest.MonkeyPatch, setting: str, value: str, *, runs: bool
) -> None:
    """An app setting disables a function, and the hub no longer waits for it."""
    monkeypatch.setenv(setting, value)
    functions = [LoadedFunction("archive", "1", HUB, None), LoadedFunction("compaction", "2", TIMER, None)]
    triggers = sort_functions(functions, HostJson("", 100))
    assert [each.function.name for each in triggers.event_hubs] == (["archive"] if runs else [])
    assert [each.function.name for each in triggers.timers] == ["compaction"]
    assert ("archive" in triggers.groups()["impulses"]) == runs


@pytest.mark.parametrize(("group", "gathers"), [("archive", True), ("live", False)])
def test_only_the_archive_lets_events_gather(group: str, *, gathers: bool) -> None:
    """Only the archive waits after a partial batch, because it writes a file per connection."""
    functions = [LoadedFunction(group, "1", HUB | {"consumerGroup": group}, None)]
    (setting,) = sort_functions(functions, HostJson("", 100)).event_hubs
    assert bool(setting.collect_seconds) == gathers
