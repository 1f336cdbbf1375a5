"""Audit chain component: clients append events with group commit and idempotency keys; the chain is then checked."""

from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.chains import read_chains
from tests.simulation.component import Component
from tests.simulation.world import ApiReply, ConnectionLostError, World

_TARGETS = (("DomainEvents", "line-1"), ("DomainEvents", "line-2"), ("AccessControl", ""))
_CREATED, _TRANSIENT = 201, frozenset({429, 503, 504})


class AuditChainComponent(Component):
    """Clients that append events; each event has a unique text, by which the model finds it in the stored chain.

    Invariants: an acknowledged event is stored exactly once, with the acknowledged id and hash; a rejected event is not
    stored; an event without a final reply is stored at most once; equal requests get equal replies; every chain has
    sequence numbers without gaps, linked hashes that match their records, and times that never go back.
    """

    name: ClassVar[str] = "audit-chain"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/provenance/appender.py",
        "shared/provenance/chain_log.py",
        "shared/idempotency/keys.py",
        "shared/backends/embedded/provenance.py",
        "shared/backends/embedded/idempotency.py",
        "shared/backends/embedded/sqlite.py",
        "functions/provenance_events.py",
        "functions/idempotency.py",
    )
    weight: ClassVar[int] = 6
    cosmos_weight: ClassVar[int] = 5

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._acknowledged: dict[str, tuple[str, str]] = {}
        self._unknown: set[str] = set()
        self._rejected: set[str] = set()

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start several clients that append events."""
        for client in range(self.world.random.randint(1, 6)):
            yield self._append_events(client, self.world.random.randint(1, 12))

    async def _append_events(self, client: int, events: int) -> None:
        choices = self.world.random
        for number in range(events):
            target, scope = choices.choice(_TARGETS)
            await self._append_event(f"event {client}-{number}", target, scope, has_key=choices.random() < 0.8)
            if choices.random() < 0.3:
                await self.world.sleep(choices.random() * 10)

    async def _append_event(self, text: str, target: str, scope: str, *, has_key: bool) -> None:
        body = {"EntityType": "Test", "EntityID": "1", "Name": text, "ActionType": "Test"}
        body |= {"ScopeKey": scope} if scope else {}
        headers = {"idempotency-key": text} if has_key else {}
        self._unknown.add(text)
        for _ in range(self.world.random.randint(1, 8) if has_key else 1):
            try:
                reply = await self.world.send(
                    "ann@t", "POST", f"oi-api/provenance/events?target={target}", body, headers
                )
            except ConnectionLostError:
                continue
            if reply.status not in _TRANSIENT:
                self._record_reply(text, reply)
                if not self.world.random.random() < 0.1:
                    return
            elif reply.code == "PROVENANCE_UNAVAILABLE" and not has_key:
                self._unknown.discard(text)
                self._rejected.add(text)

    def _record_reply(self, text: str, reply: ApiReply) -> None:
        self.world.require(reply.status == _CREATED, f"{text} was answered by {reply.status} {reply.reply.body!r}")
        content = reply.json
        known = self._acknowledged.setdefault(text, (content["RecordID"], content["Hash"]))
        self.world.require(known == (content["RecordID"], content["Hash"]), f"{text} got two different replies")
        self._unknown.discard(text)

    async def complete_work(self) -> None:
        """After all faults, append one event to each chain, which must succeed."""
        for target, scope in _TARGETS:
            while f"last {target} {scope}" not in self._acknowledged:
                await self._append_event(f"last {target} {scope}", target, scope, has_key=True)
                await self.world.sleep(1)

    def check_invariants(self, folder: Path) -> None:
        """Check each chain, and that each event is stored as often as the replies to its requests permit."""
        stored: dict[str, list[tuple[str, str]]] = {}
        for record in read_chains(self.world, folder):
            stored.setdefault(record.get("Name", ""), []).append((record["RecordID"], record["Hash"]))
        for text, reply in self._acknowledged.items():
            found = stored.get(text, [])
            self.world.require(found == [reply], f"{text} was acknowledged as {reply}, but is stored as {found}")
        for text in self._unknown:
            self.world.require(len(stored.get(text, [])) <= 1, f"{text} is stored twice")
        for text in self._rejected:
            self.world.require(text not in stored, f"{text} was rejected, but is stored")
