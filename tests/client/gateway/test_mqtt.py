"""Tests of the gateway between a real MQTT broker and a fake service."""

import asyncio
import logging
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
from oi.errors import UnreachableError
from oi.gateway.metrics import Metrics
from oi.gateway.settings import GatewaySettings
from oi.gateway.sources import SourceContext, mqtt, mqtt_connection
from oi.gateway.sources.mqtt_connection import BrokerError, MqttConnection, TakenOverError
from oi.gateway.sources.mqtt_settings import parse_mqtt_settings
from paho.mqtt.client import Client, DisconnectFlags
from paho.mqtt.enums import CallbackAPIVersion

from tests.client.gateway.broker import Broker
from tests.client.gateway.running import (
    WAIT_SECONDS,
    DroppingReceiver,
    EmptyMarkStore,
    FakeService,
    build_settings,
    encode_message,
    open_gateway,
    remove_metadata,
    wait_for_count,
)
from tests.client.gateway.scripted_broker import (
    CONNECT,
    DISCONNECT,
    PUBACK,
    UNSUBSCRIBE,
    ClientConnection,
    serve_scripts,
)

ACCEPT = b"\x20\x03\0\0\0"
"""Packet of MQTT 5 that accepts a connection."""
VERSIONS = pytest.mark.parametrize("version", ["3.1.1", "5"])


@VERSIONS
async def test_messages_reach_the_service_in_order(shared_broker: Broker, tmp_path: Path, version: str) -> None:
    """Each message arrives once and in order, with the connection and device of its topic."""
    name, service = f"order-{version[0]}", FakeService()
    async with open_gateway(build_settings(tmp_path, shared_broker.port, name, version=version), service):
        messages = [(f"{name}/press/d-{n % 2}", encode_message(value=n)) for n in range(300)]
        await asyncio.to_thread(shared_broker.publish, *messages)
        stored = await service.wait_for_messages("press", 300)
    assert [each["value"] for each in stored] == list(range(300))
    assert {each["deviceId"] for each in stored} == {"d-0", "d-1"}
    assert remove_metadata(stored[0]) == {"value": 0}


async def test_an_outage_of_the_service_loses_no_messages(shared_broker: Broker, tmp_path: Path) -> None:
    """During an outage, messages wait on disk, even through a restart of the gateway.

    Afterwards they are sent in order.
    """
    service, settings = FakeService(), build_settings(tmp_path, shared_broker.port, "outage")
    service.error = UnreachableError("down")
    for first in (0, 100):
        async with open_gateway(settings, service) as metrics:
            messages = [("outage/press/d-1", encode_message(value=n)) for n in range(first, first + 100)]
            await asyncio.to_thread(shared_broker.publish, *messages)
            await wait_for_count(metrics, "stored_messages_total", 100)
        assert service.stored == {}
    service.error = None
    async with open_gateway(settings, service):
        stored = await service.wait_for_messages("press", 200)
    assert [each["value"] for each in stored] == list(range(200))


async def test_messages_published_without_a_running_gateway_arrive(shared_broker: Broker, tmp_path: Path) -> None:
    """Messages that the broker stored while the gateway was stopped are received after its start."""
    service, settings = FakeService(), build_settings(tmp_path, shared_broker.port, "away")
    async with open_gateway(settings, service):
        pass
    await asyncio.to_thread(shared_broker.publish, ("away/press/d-1", encode_message(value=1)))
    async with open_gateway(settings, service):
        assert [each["value"] for each in await service.wait_for_messages("press", 1)] == [1]


