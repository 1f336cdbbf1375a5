"""MQTT client that extends paho-mqtt, to read thousands of packets per second.

paho reads each packet with three system calls, and builds an object with all properties of version 5 for each message.
With thousands of messages a second, a gateway would spend most of its time on this work. This client reads large parts
from the socket, and parses only the fields that the gateway uses. It uses internal names of paho-mqtt; therefore the
allowed versions of paho-mqtt are limited, and the tests with a broker cover all of this code.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from paho.mqtt.client import Client
from paho.mqtt.enums import MessageType, MQTTErrorCode, MQTTProtocolVersion

_READ_BYTES = 64 * 1024
_PUBACK = bytes([0x40, 2])
_PACKET_TYPE = 0xF0
_DUP, _QOS, _RETAIN = 0x08, 0x06, 0x01
_MAX_LENGTH_BYTES = 4
_LOG = logging.getLogger(__name__)


@dataclass(slots=True)
class Publication:
    """Message that the broker sent (MQTT packet PUBLISH).

    Attributes:
        topic: topic of the message; bytes that are not UTF-8 are replaced.
        payload: bytes of the message.
        qos: quality of service, 0 to 2.
        packet_id: id of the packet; 0 if the quality of service is 0.
        is_repeated: whether the broker may have sent the message before (flag DUP).
        is_retained: whether the message is the stored last value of its topic, and not new.
    """

    topic: str
    payload: bytes
    qos: int
    packet_id: int
    is_repeated: bool
    is_retained: bool


class MqttClient(Client):
    """MQTT client that passes messages to ``on_publication``, and calls ``on_ping_reply`` when a ping is answered.

    Attributes:
        packet_error: error of the last received packet, if it was invalid; else empty. The connection is then closed.
    """

    on_publication: Callable[[Publication], None]
    on_ping_reply: Callable[[], None]
    packet_error = ""
    _buffer = b""
    _position = 0

    @property
    def has_buffered_bytes(self) -> bool:
        """True if received bytes are waiting to be parsed; the event loop does not report such bytes as readable."""
        return self._position < len(self._buffer)

    @property
    def is_ping_running(self) -> bool:
        """True if the broker has not replied to the last ping yet."""
        return bool(self._ping_t)

    def ping(self) -> None:
        """Send a ping to the broker, after all packets that wait to be sent."""
        self._send_pingreq()

    def acknowledge_all(self, packet_ids: Sequence[int]) -> None:
        """Acknowledge several messages of quality of service 1 with one write to the socket."""
        packets = b"".join([_PUBACK + packet_id.to_bytes(2, "big") for packet_id in packet_ids])
        self._packet_queue(MessageType.PUBACK, packets, 0, 0)

    def _sock_recv(self, bufsize: int) -> bytes:
        """Return received bytes from the buffer of this client; fill an empty buffer from the socket (paho method)."""
        if not self.has_buffered_bytes:
            self._buffer, self._position = super()._sock_recv(_READ_BYTES), 0
        start = self._position
        self._position = min(start + bufsize, len(self._buffer))
        return self._buffer[start : self._position]

    def _packet_handle(self) -> MQTTErrorCode:
        """Process a received packet (paho method); for an invalid packet, set ``packet_error`` and return an error."""
        kind = self._in_packet["command"] & _PACKET_TYPE
        # The bytes of another protocol, such as HTTP, can look like any packet.
        if kind != MessageType.CONNACK and not self.is_connected():
            self.packet_error = "the first packet is not CONNACK"
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        try:
            result = super()._packet_handle()
        except Exception:  # noqa: BLE001  paho raises errors of many types for packets that it cannot parse
            self.packet_error = _explain_invalid_packet(kind)
            return MQTTErrorCode.MQTT_ERR_PROTOCOL
        # A CONNACK without an exception can be a valid refusal.
        if result is MQTTErrorCode.MQTT_ERR_PROTOCOL and kind != MessageType.CONNACK:
            self.packet_error = _explain_invalid_packet(kind)
        return result

    def _loop_rc_handle(self, rc: MQTTErrorCode) -> MQTTErrorCode:
        """Close the connection after an error (paho method); set ``packet_error`` for an invalid packet length."""
        if len(self._in_packet["remaining_count"]) > _MAX_LENGTH_BYTES:
            self.packet_error = f"the length of a packet has over {_MAX_LENGTH_BYTES} bytes"
        return super()._loop_rc_handle(rc)

    def _handle_pingresp(self) -> MQTTErrorCode:
        """Process the broker's reply to a ping (paho method), and call ``on_ping_reply``."""
        result = super()._handle_pingresp()
        return result or self._call_handler(self.on_ping_reply)

    def _handle_publish(self) -> MQTTErrorCode:
        """Parse a received message, and pass it to ``on_publication``; this replaces paho's method."""
        header, packet = self._in_packet["command"], bytes(self._in_packet["packet"])
        publication = _parse_publish_packet(header, packet, has_properties=self._protocol == MQTTProtocolVersion.MQTTv5)
        return self._call_handler(self.on_publication, publication)

    def _call_handler(self, handler: Callable[..., None], *arguments: Any) -> MQTTErrorCode:
        """Call a function of the gateway; after an error, log it and end the connection.

        The broker then delivers the message again.
        """
        try:
            handler(*arguments)
        except Exception:  # noqa: BLE001  an error must not reach paho, which would process the packet again
            _LOG.exception("A packet of the MQTT broker could not be processed; connecting again.")
            return MQTTErrorCode.MQTT_ERR_UNKNOWN
        return MQTTErrorCode.MQTT_ERR_SUCCESS


def _explain_invalid_packet(kind: int) -> str:
    return f"a packet of type {kind >> 4} cannot be parsed"


def _parse_publish_packet(header_byte: int, packet: bytes, *, has_properties: bool) -> Publication:
    """Parse a PUBLISH packet of MQTT.

    Raises:
        IndexError: the packet is too short.
    """
    end = 2 + (packet[0] << 8 | packet[1])
    topic = packet[2:end].decode("utf-8", "replace")
    qos, packet_id = (header_byte & _QOS) >> 1, 0
    if qos:
        packet_id = packet[end] << 8 | packet[end + 1]
        end += 2
    if has_properties:
        end = _find_end_of_properties(packet, end)
    return Publication(topic, packet[end:], qos, packet_id, bool(header_byte & _DUP), bool(header_byte & _RETAIN))


def _find_end_of_properties(packet: bytes, start: int) -> int:
    """Return the position of the first byte after the properties of an MQTT 5 packet."""
    size = 0
    for index in range(4):
        byte = packet[start + index]
        size |= (byte & 0x7F) << 7 * index
        if byte < 0x80:  # noqa: PLR2004  the highest bit says that another byte follows
            return start + index + 1 + size
    raise IndexError
