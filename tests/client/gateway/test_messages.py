"""Tests of the conversion of received messages to telemetry lines."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from oi.gateway.messages import MAX_BYTES, RejectedError, build_ndjson_line
from oi.gateway.routes import Fields, MessageTarget

from shared.catalog.models import TimestampFormat
from shared.telemetry.timestamp_formats import parse_timestamp
from shared.timestamps import format_rfc3339

AT = 1_767_600_000.0
PLAIN = MessageTarget("press", None, Fields())


def convert_message(payload: bytes, target: MessageTarget = PLAIN) -> dict[str, Any]:
    """Convert a received message and return the parsed telemetry line."""
    line = build_ndjson_line(payload, target, AT, lambda: "id-1")
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    parsed: dict[str, Any] = json.loads(line)
    return parsed


def test_the_gateway_adds_missing_message_metadata() -> None:
    """A message without id, time and device gets a new id, the time of receipt, and the device of its topic."""
    added = {"messageId": "id-1", "timestamp": "2026-01-05T08:00:00.000000Z"}
    assert convert_message(b'{"value": 1}') == {**added, "value": 1}
    assert convert_message(b" { } ") == added
    assert convert_message(b'{"value": 1}', MessageTarget("press", 'd"1', Fields())) == {
        **added,
        "deviceId": 'd"1',
        "value": 1,
    }


def test_existing_message_metadata_is_not_changed() -> None:
    """A message that contains id, time and device is sent unchanged."""
    message = {"messageId": "m", "timestamp": "2026-01-05T08:00:00Z", "deviceId": "d", "value": 1}
    assert convert_message(json.dumps(message).encode()) == message
    assert convert_message(json.dumps(message, indent=1).encode()) == message


def test_digits_of_numbers_in_payloads_are_not_changed() -> None:
    """The digits of numbers in the payload are sent unchanged."""
    line = build_ndjson_line(b'{"a": 1.10, "b": 12345678901234567890123, "c": "\\u00e4"}', PLAIN, AT, lambda: "i")
    assert line.endswith(b'"a": 1.10, "b": 12345678901234567890123, "c": "\\u00e4"}\n')


@pytest.mark.parametrize(
    ("form", "value", "expected"),
    [
        ("rfc3339", "2026-01-05T08:00:00Z", "2026-01-05T08:00:00Z"),
        ("epochSeconds", 1767600000, "2026-01-05T08:00:00.000000Z"),
        ("epochSeconds", 1767600000.25, "2026-01-05T08:00:00.250000Z"),
        ("epochSeconds", "1767600000.25", "2026-01-05T08:00:00.250000Z"),
        ("epochMilliseconds", 1767600000001, "2026-01-05T08:00:00.001000Z"),
    ],
)
def test_json_pointers_select_the_metadata(form: str, value: Any, expected: str) -> None:
    """Values at the configured pointers become metadata and are removed from the payload."""
    target = MessageTarget("press", None, Fields("/h/t", form, "/h/n", "/~1unit"))
    message = {"h": {"t": value, "n": 7}, "/unit": "d-1", "value": 1}
    assert convert_message(json.dumps(message).encode(), target) == {
        "messageId": "7",
        "timestamp": expected,
        "deviceId": "d-1",
        "h": {},
        "value": 1,
    }


def test_two_pointers_may_select_one_property() -> None:
    """If two pointers select the same property, both values are taken from it, and it is removed."""
    time = "2026-01-05T08:00:00Z"
    fields = Fields("/ts", message_id="/ts")
    message = convert_message(b'{"ts": "2026-01-05T08:00:00Z", "value": 1}', MessageTarget("press", None, fields))
    assert message == {"timestamp": time, "messageId": time, "value": 1}


def test_an_id_read_from_the_time_does_not_replace_it() -> None:
    """If the pointer of the id selects the property ``timestamp``, the message keeps its time of measurement."""
    target = MessageTarget("press", None, Fields(message_id="/timestamp"))
    message = convert_message(b'{"timestamp": "2026-01-05T08:00:00Z", "value": 1}', target)
    assert message == {"timestamp": "2026-01-05T08:00:00Z", "messageId": "2026-01-05T08:00:00Z", "value": 1}


EPOCH_TIMES = st.one_of(
    st.integers(-(10**16), 10**16),
    st.floats(-1e13, 1e13),
    st.decimals(-(10**12), 10**12, allow_nan=False, places=9).map(lambda number: f"{number:f}"),
)


@example(value="1764500000124.9999", form=TimestampFormat.EPOCH_MILLISECONDS)
@example(value=1764500000.1249998, form=TimestampFormat.EPOCH_SECONDS)
@example(value="-0.0000001", form=TimestampFormat.EPOCH_SECONDS)
@given(EPOCH_TIMES, st.sampled_from([TimestampFormat.EPOCH_SECONDS, TimestampFormat.EPOCH_MILLISECONDS]))
def test_epoch_times_are_cut_to_microseconds_as_in_the_service(value: Any, form: TimestampFormat) -> None:
    """The gateway converts an epoch time to the same time as the service, and rejects the same values."""
    target = MessageTarget("press", None, Fields("/t", form.value))
    try:
        expected = format_rfc3339(parse_timestamp(value, form))
    except ValueError:
        with pytest.raises(RejectedError):
            convert_message(json.dumps({"t": value}).encode(), target)
        return
    assert convert_message(json.dumps({"t": value}).encode(), target)["timestamp"] == expected


def test_a_format_without_a_pointer_applies_to_the_timestamp() -> None:
    """Without a pointer, the configured time format applies to the payload property `timestamp`."""
    target = MessageTarget("press", None, Fields(None, "epochSeconds"))
    assert convert_message(b'{"timestamp": 1767600000}', target)["timestamp"] == "2026-01-05T08:00:00.000000Z"


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        (b"", "not_json"),
        (b"\xff\xfe", "not_json"),
        (b"21.5", "not_json"),
        (b"[{}]", "not_json"),
        (b'{"a": NaN}', "not_json"),
        (b'{"a": 1} x', "not_json"),
        (b"[" * 100_000, "not_json"),
        (b'{"a": "%s"}' % (b"x" * MAX_BYTES), "too_large"),
        (b'{"a": "%s"}' % (b"x" * (MAX_BYTES - 20)), "too_large"),
    ],
)
def test_an_invalid_message_is_rejected_with_a_code(payload: bytes, reason: str) -> None:
    """A message that cannot be sent is rejected with a short code for the reason."""
    with pytest.raises(RejectedError) as raised:
        convert_message(payload)
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("form", "value"),
    [("rfc3339", 5), ("epochSeconds", "5e"), ("epochSeconds", True), ("epochSeconds", 1e300), ("rfc3339", None)],
)
def test_metadata_of_a_wrong_type_is_rejected(form: str, value: Any) -> None:
    """Metadata with a wrong type, or a time that is not in the configured format, is rejected."""
    target = MessageTarget("press", None, Fields("/t", form))
    with pytest.raises(RejectedError) as raised:
        convert_message(json.dumps({"t": value}).encode(), target)
    assert raised.value.reason == "metadata"
    with pytest.raises(RejectedError):
        convert_message(b'{"n": null}', MessageTarget("press", None, Fields(message_id="/n")))


VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=9) | st.lists(st.integers(), max_size=3)


@given(st.dictionaries(st.text(max_size=9), VALUES, max_size=4))
def test_any_payload_object_is_sent_unchanged(message: dict[str, Any]) -> None:
    """The conversion of an object to a telemetry message does not change the payload."""
    sent = convert_message(json.dumps(message).encode())
    assert {name: sent[name] for name in message} == message


@given(st.binary(max_size=40))
def test_any_payload_is_converted_or_rejected(payload: bytes) -> None:
    """Any received bytes are either converted or rejected, and cause no other exception."""
    with suppress(RejectedError):
        convert_message(payload)


def test_a_batch_of_telegraf_is_rejected_unless_the_route_reads_its_metrics() -> None:
    """A batch of Telegraf is rejected, because it is several messages, unless a pointer selects a metric."""
    payload = b'{"metrics": [{"fields": {"v": 1}, "name": "pump", "tags": {}, "timestamp": 1767600000}]}'
    for target in (PLAIN, MessageTarget("press", "d-1", Fields("/metricsTime"))):
        with pytest.raises(RejectedError, match="a batch of Telegraf with 1 metric;") as raised:
            convert_message(payload, target)
        assert raised.value.reason == "telegraf_batch"
    line = convert_message(payload, MessageTarget("press", None, Fields("/metrics/0/timestamp", "epochSeconds")))
    assert line["timestamp"] == "2026-01-05T08:00:00.000000Z"


def test_json_pointers_select_array_elements() -> None:
    """A pointer may select an element of an array by its index; the element stays in the payload."""
    target = MessageTarget("press", None, Fields("/d/0/t", "epochSeconds", "/d/1"))
    line = convert_message(b'{"d": [{"t": 1767600000, "v": 1}, "m-1", 3]}', target)
    assert line == {"messageId": "m-1", "timestamp": "2026-01-05T08:00:00.000000Z", "d": [{"v": 1}, "m-1", 3]}


@pytest.mark.parametrize("name", ["messageId", "timestamp", "deviceId"])
def test_a_payload_property_named_like_metadata_is_rejected(name: str) -> None:
    """If the route reads metadata elsewhere, a payload property with the name of a metadata property is rejected."""
    target = MessageTarget("press", None, Fields("/h/t", "rfc3339", "/h/n", "/h/d"))
    with pytest.raises(
        RejectedError, match=f"must not have the property {name}, because the route reads this value at /h/"
    ) as raised:
        convert_message(json.dumps({"h": {}, name: "payload"}).encode(), target)
    assert raised.value.reason == "metadata"


@pytest.mark.parametrize("payload", [b'{"a": 1, "a": 2}', b'{"a": 1,\n"a": 2}', b'{"b": [{"a": 1,\n"a": 2}]}'])
def test_a_payload_with_a_repeated_property_is_rejected(payload: bytes) -> None:
    """A payload with two properties of the same name is rejected."""
    with pytest.raises(RejectedError, match='the property "a" occurs twice'):
        convert_message(payload)
