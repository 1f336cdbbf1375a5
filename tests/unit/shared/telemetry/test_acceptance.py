"""Tests of telemetry over the API: parsing, rules of credential and policy, and sending with a trace."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.auth.telemetry_binding import TelemetryBinding
from shared.catalog.models import Connection, Policies, TelemetryPolicy
from shared.disk_space.guard import DiskGuard
from shared.disk_space.ports import DiskUsage
from shared.errors import FieldError, Kind, WorkspaceError
from shared.runtime import LARGE, Runtime
from shared.telemetry.acceptance import (
    InstrumentedSender,
    TelemetryService,
    check_devices_and_timestamps,
    check_may_send_to_connection,
    hub_messages_from_body,
)
from shared.telemetry.json_text import parse_lossless_json
from shared.telemetry.message_parser import AcceptedMessage
from shared.telemetry.models import HubMessage
from tests.unit.shared.telemetry.fakes import CountingPool, Hub, build_catalog, build_catalog_getter, build_connection
from tests.unit.shared.telemetry.json_values import JSON

RECEIVED = datetime(2026, 1, 5, 8, tzinfo=UTC)
RIG = build_connection("pump-rig")
OFF = build_connection("off", enabled=False)
GATEWAY = build_connection(
    "gateway",
    source={
        "timestampPointer": "/ts",
        "deviceIdPointer": "/meta/device",
        "messageIdPointer": "/a~1b",
        "timestampFormat": "epochMilliseconds",
    },
)


CURRENT = build_catalog_getter(build_catalog(RIG, OFF))


def _list_invalid_fields(body: object, source: Connection = RIG) -> list[str]:
    with pytest.raises(WorkspaceError) as caught:
        hub_messages_from_body(source, body, RECEIVED)
    assert caught.value.kind is Kind.INVALID
    errors = caught.value.members["errors"]
    assert isinstance(errors, list)
    return [error["field"] for error in errors]


def test_time_and_ids_become_event_properties() -> None:
    """The values for timestamp, message id and device id are moved from the payload to event properties."""
    (message,) = hub_messages_from_body(
        RIG,
        {"timestamp": "2026-01-05T09:00:00+02:00", "messageId": "m", "deviceId": "d", "Pressure": 1},
        RECEIVED,
    )
    assert message == HubMessage(
        b'{"Pressure":1}',
        "pump-rig",
        {
            "connectionLookup": "pump-rig",
            "timestamp": "2026-01-05T07:00:00.000000Z",
            "messageId": "m",
            "deviceId": "d",
            "acceptedBy": "http",
        },
    )


def test_missing_values_get_defaults() -> None:
    """The time of receipt, a new id and the connection's lookup replace a missing time, message id and device id."""
    first, second = hub_messages_from_body(RIG, [{}, {}], RECEIVED)
    assert first.properties["timestamp"] == "2026-01-05T08:00:00.000000Z"
    assert first.properties["deviceId"] == "pump-rig"
    assert len({first.properties["messageId"], second.properties["messageId"], ""}) == 3


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), JSON),
    st.none() | st.datetimes(timezones=st.just(UTC)),
    st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=256),
    st.none() | st.text(st.characters(codec="utf-8"), min_size=1, max_size=256),
)
def test_the_payload_has_no_time_and_ids(
    message: dict[str, Any], timestamp: datetime | None, message_id: str | None, device_id: str | None
) -> None:
    """The payload of a message is the received object without the properties for its time and ids."""
    written = {
        "timestamp": timestamp.isoformat() if timestamp else None,
        "messageId": message_id,
        "deviceId": device_id,
    }
    rest = {name: value for name, value in message.items() if name not in written}
    given_members = {name: value for name, value in written.items() if value is not None}
    # As an array, because one object that only wraps an array is rejected.
    (sent,) = hub_messages_from_body(RIG, [rest | given_members], RECEIVED)
    assert parse_lossless_json(sent.body) == rest
    assert repr(parse_lossless_json(sent.body)) == repr(rest)
    assert datetime.fromisoformat(sent.properties["timestamp"]) == (timestamp or RECEIVED)
    assert message_id in (None, sent.properties["messageId"])
    assert sent.properties["deviceId"] == (device_id or "pump-rig")


