"""Administration component: concurrent conditional changes of catalog items, and the audit event of each change."""

import json
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Final

from shared.catalog.document import load_document
from shared.catalog.models import WorkspaceDocument
from shared.errors import WorkspaceError
from shared.wiring import Services
from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.environment import DOCUMENT
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.world import World

_SURFACES: Final = "oi-api/surfaces"
_HALL: Final = f"{_SURFACES}/hall"
_YARD: Final = f"{_SURFACES}/yard"
_WORKSPACE: Final = "oi-api/workspace"
_PLAN: Final = "oi-api/workspace/document/plan"
_DOCUMENT_STEP: Final = 1_000
_VISIBLE_SECONDS: Final = 15
"""Time after which all instances use a change, as the documentation says."""

_MEMBERS: Final = ("ann@t", "bob@t", "eve@t")


@dataclass
class _Item:
    """Item whose name ends with a number that members increment.

    Attributes:
        entity: id of the item in audit events.
        text: name without the number.
        properties: properties that a change sends back as they were read.
        acknowledged: numbers of the acknowledged changes.
        attempted: numbers that requests have sent.
    """

    entity: str
    text: str
    properties: tuple[str, ...]
    acknowledged: set[int] = field(default_factory=set)
    attempted: set[int] = field(default_factory=lambda: {0})

    def build_body(self, read: Any, number: int, *, is_complete: bool = False) -> dict[str, Any]:
        """Build the body of a request that gives the item this number.

        Args:
            read: item as it was read.
            number: new number.
            is_complete: whether to send all properties that were read, also those that only the service sets.
        """
        # Changes of other items change these properties, and the service rejects an old value.
        complete = {name: value for name, value in read.items() if name not in {"queries", "stats"}}
        kept = complete if is_complete else {name: read[name] for name in self.properties}
        return {**kept, "name": f"{self.text} {number}"}

    def parse_number(self, item: Any) -> int:
        """Return the number at the end of an item's name; 0 if there is none."""
        content = json.loads(item) if isinstance(item, str) else item
        return int(str(content["name"]).removeprefix(self.text).strip() or 0)


