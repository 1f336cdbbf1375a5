"""Amendments component: members create, approve and reject amendments, with and without idempotency keys."""

from collections import defaultdict
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

from shared.errors import WorkspaceError
from shared.provenance.ports import ChainKey, Target
from shared.wiring import Services
from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.sign_in import SignIns
from tests.simulation.world import ApiReply, World

_SCOPES = ("line-1", "line-2")
_MEMBERS = ("ann@t", "bob@t", "eve@t")
_PATH = "oi-api/provenance/amendments"
_READERS = ("all", "pending", "approved", "entity", "report", "categories")


class AmendmentsComponent(Component):
    """Members create amendments, and approve or reject amendments of other members, sometimes also their own.

    They sign some of the decisions.

    Invariants: an acknowledged amendment is stored once; an amendment has at most one decision, and an acknowledged
    decision is this one; no member decides about an own amendment; a decision that the service rejects is not stored;
    equal requests get equal replies; an invalid amendment is rejected and not stored. A list contains each acknowledged
    amendment and decision, the list of pending amendments no decided amendment, and the report each amendment's reason.
    A decision has a signature of its member exactly if the member signed it.
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
        self._attempted: set[tuple[str, str]] = set()
        self._approvals: dict[str, set[str]] = defaultdict(set)
        self._sign_ins = SignIns(world)
        self._signed: dict[tuple[str, str], bool] = {}

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
            if self.world.random.random() < 0.1:
                await self._send_invalid_amendment(f"invalid {client}-{number}")
            await self.world.sleep(self.world.random.random() * 3)

    async def _create_amendment(self, text: str, attempts: int) -> None:
        scope, author = self.world.random.choice(_SCOPES), self.world.random.choice(_MEMBERS)
        body = _build_amendment(scope, text)
        reply = await send_until_final(self.world, author, "POST", _PATH, body, key=text, attempts=attempts)
        if reply is not None:
            self.world.require(reply.status == 201, f"{text} was answered by {reply.status} {reply.reply.body!r}")
            self._created[text] = (scope, reply.json["RecordID"], author)

    async def _send_invalid_amendment(self, text: str) -> None:
        """Send an amendment of an unnamed entity; :meth:`check_invariants` finds it if the service stores it."""
        body = _build_amendment(_SCOPES[0], text) | {"EntityID": "", "ReasonCategory": "unknown"}
        reply = await send_until_final(self.world, "ann@t", "POST", _PATH, body, key=text)
        if reply is not None:
            self.world.require(reply.status == 400, f"an invalid amendment was answered by {reply.status}")

    async def _decide_often(self, client: int, count: int) -> None:
        choices = self.world.random
        for number in range(count):
            if self._created and choices.random() < 0.25:
                await self._read_amendments(choices.choice(_SCOPES), choices.choice(_READERS))
            elif self._created:
                await self._decide_amendment(
                    f"decision {client}-{number}", self.world.random.choice(list(self._created)), 0
                )
            await self.world.sleep(self.world.random.random() * 3)

    async def _decide_amendment(self, text: str, amendment: str, attempts: int) -> None:
        scope, record_id, author = self._created[amendment]
        member, verb = self.world.random.choice(_MEMBERS), self.world.random.choice(("approve", "reject"))
        self._attempted.add((scope, record_id))
        path = f"{_PATH}/{record_id}/{verb}?scopeKey={scope}"
        body: dict[str, Any] = {"RejectionReason": text} if verb == "reject" else {}
        key = text if self.world.random.random() < 0.8 else ""
        sign_in = await self._sign_ins.sign_in_sometimes(member)
        if sign_in is not None:
            body["signature"] = {"meaning": "rejection" if verb == "reject" else "approval"}
        headers, attempts = None if sign_in is None else sign_in.headers, attempts if key else 1
        reply = await send_until_final(
            self.world, member, "POST", path, body, key=key, headers=headers, attempts=attempts
        )
        if reply is None or (sign_in is not None and sign_in.may_be_rejected(reply)):
            return
        if reply.status == 200:
            self._record_decision(amendment, member, reply)
            self._signed[scope, reply.json["RecordID"]] = sign_in is not None
            self.world.require(member != author, f"{member} has decided about an own amendment")
        elif reply.code == "MAKER_CHECKER_VIOLATION":
            self.world.require(member == author, f"{member} may decide about an amendment of {author}")
        else:
            self.world.require(reply.code == "AMENDMENT_NOT_PENDING", f"{path}: {reply.status} {reply.reply.body!r}")

    def _record_decision(self, amendment: str, member: str, reply: ApiReply) -> None:
        scope, record_id, _ = self._created[amendment]
        decision = (member, reply.json["RecordID"])
        if "ApprovedBy" in reply.json:
            self._approvals[scope].add(decision[1])
        known = self._decided.setdefault((scope, record_id), decision)
        self.world.require(known == decision, f"{amendment} was decided twice: {known}, {decision}")

    async def _read_amendments(self, scope: str, reader: str) -> None:
        """Read the amendments of a scope in one of several ways, and compare them with the acknowledged requests.

        Args:
            scope: scope of the amendments.
            reader: status of the listed records, or one of ``all``, ``entity``, ``report`` and ``categories``.
        """
        texts = {text: record_id for text, (place, record_id, _) in self._created.items() if place == scope}
        decided = {place[1]: made[1] for place, made in self._decided.items() if place[0] == scope}
        path, headers = f"{_PATH}?scopeKey={scope}&limit=1000", {"accept": "application/json"}
        if reader in {"entity", "report"}:
            path = f"{_PATH}/chain?scopeKey={scope}&entityId=1"
            headers = {"accept": "text/html"} if reader == "report" else headers
        elif reader == "categories":
            path = "oi-api/provenance/reason-categories"
        elif reader != "all":
            path += f"&status={reader}"
        if reader == "report" and self.world.random.random() < 0.5:
            await self._create_checkpoint(scope)
        reply = await send_until_final(self.world, self.world.random.choice(_MEMBERS), "GET", path, headers=headers)
        if reply is None:
            return
        self.world.require(reply.status == 200, f"{path}: {reply.status} {reply.reply.body!r}")
        if reader == "categories":
            self.world.require("data-entry-error" in reply.json["categories"], f"the categories are {reply.json}")
            return
        if reader == "report":
            page = reply.reply.body.decode()
            missing = [text for text in texts if text not in page]
            self.world.require(not missing, f"the report of {scope} contains no {missing}")
            return
        listed = [record["RecordID"] for record in reply.json]
        self.world.require(len(listed) == len(set(listed)), f"{path} lists a record twice: {listed}")
        if reader == "pending":
            self.world.require(not decided.keys() & set(listed), f"decided amendments are listed as pending: {listed}")
            wanted = {each for each in texts.values() if (scope, each) not in self._attempted}
        elif reader == "approved":
            wanted = {decision for decision in decided.values() if decision in self._approvals[scope]}
        else:
            wanted = {*texts.values(), *decided.values()}
            in_order = sorted(listed, reverse=reader == "all")
            self.world.require(listed == in_order, f"{path} is out of order: {listed}")
        self.world.require(wanted <= set(listed), f"{path} lists {listed} without {wanted - set(listed)}")

    async def _create_checkpoint(self, scope: str) -> None:
        """Create a checkpoint of the amendments of a scope, which the report then contains."""

        async def create_checkpoint(services: Services) -> None:
            await services.provenance.checkpoints.create_if_grown(ChainKey(Target.DOMAIN_AMENDMENTS, scope))

        try:
            await run_on_instance(self.world, create_checkpoint)
        except WorkFailedError as error:
            self.world.trace(f"no checkpoint of {scope}: {error}")
        except WorkspaceError as error:
            # A record can be ahead of clocks that were set back.
            self.world.require(error.code == "CHECKPOINT_REFUSED", f"no checkpoint of {scope}: {error.code}")

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
                self._check_signature(place, actor, record.get("Signature"))
                decisions[place[0], record["AmendmentID"]].append((actor, place[1]))
            elif "AmendedBy" in record:
                authors[place] = record["AmendedBy"]
                texts[record["ReasonText"]].append(place[1])
        for text, (_, record_id, _) in self._created.items():
            self.world.require(texts[text] == [record_id], f"{text} is stored as {texts[text]}, not {record_id}")
        for text, records in texts.items():
            self.world.require(len(records) == 1, f"{text} is stored {len(records)} times")
            self.world.require(not text.startswith("invalid"), f"the invalid amendment {text} is stored")
        for place, made in decisions.items():
            self.world.require(len(made) == 1, f"amendment {place} has {len(made)} decisions")
            self.world.require(made[0][0] != authors.get(place), f"the author of {place} has decided")
        for place, decision in self._decided.items():
            self.world.require(decisions[place] == [decision], f"{place}: {decisions[place]}, not {decision}")

    def _check_signature(self, place: tuple[str, str], actor: str, signature: Any) -> None:
        is_right = signature is None or signature["UserID"] == actor
        is_right = is_right and self._signed.get(place, signature is not None) == (signature is not None)
        self.world.require(is_right, f"the decision {place} of {actor} has the signature {signature}")


def _build_amendment(scope: str, text: str) -> dict[str, Any]:
    return {
        "ScopeKey": scope,
        "EntityType": "Batch",
        "EntityID": "1",
        "OriginalRecord": {"value": 1},
        "AmendedRecord": {"value": 2},
        "ChangedFields": ["value"],
        "ReasonCategory": "data-entry-error",
        "ReasonText": text,
    }