def test_all_invalid_fields_are_listed() -> None:
    """Each invalid field of each message is listed with index and name."""
    assert _list_invalid_fields([{}, {"timestamp": "2026-01-05T08:00:00", "messageId": 7}, 5, {"deviceId": ""}]) == [
        "[1].timestamp",
        "[1].messageId",
        "[2]",
        "[3].deviceId",
    ]


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({"timestamp": 1767600000}, ["timestamp"]),
        ({"timestamp": "0001-01-01T00:00:00+01:00"}, ["timestamp"]),
        ({"messageId": "x" * 257}, ["messageId"]),
        ({"deviceId": {}}, ["deviceId"]),
        ({"timestamp": None, "messageId": None}, ["timestamp", "messageId"]),
        (None, ["body"]),
        ("text", ["body"]),
        ([], ["body"]),
        ([{}] * 501, ["body"]),
    ],
)
def test_invalid_telemetry_bodies_are_rejected(body: object, fields: list[str]) -> None:
    """A body that is not a message, or has an invalid property, is rejected with the field's name."""
    assert _list_invalid_fields(body) == fields


def test_pointers_select_time_and_ids() -> None:
    """If the connection has pointers, these select time and ids; the payload retains properties with default names."""
    body = {
        "ts": 1767600000250,
        "meta": {"device": "d", "line": 3},
        "a/b": "m",
        "timestamp": "yesterday",
        "deviceId": 5,
        "messageId": None,
    }
    (message,) = hub_messages_from_body(GATEWAY, body, RECEIVED)
    assert message.properties == {
        "connectionLookup": "gateway",
        "timestamp": "2026-01-05T08:00:00.250000Z",
        "messageId": "m",
        "deviceId": "d",
        "acceptedBy": "http",
    }
    assert parse_lossless_json(message.body) == {
        "meta": {"line": 3},
        "timestamp": "yesterday",
        "deviceId": 5,
        "messageId": None,
    }


def test_pointers_without_a_property_give_defaults() -> None:
    """If a pointer is empty, or leads to no property, the default value is used."""
    empty = build_connection(
        "empty", source=dict.fromkeys(["timestampPointer", "deviceIdPointer", "messageIdPointer"], "")
    )
    body = {"timestamp": "2020-01-01T00:00:00Z", "deviceId": "d", "messageId": "m", "meta": [1]}
    for source in (empty, GATEWAY):
        (message,) = hub_messages_from_body(source, dict(body), RECEIVED)
        assert message.properties["timestamp"] == "2026-01-05T08:00:00.000000Z"
        assert message.properties["deviceId"] == source.lookup
        assert message.properties["messageId"] != "m"
        assert parse_lossless_json(message.body) == body


def test_invalid_extracted_values_are_reported() -> None:
    """An invalid time or id is reported with index, path and pointer."""
    body = [{}, {"ts": "2026-01-05T08:00:00Z", "meta": {"device": None}, "a/b": ""}]
    assert _list_invalid_fields(body, GATEWAY) == ["[1].ts", "[1].a/b", "[1].meta.device"]
    with pytest.raises(WorkspaceError, match=r"^ts: must be a number .* \(pointer /ts\); a/b: .* \(pointer /a~1b\)$"):
        hub_messages_from_body(GATEWAY, {"ts": True, "a/b": 5}, RECEIVED)


METRIC = {"name": "cpu", "tags": {}, "fields": {"usage": 1}, "timestamp": 1_767_600_000}


def test_a_batch_of_telegraf_is_rejected() -> None:
    """Telegraf's object around an array of metrics is rejected with the expected form."""
    with pytest.raises(WorkspaceError, match="send only the array") as caught:
        hub_messages_from_body(RIG, {"metrics": [METRIC, METRIC]}, RECEIVED)
    assert caught.value.members["errors"][0]["field"] == "metrics"  # type: ignore[index]


@pytest.mark.parametrize(
    "body",
    [
        {"metrics": [METRIC], "host": "x"},
        {"metrics": []},
        {"metrics": [METRIC, 2]},
        {"metrics": [METRIC, {"a": 1}]},
        {"metrics": METRIC},
        {"readings": [METRIC]},
        [{"metrics": [METRIC, METRIC]}],
    ],
)
def test_objects_with_other_content_are_messages(body: object) -> None:
    """Any object but a batch of Telegraf is one message, also an object with only an array of objects."""
    (message,) = hub_messages_from_body(RIG, body, RECEIVED)
    assert parse_lossless_json(message.body) == (body[0] if isinstance(body, list) else body)


def test_a_pointer_into_an_array_makes_a_message() -> None:
    """If a pointer of the connection leads into an array of the object, the object is one message, not a batch."""
    source = build_connection("metrics", source={"deviceIdPointer": "/metrics/0/name"})
    (message,) = hub_messages_from_body(source, {"metrics": [METRIC | {"name": "d"}]}, RECEIVED)
    assert message.properties["deviceId"] == "d"
    assert "name" not in parse_lossless_json(message.body)["metrics"][0]


