"""Audit chain component: clients append events with group commit and idempotency keys, and read the chains."""

import base64
import csv
import io
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

from tests.simulation.chains import read_chains, read_hashes
from tests.simulation.client import send_until_final
from tests.simulation.component import Component
from tests.simulation.components.checkpoints import compute_consistency_path, compute_inclusion_path
from tests.simulation.world import ApiReply, ConnectionLostError, World

_PATH: Final = "oi-api/provenance"
_TARGETS = (("DomainEvents", "line-1"), ("DomainEvents", "line-2"), ("AccessControl", ""))
_CREATED, _TRANSIENT = 201, frozenset({429, 503, 504})


class AuditChainComponent(Component):
    """Clients that append events; each event has a unique text, by which the model finds it in the stored chain.

    Invariants: an acknowledged event is stored exactly once, with the acknowledged id and hash; a rejected event is not
    stored; an event without a final reply is stored at most once; equal requests get equal replies; every chain has
    sequence numbers without gaps, linked hashes that match their records, and times that never go back. A query and an
    export return every acknowledged event of their chain once, in order; a verification finds no damage; a proof is the
    one that results from the stored records.
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
    weight: ClassVar[int] = 9
    cosmos_weight: ClassVar[int] = 6

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._acknowledged: dict[str, tuple[str, str]] = {}
        self._unknown: set[str] = set()
        self._rejected: set[str] = set()
        self._chains: dict[str, tuple[str, str]] = {}
        self._proofs: list[tuple[tuple[str, str], Any]] = []

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
            if choices.random() < 0.12:
                chain = choices.choice(_TARGETS)
                await choices.choice((self._query_chain, self._export_chain, self._verify_chain, self._prove))(chain)

    def _find_acknowledged(self, chain: tuple[str, str]) -> dict[str, str]:
        """Return the ids and hashes of the acknowledged events of a chain."""
        return dict(reply for text, reply in self._acknowledged.items() if self._chains[text] == chain)

    async def _read(self, path: str, chain: tuple[str, str], query: str) -> ApiReply | None:
        target, scope = chain
        path = f"{_PATH}/{path}?target={target}{scope and f'&scopeKey={scope}'}{query}"
        reply = await send_until_final(self.world, "ann@t", "GET", path)
        if reply is not None:
            self.world.require(reply.status == 200, f"{path} was answered by {reply.status} {reply.reply.body!r}")
        return reply

    async def _query_chain(self, chain: tuple[str, str]) -> None:
        """Query a chain, newest event first, and possibly skip some events."""
        choices, known = self.world.random, self._find_acknowledged(chain)
        offset = choices.choice((0, 0, choices.randint(1, 20)))
        action = choices.choice(("", "&actionType=Test"))
        reply = await self._read("events/query", chain, f"&limit=1000&offset={offset}{action}")
        if reply is None:
            return
        found = {record["RecordID"]: record["Hash"] for record in reply.json}
        is_ordered = list(found) == sorted(found, reverse=True) and len(found) == len(reply.json)
        self.world.require(is_ordered, f"a query of {chain} returns {list(found)}")
        # The skipped events are the newest ones, so that only as many can be missing.
        missing = known.items() - found.items()
        self.world.require(len(missing) <= offset, f"a query of {chain} without {offset} events lacks {missing}")

    async def _export_chain(self, chain: tuple[str, str]) -> None:
        """Export a chain, oldest event first, as JSON or CSV."""
        known = self._find_acknowledged(chain)
        as_csv = self.world.random.random() < 0.5
        reply = await self._read("events/export", chain, "&format=csv" if as_csv else "&format=json")
        if reply is None:
            return
        text = reply.reply.body.decode()
        records = list(csv.DictReader(io.StringIO(text))) if as_csv else reply.json
        found = {record["RecordID"]: record["Hash"] for record in records}
        is_ordered = list(found) == sorted(found) and len(found) == len(records)
        self.world.require(is_ordered, f"an export of {chain} returns {list(found)}")
        missing = known.items() - found.items()
        self.world.require(not missing, f"an export of {chain} lacks {missing}")

    async def _verify_chain(self, chain: tuple[str, str]) -> None:
        """Verify a chain, and possibly one of its acknowledged events."""
        (target, scope), known = chain, self._find_acknowledged(chain)
        event = self.world.random.choice(["", *known])
        body = {**({"ScopeKey": scope} if scope else {}), **({"RecordID": event} if event else {})}
        reply = await send_until_final(self.world, "ann@t", "POST", f"{_PATH}/events/verify?target={target}", body)
        if reply is None:
            return
        is_valid = reply.status == 200 and reply.json["ChainValid"] and not reply.json["ForkDetected"]
        self.world.require(is_valid, f"a verification of {chain} got {reply.status} {reply.reply.body!r}")
        self.world.require(not (known and reply.json["Empty"]), f"a verification finds no event in {chain}")
        is_same = not event or (reply.json["Valid"] and reply.json["RecomputedHash"] == known[event])
        self.world.require(is_same, f"a verification of event {event} of {chain} got {reply.reply.body!r}")

    async def _prove(self, chain: tuple[str, str]) -> None:
        """Read the proof of an acknowledged event, or of a shorter chain."""
        known = self._find_acknowledged(chain)
        if known:
            size, place = int(max(known)), int(self.world.random.choice(list(known)))
            name = self.world.random.choice(("sequence", "from"))
            reply = await self._read("proof", chain, f"&size={size}&{name}={place}")
            if reply is not None:
                self._proofs.append((chain, reply.json))

    async def _append_event(self, text: str, target: str, scope: str, *, has_key: bool) -> None:
        body = {"EntityType": "Test", "EntityID": "1", "Name": text, "ActionType": "Test"}
        body |= {"ScopeKey": scope} if scope else {}
        headers = {"idempotency-key": text} if has_key else {}
        self._unknown.add(text)
        self._chains[text] = (target, scope)
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
        for chain, proof in self._proofs:
            leaves = read_hashes(folder, *chain)[: proof["size"]]
            if "from" in proof:
                expected = compute_consistency_path(proof["from"], leaves)
            else:
                expected = compute_inclusion_path(proof["leafIndex"], leaves)
            hashes = [base64.b64decode(each) for each in proof["hashes"]]
            self.world.require(hashes == expected, f"a proof of {chain} does not match its records: {proof}")
