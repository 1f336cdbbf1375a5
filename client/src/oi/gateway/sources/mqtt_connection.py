"""One connection to an MQTT broker; the event loop calls it when its socket is readable or writable."""

import asyncio
import logging
import socket
import ssl
from collections.abc import Sequence
from functools import partial
from typing import Any, TypeVar

from paho.mqtt.client import Client, ConnectFlags, DisconnectFlags
from paho.mqtt.enums import CallbackAPIVersion, MQTTErrorCode, MQTTProtocolVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from oi.gateway.deliveries import Delivery
from oi.gateway.sources import SourceContext
from oi.gateway.sources.mqtt_client import MqttClient, Publication
from oi.gateway.sources.mqtt_marks import Redeliveries, build_delivery_mark
from oi.gateway.sources.mqtt_settings import MqttSettings

_REPLY_SECONDS = 15.0
_MISC_SECONDS = 1.0
_PACKETS_AT_ONCE = 100
"""Number of packets after which the event loop serves other tasks."""
_SESSION_TAKEN_OVER = 0x8E
_LOG = logging.getLogger(__name__)
_Reply = TypeVar("_Reply")


class BrokerError(Exception):
    """The connection to the MQTT broker failed or was lost; the message states the cause."""


class TakenOverError(BrokerError):
    """The broker closed the connection because another client connected with the same client id."""


