"""Sending to hubs, told to traces."""

from collections.abc import Sequence
from typing import Protocol

from shared.observability.tracing import call_span
from shared.telemetry.models import HubMessage
from shared.telemetry.ports import EventSender


class ClosableSender(EventSender, Protocol):
    """A sender that holds connections."""

    async def close(self) -> None:
        """Close them."""
        ...


class InstrumentedSender:
    """The EventSender port over another sender; each send is a span with the number of its messages.

    Args:
        sender: does the work.
        system: what it sends to, as the OpenTelemetry conventions for messaging name it.
    """

    def __init__(self, sender: ClosableSender, system: str) -> None:
        self._sender = sender
        self._system = system

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages; arguments and errors are the sender's."""
        told: dict[str, str | int] = {
            "messaging.system": self._system,
            "messaging.operation.name": "send",
            "messaging.operation.type": "send",
            "messaging.destination.name": hub,
            "messaging.batch.message_count": len(messages),
        }
        with call_span(f"send {hub}", told, kind="PRODUCER"):
            await self._sender.send(hub, messages)

    async def close(self) -> None:
        """Close the sender's connections."""
        await self._sender.close()