@VERSIONS
async def test_a_message_whose_acknowledgement_was_lost_is_stored_once(
    shared_broker: Broker, tmp_path: Path, version: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the broker delivers a message again because the acknowledgement was lost, the message is stored once."""
    name, service = f"lost-{version[0]}", FakeService()
    settings = build_settings(tmp_path, shared_broker.port, name, version=version)
    with monkeypatch.context() as patch:
        patch.setattr(MqttConnection, "_schedule_acknowledgement", lambda *_: None)
        async with open_gateway(settings, service):
            await asyncio.to_thread(shared_broker.publish, *[(f"{name}/press/d-1", encode_message(value=1))] * 2)
            first = await service.wait_for_messages("press", 2)
    settings = build_settings(tmp_path, shared_broker.port, name, version=version)
    async with open_gateway(settings, service) as metrics:
        await wait_for_count(metrics, "repeated_messages_total", 2)
        # The same text is a new message when the broker did not send it before.
        await asyncio.to_thread(shared_broker.publish, (f"{name}/press/d-1", encode_message(value=1)))
        stored = await service.wait_for_messages("press", 3)
    assert stored[:2] == first
    assert len(stored) == 3


@pytest.mark.parametrize(("ping_replies", "messages"), [(0, 1), (1, 1), (2, 2)])
async def test_a_new_message_with_a_reused_packet_id_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ping_replies: int, messages: int
) -> None:
    """A broker can reuse a packet id at once, so an equal message is new if the earlier acknowledgement arrived.

    The reply to the first ping of a connection shows that all repetitions have arrived, and the reply to the second
    one that the broker has their acknowledgements.
    """
    monkeypatch.setattr(mqtt, "_FIRST_PAUSE_SECONDS", 0.01)
    monkeypatch.setattr(mqtt_connection, "_MISC_SECONDS", 0.01)
    topic, payload, is_acknowledged = "reuse/press/d-1", encode_message(value=1), asyncio.Event()

    async def lose_connection(client: ClientConnection) -> None:
        await client.accept(is_session_present=False)
        client.publish(1, topic, payload)
        await client.read_packet(PUBACK)
        for _ in range(ping_replies):
            await client.answer_ping()

    async def repeat_message(client: ClientConnection) -> None:
        await client.accept(is_session_present=True)
        client.publish(1, topic, payload, is_repeated=True)
        await client.read_packet(PUBACK)
        is_acknowledged.set()
        await client.read_packet(DISCONNECT)

    service = FakeService()
    async with (
        serve_scripts(lose_connection, repeat_message) as port,
        open_gateway(build_settings(tmp_path, port, "reuse", version="3.1.1"), service) as metrics,
    ):
        await asyncio.wait_for(is_acknowledged.wait(), WAIT_SECONDS)
        await service.wait_for_messages("press", messages)
    assert len(service.read_messages("press")) == messages
    assert metrics.get_count("repeated_messages_total") == 2 - messages


async def test_repetitions_beyond_the_receive_maximum_are_recognised(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All messages whose acknowledgements were lost are recognised, also if there are more than `maxInFlight`."""
    monkeypatch.setattr(mqtt, "_FIRST_PAUSE_SECONDS", 0.01)
    topic, is_acknowledged = "many/press/d-1", asyncio.Event()

    async def publish_messages(client: ClientConnection, *, is_repeated: bool) -> None:
        await client.accept(is_session_present=is_repeated)
        for number in range(1, 6):
            client.publish(number, topic, encode_message(value=number), is_repeated=is_repeated)
        for _ in range(5):
            await client.read_packet(PUBACK)

    async def repeat_messages(client: ClientConnection) -> None:
        await publish_messages(client, is_repeated=True)
        is_acknowledged.set()
        await client.read_packet(DISCONNECT)

    service = FakeService()
    async with (
        serve_scripts(partial(publish_messages, is_repeated=False), repeat_messages) as port,
        open_gateway(build_settings(tmp_path, port, "many", version="3.1.1", maxInFlight=2), service) as metrics,
    ):
        await asyncio.wait_for(is_acknowledged.wait(), WAIT_SECONDS)
        stored = await service.wait_for_messages("press", 5)
    assert [each["value"] for each in stored] == [1, 2, 3, 4, 5]
    assert metrics.get_count("repeated_messages_total") == 5


async def test_invalid_messages_are_acknowledged_and_stored_separately(shared_broker: Broker, tmp_path: Path) -> None:
    """An invalid message is acknowledged and stored separately, and valid messages are still sent."""
    service, settings = FakeService(), build_settings(tmp_path, shared_broker.port, "bad")
    bad = [
        ("bad/press/d-1", encode_message(text="x" * 300_000)),
        ("bad/press/d-1", b"not json"),
        ("bad/press/d-1", b"[1]"),
        ("bad/no lookup/d-1", encode_message(value=1)),
    ]
    async with open_gateway(settings, service) as metrics:
        await asyncio.to_thread(shared_broker.publish, *bad, ("bad/press/d-1", encode_message(value=1)))
        assert len(await service.wait_for_messages("press", 1)) == 1
        counted = {
            label: metrics.get_count("rejected_messages_total", f'reason="{label}"')
            for label in ("too_large", "not_json", "no_route")
        }
    assert counted == {"too_large": 1, "not_json": 2, "no_route": 1}


async def test_retained_messages_are_ignored(shared_broker: Broker, tmp_path: Path) -> None:
    """Retained messages are ignored, because their values are old and have no time."""
    await asyncio.to_thread(shared_broker.publish, ("retained/press/d-1", encode_message(value=0)), retain=True)
    for version in ("3.1.1", "5"):
        service = FakeService()
        settings = build_settings(tmp_path, shared_broker.port, "retained", version=version)
        async with open_gateway(settings, service):
            await asyncio.to_thread(shared_broker.publish, ("retained/press/d-1", encode_message(value=1)))
            assert [each["value"] for each in await service.wait_for_messages("press", 1)] == [1]


async def test_gateways_with_a_shared_subscription_share_the_messages(shared_broker: Broker, tmp_path: Path) -> None:
    """With a shared subscription, each message goes to one gateway of the group."""
    service = FakeService()
    first = build_settings(tmp_path, shared_broker.port, "share", sharedGroup="plant")
    (tmp_path / "second").mkdir()
    second = build_settings(tmp_path / "second", shared_broker.port, "share", sharedGroup="plant", clientId="share-2")
    async with open_gateway(first, service) as one, open_gateway(second, service) as two:
        messages = [("share/press/d-1", encode_message(value=n)) for n in range(20)]
        await asyncio.to_thread(shared_broker.publish, *messages)
        stored = await service.wait_for_messages("press", 20)
        received = [each.get_count("received_messages_total") for each in (one, two)]
    assert sorted(each["value"] for each in stored) == list(range(20))
    assert sum(received) == 20
    assert min(received) > 0


@VERSIONS
async def test_changed_settings_replace_the_subscriptions_of_a_session(
    shared_broker: Broker, tmp_path: Path, version: str
) -> None:
    """After a gateway has joined a group, its session delivers each message once."""
    name, service = f"joined-{version[0]}", FakeService()
    async with open_gateway(build_settings(tmp_path, shared_broker.port, name, version=version), service):
        pass
    settings = build_settings(tmp_path, shared_broker.port, name, version=version, sharedGroup="plant")
    async with open_gateway(settings, service):
        messages = [(f"{name}/press/d-1", encode_message(value=n)) for n in range(3)]
        await asyncio.to_thread(shared_broker.publish, *messages)
        stored = await service.wait_for_messages("press", 3)
    assert [each["value"] for each in stored] == [0, 1, 2]


async def test_a_subscription_of_earlier_settings_is_ended_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway subscribes anew, and ends earlier subscriptions in each connection until the broker confirms this."""
    monkeypatch.setattr(mqtt, "_FIRST_PAUSE_SECONDS", 0.01)
    ended: list[str] = []

    async def accept_client(client: ClientConnection) -> None:
        await client.accept(is_session_present=bool(ended))
        await client.read_packet(DISCONNECT)

    async def lose_connection(client: ClientConnection) -> None:
        await client.accept(is_session_present=True)
        await client.read_packet(UNSUBSCRIBE)

    async def end_subscription(client: ClientConnection) -> None:
        await client.accept(is_session_present=True)
        ended.append(await client.end_subscription())
        await client.read_packet(DISCONNECT)

    async with serve_scripts(accept_client, lose_connection, end_subscription, accept_client) as port:
        for group in (None, "plant", "plant"):
            source = {} if group is None else {"sharedGroup": group}
            settings = build_settings(tmp_path, port, "joined", version="3.1.1", **source)
            async with open_gateway(settings, FakeService()):
                pass
    assert ended == ["joined/+/+"]


async def test_repeated_disconnects_are_reported_as_a_used_client_id(
    shared_broker: Broker, tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the connection is lost repeatedly, the log says that another client may have the same client id."""
    monkeypatch.setattr(mqtt, "_FIRST_PAUSE_SECONDS", 0.01)
    caplog.set_level(logging.ERROR)
    async with open_gateway(build_settings(tmp_path, shared_broker.port, "twice"), FakeService()) as metrics:
        others = [Client(CallbackAPIVersion.VERSION2, client_id="twice") for _ in range(3)]
        for number, other in enumerate(others, 1):
            await wait_for_count(metrics, "connections_total", number)
            other.connect("127.0.0.1", shared_broker.port)
        await wait_for_count(metrics, "connections_total", 4)
        for other in others:
            other.disconnect()
    assert "check that no other client uses the client id `twice`" in caplog.text


async def test_the_mqtt_reason_of_a_used_client_id_is_reported(shared_broker: Broker, tmp_path: Path) -> None:
    """The MQTT reason code 0x8E is reported as a client id that another client uses."""
    settings = build_settings(tmp_path, shared_broker.port, "reason")
    context = SourceContext([], DroppingReceiver(), EmptyMarkStore(), Metrics())
    connection = MqttConnection(parse_mqtt_settings(settings.source), context)
    await connection.open_and_check_for_stored_session()
    packet = SimpleNamespace(_in_packet={"packet": bytes([0x8E, 0])})
    connection._handle_disconnect(packet, None, DisconnectFlags(is_disconnect_packet_from_server=True), None, None)  # type: ignore[arg-type]
    with pytest.raises(TakenOverError, match="`reason`; give each gateway a `source"):
        await connection.wait_until_closed()
    connection.close()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n" + b"x" * 100, "the first packet is not CONNACK"),
        (b"220 mail.example ESMTP ready" + b"x" * 100, "the first packet is not CONNACK"),
        (b"\x30" + b"\xff" * 5, "the length of a packet has over 4 bytes"),
        (b"\x20\x03\0\0\xff", "a packet of type 2 cannot be parsed"),
        (ACCEPT + b"\x32\x01\0", "a packet of type 3 cannot be parsed"),
        (ACCEPT + b"\xf0\0", "a packet of type 15 cannot be parsed"),
    ],
    ids=["HTTP", "SMTP", "long length", "invalid CONNACK", "invalid PUBLISH", "unknown packet"],
)
async def test_an_address_that_is_not_mqtt_is_one_error(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, reply: bytes, error: str
) -> None:
    """If the address of the broker is that of another protocol, the connection fails once, with an error about it."""

    async def send_reply(client: ClientConnection) -> None:
        await client.read_packet(CONNECT)
        client.send_bytes(reply)

    receiver = DroppingReceiver()
    async with serve_scripts(send_reply) as port:
        with pytest.raises(BrokerError, match=rf"not valid MQTT \({error}\); check `source.host`"):
            await run_connection(build_settings(tmp_path, port, "http"), receiver)
    assert (receiver.taken, caplog.records) == ([], [])