def test_500_messages_are_accepted() -> None:
    """An array of 500 messages, which is the maximum, is accepted in order."""
    messages = hub_messages_from_body(RIG, [{"n": number} for number in range(500)], RECEIVED)
    assert [parse_lossless_json(message.body)["n"] for message in messages] == list(range(500))


def test_a_message_over_256_kib_is_rejected() -> None:
    """A message of 256 KiB is accepted; one byte more is rejected with the message's index."""
    empty = len(b'{"a":""}')
    fits = {"a": "x" * (256 * 1024 - empty)}
    assert len(hub_messages_from_body(RIG, [fits, fits], RECEIVED)) == 2
    with pytest.raises(WorkspaceError, match=r"Message \[1\] of the array") as caught:
        hub_messages_from_body(RIG, [fits, {"a": fits["a"] + "x"}], RECEIVED)
    assert (caught.value.kind, caught.value.code) == (Kind.TOO_LARGE, "MESSAGE_TOO_LARGE")
    assert [error["field"] for error in caught.value.members["errors"]] == ["[1]"]  # type: ignore[attr-defined]


def test_a_disabled_connection_accepts_no_telemetry() -> None:
    """A disabled connection accepts no telemetry."""
    with pytest.raises(WorkspaceError) as caught:
        hub_messages_from_body(OFF, {}, RECEIVED)
    assert (caught.value.kind, caught.value.code) == (Kind.CONFLICT, "CONNECTION_DISABLED")


async def pass_disk_check() -> None:
    """Return at once, like a disk check that finds enough space."""


async def test_a_full_disk_rejects_valid_telemetry_only() -> None:
    """On a full disk, valid telemetry is rejected and not sent; for an invalid request, its own errors are reported."""
    disk, hub = DiskGuard(SmallDisk()), Hub()
    service = TelemetryService(CURRENT, hub, require_disk_space=disk.require_disk_space)
    codes = []
    for lookup in ("pump-rig", "nothing", "off"):
        with pytest.raises(WorkspaceError) as caught:
            await service.accept_and_count_messages(lookup, {"n": 1})
        codes.append(caught.value.code)
    assert codes == ["STORAGE_FULL", "CONNECTION_NOT_FOUND", "CONNECTION_DISABLED"]
    assert hub.sends == []


class SmallDisk:
    """Fake disk, of which less than a tenth is free."""

    async def read_usage(self) -> DiskUsage:
        """Return the disk usage."""
        return DiskUsage(100, 9)


async def test_service_sends_to_the_hub() -> None:
    """The service returns the number of messages after they have been sent to the hub ``telemetry``."""
    hub = Hub()
    assert (
        await TelemetryService(CURRENT, hub, require_disk_space=pass_disk_check).accept_and_count_messages(
            "pump-rig", [{"n": 1}, {"n": 2}]
        )
        == 2
    )
    assert [name for name, _ in hub.sends] == ["telemetry"]
    assert [(message.partition_key, message.body) for message in hub.messages] == [
        ("pump-rig", b'{"n":1}'),
        ("pump-rig", b'{"n":2}'),
    ]


async def test_the_key_of_a_request_determines_the_ids_of_messages_without_an_id() -> None:
    """A repeat with the same key has the same ids; without a key, with another key or other content it has new ids."""
    timed = {"timestamp": "2026-01-05T08:00:00Z", "n": 1}

    async def send_and_list_ids(key: str, *messages: dict[str, Any]) -> list[str]:
        hub = Hub()
        service = TelemetryService(CURRENT, hub, require_disk_space=pass_disk_check)
        await service.accept_and_count_messages("pump-rig", list(messages), retry_key=key)
        return [message.properties["messageId"] for message in hub.messages]

    first = await send_and_list_ids("k", {"n": 1}, {"n": 1}, {"n": 1, "messageId": "own"})
    assert await send_and_list_ids("k", {"n": 1}, {"n": 1}, {"n": 1, "messageId": "own"}) == first
    others = [
        await send_and_list_ids(key, message)
        for key, message in (
            ("", {"n": 1}),
            ("", {"n": 1}),
            ("other", {"n": 1}),
            ("k", {"n": 2}),
            ("k", timed),
            ("k", {"deviceId": "d", "n": 1}),
        )
    ]
    ids = [*first, *(each for ids in others for each in ids)]
    assert len(set(ids)) == len(ids)
    assert first[2] == "own"


