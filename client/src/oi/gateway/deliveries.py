"""Received messages that are not yet in the spool (file of messages that wait to be sent)."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class Delivery:
    """Message that the gateway received from a source, such as an MQTT broker.

    Attributes:
        address: address of the message, such as an MQTT topic.
        payload: bytes of the message.
        mark: bytes that identify the delivery, so that the source recognises a second delivery; empty if not needed.
        acknowledge: function that confirms the delivery, called when the message is on disk; None if not needed.
    """

    address: str
    payload: bytes
    mark: bytes = b""
    acknowledge: Callable[[], None] | None = None
