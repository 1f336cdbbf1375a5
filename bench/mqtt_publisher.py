"""Publisher of MQTT messages; it builds all packets before the measurement, so that it needs little processor time."""

import socket
import time
from collections.abc import Sequence

WINDOW = 500
"""Maximum number of messages that the broker has not acknowledged."""
_PUBACK_BYTES = 4
_START_SECONDS = 20
_CONNECT = bytes([0x10, 17, 0, 4]) + b"MQTT" + bytes([4, 2, 0, 60, 0, 5]) + b"plant"


def publish_messages(port: int, topic: str, payloads: Sequence[bytes], messages_per_second: int) -> None:
    """Publish messages with quality of service 1; return when the broker has acknowledged all of them.

    Args:
        port: port of the broker on 127.0.0.1.
        topic: topic of all messages.
        payloads: texts of the messages.
        messages_per_second: rate of the messages; 0 to send as fast as the broker accepts them.
    """
    packets = [_build_publish_packet(topic, payload, number % 65_535 + 1) for number, payload in enumerate(payloads)]
    with _connect_to_broker(port) as connection:
        connection.sendall(_CONNECT)
        _read_and_discard_bytes(connection, 4)
        started, acknowledged = time.perf_counter(), 0
        step = max(1, min(WINDOW // 2, messages_per_second // 50 if messages_per_second else WINDOW // 2))
        for first in range(0, len(packets), step):
            if messages_per_second and (ahead := first / messages_per_second - (time.perf_counter() - started)) > 0:
                time.sleep(ahead)
            connection.sendall(b"".join(packets[first : first + step]))
            missing = min(first + step, len(packets)) - WINDOW - acknowledged
            if missing > 0:
                _read_and_discard_bytes(connection, missing * _PUBACK_BYTES)
                acknowledged += missing
        _read_and_discard_bytes(connection, (len(packets) - acknowledged) * _PUBACK_BYTES)


def _build_publish_packet(topic: str, payload: bytes, packet_id: int) -> bytes:
    name = topic.encode()
    body = len(name).to_bytes(2, "big") + name + packet_id.to_bytes(2, "big") + payload
    size, encoded = len(body), bytearray()
    while True:
        size, rest = divmod(size, 128)
        encoded.append(rest | (0x80 if size else 0))
        if not size:
            return b"\x32" + bytes(encoded) + body


def _connect_to_broker(port: int) -> socket.socket:
    deadline = time.monotonic() + _START_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _read_and_discard_bytes(connection: socket.socket, byte_count: int) -> None:
    """Read and discard ``byte_count`` bytes from the broker.

    Raises:
        ConnectionError: if the broker closes the connection.
    """
    while byte_count > 0:
        part = connection.recv(min(byte_count, 65_536))
        if not part:
            raise ConnectionError("the MQTT broker closed the connection before it had acknowledged all messages")
        byte_count -= len(part)