class AdministrationComponent(Component):
    """Simulated members read the number in the name of an item, increment the number, and write it back.

    The items are a surface and the workspace. Sometimes, a command applies a workspace document, which sets both
    numbers to a multiple of 1,000. Members also create and delete the surface ``yard``.

    Invariants: no acknowledged change is lost, and no number is acknowledged twice; a change whose condition does not
    hold is not made; each stored change has exactly one audit event, and each audit event has a stored change; the
    events have the order of the changes. The surface ``yard`` is created and deleted alternately, and listed exactly if
    it was created last.
    """

    name: ClassVar[str] = "administration"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/catalog/administration.py",
        "shared/catalog/outbox.py",
        "shared/catalog/service.py",
        "shared/catalog/reader.py",
        "shared/versioned_cache.py",
        "shared/backends/embedded/catalog.py",
        "functions/surfaces.py",
    )
    weight: ClassVar[int] = 5

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._items = {
            _HALL: _Item("hall", "Hall", ("description", "connections")),
            _WORKSPACE: _Item("plant-t", "Test plant", ("description", "policies")),
        }
        self._yard: Counter[str] = Counter()
        self._is_yard_listed = False

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start members that change items concurrently, and sometimes a command that applies documents."""
        choices = self.world.random
        for number in range(choices.randint(2, 4)):
            yield self._change_items((*_MEMBERS, "ann@t")[number], choices.randint(1, 6))
        if choices.random() < 0.2:
            yield self._apply_documents(choices.randint(1, 2))

    async def _change_items(self, member: str, count: int) -> None:
        choices = self.world.random
        for _ in range(count):
            drawn = choices.random()
            if drawn < 0.03:
                await self._plan_document(member)
            elif drawn < 0.15:
                await self._change_yard(member)
            else:
                await self._increment_number(member, _WORKSPACE if drawn < 0.3 else _HALL)
            await self.world.sleep(choices.random() * 2)

    async def _plan_document(self, member: str) -> None:
        """Request the changes of a document whose numbers no item reaches; this changes nothing."""
        body, headers = _build_text(_DOCUMENT_STEP * 100).encode(), {"content-type": "application/yaml"}
        key = f"plan {self.world.scheduler.now}"
        reply = await send_until_final(self.world, member, "POST", _PLAN, body, key=key, headers=headers)
        if reply is not None:
            self.world.require(reply.status == 200, f"a plan got {reply.status} {reply.reply.body!r}")
            changed = {change["key"] for change in reply.json["changes"]}
            self.world.require("hall" in changed, f"a plan does not change the hall: {reply.json}")

    async def _increment_number(self, member: str, path: str) -> None:
        item = self._items[path]
        read = await send_until_final(self.world, member, "GET", path)
        if read is None:
            return
        wanted = item.parse_number(read.json) + 1
        # A member may send back an item with the properties that only the service sets.
        body = item.build_body(read.json, wanted, is_complete=self.world.random.random() < 0.2)
        item.attempted.add(wanted)
        headers = {"if-match": read.get_header("etag")}
        reply = await send_until_final(self.world, member, "PUT", path, body, headers=headers)
        if reply is None:
            return
        if reply.status == 200:
            number = item.parse_number(reply.json)
            self.world.require(number == wanted, f"{wanted} was answered by {reply.json}")
            self.world.require(wanted not in item.acknowledged, f"{wanted} was acknowledged twice")
            item.acknowledged.add(wanted)
        else:
            self.world.require(reply.status == 412, f"{wanted} was answered by {reply.status} {reply.reply.body!r}")

    async def _change_yard(self, member: str) -> None:
        """Delete the surface ``yard`` if it is listed, else create it."""
        listed = await send_until_final(self.world, member, "GET", _SURFACES)
        if listed is None:
            return
        surfaces = {each["lookup"]: each for each in listed.json["surfaces"]}
        self.world.require("hall" in surfaces, f"the surface hall is not listed, but {list(surfaces)}")
        if "yard" in surfaces:
            headers = {"if-match": surfaces["yard"]["etag"]} if self.world.random.random() < 0.5 else {}
            reply = await send_until_final(self.world, member, "DELETE", _YARD, headers=headers)
        else:
            body, headers = {"name": "Yard", "connections": ["press"]}, {"if-none-match": "*"}
            reply = await send_until_final(self.world, member, "PUT", _YARD, body, headers=headers)
        if reply is not None and reply.status in {201, 204}:
            self._yard["Created" if reply.status == 201 else "Removed"] += 1
        elif reply is not None:
            # The list can be older than the last change.
            self.world.require(reply.status in {404, 412}, f"the yard got {reply.status} {reply.reply.body!r}")

    async def _apply_documents(self, count: int) -> None:
        """Apply documents that give all items numbers that no member has reached."""
        for number in range(_DOCUMENT_STEP, (count + 1) * _DOCUMENT_STEP, _DOCUMENT_STEP):
            await self.world.sleep(self.world.random.random() * 4)
            document = _build_document(number)
            for item in self._items.values():
                item.attempted.add(number)

            async def apply_document(services: Services, document: WorkspaceDocument = document) -> bool:
                planned = await services.provenance.catalog_service.plan(document)
                made = await services.provenance.catalog_service.apply(document, "apply")
                return not planned.is_empty and not made.is_empty

            try:
                is_changed = await run_on_instance(self.world, apply_document)
            except WorkFailedError as error:
                self.world.trace(f"document {number} failed: {error}")
            except WorkspaceError as error:
                self.world.require(error.code == "CATALOG_CHANGED", f"document {number} failed: {error.code}")
            else:
                self.world.require(is_changed, f"document {number} changed nothing")
                for item in self._items.values():
                    item.acknowledged.add(number)

    async def complete_work(self) -> None:
        """Make one more change, which also appends a missing audit event of the previous change."""
        await self._increment_once_more(_HALL, self._items[_HALL])
        await self.world.sleep(_VISIBLE_SECONDS + 1)
        listed = await send_until_done(self.world, "ann@t", "GET", _SURFACES)
        self._is_yard_listed = any(each["lookup"] == "yard" for each in listed.json["surfaces"])

    async def _increment_once_more(self, path: str, item: _Item) -> None:
        while True:
            read = await send_until_done(self.world, "ann@t", "GET", path)
            wanted = item.parse_number(read.json) + 1
            body = item.build_body(read.json, wanted)
            item.attempted.add(wanted)
            headers = {"if-match": read.get_header("etag")}
            reply = await send_until_final(self.world, "ann@t", "PUT", path, body, headers=headers, attempts=100)
            if reply is not None and reply.status == 200:
                item.acknowledged.add(wanted)
                return

    def check_invariants(self, folder: Path) -> None:
        """Check that the audit events contain each number from 1 to the stored number, and each change of a surface."""
        events: dict[str, list[Any]] = defaultdict(list)
        for record in read_chains(self.world, folder):
            if record["Chain"] == "PlatformConfig/":
                events[record.get("EntityID", "")].append(record)
        for item in self._items.values():
            self._check_numbers(item, [one for one in events[item.entity] if "BeforeState" in one])
        self._check_yard([one["ActionType"].rpartition(".")[2] for one in events["yard"]])

    def _check_numbers(self, item: _Item, events: list[Any]) -> None:
        numbers = [(item.parse_number(one["BeforeState"]), item.parse_number(one["AfterState"])) for one in events]
        before = 0
        for read, written in numbers:
            is_next = read == before and (written == read + 1 or (written > read and written % _DOCUMENT_STEP == 0))
            self.world.require(is_next, f"the audit events of the changes are {numbers}")
            before = written
        missing = item.acknowledged - {after for _, after in numbers}
        self.world.require(not missing, f"acknowledged changes without an event: {missing}")
        self.world.require({after for _, after in numbers} <= item.attempted, "an event of a change that nobody made")

    def _check_yard(self, actions: list[str]) -> None:
        expected = [("Created", "Removed")[number % 2] for number in range(len(actions))]
        self.world.require(actions == expected, f"the audit events of the yard are {actions}")
        for action, count in self._yard.items():
            self.world.require(count <= actions.count(action), f"{count} times {action}, but the events are {actions}")
        is_stored = actions[-1:] == ["Created"]
        self.world.require(self._is_yard_listed == is_stored, f"the yard is listed: {self._is_yard_listed}, {actions}")


@cache
def _build_document(number: int) -> WorkspaceDocument:
    """Build the document of the workspace whose items have this number."""
    return load_document(_build_text(number), "workspace")


def _build_text(number: int) -> str:
    text = DOCUMENT.replace("name: Hall,", f"name: Hall {number},")
    return text.replace("name: Test plant}", f"name: Test plant {number}}}")