class MqttConnection:
    """Connection to an MQTT broker; passes messages to the receiver, which acknowledges them when they are on disk.

    Args:
        settings: settings of the broker, the session and the credentials.
        context: receiver of the messages, and metrics.
    """

    def __init__(self, settings: MqttSettings, context: SourceContext) -> None:
        self._settings = settings
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._client = self._create_client()
        self._socket: Any = None
        self._connected: asyncio.Future[bool] = self._loop.create_future()
        self._subscribed: asyncio.Future[list[ReasonCode]] = self._loop.create_future()
        self._unsubscribed: asyncio.Future[list[ReasonCode]] = self._loop.create_future()
        self._closed: asyncio.Future[BrokerError] = self._loop.create_future()
        self._redeliveries = Redeliveries()
        self._messages = 0
        self._is_paused = False
        self._acknowledged: list[int] = []
        self._pinged_position: int | None = None
        self._forgotten_position = 0
        self._has_received_repeats = False

    async def open_and_check_for_stored_session(self) -> bool:
        """Connect to the broker; return whether the broker has stored a session for this client id.

        Raises:
            BrokerError: the broker cannot be reached or rejects the connection.
            SettingsError: a file with credentials cannot be read.
        """
        settings = self._settings
        self._client.username_pw_set(settings.username, settings.read_password_if_configured())
        if settings.tls is not None:
            self._client.tls_set_context(settings.tls.build_ssl_context())
        try:
            await asyncio.to_thread(self._connect_blocking)
        except (OSError, ValueError) as error:
            raise BrokerError(_explain_connection_failure(error, settings.broker_address)) from None
        self._register_socket_with_event_loop()
        return await self._wait_for_reply(self._connected, "accept the connection")

    def set_redeliveries(self, redeliveries: Redeliveries) -> None:
        """Set the deliveries that the broker can repeat; call this before the first message is read."""
        self._redeliveries = redeliveries

    async def subscribe(self, filters: Sequence[str]) -> None:
        """Subscribe to topic filters, in the form that :meth:`MqttSettings.build_subscription_filter` returns.

        Raises:
            BrokerError: the broker rejects one of the filters.
        """
        topics: list[tuple[str, Any]] = [(each, self._settings.qos) for each in filters]
        if self._settings.version == "5":
            # Retained messages are old values without a time of their own.
            do_not_send = SubscribeOptions.RETAIN_DO_NOT_SEND
            topics = [(each, SubscribeOptions(qos=qos, retainHandling=do_not_send)) for each, qos in topics]
        self._client.subscribe(topics)
        codes = await self._wait_for_reply(self._subscribed, "confirm the subscriptions")
        for (topic, _), code in zip(topics, codes, strict=False):
            if code.is_failure:
                raise BrokerError(f"The broker refuses the subscription to {topic}: {code}.")

    async def try_unsubscribe(self, filters: Sequence[str]) -> bool:
        """End the subscriptions to filters; return whether the broker has ended all of them.

        Raises:
            BrokerError: the connection is lost, or the broker does not reply.
        """
        self._client.unsubscribe(list(filters))
        codes = await self._wait_for_reply(self._unsubscribed, "confirm the end of subscriptions")
        # The reply of version 3.1.1 has no codes.
        refused = [f"{each} ({code})" for each, code in zip(filters, codes, strict=False) if code.is_failure]
        if refused:
            _LOG.warning(
                "The broker does not end the subscriptions to %s of earlier settings, so messages can arrive twice.",
                ", ".join(refused),
            )
        return not refused

    async def wait_until_closed(self) -> None:
        """Wait until the connection to the broker is lost.

        Raises:
            BrokerError: always, with the reason for the loss.
        """
        while True:
            done, _ = await asyncio.wait([self._closed], timeout=_MISC_SECONDS)
            if done:
                raise self._closed.result()
            self._client.loop_misc()
            self._ping_after_acknowledgements()

    def close(self) -> None:
        """Close the connection; the broker stores new messages until the gateway reconnects."""
        if not self._closed.done():
            self._client.disconnect()
            self._client.loop_write()
        self._remove_socket_from_event_loop()
        if not self._closed.done():
            self._closed.set_result(BrokerError("The connection to the broker was closed."))

    def _create_client(self) -> MqttClient:
        is_v5, settings = self._settings.version == "5", self._settings
        client = MqttClient(
            CallbackAPIVersion.VERSION2,
            client_id=settings.client_id,
            clean_session=None if is_v5 else self._context.is_check,
            protocol=MQTTProtocolVersion.MQTTv5 if is_v5 else MQTTProtocolVersion.MQTTv311,
            reconnect_on_failure=False,
            manual_ack=True,
        )
        client.on_connect = self._handle_connect
        client.on_disconnect = self._handle_disconnect
        client.on_subscribe = self._handle_subscribe
        client.on_unsubscribe = self._handle_unsubscribe
        client.on_publication = self._handle_publication
        client.on_ping_reply = self._handle_ping_reply
        return client

    def _connect_blocking(self) -> None:
        settings = self._settings
        if settings.version != "5":
            self._client.connect(settings.host, settings.port, settings.keep_alive_seconds)
            return
        properties: Any = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        properties.SessionExpiryInterval = settings.session_seconds
        properties.ReceiveMaximum = settings.max_in_flight
        self._client.connect(
            settings.host,
            settings.port,
            settings.keep_alive_seconds,
            clean_start=self._context.is_check,
            properties=properties,
        )

    def _register_socket_with_event_loop(self) -> None:
        self._socket = self._client.socket()
        if self._socket is None:
            hint = " Check the client certificate." if self._settings.tls is not None else ""
            raise BrokerError(f"The broker {self._settings.broker_address} closed the connection at once.{hint}")
        self._client.on_socket_close = self._handle_socket_close
        self._client.on_socket_register_write = self._start_watching_writability
        self._client.on_socket_unregister_write = self._stop_watching_writability
        self._loop.add_reader(self._socket, self._read_packets)
        if self._client.want_write():
            self._loop.add_writer(self._socket, self._client.loop_write)
        # TLS may have decrypted bytes already, which the selector does not see.
        self._loop.call_soon(self._read_packets)

    def _start_watching_writability(self, _client: Client, _data: Any, sock: Any) -> None:
        self._loop.add_writer(sock, self._client.loop_write)

    def _stop_watching_writability(self, _client: Client, _data: Any, sock: Any) -> None:
        self._loop.remove_writer(sock)

    def _remove_socket_from_event_loop(self) -> None:
        if self._socket is not None:
            self._loop.remove_reader(self._socket)
            self._loop.remove_writer(self._socket)
            self._socket = None

    def _read_packets(self) -> None:
        """Read and process the MQTT packets that have arrived."""
        for _ in range(_PACKETS_AT_ONCE):
            if self._socket is None or self._is_paused:
                return
            before = self._messages
            if self._client.loop_read() is not MQTTErrorCode.MQTT_ERR_SUCCESS or self._messages == before:
                break
        if self._socket is None:
            return
        if self._context.receiver.is_full:
            # The broker then stops sending, since the buffers of the connection fill up.
            self._is_paused = True
            self._loop.remove_reader(self._socket)
            self._context.receiver.call_when_not_full(self._resume_reading)
        elif self._client.has_buffered_bytes or (isinstance(self._socket, ssl.SSLSocket) and self._socket.pending()):
            # The selector sees only what is still in the socket.
            self._loop.call_soon(self._read_packets)

    def _resume_reading(self) -> None:
        self._is_paused = False
        if self._socket is not None:
            self._loop.add_reader(self._socket, self._read_packets)
            self._read_packets()

    def _handle_publication(self, publication: Publication) -> None:
        self._messages += 1
        metrics, receiver = self._context.metrics, self._context.receiver
        topic, payload, packet_id = publication.topic, publication.payload, publication.packet_id
        if publication.is_retained:
            metrics.increase_counter("ignored_messages_total")
            self._client.ack(packet_id, publication.qos)
        elif publication.qos == 0:
            receiver.accept_delivery(Delivery(topic, payload))
        else:
            mark = build_delivery_mark(packet_id, topic, payload)
            if publication.is_repeated and self._redeliveries.remove_if_known(mark):
                metrics.increase_counter("repeated_messages_total")
                self._client.ack(packet_id, publication.qos)
                return
            receiver.accept_delivery(Delivery(topic, payload, mark, partial(self._schedule_acknowledgement, packet_id)))

    def _schedule_acknowledgement(self, packet_id: int) -> None:
        if not self._acknowledged:
            self._loop.call_soon(self._send_acknowledgements)
        self._acknowledged.append(packet_id)

    def _send_acknowledgements(self) -> None:
        taken, self._acknowledged = self._acknowledged, []
        # In a later connection the same packet id may mean another message, which is not on disk.
        if self._socket is not None:
            self._client.acknowledge_all(taken)

    def _ping_after_acknowledgements(self) -> None:
        """Send a ping after new acknowledgements; its reply shows that the broker has received them."""
        position = self._context.marks.acknowledged_position
        is_ready = self._socket is not None and not self._is_paused and not self._client.is_ping_running
        if is_ready and position != self._forgotten_position:
            self._send_acknowledgements()
            self._pinged_position = position
            self._client.ping()

    def _handle_ping_reply(self) -> None:
        """Delete the marks of the deliveries that were acknowledged before the ping.

        The broker cannot repeat these deliveries any more. It may reuse their packet ids at once; with the marks, an
        equal new message would look like a repetition.
        """
        position, self._pinged_position = self._pinged_position, None
        if position is None:
            return
        if not self._has_received_repeats:
            # The repetitions for this connection came before the reply; only the next ping follows their
            # acknowledgements.
            self._has_received_repeats = True
            return
        self._forgotten_position = position
        self._context.marks.forget_marks_up_to(position)

    def _handle_connect(
        self, _client: Client, _data: Any, flags: ConnectFlags, code: ReasonCode, _properties: Any
    ) -> None:
        if self._connected.done():
            return
        if code.is_failure:
            self._connected.set_exception(
                BrokerError(f"The broker {self._settings.broker_address} refuses the connection: {code}.")
            )
        else:
            self._connected.set_result(flags.session_present)

    def _handle_subscribe(
        self, _client: Client, _data: Any, _packet_id: int, codes: list[ReasonCode], _properties: Any
    ) -> None:
        if not self._subscribed.done():
            self._subscribed.set_result(codes)

    def _handle_unsubscribe(
        self, _client: Client, _data: Any, _packet_id: int, codes: list[ReasonCode], _properties: Any
    ) -> None:
        if not self._unsubscribed.done():
            self._unsubscribed.set_result(codes)

    def _handle_disconnect(
        self, client: Client, _data: Any, flags: DisconnectFlags, _code: ReasonCode, _properties: Any
    ) -> None:
        error = BrokerError(f"The connection to the broker {self._settings.broker_address} was lost.")
        if flags.is_disconnect_packet_from_server:
            # paho-mqtt 2.1 does not parse a reason without properties.
            packet = client._in_packet["packet"]  # noqa: SLF001
            reason = packet[0] if packet else 0
            error = BrokerError(
                f"The broker {self._settings.broker_address} closed the connection with reason code {reason:#04x}."
            )
            if reason == _SESSION_TAKEN_OVER:
                error = TakenOverError(
                    f"Another client connected to the broker {self._settings.broker_address} with the client id "
                    f"`{self._settings.client_id}`; give each gateway a `source.clientId` of its own."
                )
        elif self._client.packet_error:
            error = BrokerError(
                f"The broker {self._settings.broker_address} sent a packet that is not valid MQTT "
                f"({self._client.packet_error}); check `source.host` and `source.port`."
            )
        if not self._closed.done():
            self._closed.set_result(error)

    def _handle_socket_close(self, _client: Client, _data: Any, _sock: Any) -> None:
        self._remove_socket_from_event_loop()

    async def _wait_for_reply(self, future: "asyncio.Future[_Reply]", expected_action: str) -> _Reply:
        futures: list[asyncio.Future[Any]] = [future, self._closed]
        await asyncio.wait(futures, timeout=_REPLY_SECONDS, return_when=asyncio.FIRST_COMPLETED)
        if future.done():
            return future.result()
        if self._closed.done():
            raise self._closed.result()
        raise BrokerError(
            f"The broker {self._settings.broker_address} did not {expected_action} within {_REPLY_SECONDS:.0f} seconds."
        )


def _explain_connection_failure(error: OSError | ValueError, broker_address: str) -> str:
    """Return a sentence that explains why the connection to the broker could not be opened."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"The certificate of the broker {broker_address} is not valid: {error.verify_message}."
    if isinstance(error, ssl.SSLError):
        reason = error.reason or error
        return f"The broker {broker_address} refuses the TLS connection: {reason}. Check the client certificate."
    if isinstance(error, socket.gaierror):
        return f"The host of the broker {broker_address} is unknown: {error.strerror}."
    return f"The broker {broker_address} cannot be reached: {error}."
