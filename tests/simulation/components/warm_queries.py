"""Warm query component: members edit, approve, reject and execute queries."""

import re
from collections import Counter
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.ipc

from tests.simulation.chains import read_chains
from tests.simulation.client import TRANSIENT, send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.sign_in import SignIns
from tests.simulation.world import ApiReply, ConnectionLostError, World

_LOOKUPS: Final = ("speed", "load")
_MEMBERS: Final = ("ann@t", "bob@t", "eve@t")
_PATH: Final = "oi-api/warm-queries"
_PATH_BY_ID: Final = "api/workspaces/explorer/warm-queries"
_ARROW: Final = "application/vnd.apache.arrow.stream"
_TEXT: Final = re.compile(r"print Text = '([^']*)'")
_VISIBLE: Final = 15 * MICROSECONDS
"""Time after which all instances use a change, as the documentation says."""

_OUTDATED: Final = frozenset({403, 404, 409, 412})
"""Statuses of a request that came too late: another request has changed the query."""


class WarmQueriesComponent(Component):
    """Members edit and execute two queries, and approve or reject drafts, sometimes also their own.

    Each change names the version that the member has read. Invariants: a version has one decision, of another member
    than its author; an approval approves the text that the member has read; an executed text was approved, and is the
    acknowledged one if no other change is under way; a query without an approval does not run; the stored events are
    edits with at most one decision each.
    """

    name: ClassVar[str] = "warm-queries"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/warm_queries/definitions.py",
        "shared/warm_queries/service.py",
        "shared/warm_queries/columns.py",
        "functions/warm_query_definitions.py",
        "functions/warm_queries.py",
    )
    weight: ClassVar[int] = 6

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._asked: set[str] = set()
        self._signers: dict[tuple[str, str, str], set[str]] = {}
        self._sign_ins = SignIns(world)
        self._decisions: dict[str, tuple[str, str]] = {}
        self._changes = dict.fromkeys(_LOOKUPS, 0)
        self._open = dict.fromkeys(_LOOKUPS, 0)
        self._known: dict[str, tuple[str, int] | None] = dict.fromkeys(_LOOKUPS)

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start members that edit queries, members that decide about drafts, and members that execute queries."""
        choices = self.world.random
        for number in range(choices.randint(1, 2)):
            yield self._write_drafts(number, choices.randint(1, 4))
        for number in range(choices.randint(1, 3)):
            yield self._decide_often(number, choices.randint(2, 6))
        for _ in range(choices.randint(1, 2)):
            yield self._execute_often(choices.randint(4, 12))

    async def _read_query(self, member: str, lookup: str) -> Any:
        """Return a query's definition; None if it is missing or the read failed."""
        reply = await send_until_final(self.world, member, "GET", _PATH)
        listed = [] if reply is None else reply.json["warmQueries"]
        return next((each for each in listed if each["lookup"] == lookup), None)

    async def _write_drafts(self, client: int, count: int) -> None:
        choices = self.world.random
        for number in range(count):
            member, lookup = choices.choice(_MEMBERS), choices.choice(_LOOKUPS)
            before = await self._read_query(member, lookup)
            if before is not None and choices.random() < 0.15:
                await self._delete_query(member, before)
            else:
                await self._write_draft(member, lookup, before, f"draft {client}-{number}")
            if choices.random() < 0.1:
                await self._send_invalid_draft(member)
            await self.world.sleep(choices.random() * 20)

    async def _write_draft(self, member: str, lookup: str, before: Any, text: str) -> None:
        condition = {"if-none-match": "*"} if before is None else {"if-match": before["etag"]}
        kql, cached = f"print Text = '{text}'", self.world.random.choice((0, 0, 60))
        body = {"name": lookup, "surface": "hall", "kql": kql, "cacheSeconds": cached}
        if self.world.random.random() < 0.2:
            # A client may send a property that only the service sets; the service compares it with the stored value.
            body |= {"lookup": lookup}
        reply = await self._send_change(lookup, "", member, "PUT", f"{_PATH}/{lookup}", body, condition, key="")
        if reply is not None and reply.status not in _OUTDATED:
            self.world.require(reply.status in {200, 201}, f"{kql} got {reply.status} {reply.reply.body!r}")

    async def _delete_query(self, member: str, before: Any) -> None:
        lookup, condition = before["lookup"], {"if-match": before["etag"]}
        reply = await self._send_change(lookup, "", member, "DELETE", f"{_PATH}/{lookup}", None, condition, key="")
        if reply is not None and reply.status not in _OUTDATED:
            self.world.require(reply.status == 204, f"a deletion got {reply.status} {reply.reply.body!r}")

    async def _send_invalid_draft(self, member: str) -> None:
        """Send a query of a missing surface; :meth:`complete_work` finds it if the service stores it."""
        body = {"name": "Invalid", "surface": "nowhere", "kql": "print Text = 'invalid'", "cacheSeconds": -1}
        reply = await send_until_final(self.world, member, "PUT", f"{_PATH}/invalid", body)
        if reply is not None:
            self.world.require(reply.status == 400, f"an invalid query got {reply.status} {reply.reply.body!r}")

    async def _send_change(
        self, lookup: str, text: str, member: str, method: str, path: str, body: Any, headers: Any, *, key: str
    ) -> ApiReply | None:
        """Send a change of a query.

        Unless another change runs at the same time, note the text that queries must run afterwards.
        """
        self._changes[lookup] += 1
        self._open[lookup] += 1
        number, self._known[lookup] = self._changes[lookup], None
        attempts = 0 if key else 1
        reply = await send_until_final(
            self.world, member, method, path, body, key=key, headers=headers, attempts=attempts
        )
        self._open[lookup] -= 1
        is_last = self._open[lookup] == 0 and self._changes[lookup] == number
        if reply is not None and reply.status in {200, 201, 204} and is_last:
            self._known[lookup] = (text, self.world.scheduler.now)
        return reply

    async def _decide_often(self, client: int, count: int) -> None:
        for number in range(count):
            await self.world.sleep(self.world.random.random() * 12)
            await self._decide_draft(f"decision {client}-{number}", self.world.random.choice(_LOOKUPS))

    async def _decide_draft(self, name: str, lookup: str) -> None:
        """Approve or reject the draft that the member has read."""
        member, verb = self.world.random.choice(_MEMBERS), self.world.random.choice(("approve", "approve", "reject"))
        sign_in = await self._sign_ins.sign_in_sometimes(member)
        draft = await self._read_query(member, lookup)
        if draft is None or draft["approval"] is not None or draft["rejection"] is not None:
            return
        text, path = _read_text(draft["kql"]), f"{_PATH}/{lookup}/{verb}"
        headers = {"if-match": draft["etag"], **({} if sign_in is None else sign_in.headers)}
        body: dict[str, Any] = {} if verb == "approve" else {"comment": name}
        if sign_in is not None:
            body["signature"] = {"meaning": "approval" if verb == "approve" else "rejection"}
        self._asked |= {text} if verb == "approve" else set()
        # A repeated decision gets the first one of the member, which can have been made in the other way.
        signers = self._signers.setdefault((draft["etag"], member, verb), set())
        signers.add("" if sign_in is None else member)
        key = name if self.world.random.random() < 0.8 else ""
        runs = text if verb == "approve" else ""
        reply = await self._send_change(lookup, runs, member, "POST", path, body, headers, key=key)
        if reply is None or (sign_in is not None and sign_in.may_be_rejected(reply)):
            return
        if reply.status == 200:
            self._record_decision(draft, member, verb, reply.json)
            made = reply.json["approval" if verb == "approve" else "rejection"]
            signer = made.get("signature", {}).get("userId", "")
            self.world.require(signer in signers, f"{member} decided, but got {made}")
        elif reply.code == "MAKER_CHECKER_VIOLATION":
            self._check_refused_author(draft, member)
        else:
            self.world.require(reply.status in _OUTDATED, f"{name} got {reply.status} {reply.reply.body!r}")

    def _check_refused_author(self, draft: Any, member: str) -> None:
        # The version that the service compares may be newer than the one that the member has read.
        is_possible = draft["editedBy"] == member or self._changes[draft["lookup"]] > 1
        self.world.require(is_possible, f"{member} may decide about a draft of {draft['editedBy']}")

    def _record_decision(self, draft: Any, member: str, verb: str, decided: Any) -> None:
        made = decided["approval"] if verb == "approve" else decided["rejection"]
        actor = made["approvedBy" if verb == "approve" else "rejectedBy"]
        self.world.require(decided["kql"] == draft["kql"], f"{member} decided about another text: {decided['kql']}")
        self.world.require(actor == member, f"the decision of {member} is that of {actor}")
        self.world.require(draft["editedBy"] != member, f"{member} has decided about an own draft")
        known = self._decisions.setdefault(draft["etag"], (member, verb))
        self.world.require(known == (member, verb), f"a draft has two decisions: {known}, {member} {verb}")

    async def _execute_often(self, count: int) -> None:
        for _ in range(count):
            await self.world.sleep(self.world.random.random() * 10)
            await self._execute_query(self.world.random.choice(_LOOKUPS))
            if self.world.random.random() < 0.15:
                await self._execute_text(f"ad-hoc {self.world.random.randint(1, 9)}")

    async def _execute_text(self, text: str) -> None:
        """Execute a text that is not a saved query; the reply has one value of this text."""
        accept = self.world.random.choice(("application/json", "text/csv"))
        body, headers = {"query": f"print Text = '{text}'"}, {"accept": accept}
        reply = await send_until_final(self.world, "ann@t", "POST", _PATH, body, headers=headers)
        if reply is not None:
            found = reply.reply.body.decode().count(text)
            self.world.require(reply.status == 200 and found == 1, f"{text} got {reply.status} {reply.reply.body!r}")

    async def _execute_query(self, lookup: str) -> bool:
        """Execute a query and check which text ran; return whether a final reply arrived."""
        known, sent_at = self._known[lookup], self.world.scheduler.now
        path = self.world.random.choice((_PATH, _PATH, _PATH, _PATH_BY_ID))
        headers = {"accept": _ARROW if self.world.random.random() < 0.2 else "application/json"}
        try:
            reply = await self.world.send("viewer@t", "GET", f"{path}/{lookup}", headers=headers)
        except ConnectionLostError:
            return False
        if reply.status in TRANSIENT:
            return False
        if reply.status == 200:
            is_arrow = reply.get_header("content-type").startswith(_ARROW)
            rows = pa.ipc.open_stream(reply.reply.body).read_all().to_pylist() if is_arrow else reply.json["results"]
            text = rows[0]["Text"]
            self.world.require(text in self._asked, f"{text} runs, but nobody has approved it")
        else:
            self.world.require(reply.status in {403, 404}, f"{lookup} got {reply.status} {reply.reply.body!r}")
            text = ""
        if known is not None and known == self._known[lookup] and sent_at > known[1] + _VISIBLE:
            self.world.require(text == known[0], f"{lookup} runs {text!r}, but {known[0]!r} was acknowledged")
        return True

    async def complete_work(self) -> None:
        """Execute the stored queries, and make one more change, which also appends a missing earlier audit event."""
        await self.world.sleep(_VISIBLE / MICROSECONDS + 1)
        listed = await send_until_done(self.world, "ann@t", "GET", _PATH)
        queries = {each["lookup"]: each for each in listed.json["warmQueries"]}
        self.world.require("invalid" not in queries, "an invalid query is stored")
        for lookup in _LOOKUPS:
            query = queries.get(lookup)
            text = _read_text(query["kql"]) if query is not None and query["approval"] is not None else ""
            known = self._known[lookup]
            self.world.require(known is None or known[0] == text, f"{text!r} is stored, but {known} was acknowledged")
            self._known[lookup] = (text, 0)
        for lookup in _LOOKUPS:
            while not await self._execute_query(lookup):
                await self.world.sleep(1)
        body = {"name": "Last", "surface": "hall", "kql": "print Text = 'last'"}
        await send_until_done(self.world, "ann@t", "PUT", f"{_PATH}/last", body)

    def check_invariants(self, folder: Path) -> None:
        """Check that each version has at most one decision, by another member than its author."""
        authors: dict[str, str] = {}
        decided: Counter[str] = Counter()
        decisions: Counter[tuple[str, str]] = Counter()
        for record in read_chains(self.world, folder):
            lookup = record.get("EntityID", "")
            if record["Chain"] != "PlatformConfig/" or lookup not in _LOOKUPS:
                continue
            verb = record["ActionType"].rpartition(".")[2]
            if verb not in {"Approved", "Rejected"}:
                authors[lookup], decided[lookup] = record["UserID"], 0
                continue
            decided[lookup] += 1
            decisions[record["UserID"], verb] += 1
            self.world.require(decided[lookup] == 1, f"a version of {lookup} has {decided[lookup]} decisions")
            self.world.require(record["UserID"] != authors[lookup], f"the author of {lookup} has decided")
        names = {"approve": "Approved", "reject": "Rejected"}
        for (member, verb), count in Counter(self._decisions.values()).items():
            stored = decisions[member, names[verb]]
            self.world.require(stored >= count, f"{count} decisions of {member} were acknowledged, {stored} are stored")


def _read_text(kql: str) -> str:
    found = _TEXT.search(kql)
    return found[1] if found else ""
