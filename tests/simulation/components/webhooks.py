"""Webhook component: the receiver gets an event for each amendment."""

import json
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from shared.wiring import Services
from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.world import World

_PATH = "oi-api/webhooks"
_SCOPES = ("webhook-1", "webhook-2")
_AFTER_EXPIRY: Final = timedelta(days=90)


class WebhooksComponent(Component):
    """Members create amendments; a webhook sends an event for each amendment.

    Meanwhile a member creates, tests, disables and deletes other webhooks, and a job deletes expired deliveries.

    Invariants: after the last fault, the event of each stored amendment has arrived; an amendment has one event, and
    all its deliveries have the same id and content; no event of an amendment that is not stored arrives; every stored
    delivery ends; a deleted webhook is not found.
    """

    name: ClassVar[str] = "webhooks"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/webhooks/worker.py",
        "shared/webhooks/outbox.py",
        "shared/webhooks/registry.py",
        "shared/webhooks/sources/amendments.py",
        "shared/webhooks/sources/runner.py",
        "shared/backends/embedded/webhooks.py",
    )
    background_jobs: ClassVar[tuple[str, ...]] = ("webhooks",)
    weight: ClassVar[int] = 6
    settle_seconds: ClassVar[int] = 6 * 3600
    cosmos_weight: ClassVar[int] = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._texts: set[str] = set()
        self._expires = False

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield coroutines of members who create amendments, which cause webhook events, and who use other webhooks."""
        # In some worlds, all deliveries expire early. These have no amendments, because their events would be lost.
        self._expires = self.world.random.random() < 0.1 and len(self.world.components) == 1
        for number in range(0 if self._expires else self.world.random.randint(1, 3)):
            yield self._create_amendments(number, self.world.random.randint(1, 6))
        if self._expires or self.world.random.random() < 0.3:
            yield self._use_other_webhooks(self.world.random.randint(1, 2))

    async def _create_amendments(self, client: int, count: int) -> None:
        for number in range(count):
            await self._create_amendment(f"announced {client}-{number}")
            await self.world.sleep(self.world.random.random() * 10)

    async def _create_amendment(self, text: str) -> None:
        self._texts.add(text)
        body = {
            "ScopeKey": self.world.random.choice(_SCOPES),
            "EntityType": "Batch",
            "EntityID": text,
            "OriginalRecord": {"value": 1},
            "AmendedRecord": {"value": 2},
            "ChangedFields": ["value"],
            "ReasonCategory": "data-entry-error",
            "ReasonText": text,
        }
        await send_until_final(self.world, "ann@t", "POST", "oi-api/provenance/amendments", body, key=text)

    async def _use_other_webhooks(self, count: int) -> None:
        """Create webhooks for other events, send a test to each, and delete it."""
        for number in range(count):
            await self.world.sleep(self.world.random.random() * 5)
            body = {"url": "https://other.example/", "eventTypes": ["amendment.decided"]}
            created = await send_until_final(self.world, "ann@t", "POST", _PATH, body, key=f"webhook {number}")
            if created is not None:
                self.world.require(created.status == 201, f"a webhook got {created.status} {created.reply.body!r}")
                await self._use_webhook(f"{_PATH}/{created.json['id']}", f"test {number}")
            await self._delete_expired_deliveries()

    async def _use_webhook(self, path: str, test: str) -> None:
        """Send a test to a webhook twice, disable the webhook sometimes, and delete it."""
        choices = self.world.random
        sent = await send_until_final(self.world, "ann@t", "POST", f"{path}/test", key=test)
        if sent is not None:
            self.world.require(sent.status == 202, f"{test} got {sent.status} {sent.reply.body!r}")
            await self.world.sleep(choices.random() * 3)
            listed = await send_until_final(self.world, "ann@t", "GET", f"{path}/deliveries?limit=10")
            if listed is not None:
                self.world.require(listed.status == 200, f"a list got {listed.status} {listed.reply.body!r}")
                found = [each["id"] for each in listed.json["deliveries"]]
                self.world.require(found.count(sent.json["id"]) == 1, f"{test} is not among the deliveries {found}")
            again = f"{path}/deliveries/{sent.json['id']}/retry"
            reply = await send_until_final(self.world, "ann@t", "POST", again, attempts=1)
            is_accepted = reply is None or (reply.status == 202 and reply.json["id"] == sent.json["id"])
            self.world.require(is_accepted, f"the repetition of {test} got {reply}")
        if choices.random() < 0.5:
            body = {"url": "https://other.example/", "eventTypes": ["amendment.decided"], "enabled": False}
            reply = await send_until_final(self.world, "ann@t", "PUT", path, body)
            is_disabled = reply is None or (reply.status == 200 and not reply.json["enabled"])
            self.world.require(is_disabled, f"a webhook was not disabled: {reply}")
            await self.world.sleep(choices.random() * 5)
        deleted = await send_until_final(self.world, "ann@t", "DELETE", path)
        if deleted is not None:
            self.world.require(deleted.status in {204, 404}, f"a deletion got {deleted.status}")
            read = await send_until_final(self.world, "ann@t", "GET", path)
            self.world.require(read is None or read.status == 404, f"{path} was deleted, but is still found")

    async def _delete_expired_deliveries(self) -> None:
        async def delete_expired(services: Services) -> int:
            later = _AFTER_EXPIRY if self._expires else timedelta()
            return await services.webhooks.store.delete_and_count_expired_deliveries(
                services.runtime.now() + later, 100
            )

        try:
            deleted = await run_on_instance(self.world, delete_expired)
        except WorkFailedError as error:
            self.world.trace(f"the expiry failed: {error}")
        else:
            self.world.require(self._expires or deleted == 0, f"{deleted} new deliveries have expired")

    async def complete_work(self) -> None:
        """Wait until all events have arrived; after many failures, the next attempt can be hours later."""
        self.world.slow_down_background_jobs()
        listed = await send_until_done(self.world, "ann@t", "GET", _PATH)
        webhook = next(each for each in listed.json["webhooks"] if each["eventTypes"] == ["amendment.pending"])
        log = f"{_PATH}/{webhook['id']}/deliveries?limit=1&status=pending"
        while True:
            stored = await send_until_done(self.world, "ann@t", "GET", "oi-api/provenance/pending?limit=100")
            waiting = await send_until_done(self.world, "ann@t", "GET", log)
            wanted = {(each["ScopeKey"], each["RecordID"]) for each in stored.json["amendments"]}
            if not waiting.json["deliveries"] and wanted <= set(self._collect_ids()):
                return
            await self.world.sleep(60)

    def _collect_ids(self) -> dict[tuple[str, str], set[str]]:
        """Return the ids of the received messages of each amendment."""
        ids: dict[tuple[str, str], set[str]] = defaultdict(set)
        for message, bodies in self.world.receiver.received.items():
            if bodies[0]["type"] != "amendment.pending":
                continue
            data = bodies[0]["data"]
            ids[data["scopeKey"], data["recordId"]].add(message)
        return ids

    def check_invariants(self, folder: Path) -> None:
        """Check the ids and contents of the received messages."""
        for message, bodies in self.world.receiver.received.items():
            texts = {json.dumps(body, sort_keys=True) for body in bodies}
            self.world.require(len(texts) == 1, f"message {message} arrived with different contents")
        stored = {(one.get("ScopeKey", ""), one["RecordID"]) for one in read_chains(self.world, folder)}
        for place, messages in self._collect_ids().items():
            self.world.require(len(messages) == 1, f"the event of {place} has several ids: {messages}")
            self.world.require(place in stored, f"an event of {place}, which is not stored, arrived")
