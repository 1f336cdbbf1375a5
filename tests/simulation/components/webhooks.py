"""Webhook component: the receiver gets an event for each amendment."""

import json
from collections import defaultdict
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.world import World

_SCOPES = ("webhook-1", "webhook-2")


class WebhooksComponent(Component):
    """Members create amendments; a webhook sends an event for each amendment.

    Invariants: after the last fault, the event of each stored amendment has arrived; an amendment has one event, and
    all its deliveries have the same id and content; no event of an amendment that is not stored arrives; every stored
    delivery ends.
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
    settle_seconds: ClassVar[int] = 6 * 3600
    cosmos_weight: ClassVar[int] = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._texts: set[str] = set()

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield coroutines of one to three members who create amendments, which cause webhook events."""
        for number in range(self.world.random.randint(1, 3)):
            yield self._create_amendments(number, self.world.random.randint(1, 6))

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

    async def complete_work(self) -> None:
        """Wait until all events have arrived; after many failures, the next attempt can be hours later."""
        self.world.slow_down_background_jobs()
        listed = await send_until_done(self.world, "ann@t", "GET", "oi-api/webhooks")
        webhook = next(each for each in listed.json["webhooks"] if each["eventTypes"] == ["amendment.pending"])
        log = f"oi-api/webhooks/{webhook['id']}/deliveries?limit=1&status=pending"
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
