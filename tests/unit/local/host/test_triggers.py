"""Tests of app settings, of host.json, and of the selection of functions by their trigger."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from local.errors import StartError
from local.host.triggers import (
    HostJson,
    group_functions_by_trigger,
    load_local_settings,
    read_host_json,
    replace_setting_references,
)
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
    """A function that an app setting disables does not run."""
    monkeypatch.setenv(setting, value)
    functions = [LoadedFunction("archive", "1", HUB, None), LoadedFunction("compaction", "2", TIMER, None)]
    triggers = group_functions_by_trigger(functions, HostJson("", 100))
    assert [each.function.name for each in triggers.event_hubs] == (["archive"] if runs else [])
    assert [each.function.name for each in triggers.timers] == ["compaction"]


@pytest.mark.parametrize("disabled", ["true", "false"])
def test_the_hub_stores_impulses_until_the_archive_has_read_them(
    monkeypatch: pytest.MonkeyPatch, disabled: str
) -> None:
    """The hub stores impulses for the archive also while the function of the archive is disabled."""
    monkeypatch.setenv("AzureWebJobs.archive.Disabled", disabled)
    triggers = group_functions_by_trigger([LoadedFunction("archive", "1", HUB, None)], HostJson("", 100))
    assert triggers.collect_consumer_groups_by_hub(is_hub_read_by_engine=True) == {"impulses": {"adx", "archive"}}


def test_the_hub_stores_no_impulses_for_an_engine_that_does_not_read_it() -> None:
    """Impulses that all functions have read may be deleted if no query engine reads the hub."""
    live = LoadedFunction("live", "1", HUB | {"consumerGroup": "live"}, None)
    triggers = group_functions_by_trigger([live], HostJson("", 100))
    assert triggers.collect_consumer_groups_by_hub(is_hub_read_by_engine=False) == {"impulses": {"archive", "live"}}


@pytest.mark.parametrize(("group", "gathers"), [("archive", True), ("live", False)])
def test_only_the_archive_waits_for_more_events(group: str, *, gathers: bool) -> None:
    """Only the archive function waits for more events after a partial batch, because each batch becomes a file."""
    functions = [LoadedFunction(group, "1", HUB | {"consumerGroup": group}, None)]
    (setting,) = group_functions_by_trigger(functions, HostJson("", 100)).event_hubs
    assert bool(setting.collect_seconds) == gathers


def test_an_app_without_files_has_the_defaults(tmp_path: Path) -> None:
    """Without host.json and local.settings.json, an app has the defaults of the Functions host."""
    load_local_settings(tmp_path)
    assert read_host_json(tmp_path) == HostJson("api", 100)


@pytest.mark.parametrize("text", ["{", "[]", '"x"'])
def test_an_invalid_host_json_is_rejected(tmp_path: Path, text: str) -> None:
    """An invalid host.json stops the start with the name of the file."""
    (tmp_path / "host.json").write_text(text)
    with pytest.raises(StartError, match=r"host\.json is not"):
        read_host_json(tmp_path)


@pytest.mark.parametrize(
    "text", ['{"extensions": null}', '{"extensions": {"http": null, "eventHubs": {"maxEventBatchSize": null}}}']
)
def test_null_in_a_host_json_is_a_missing_setting(tmp_path: Path, text: str) -> None:
    """A section or setting in host.json that is null has its default."""
    (tmp_path / "host.json").write_text(text)
    assert read_host_json(tmp_path) == HostJson("api", 100)


def test_a_number_in_a_host_json_can_be_a_text(tmp_path: Path) -> None:
    """A text of digits in host.json is accepted as a number."""
    (tmp_path / "host.json").write_text('{"extensions": {"eventHubs": {"maxEventBatchSize": "20"}}}')
    assert read_host_json(tmp_path).max_event_batch_size == 20


@pytest.mark.parametrize(
    ("extensions", "name"),
    [
        ([], "extensions"),
        ({"http": "x"}, "http"),
        ({"http": {"routePrefix": 1}}, "routePrefix"),
        ({"eventHubs": {"maxEventBatchSize": 0}}, "maxEventBatchSize"),
        ({"eventHubs": {"maxEventBatchSize": "x"}}, "maxEventBatchSize"),
        ({"eventHubs": {"maxEventBatchSize": "0"}}, "maxEventBatchSize"),
        ({"eventHubs": {"maxEventBatchSize": "²"}}, "maxEventBatchSize"),
        ({"eventHubs": {"maxEventBatchSize": True}}, "maxEventBatchSize"),
        ({"durableTask": {"hubName": {}}}, "hubName"),
        ({"durableTask": {"maxConcurrentActivityFunctions": 1.5}}, "maxConcurrentActivityFunctions"),
    ],
)
def test_an_invalid_setting_in_a_host_json_is_rejected(tmp_path: Path, extensions: Any, name: str) -> None:
    """An invalid setting in host.json, such as a batch size of 0, stops the start with the name of the setting."""
    (tmp_path / "host.json").write_text(json.dumps({"extensions": extensions}))
    with pytest.raises(StartError, match=f"host.json: {name} must be "):
        read_host_json(tmp_path)


def test_null_in_local_settings_is_a_missing_setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An app setting in local.settings.json that is null is not set; its other ones are texts or numbers."""
    monkeypatch.setattr(os, "environ", {})
    for text in ('{"Values": null}', '{"Values": {"A": null, "B": 1}}'):
        (tmp_path / "local.settings.json").write_text(text)
        load_local_settings(tmp_path)
    assert os.environ == {"B": "1"}


@pytest.mark.parametrize(
    ("values", "name"), [([], "Values"), ({"A": {}}, "A"), ({"A=B": ""}, "'A=B'"), ({"A": "\0"}, "'A'")]
)
def test_invalid_local_settings_are_rejected(tmp_path: Path, values: Any, name: str) -> None:
    """An invalid value in local.settings.json stops the start with its name."""
    (tmp_path / "local.settings.json").write_text(json.dumps({"Values": values}))
    with pytest.raises(StartError, match=rf"local\.settings\.json: {name} (must|cannot) be "):
        load_local_settings(tmp_path)


def test_placeholders_in_bindings_are_replaced_with_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """%NAME% in a binding is replaced with the app setting NAME; if it is missing, the error contains the name."""
    monkeypatch.setenv("HUB", "impulses")
    assert replace_setting_references("a-%HUB%-%HUB%") == "a-impulses-impulses"
    with pytest.raises(StartError, match="NO_SUCH"):
        replace_setting_references("%NO_SUCH%")
