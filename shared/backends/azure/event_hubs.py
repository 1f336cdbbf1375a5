"""Sends to Azure Event Hubs, with the partition key that keeps a connection's order.

Tested with the SDK's own batches and errors, and a producer in place of the connection; nothing here has been run
against an Event Hubs namespace: neither the sign-in with a managed identity, nor the retries within the SDK, nor the
conditions under which the service says that it is busy.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Protocol, cast

from shared.backends.azure.identity import app_identity
from shared.errors import Kind, WorkspaceError
from shared.observability.logs import fields, get_logger
from shared.telemetry.models import HubMessage

SEND_TIMEOUT_SECONDS = 20.0
SEND_ALL_SECONDS = 60.0
SDK_RETRIES = 3
RETRY_AFTER_SECONDS = 2
_BUSY = "server-busy"

_LOGGER = get_logger("event_hubs")


class Producer(Protocol):
    """What is used of the SDK's producer client; it is made for one hub."""

    async def create_batch(self, *, partition_key: str) -> Any:
        """Return an empty ``EventDataBatch``."""
        ...

    async def send_batch(self, event_data_batch: Any, *, timeout: float) -> None:  # noqa: ASYNC109  the SDK's own name
        """Send a batch; return when the hub has acknowledged it."""
        ...

    async def close(self) -> None:
        """Close the connection."""
        ...


class EventHubsSender:
    """Sends messages over one connection per hub, opened on first use.

    Args:
        namespace: fully qualified, for instance ``plant-a.servicebus.windows.net``.
        client_id: of the user-assigned identity to sign in with; empty for the system-assigned one. On a desk, what
            the developer is signed in with.
        connect: gives the producer of a hub instead.
        seconds: longest time to open a connection and send everything.
    """

    def __init__(
        self,
        namespace: str,
        client_id: str,
        *,
        connect: Callable[[str], Producer] | None = None,
        seconds: float = SEND_ALL_SECONDS,
    ) -> None:
        self._connect = connect or (lambda hub: _connected(namespace, client_id, hub))
        self._seconds = seconds
        self._producers: dict[str, Producer] = {}

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        """Send the messages, those of one partition key in their order; return when the hub holds every one.

        Raises:
            WorkspaceError: UNAVAILABLE ``TELEMETRY_HUB_UNAVAILABLE`` or THROTTLED ``THROTTLED``: some of the messages
                may be in the hub; TOO_LARGE ``MESSAGE_TOO_LARGE``: one message is larger than the hub takes.
        """
        by_key: dict[str, list[HubMessage]] = {}
        for message in messages:
            by_key.setdefault(message.partition_key, []).append(message)
        try:
            producer = self._producer(hub)
            async with asyncio.timeout(self._seconds):
                for key, group in by_key.items():
                    await _send_group(producer, key, group)
        except (WorkspaceError, asyncio.CancelledError):
            raise
        except Exception as error:
            # The SDK raises its own errors, azure-core's, the credential's, and those of the socket.
            _LOGGER.warning("sending failed", exc_info=True, extra=fields(hub=hub))
            raise _refusal(error) from error

    async def close(self) -> None:
        """Close every connection."""
        producers, self._producers = self._producers, {}
        for producer in producers.values():
            await producer.close()

    def _producer(self, hub: str) -> Producer:
        if hub not in self._producers:
            self._producers[hub] = self._connect(hub)
        return self._producers[hub]


def _connected(namespace: str, client_id: str, hub: str) -> Producer:
    # Importing the SDK takes long; an app that only answers queries never needs it.
    from azure.eventhub.aio import EventHubProducerClient  # noqa: PLC0415

    credential = app_identity(client_id)
    client = EventHubProducerClient(
        namespace, hub, credential, retry_total=SDK_RETRIES, auth_timeout=SEND_TIMEOUT_SECONDS
    )
    return _WithCredential(cast("Producer", client), credential)


class _WithCredential:
    """A producer that closes its credential too."""

    def __init__(self, producer: Producer, credential: Any) -> None:
        self._producer = producer
        self._credential = credential
        self.create_batch = producer.create_batch
        self.send_batch = producer.send_batch

    async def close(self) -> None:
        """Close the connection and the credential."""
        await self._producer.close()
        await self._credential.close()


async def _send_group(producer: Producer, key: str, messages: Sequence[HubMessage]) -> None:
    from azure.eventhub import EventData  # noqa: PLC0415  see _connected

    batch = await producer.create_batch(partition_key=key)
    for message in messages:
        event = EventData(message.body)
        event.properties.update(message.properties)
        if not _fits(batch, event):
            if len(batch):
                await producer.send_batch(batch, timeout=SEND_TIMEOUT_SECONDS)
                batch = await producer.create_batch(partition_key=key)
            if not _fits(batch, event):
                raise WorkspaceError(Kind.TOO_LARGE, "MESSAGE_TOO_LARGE", "A message is larger than the hub takes.")
    if len(batch):
        await producer.send_batch(batch, timeout=SEND_TIMEOUT_SECONDS)


def _fits(batch: Any, event: Any) -> bool:
    """Add an event to a batch unless that would make it too large, which the SDK says with a ValueError."""
    try:
        batch.add(event)
    except ValueError:
        return False
    return True


def _refusal(error: Exception) -> WorkspaceError:
    if getattr(error, "error", None) == _BUSY:
        return WorkspaceError(
            Kind.THROTTLED, "THROTTLED", "The event hub takes no more at the moment.", retryAfter=RETRY_AFTER_SECONDS
        )
    return WorkspaceError(
        Kind.UNAVAILABLE,
        "TELEMETRY_HUB_UNAVAILABLE",
        "The event hub cannot take events at the moment.",
        retryAfter=RETRY_AFTER_SECONDS,
    )
