"""Administration component: concurrent conditional changes of one item, and the audit event of each change."""

import json
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.chains import read_chains
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.world import World

_PATH = "oi-api/surfaces/hall"


class AdministrationComponent(Component):
    """Simulated members read the number in the description of a surface, increment the number, and write it back.

    Invariants: no acknowledged change is lost, and no number is acknowledged twice; a change whose condition does not
    hold is not made; each stored change has exactly one audit event, and each audit event has a stored change; the
    events have the order of the changes.
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
        self._acknowledged: set[int] = set()
        self._attempted: set[int] = {0}

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start members that increment the number concurrently."""
        for number in range(self.world.random.randint(2, 4)):
            yield self._increment_repeatedly(
                ("ann@t", "bob@t", "eve@t", "ann@t")[number], self.world.random.randint(1, 6)
            )

    async def _increment_repeatedly(self, member: str, count: int) -> None:
        for _ in range(count):
            await self._change_members(member)
            await self.world.sleep(self.world.random.random() * 2)

    async def _change_members(self, member: str) -> None:
        read = await send_until_final(self.world, member, "GET", _PATH)
        if read is None:
            return
        current = _parse_surface_number(read.json)
        tag = read.get_header("etag")
        wanted = current + 1
        body = {"name": f"Hall {wanted}", "connections": ["press", "lathe"]}
        self._attempted.add(wanted)
        reply = await send_until_final(self.world, member, "PUT", _PATH, body, headers={"if-match": tag})
        if reply is None:
            return
        if reply.status == 200:
            self.world.require(_parse_surface_number(reply.json) == wanted, f"{wanted} was answered by {reply.json}")
            self.world.require(wanted not in self._acknowledged, f"{wanted} was acknowledged twice")
            self._acknowledged.add(wanted)
        else:
            self.world.require(reply.status == 412, f"{wanted} was answered by {reply.status} {reply.reply.body!r}")

    async def complete_work(self) -> None:
        """Make one more change, which also appends a missing audit event of the previous change."""
        before = 0
        while not before:
            read = await send_until_done(self.world, "ann@t", "GET", _PATH)
            wanted = _parse_surface_number(read.json) + 1
            body = {"name": f"Hall {wanted}", "connections": ["press", "lathe"]}
            self._attempted.add(wanted)
            headers = {"if-match": read.get_header("etag")}
            reply = await send_until_final(self.world, "ann@t", "PUT", _PATH, body, headers=headers, attempts=100)
            if reply is not None and reply.status == 200:
                self._acknowledged.add(wanted)
                before = wanted

    def check_invariants(self, folder: Path) -> None:
        """Check that the audit events contain each number from 1 to the stored number."""
        events = [
            record
            for record in read_chains(self.world, folder)
            if record["Chain"] == "PlatformConfig/" and record.get("EntityID") == "hall" and "BeforeState" in record
        ]
        numbers = [
            (_parse_surface_number(one["BeforeState"]), _parse_surface_number(one["AfterState"])) for one in events
        ]
        expected = [(number, number + 1) for number in range(len(numbers))]
        self.world.require(numbers == expected, f"the audit events of the changes are {numbers}")
        missing = self._acknowledged - {after for _, after in numbers}
        self.world.require(not missing, f"acknowledged changes without an event: {missing}")
        self.world.require({after for _, after in numbers} <= self._attempted, "an event of a change that nobody made")


def _parse_surface_number(surface: Any) -> int:
    content = json.loads(surface) if isinstance(surface, str) else surface
    return int(str(content["name"]).removeprefix("Hall").strip() or 0)