async def test_an_error_of_the_gateway_is_not_reported_as_invalid_mqtt(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the gateway fails to process a message, the log contains the traceback, and the connection ends."""

    async def publish_message(client: ClientConnection) -> None:
        await client.read_packet(CONNECT)
        client.send_bytes(b"\x20\x02\0\0")
        client.publish(1, "fails/press/d-1", b"{}")

    # None cannot be called.
    monkeypatch.setattr(DroppingReceiver, "accept_delivery", None)
    async with serve_scripts(publish_message) as port:
        with pytest.raises(BrokerError, match=r"The connection to the broker \S+ was lost"):
            await run_connection(build_settings(tmp_path, port, "fails", version="3.1.1"), DroppingReceiver())
    assert "could not be processed" in caplog.text
    assert "Traceback" in caplog.text


async def run_connection(settings: GatewaySettings, receiver: DroppingReceiver) -> None:
    """Connect to the broker, and receive messages until the connection ends."""
    context = SourceContext([], receiver, EmptyMarkStore(), Metrics())
    connection = MqttConnection(parse_mqtt_settings(settings.source), context)
    try:
        await connection.open_and_check_for_stored_session()
        await connection.wait_until_closed()
    finally:
        connection.close()


async def test_a_restart_of_the_broker_loses_no_messages(
    tmp_path: Path, shared_broker: Broker, caplog: pytest.LogCaptureFixture
) -> None:
    """After a restart of the broker, the gateway reconnects and receives all messages once."""
    service, broker = FakeService(), Broker(tmp_path).start()
    try:
        async with open_gateway(build_settings(tmp_path, broker.port, "again"), service) as metrics:
            await asyncio.to_thread(broker.publish, ("again/press/d-1", encode_message(value=1)))
            await service.wait_for_messages("press", 1)
            await asyncio.to_thread(broker.stop)
            await asyncio.to_thread(broker.start)
            await asyncio.to_thread(broker.publish, ("again/press/d-1", encode_message(value=2)))
            stored = await service.wait_for_messages("press", 2)
            await wait_for_count(metrics, "connections_total", 2)
    finally:
        broker.stop()
    assert [each["value"] for each in stored] == [1, 2]
    assert "was lost" in caplog.text or "cannot be reached" in caplog.text
