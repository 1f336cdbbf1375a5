"""Sender to Azure Event Hubs; the partition key preserves the order of a connection's messages.

Tested with the SDK's batches and errors, and with a fake producer instead of a connection. Never run against an Event
Hubs namespace: sign-in with a managed identity and the ``server-busy`` reply are untested.
"""

import asyncio
import zlib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from shared.backends.azure.identity import create_app_credential
from shared.errors import Kind, WorkspaceError
from shared.interpreter import load_modules
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.models import HubMessage

if TYPE_CHECKING:
    from azure.eventhub import EventData, EventDataBatch

SEND_TIMEOUT_SECONDS = 20.0
SEND_ALL_SECONDS = 60.0
ATTEMPTS = 4
"""Maximum number of attempts to create a batch, and to send a batch, until the hub has stored the first one of a call.

The SDK sends up to twice in each attempt to send.
"""

FIRST_PAUSE_SECONDS = 1.0
LONGEST_PAUSE_SECONDS = 8.0
"""Limits of the pause before a repeated attempt; the pause doubles with each attempt and is randomised."""

PRODUCERS_PER_HUB = 8
"""Number of producers (network connections) for each hub.

A producer of the SDK holds a lock during a send, so a single producer would send the batches of all partition keys one
after another.
"""

RETRY_AFTER_SECONDS = 2
_BUSY = "server-busy"
_MODULES = ("azure.eventhub.aio", "azure.identity.aio")
"""Modules of the SDK; a worker thread imports them, because the import takes some tenths of a second."""

_LOGGER = get_logger("event_hubs")


class Producer(Protocol):
    """The methods of the SDK's ``EventHubProducerClient`` that the adapter uses; one client sends to one hub."""

    async def create_batch(self, *, partition_key: str) -> Any:
        """Return an empty ``EventDataBatch``."""
        ...

    async def send_batch(self, event_data_batch: Any, *, timeout: float) -> None:  # noqa: ASYNC109  the SDK's own name
        """Send a batch of events and wait for the acknowledgement."""
        ...

    async def close(self) -> None:
        """Close the connection to the hub."""
        ...