@pytest.mark.parametrize(
    ("lookup", "body", "code"),
    [
        ("nothing", {}, "CONNECTION_NOT_FOUND"),
        ("nothing", [], "INVALID_REQUEST"),
        ("nothing", {"timestamp": 5}, "INVALID_REQUEST"),
        ("off", [], "INVALID_REQUEST"),
        ("off", {}, "CONNECTION_DISABLED"),
    ],
)
async def test_invalid_bodies_are_reported_before_the_connection(lookup: str, body: object, code: str) -> None:
    """An invalid body is reported before an unknown connection, and an unknown connection before a disabled one."""
    hub = Hub()
    with pytest.raises(WorkspaceError) as caught:
        await TelemetryService(CURRENT, hub, require_disk_space=pass_disk_check).accept_and_count_messages(lookup, body)
    assert caught.value.code == code
    assert hub.sends == []


NOW = datetime(2026, 1, 5, 8, tzinfo=UTC)
STRICT_RIG = build_connection("rig", source={"devices": ["rig-*"]})
DEFAULT = TelemetryPolicy()
LONG_PATTERNS = ["rig-*", *(f"press-{number}-*" for number in range(200))]


def build_message(connection: str = "", *, seconds_ahead: float = 0, device: str | None = None) -> AcceptedMessage:
    """Return a message whose timestamp is the given number of seconds in the future."""
    return AcceptedMessage(NOW + timedelta(seconds=seconds_ahead), None, device, b"{}", connection)


def test_the_policy_can_require_bound_credentials() -> None:
    """If the policy requires bound credentials, a credential is rejected unless it is bound to the connection."""
    strict = TelemetryPolicy.model_validate({"requireBoundKeys": True})
    check_may_send_to_connection(DEFAULT, None, "rig")
    check_may_send_to_connection(strict, TelemetryBinding(("rig",)), "rig")
    for binding, code in ((None, "BOUND_KEY_REQUIRED"), (TelemetryBinding(("x",)), "CONNECTION_NOT_ALLOWED")):
        with pytest.raises(WorkspaceError) as caught:
            check_may_send_to_connection(strict, binding, "rig")
        assert (caught.value.kind, caught.value.code) == (Kind.FORBIDDEN, code)


@pytest.mark.parametrize("seconds", [0, 300])
def test_timestamps_far_in_the_future_are_rejected(seconds: int) -> None:
    """A timestamp may be in the future by at most the seconds in the policy."""
    policy = TelemetryPolicy.model_validate({"maxAheadSeconds": seconds})
    check_devices_and_timestamps(
        [build_message(seconds_ahead=seconds), build_message(seconds_ahead=-1e9)], STRICT_RIG, policy, None, NOW
    )
    late = [build_message("[0]"), build_message("[1]", seconds_ahead=seconds + 0.001)]
    with pytest.raises(WorkspaceError) as caught:
        check_devices_and_timestamps(late, STRICT_RIG, policy, None, NOW)
    assert caught.value.kind is Kind.INVALID
    assert [error["field"] for error in caught.value.members["errors"]] == ["[1].timestamp"]  # type: ignore[attr-defined]


def test_the_policy_can_require_declared_devices() -> None:
    """If the policy requires declared devices, undeclared devices are rejected, unless the connection declares none."""
    strict = TelemetryPolicy.model_validate({"requireDeclaredDevices": True})
    check_devices_and_timestamps([build_message(device="other")], STRICT_RIG, DEFAULT, None, NOW)
    check_devices_and_timestamps([build_message(device="rig-1")], STRICT_RIG, strict, None, NOW)
    check_devices_and_timestamps([build_message(device="other")], build_connection("free"), strict, None, NOW)
    with pytest.raises(WorkspaceError, match="is not declared"):
        check_devices_and_timestamps([build_message(device="other")], STRICT_RIG, strict, None, NOW)


