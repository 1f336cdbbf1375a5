"""Tests of the conversion of Event Hub batches."""

import json
import math
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from azure.functions.eventhub import EventHubTriggerConverter
from azure.functions.meta import Datum, InConverter
from hypothesis import given
from hypothesis import strategies as st

from functions.hub_events import parse_enqueued_time, read_hub_events, read_partition_keys_if_complete
from shared.telemetry.models import HubEvent
from tests.unit.functions.host_batches import (
    BODIES,
    PROPERTIES,
    SYSTEM_PROPERTIES,
    decode_batch,
    decode_batch_with_keys,
)

_FRACTIONS = st.from_regex(r"(\.[0-9]{1,7})?", fullmatch=True)
_INSTANTS = st.datetimes(min_value=datetime(1000, 1, 1))  # noqa: DTZ001  the SDK requires four-digit years
_ZONES = st.sampled_from(["", "Z", "+00:00", "-00:00", "+01:00"])


def parse_with_sdk(text: str | None) -> datetime | None:
    """Parse an enqueued time with the parser of the Azure SDK."""
    parsed: datetime | None = InConverter._parse_datetime(text)
    return parsed


@given(_INSTANTS, _FRACTIONS, _ZONES)
def test_enqueued_times_are_parsed_as_by_the_sdk(instant: datetime, fraction: str, zone: str) -> None:
    """Enqueued times, with or without fraction and zone, are parsed to the same value and zone as in the SDK."""
    text = f"{instant:%Y-%m-%dT%H:%M:%S}{fraction}{zone}"
    try:
        expected = parse_with_sdk(text)
    except ValueError:
        with pytest.raises(ValueError, match="does not match format"):
            parse_enqueued_time(text)
        return
    parsed = parse_enqueued_time(text)
    assert (parsed, parsed and parsed.tzinfo) == (expected, expected and expected.tzinfo)


@pytest.mark.parametrize("text", ["2026-02-30T00:00:00Z", "2026-01-05 08:00:00", "noon", "2026-01-05T24:00:00Z"])
def test_invalid_enqueued_times_raise_the_sdks_error(text: str) -> None:
    """An invalid time raises the same error as in the SDK."""
    with pytest.raises(ValueError, match=r".+") as expected:
        parse_with_sdk(text)
    with pytest.raises(ValueError, match=r".+") as raised:
        parse_enqueued_time(text)
    assert str(raised.value) == str(expected.value)


def test_times_that_are_not_iso_8601_use_the_sdks_parser() -> None:
    """The SDK parses times in formats other than ISO 8601; a missing time is None."""
    assert parse_enqueued_time("01/05/2026 08:00:00Z") == parse_with_sdk("01/05/2026 08:00:00Z")
    assert parse_enqueued_time(None) is None
    assert parse_enqueued_time("") is None


def test_events_are_read_from_the_metadata() -> None:
    """Each event's position, time, properties and IoT Hub device id are read from the batch's metadata."""
    assert read_hub_events(decode_batch()) == [
        HubEvent(BODIES[0], "5", 41, datetime(2026, 1, 5, 8, 0, 0, 123456, UTC), {"messageId": "m"}, "", "rig"),
        HubEvent(BODIES[1], "5", 42, datetime(2026, 1, 5, 8, 0, 1, 500000, UTC), {"line": "3", "on": "true"}),
        HubEvent(BODIES[2], "5", 43, datetime(2026, 1, 5, 8, 0, 2, tzinfo=UTC), {}, "rig-7"),
    ]


def test_partition_keys_are_used_only_if_complete() -> None:
    """Partition keys are used only if there are as many as events, because the host leaves out empty keys."""
    assert read_partition_keys_if_complete(decode_batch_with_keys(["rig", "press", "rig"])) == frozenset(
        {"rig", "press"}
    )
    assert read_partition_keys_if_complete(decode_batch_with_keys(["rig", "press"])) is None
    assert read_partition_keys_if_complete(decode_batch()) is None
    assert read_partition_keys_if_complete([]) is None


