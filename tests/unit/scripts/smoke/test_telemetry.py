"""Tests of the choice of the smoke test's telemetry message."""

from fnmatch import fnmatchcase

import pytest

from scripts.smoke.calls import TokenHolder
from scripts.smoke.telemetry import DEVICE, TelemetryRoute, find_device_id_or_empty


def test_without_limits_the_device_is_the_smoke_test() -> None:
    """The message names a device of its own if connection and key allow each device."""
    assert find_device_id_or_empty([[], []]) == DEVICE
    assert find_device_id_or_empty([["*"], []]) == DEVICE


@pytest.mark.parametrize("pattern", ["rig-*", "rig-7", "rig-??", "[a-c]x*", "[!a]x", "[]a]x", "a*b?c[xy]"])
def test_a_device_matches_a_declared_pattern(pattern: str) -> None:
    """The device matches the pattern that the connection declares."""
    assert fnmatchcase(find_device_id_or_empty([[pattern], []]), pattern)


def test_a_device_matches_the_patterns_of_connection_and_key() -> None:
    """The device matches a pattern of the connection and one of the key; without such a device there is none."""
    assert find_device_id_or_empty([["gw-*", "rig-*"], ["rig-7"]]) == "rig-7"
    assert find_device_id_or_empty([["rig-*"], ["gw-*"]]) == ""


def test_a_connection_without_device_ids_has_one_device() -> None:
    """If no pointer names the device id, the only device is the connection's lookup."""
    assert find_device_id_or_empty([[], ["pump-*"]], "pump-rig") == "pump-rig"
    assert find_device_id_or_empty([["rig-*"], []], "pump-rig") == ""


def test_the_ids_are_at_the_places_that_the_pointers_name() -> None:
    """Nested pointers and escaped names lead to the ids; a pointer that is empty adds nothing."""
    nested = {"messageIdPointer": "/header/id", "deviceIdPointer": "/header/a~1b~0c"}
    built = TelemetryRoute(TokenHolder(""), "line", "rig-1", nested).build_message("m-1")
    assert built == {"value": 1.5, "header": {"id": "m-1", "a/b~c": "rig-1"}}
    unnamed = {"messageIdPointer": "/id", "deviceIdPointer": ""}
    assert TelemetryRoute(TokenHolder(""), "line", "line", unnamed).build_message("m-2") == {"value": 1.5, "id": "m-2"}