@pytest.mark.parametrize(
    ("declared", "bound", "size", "jobs"),
    [
        (["rig-*"], ["rig-?"], 20, {}),
        (["rig-*"], ["rig-?"], LARGE, {"large texts": 1}),
        (LONG_PATTERNS, None, 20, {"blocking work": 1}),
        (["rig-*"], LONG_PATTERNS, 20, {"blocking work": 1}),
        (LONG_PATTERNS, None, LARGE, {"large texts": 1}),
        (LONG_PATTERNS[:50], None, 1_000, {}),
        (LONG_PATTERNS[:50], None, LARGE - 1, {"blocking work": 1}),
    ],
)
async def test_many_device_patterns_are_tested_in_a_worker_thread(
    declared: list[str], bound: list[str] | None, size: int, jobs: dict[str, int]
) -> None:
    """A small request with a long check of devices runs in a worker thread, but not in one for large requests."""
    policies = Policies(telemetry=TelemetryPolicy.model_validate({"requireDeclaredDevices": True}))
    catalog = replace(build_catalog(build_connection("rig", source={"devices": declared})), policies=policies)
    with CountingPool(1) as large, CountingPool(1) as other:
        pools = {"large texts": large, "blocking work": other}
        runtime = Runtime(open_pool=lambda _count, name: pools[name])
        service = TelemetryService(
            build_catalog_getter(catalog), Hub(), require_disk_space=pass_disk_check, runtime=runtime
        )
        binding = TelemetryBinding(("rig",), None if bound is None else tuple(bound))
        assert (
            await service.accept_and_count_messages("rig", {"deviceId": "rig-1"}, body_bytes=size, binding=binding) == 1
        )
    assert {name: pool.jobs for name, pool in pools.items() if pool.jobs} == jobs


def test_the_error_about_an_undeclared_device_names_the_field_of_the_device_id() -> None:
    """The error names the message's device id; it names the whole message if the message has no device id."""
    strict = TelemetryPolicy.model_validate({"requireDeclaredDevices": True})
    source = {"devices": ["rig-*"], "deviceIdPointer": "/meta/device"}
    pointed = build_connection("rig", source=source)
    for connection, messages, expected in (
        (STRICT_RIG, [build_message(device="other")], ["deviceId"]),
        (STRICT_RIG, [build_message("[0]", device="rig-1"), build_message("[1]", device="other")], ["[1].deviceId"]),
        (STRICT_RIG, [build_message("line 7", device="other"), build_message("line 8")], ["line 7.deviceId", "line 8"]),
        (STRICT_RIG, [build_message()], ["body"]),
        (pointed, [build_message("[0]", device="other")], ["[0].meta.device"]),
    ):
        with pytest.raises(WorkspaceError) as caught:
            check_devices_and_timestamps(messages, connection, strict, None, NOW)
        assert [error["field"] for error in caught.value.members["errors"]] == expected  # type: ignore[attr-defined]


def test_a_message_without_a_device_has_the_lookup_as_device() -> None:
    """If a message has no device id, the credential's list of devices must contain the connection's lookup."""
    check_devices_and_timestamps([build_message()], STRICT_RIG, DEFAULT, TelemetryBinding(("rig",), ("rig",)), NOW)
    with pytest.raises(WorkspaceError) as caught:
        check_devices_and_timestamps(
            [build_message("line 7")], STRICT_RIG, DEFAULT, TelemetryBinding(("rig",), ("x",)), NOW
        )
    assert caught.value.members["field"] == "line 7"


def test_the_number_of_errors_is_limited() -> None:
    """At most 100 errors of a request are listed."""
    late = [build_message(f"[{number}]", seconds_ahead=1e6) for number in range(500)]
    with pytest.raises(WorkspaceError) as caught:
        check_devices_and_timestamps(late, STRICT_RIG, DEFAULT, None, NOW)
    assert len(caught.value.members["errors"]) == 100  # type: ignore[arg-type]


def test_invalid_messages_and_broken_rules_are_listed_together() -> None:
    """The reply lists both the messages that cannot be parsed and those that break a rule."""
    with pytest.raises(WorkspaceError) as caught:
        check_devices_and_timestamps(
            [build_message("[0]", seconds_ahead=1e6)], STRICT_RIG, DEFAULT, None, NOW, [FieldError("[1].x", "is wrong")]
        )
    errors = caught.value.members["errors"]
    assert [error["field"] for error in errors] == ["[1].x", "[0].timestamp"]  # type: ignore[attr-defined]


MESSAGES = [HubMessage(b"{}", "rig", {})]


class ClosableHub(Hub):
    """Fake hub that records whether it was closed."""

    is_closed = False

    async def close(self) -> None:
        """Record that the hub was closed."""
        self.is_closed = True


async def test_the_traced_sender_passes_on_messages_and_errors() -> None:
    """The traced sender passes on the messages, the errors and the closing of the sender that it wraps."""
    hub = ClosableHub()
    sender = InstrumentedSender(hub, "eventhubs")
    await sender.send("telemetry", MESSAGES)
    assert hub.sends == [("telemetry", MESSAGES)]
    hub.down = True
    with pytest.raises(WorkspaceError):
        await sender.send("telemetry", MESSAGES)
    await sender.close()
    assert hub.is_closed
