"""Webhook services over a SQLite file, with a fake HTTP client and a clock that tests set."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from shared.backends.embedded.sqlite import SqliteDatabase
from shared.backends.embedded.webhooks import SCHEMA, SqliteWebhookStore
from shared.outbound.addresses import AddressRefusedError, OutboundUrl
from shared.outbound.ports import OutboundReply, OutboundRequest
from shared.provenance.ports import Target
from shared.webhooks.deliveries import DeliveryLog
from shared.webhooks.events import WebhookEvent, WebhookEventType
from shared.webhooks.models import Delivery, WebhookEndpoint
from shared.webhooks.outbox import DeliveryOutbox
from shared.webhooks.registry import EndpointRegistry
from shared.webhooks.secrets import SecretVault
from shared.webhooks.sender import DeliverySender
from shared.webhooks.service import EndpointDefinition, WebhookService
from shared.webhooks.worker import DeliveryWorker
from tests.virtual_time import VirtualTime

URL = "https://hooks.example/path-with-secret"
TEST = WebhookEventType.WEBHOOK_TEST
DOWNLOAD = WebhookEventType.DOWNLOAD_COMPLETED

type Answer = Callable[[OutboundRequest], Awaitable[OutboundReply]]


def build_reply(status: int, body: bytes = b"") -> OutboundReply:
    """Build the reply of a webhook endpoint to a delivery."""
    return OutboundReply(status, {}, body)


async def reply_with_failure(request: OutboundRequest) -> OutboundReply:
    """Reply to a delivery with status 500, like a failing endpoint."""
    del request
    return build_reply(500, b"broken \x00\xff")


class ScriptedHttp:
    """Fake HTTP client that records requests; tests set its replies and the hosts that it refuses."""

    def __init__(self) -> None:
        self.requests: list[OutboundRequest] = []
        self.refused: set[str] = set()
        self.answer: Answer = self.accept

    async def accept(self, request: OutboundRequest) -> OutboundReply:
        """Reply to a delivery with a success, like an endpoint that accepts it."""
        del request
        return build_reply(204)

    async def require_allowed_host(self, url: OutboundUrl, *, https_only: bool = False) -> None:
        """Reject the hosts that the test has listed."""
        del https_only
        if url.host in self.refused:
            raise AddressRefusedError(f"The host `{url.host}` resolves to an address that is not public.")

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Record a request and return the reply that the test has set."""
        await self.require_allowed_host(request.url)
        self.requests.append(request)
        return await self.answer(request)

    async def close(self) -> None:
        """Do nothing, because this fake client has no connections."""


class RecordingLog:
    """Fake audit log that records events."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    async def append(
        self, target: Target, user_id: str, event: Any, *, append_id: str, scope_key: str = ""
    ) -> dict[str, Any]:
        """Record an event with its target and user."""
        self.events.append({"target": target, "user": user_id, "append": append_id, "scope": scope_key, **event})
        return {}


class WebhookServices:
    """All webhook services of one process.

    Args:
        path: the SQLite file.
        time: the clock. Processes that use the same file share it.
    """

    def __init__(self, path: Path, time: VirtualTime) -> None:
        self.time = time
        self.runtime = replace(time.runtime, uniform=lambda low, high: (low + high) / 2)
        self.database = SqliteDatabase(path, SCHEMA)
        self.store = SqliteWebhookStore(self.database)
        self.http = ScriptedHttp()
        self.log = RecordingLog()
        self.is_audited = True
        self.key = b"k" * 32
        self.registry = EndpointRegistry(self.store)
        self.vault = SecretVault(self._load_key, runtime=self.runtime)
        sender = DeliverySender(self.http, self.vault, "https://plant.example", runtime=self.runtime)
        self.worker = DeliveryWorker(self.store, self.registry, sender, self._is_audited, runtime=self.runtime)
        self.outbox = DeliveryOutbox(self.store, self.registry, lambda: None, runtime=self.runtime)
        self.service = WebhookService(
            self.registry, self.vault, self.http, self.outbox, self.log, self._is_audited, runtime=self.runtime
        )
        self.deliveries = DeliveryLog(self.store, self.service, lambda: None, runtime=self.runtime)

    async def _load_key(self) -> bytes:
        return self.key

    async def _is_audited(self) -> bool:
        return self.is_audited

    async def create_endpoint(self, *types: WebhookEventType, **changes: Any) -> WebhookEndpoint:
        """Create a webhook endpoint that subscribes to event types."""
        made = await self.service.create("admin@t", EndpointDefinition(URL, types or (TEST, DOWNLOAD), **changes))
        return made.endpoint

    async def publish(self, key: str = "k1", **changes: Any) -> None:
        """Publish the webhook event of a completed download."""
        event = WebhookEvent(key, DOWNLOAD, self.time.now, {"downloadId": key, "status": "completed"})
        await self.outbox.publish([replace(event, **changes)])

    async def send_due_deliveries(self) -> None:
        """Send all due deliveries, but do not wait for retries that are due later."""
        self.worker.wake()
        for _ in range(1_000):
            await asyncio.sleep(0)
            if self.worker.is_idle:
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the webhook worker did not send all due deliveries in time")

    async def wait_until(self, condition: Callable[[], Awaitable[bool]]) -> None:
        """Wait until an asynchronous function returns True."""
        for _ in range(2_000):
            if await condition():
                return
            await asyncio.sleep(0.001)
        raise AssertionError("the condition did not become true in time")

    async def send_due_deliveries_after(self, **span: float) -> None:
        """Advance the clock and send all due deliveries."""
        self.time.advance(timedelta(**span).total_seconds())
        await self.send_due_deliveries()

    async def list_all(self, endpoint: WebhookEndpoint) -> list[Delivery]:
        """Return the deliveries of an endpoint, newest first."""
        return list(await self.store.list_deliveries(endpoint.id, None, None, 1_000))

    async def close(self) -> None:
        """Stop the worker and close the file."""
        await self.worker.close()
        await self.database.close()


@asynccontextmanager
async def open_webhooks(path: Path, time: VirtualTime | None = None) -> AsyncIterator[WebhookServices]:
    """Open the webhook services over a SQLite file."""
    webhook_services = WebhookServices(path, time or VirtualTime())
    try:
        yield webhook_services
    finally:
        await webhook_services.close()