def test_event_metadata_may_be_json_text() -> None:
    """Metadata may be a string that contains JSON; if it contains no properties, the events have no properties."""
    assert read_hub_events(decode_batch(PropertiesArray=json.dumps(PROPERTIES))) == read_hub_events(decode_batch())
    assert [event.properties for event in read_hub_events(decode_batch(PropertiesArray=None))] == [{}, {}, {}]
    assert read_hub_events([]) == []


def test_the_batch_has_the_events_of_the_sdk() -> None:
    """Iterating over a batch gives event objects that equal those of the SDK."""
    batch = decode_batch()
    assert [event.get_body() for event in batch] == BODIES
    assert (batch[0].sequence_number, batch[0].partition_key) == (41, "rig")
    assert [event.sequence_number for event in batch[1:]] == [42, 43]


def test_event_properties_may_be_nan_or_infinity() -> None:
    """Properties may be NaN or Infinity, which strict JSON does not allow; integers keep all digits."""
    changed = [{"a": math.nan}, {"b": -math.inf}, {"c": 2**70}]
    assert [event.properties for event in read_hub_events(decode_batch(PropertiesArray=changed))] == [
        {"a": "NaN"},
        {"b": "-Infinity"},
        {"c": str(2**70)},
    ]


def test_long_integers_in_properties_keep_all_digits() -> None:
    """A property may be an integer beyond 64 bits, alone or in another value; it keeps all digits."""
    changed = [{"a": 2**70}, {"b": {"c": [-(2**70)]}}, {}]
    assert [event.properties for event in read_hub_events(decode_batch(PropertiesArray=changed))] == [
        {"a": str(2**70)},
        {"b": f'{{"c": [-{2**70}]}}'},
        {},
    ]


def test_unpaired_surrogates_in_properties_are_replaced() -> None:
    """Unpaired surrogates in the names and values of properties become question marks; other characters are kept."""
    changed = [{"a": "é\ud800", "n": 2**70}, {"\udfff": "😀"}, {"c": math.nan}]
    assert [event.properties for event in read_hub_events(decode_batch(PropertiesArray=changed))] == [
        {"a": "é?", "n": str(2**70)},
        {"?": "😀"},
        {"c": "NaN"},
    ]


@pytest.mark.parametrize("value", [5, True, ["rig"], {"rig": 1}, None])
def test_metadata_of_senders_that_are_not_texts_are_ignored(value: object) -> None:
    """A device id or partition key that is not a text is ignored, because senders can add annotations of any type."""
    place = SYSTEM_PROPERTIES[0] | {"iothub-connection-device-id": value, "PartitionKey": value}
    batch = decode_batch(SystemPropertiesArray=[place, *SYSTEM_PROPERTIES[1:]])
    assert [(event.device_id, event.partition_key) for event in read_hub_events(batch)] == [
        ("", ""),
        ("", ""),
        ("rig-7", ""),
    ]


def test_a_batch_of_texts_is_rejected() -> None:
    """A batch of texts is rejected, because only the data type ``binary`` passes the original bytes."""
    data = Datum(SimpleNamespace(string=["{}"]), "collection_string")
    places = Datum(json.dumps(SYSTEM_PROPERTIES[:1]), "json")
    events = EventHubTriggerConverter.decode(data, trigger_metadata={"SystemPropertiesArray": places})
    assert isinstance(events, list)
    with pytest.raises(ValueError, match="delivered no bytes"):
        read_hub_events(events)


@pytest.mark.parametrize(
    "changes",
    [
        {"PartitionContext": None},
        {"PartitionContext": {}},
        {"PropertiesArray": [{}]},
        {"SystemPropertiesArray": [{}, {}, {}]},
        {"SystemPropertiesArray": [{"SequenceNumber": 1}, *SYSTEM_PROPERTIES[1:]]},
    ],
)
def test_a_batch_without_event_positions_fails(changes: dict[str, Any]) -> None:
    """A batch without partition, sequence numbers or times fails, because message ids depend on them."""
    with pytest.raises(ValueError):  # noqa: PT011  zip raises it with its own message
        read_hub_events(decode_batch(**changes))
