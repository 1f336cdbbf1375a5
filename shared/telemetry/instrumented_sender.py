"""Event sender decorator that records OpenTelemetry spans.

This module is separate from the adapters, because it traces every adapter in the same way.
"""

from collections.abc import Sequence
from typing import Protocol

from shared.observability.tracing import open_call_span
from shared.telemetry.models import HubMessage
from shared.telemetry.ports import EventSender


class ClosableSender(EventSender, Protocol):
    """Event sender with connections to close."""

    async def close(self) -> None:
        """Close the network connections of the sender."""
        ...


class InstrumentedSender:
    """Event sender that passes each call to another sender, and records a trace span with the number of messages.

    Args:
        sender: wrapped sender.
        system: name of the messaging system in the OpenTelemetry conventions.
    """

    def __init__(self, sender: ClosableSender, system: str) -> None:
        self._sender = sender
        self._system = system

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages with the wrapped sender, inside a trace span."""
        attributes: dict[str, str | int] = {
            "messaging.system": self._system,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": hub,
            "messaging.batch.message_count": len(messages),
        }
        with open_call_span(f"send {hub}", attributes, kind="PRODUCER"):
            await self._sender.send(hub, messages)

    async def close(self) -> None:
        """Close the connections of the sender."""
        await self._sender.close()
