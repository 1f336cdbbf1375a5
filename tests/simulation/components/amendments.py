"""Amendments component: members create, approve and reject amendments, with and without idempotency keys."""

from collections import defaultdict
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.world import ApiReply, World

_SCOPES = ("line-1", "line-2")
_MEMBERS = ("ann@t", "bob@t", "eve@t")
_PATH = "oi-api/provenance/amendments"


class AmendmentsComponent(Component):
    """Members create amendments, and approve or reject amendments of other members, sometimes also their own.

    Invariants: an acknowledged amendment is stored once; an amendment has at most one decision, and an acknowledged
    decision is this one; no member decides about an own amendment; a decision that the service rejects is not stored;
    equal requests get equal replies; the list of pending amendments contains no decided amendment.
    """

    name: ClassVar[str] = "amendments"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/provenance/amendments.py",
        "shared/provenance/decisions.py",
        "functions/amendments.py",
    )
    cosmos_weight: ClassVar[int] = 2

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._created: dict[str, tuple[str, str, str]] = {}
        self._decided: dict[tuple[str, str], tuple[str, str]] = {}
        self._refused: set[str] = set()
        self._decisions = 0

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start members that create amendments and members that approve or reject them."""
        choices = self.world.random
        for number in range(choices.randint(1, 3)):
            yield self._create_amendments(number, choices.randint(1, 5))
        for number in range(choices.randint(1, 4)):
            yield self._decide_often(number, choices.randint(1, 8))

    async def _create_amendments(self, client: int, count: int) -> None:
        for number in range(count):
            await self._create_amendment(f"amendment {client}-{number}", 0)
            await self.world.sleep(self.world.random.random() * 3)

    async def _create_amendment(self, text: str, attempts: int) -> None:
        scope, author = self.world.random.choice(_SCOPES), self.world.random.choice(_MEMBERS)
        body = {
            "ScopeKey": scope,
            "EntityType": "Batch",
            "EntityID": "1",
            "OriginalRecord": {"value": 1},
            "AmendedRecord": {"value": 2},
            "ChangedFields": ["value"],
            "ReasonCategory": "data-entry-error",
            "ReasonText": text,
        }
        reply = await send_until_final(self.world, author, "POST", _PATH, body, key=text, attempts=attempts)
        if reply is not None:
            self.world.require(reply.status == 201, f"{text} was answered by {reply.status} {reply.reply.body!r}")
            self._created[text] = (scope, reply.json["RecordID"], author)

    async def _decide_often(self, client: int, count: int) -> None:
        for number in range(count):
            if self._created:
                await self._decide_amendment(
                    f"decision {client}-{number}", self.world.random.choice(list(self._created)), 0
                )
            await self.world.sleep(self.world.random.random() * 3)

    async def _decide_amendment(self, text: str, amendment: str, attempts: int) -> None:
        scope, record_id, author = self._created[amendment]
        member, verb = self.world.random.choice(_MEMBERS), self.world.random.choice(("approve", "reject"))
        path = f"{_PATH}/{record_id}/{verb}?scopeKey={scope}"
        body = {"RejectionReason": text} if verb == "reject" else {}
        key = text if self.world.random.random() < 0.8 else ""
        reply = await send_until_final(self.world, member, "POST", path, body, key=key, attempts=attempts if key else 1)
        if reply is None:
            return
        if reply.status == 200:
            self._record_decision(amendment, member, reply)
            self.world.require(member != author, f"{member} has decided about an own amendment")
        elif reply.code == "MAKER_CHECKER_VIOLATION":
            self.world.require(member == author, f"{member} may decide about an amendment of {author}")
        else:
            self.world.require(reply.code == "AMENDMENT_NOT_PENDING", f"{path}: {reply.status} {reply.reply.body!r}")

    def _record_decision(self, amendment: str, member: str, reply: ApiReply) -> None:
        scope, record_id, _ = self._created[amendment]
        decision = (member, reply.json["RecordID"])
        known = self._decided.setdefault((scope, record_id), decision)
        self.world.require(known == decision, f"{amendment} was decided twice: {known}, {decision}")

    async def complete_work(self) -> None:
        """Approve or reject each pending amendment, so that none is pending."""
        for amendment, (scope, record_id, author) in list(self._created.items()):
            member = next(each for each in _MEMBERS if each != author)
            path = f"{_PATH}/{record_id}/approve?scopeKey={scope}"
            reply = await send_until_done(self.world, member, "POST", path, {}, key=f"last {amendment}")
            if reply.status == 200:
                self._record_decision(amendment, member, reply)
        pending = await send_until_done(self.world, "ann@t", "GET", "oi-api/provenance/pending?limit=100")
        listed = {(each["ScopeKey"], each["RecordID"]) for each in pending.json["amendments"]}
        known = {(scope, record_id) for scope, record_id, _ in self._created.values()}
        self.world.require(not listed & known, f"decided amendments are listed as pending: {listed & known}")

    def check_invariants(self, folder: Path) -> None:
        """Compare the stored amendments and decisions with those that the service acknowledged."""
        authors: dict[tuple[str, str], str] = {}
        texts: dict[str, list[str]] = defaultdict(list)
        decisions: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
        for record in read_chains(self.world, folder):
            place = (record.get("ScopeKey", ""), record["RecordID"])
            if "AmendmentID" in record:
                actor = str(record.get("ApprovedBy") or record.get("RejectedBy"))
                decisions[place[0], record["AmendmentID"]].append((actor, place[1]))
            elif "AmendedBy" in record:
                authors[place] = record["AmendedBy"]
                texts[record["ReasonText"]].append(place[1])
        for text, (_, record_id, _) in self._created.items():
            self.world.require(texts[text] == [record_id], f"{text} is stored as {texts[text]}, not {record_id}")
        for text, records in texts.items():
            self.world.require(len(records) == 1, f"{text} is stored {len(records)} times")
        for place, made in decisions.items():
            self.world.require(len(made) == 1, f"amendment {place} has {len(made)} decisions")
            self.world.require(made[0][0] != authors.get(place), f"the author of {place} has decided")
        for place, decision in self._decided.items():
            self.world.require(decisions[place] == [decision], f"{place}: {decisions[place]}, not {decision}")