class EventHubsSender:
    """Implementation of EventSender: sends messages to Azure Event Hubs.

    Each hub has up to ``PRODUCERS_PER_HUB`` producers, which are connected on first use. The partition key selects the
    producer. The messages of a call with the same key keep their order. If the call pauses before another attempt, the
    messages of other calls can be stored first. A call sends the messages of one key after those of another, so a
    failing key delays the following ones.

    A call sends one or more batches; a stored batch cannot be removed from the hub. After the first stored batch, the
    call repeats failed attempts until its timeout, because after an error the caller would send all messages again.

    Args:
        namespace: fully qualified name of the namespace, for instance ``plant-a.servicebus.windows.net``.
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        connect: opens the producer of a hub; tests replace it.
        timeout_seconds: timeout in seconds for sending all messages of a call, including the connection.
        runtime: worker threads, and pauses between attempts.
    """

    def __init__(
        self,
        namespace: str,
        client_id: str,
        *,
        connect: Callable[[str], Producer] | None = None,
        timeout_seconds: float = SEND_ALL_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._connect = connect or (lambda hub: _connect_producer(namespace, client_id, hub))
        self._seconds = timeout_seconds
        self._runtime = runtime
        self._producers: dict[tuple[str, int], Producer] = {}

    async def send(self, hub: str, messages: Sequence[HubMessage]) -> None:
        by_key: dict[str, list[HubMessage]] = {}
        for message in messages:
            by_key.setdefault(message.partition_key, []).append(message)
        sending = _SendCall(self._runtime)
        try:
            await load_modules(self._runtime, *_MODULES)
            async with asyncio.timeout(self._seconds):
                for key, group in by_key.items():
                    await sending.send_with_partition_key(self._get_or_connect_producer(hub, key), key, group)
        except (WorkspaceError, asyncio.CancelledError):
            raise
        except Exception as error:
            # The SDK raises its own errors and those of azure-core, the credential and the socket.
            counts = fields(hub=hub, stored=sending.stored_count, messages=len(messages))
            _LOGGER.warning("sending to an event hub failed", exc_info=True, extra=counts)
            raise sending.build_error(error, len(messages)) from error

    async def close(self) -> None:
        """Close all connections to all hubs."""
        producers, self._producers = self._producers, {}
        await asyncio.gather(*(producer.close() for producer in producers.values()))

    def _get_or_connect_producer(self, hub: str, partition_key: str) -> Producer:
        place = (hub, zlib.crc32(partition_key.encode()) % PRODUCERS_PER_HUB)
        if place not in self._producers:
            self._producers[place] = self._connect(hub)
        return self._producers[place]


def _connect_producer(namespace: str, client_id: str, hub: str) -> Producer:
    # Imported on first use (see _MODULES), because an app that only serves queries does not need it.
    from azure.eventhub.aio import EventHubProducerClient  # noqa: PLC0415

    credential = create_app_credential(client_id)
    # The SDK would hold the producer's lock during its own repeats and pauses, so this module repeats instead.
    client = EventHubProducerClient(
        namespace, hub, credential, retry_total=0, retry_backoff_factor=0, auth_timeout=SEND_TIMEOUT_SECONDS
    )
    return _ProducerWithCredential(cast("Producer", client), credential)


class _ProducerWithCredential:
    """Producer of the SDK, together with the Azure credential that is closed with the producer."""

    def __init__(self, producer: Producer, credential: Any) -> None:
        self._producer = producer
        self._credential = credential
        self.create_batch = producer.create_batch
        self.send_batch = producer.send_batch

    async def close(self) -> None:
        """Close the connection to the hub and the credential."""
        await self._producer.close()
        await self._credential.close()


class _SendCall:
    """One call of :meth:`EventHubsSender.send`: sends batches, and repeats failed attempts.

    Attributes:
        stored_count: number of messages that the hub has confirmed.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.stored_count = 0
        self._is_outcome_known = True
        self._runtime = runtime

    async def send_with_partition_key(
        self, producer: Producer, partition_key: str, messages: Sequence[HubMessage]
    ) -> None:
        """Send messages in as few batches as possible."""
        from azure.eventhub import EventData  # noqa: PLC0415  see _connect_producer

        create_batch = partial(producer.create_batch, partition_key=partition_key)
        batch = await self._repeat_until_done(create_batch)
        for message in messages:
            event = EventData(message.body)
            event.properties.update(message.properties)
            if not _try_add_event(batch, event):
                if len(batch):
                    await self._send_batch(producer, batch)
                    batch = await self._repeat_until_done(create_batch)
                if not _try_add_event(batch, event):
                    detail = "A message is larger than the event hub allows; send smaller messages."
                    raise WorkspaceError(Kind.TOO_LARGE, "MESSAGE_TOO_LARGE", detail)
        if len(batch):
            await self._send_batch(producer, batch)

    def build_error(self, error: Exception, message_count: int) -> WorkspaceError:
        """Build the error for the caller from the error that ended the call.

        Return THROTTLED only if the hub has certainly stored no message, because clients repeat every request after
        this error.
        """
        if self.stored_count:
            detail = (
                f"The event hub has confirmed only {self.stored_count} of {message_count} messages; send all of them "
                "again. Messages that have no id and were sent without an Idempotency-Key are then possibly stored "
                "twice."
            )
        elif _is_busy(error) and self._is_outcome_known:
            return WorkspaceError(
                Kind.THROTTLED, "THROTTLED", "The event hub is busy; retry later.", retryAfter=RETRY_AFTER_SECONDS
            )
        else:
            detail = "The event hub cannot accept events; retry later."
            if not self._is_outcome_known:
                detail += " Some messages are possibly stored."
        return WorkspaceError(Kind.UNAVAILABLE, "TELEMETRY_HUB_UNAVAILABLE", detail, retryAfter=RETRY_AFTER_SECONDS)

    async def _send_batch(self, producer: Producer, batch: "EventDataBatch") -> None:
        await self._repeat_until_done(partial(self._try_send_batch, producer, batch))
        self.stored_count += len(batch)

    async def _try_send_batch(self, producer: Producer, batch: "EventDataBatch") -> None:
        try:
            await producer.send_batch(batch, timeout=SEND_TIMEOUT_SECONDS)
        except BaseException as error:
            # After any other error, and after a timeout, the hub has possibly stored the batch.
            self._is_outcome_known &= _was_busy_at_each_send(error)
            raise

    async def _repeat_until_done[T](self, attempt: Callable[[], Awaitable[T]]) -> T:
        """Call ``attempt`` until it succeeds; give up after ``ATTEMPTS`` failures if the hub has stored no message."""
        failure_count = 0
        while True:
            try:
                return await attempt()
            except Exception:
                failure_count += 1
                if not self.stored_count and failure_count == ATTEMPTS:
                    raise
                _LOGGER.info("an attempt to send to an event hub failed; it is repeated", exc_info=True)
            pause = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** (failure_count - 1))
            await self._runtime.sleep(pause * self._runtime.uniform(0.5, 1))


def _try_add_event(batch: "EventDataBatch", event: "EventData") -> bool:
    """Add an event to an SDK batch if the event fits into it; return whether it was added."""
    try:
        batch.add(event)
    except ValueError:
        return False
    return True


def _was_busy_at_each_send(error: BaseException) -> bool:
    """Return whether the hub was busy at each send of an SDK call.

    The SDK sends a batch again after an error, and raises the error of the second send in the context of the first.
    """
    from azure.eventhub.exceptions import EventHubError  # noqa: PLC0415  see _connect_producer

    return _is_busy(error) and all(
        _is_busy(each) for each in _iterate_contexts(error) if isinstance(each, EventHubError)
    )


def _iterate_contexts(error: BaseException) -> Iterator[BaseException]:
    """Yield the context of an exception (``__context__``), the context of this context, and so on."""
    context = error.__context__
    while context is not None:
        yield context
        context = context.__context__


def _is_busy(error: BaseException) -> bool:
    return getattr(error, "error", None) == _BUSY
