"""Telemetry component: messages are accepted, ingested, archived, compacted and read; deliveries are repeated."""

import json
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow.parquet as pq

from shared.backends.embedded.hub import HubReader
from shared.backends.embedded.hub_retention import PATH_TO_ARCHIVE
from shared.cold_data.archive import Compaction
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB, HubEvent
from shared.wiring import Services
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.job_files import DatedBlobs
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.world import ApiReply, World
from tests.virtual_time import START

CONNECTIONS: Final = ("press", "lathe")
PARTITIONS: Final = ("0", "1")
FIRST_HOUR: Final = START - timedelta(hours=4)
END: Final = START - timedelta(hours=2)
_QUIET: Final = timedelta(seconds=30)
_ACCEPTED: Final = 202


class TelemetryComponent(Component):
    """Clients send messages; an event hub delivers each message at least once to the ingestion and the archive.

    After a failure or a crash, the hub delivers again, in batches with other boundaries; sometimes a process that lost
    its partition works on. Meanwhile the archive is merged and read.

    Invariants: each acknowledged message is in the archive, and readers return it exactly once, with its content; no
    other message is there; an archived message is found by each later read; each event of the hub is counted once;
    the blobs of an hour become one blob.
    """

    name: ClassVar[str] = "telemetry"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/telemetry/acceptance.py",
        "shared/telemetry/ingest.py",
        "shared/cold_data/archive.py",
        "shared/cold_data/inventory.py",
        "shared/cold_data/reading.py",
        "shared/backends/embedded/hub.py",
        "shared/backends/embedded/connection_states.py",
        "shared/backends/embedded/blobs.py",
        "shared/backends/embedded/sqlite.py",
        "functions/telemetry.py",
    )
    owned: ClassVar[str] = "archive"
    weight: ClassVar[int] = 1
    cosmos_weight: ClassVar[int] = 1

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._sent: dict[str, str] = {}
        self._accepted: set[str] = set()
        self._archived: set[str] = set()
        self._sending = 0
        self._offsets: Counter[tuple[str, str]] = Counter()

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that send messages, the delivery of events, the compaction, and reads of the archive."""
        for client in range(self.world.random.randint(1, 3)):
            self._sending += 1
            yield self._send_messages(client, self.world.random.randint(1, 5))
        for partition in PARTITIONS:
            yield self._deliver_while_sending(TELEMETRY_HUB, partition)
            yield self._deliver_while_sending(IMPULSES_HUB, partition)
        for _ in range(self.world.random.randint(0, 2)):
            yield self._merge_while_sending()
        yield self._read_while_sending()

    async def _send_messages(self, client: int, requests: int) -> None:
        choices = self.world.random
        for number in range(requests):
            connection = choices.choice(CONNECTIONS)
            count = choices.randint(1, 4)
            names = [f"{connection}-{client}-{number}-{each}" for each in range(count)]
            self._sent |= dict.fromkeys(names, connection)
            body = [self._build_message(name) for name in names]
            reply = await self._send_body(f"oi-api/telemetry/{connection}", body)
            if reply is not None:
                self.world.require(reply.status == _ACCEPTED, f"{names} got {reply.status} {reply.reply.body!r}")
                self._accepted.update(names)
            await self.world.sleep(choices.random() * 30)
        self._sending -= 1

    async def _send_body(self, path: str, messages: Sequence[dict[str, Any]]) -> ApiReply | None:
        """Send messages as a JSON array or, sometimes, as lines; also send a body that is not JSON sometimes."""
        drawn = self.world.random.random()
        if drawn < 0.1:
            reply = await send_until_final(self.world, "ann@t", "POST", path, b'[{"messageId": "broken"}, {')
            self.world.require(reply is None or reply.status == 400, "a body that is not JSON was accepted")
        # A client that got no reply sends the same messages again.
        if drawn < 0.7:
            return await send_until_final(self.world, "ann@t", "POST", path, messages)
        lines = "".join(f"{json.dumps(message)}\n" for message in messages).encode()
        headers = {"content-type": "application/x-ndjson"}
        return await send_until_final(self.world, "ann@t", "POST", path, lines, headers=headers)

    def attach(self, services: Services) -> None:
        """Give archive files virtual times, and shorten the archive's waits from minutes to seconds."""
        runtime = services.runtime
        blobs = DatedBlobs(self.world.folder / "blobs" / "cold", runtime, self.world.scheduler)
        compaction = Compaction(blobs, _QUIET, services.cold_data.scratch, runtime=runtime)
        vars(services.cold_data).update(blobs=blobs, compaction=compaction)

    def _build_message(self, name: str) -> dict[str, Any]:
        return {"messageId": name, "timestamp": format_time(self._draw_time()), "name": name}

    def _draw_time(self) -> datetime:
        return FIRST_HOUR + (END - FIRST_HOUR) * self.world.random.random()

    async def _deliver_while_sending(self, hub: str, partition: str) -> None:
        while self._sending:
            await self._deliver_batch(hub, partition)
            await self.world.sleep(self.world.random.random() * 3)

    async def _deliver_batch(self, hub: str, partition: str) -> bool:
        """Deliver the next batch of a partition; return False if it has no more events."""
        batch = self._read_hub(hub, partition, self.world.random.randint(1, 12))
        if not batch:
            return False
        try:
            if self.world.random.random() < 0.1 and self.world.faults.delivered_twice:
                # The former owner of the partition processes the batch at the same time.
                await self._process_twice(hub, batch)
            else:
                await self._process_batch(hub, batch)
        except WorkFailedError:
            return True
        if self.world.random.random() >= self.world.faults.reply_lost:
            self._offsets[hub, partition] = max(self._offsets[hub, partition], batch[-1].sequence_number)
            self._store_offset(hub, partition)
        return True

    def _store_offset(self, hub: str, partition: str) -> None:
        """Store the archive's offset in a partition, from which the service computes the progress of the archive."""
        group = dict(PATH_TO_ARCHIVE)[hub]
        self._hub_reader.store_offset(hub, group, partition, self._offsets[hub, partition])

    async def _process_twice(self, hub: str, batch: Sequence[HubEvent]) -> None:
        try:
            await self._process_batch(hub, batch[: self.world.random.randint(1, len(batch))])
        except WorkFailedError:
            self.world.trace("the former owner failed")
        await self._process_batch(hub, batch)

    async def _process_batch(self, hub: str, batch: Sequence[HubEvent]) -> None:
        async def process_batch(services: Services) -> None:
            if hub == TELEMETRY_HUB:
                await services.telemetry.ingestor.run(TELEMETRY_HUB, batch)
            else:
                await services.cold_data.archive.store_events(batch)

        await run_on_instance(self.world, process_batch)
        if hub == IMPULSES_HUB:
            self._archived.update(json.loads(event.body)["ID"] for event in batch)

    def _read_hub(self, hub: str, partition: str, limit: int) -> list[HubEvent]:
        if not self._hub_file.exists():
            return []
        return self._hub_reader.read(hub, partition, self._offsets[hub, partition], limit)

    @property
    def _hub_file(self) -> Path:
        return self.world.folder / "hub.sqlite"

    @cached_property
    def _hub_reader(self) -> HubReader:
        """Reader of the hub, which stays open for the whole world, because opening the file takes long."""
        return HubReader(self._hub_file)

    async def _merge_while_sending(self) -> None:
        while self._sending:
            await self.world.sleep(self.world.random.random() * 40)
            await self._merge_hours()

    async def _merge_hours(self) -> None:
        async def merge_hours(services: Services) -> int:
            return await services.cold_data.compaction.merge_due_hours_and_count_them(services.runtime.now())

        try:
            merged = await run_on_instance(self.world, merge_hours)
            self.world.trace(f"merged {merged} hours")
        except WorkFailedError as error:
            self.world.trace(f"merge failed: {error}")

    async def _read_while_sending(self) -> None:
        while self._sending:
            await self.world.sleep(self.world.random.random() * 60)
            for connection in CONNECTIONS:
                await self._read_archive(connection)

    async def _read_archive(self, connection: str) -> bool:
        """Read a connection's archive and check the messages; return False if the read failed."""
        known = {name for name in self._archived if self._sent[name] == connection}

        async def read_rows(services: Services) -> list[tuple[str, str]]:
            rows = services.cold_data.reader.stream_rows(connection, FIRST_HOUR, END)
            return [
                (row["messageId"], json.loads(row["payload"])["name"])
                async for batch in rows
                for row in batch.to_pylist()
            ]

        try:
            found = await run_on_instance(self.world, read_rows)
        except WorkFailedError:
            return False
        twice = [name for name, count in Counter(name for name, _ in found).items() if count > 1]
        self.world.require(not twice, f"a reader gets messages twice: {twice}")
        missing = known - {name for name, _ in found}
        self.world.require(not missing, f"archived messages are missing: {missing}")
        self.world.require(all(name == content for name, content in found), "messages have the content of others")
        self.world.require({name for name, _ in found} <= self._sent.keys(), "a reader gets messages that nobody sent")
        return True

    async def complete_work(self) -> None:
        """Deliver all remaining events, compact each hour, and read each connection."""
        await self._deliver_all()
        while any(count > 1 for count in self._count_blobs().values()):
            await self.world.sleep(_QUIET.total_seconds())
            await self._merge_hours()
        for connection in CONNECTIONS:
            while not await self._read_archive(connection):
                await self.world.sleep(1)
        await self._check_counts()

    async def _deliver_all(self) -> None:
        for hub in (TELEMETRY_HUB, IMPULSES_HUB):
            for partition in PARTITIONS:
                while await self._deliver_batch(hub, partition):
                    await self.world.sleep(0.1)
        self.world.require(self._archived >= self._accepted, f"not archived: {self._accepted - self._archived}")

    async def _check_counts(self) -> None:
        expected: Counter[str] = Counter()
        self._offsets.clear()
        for partition in PARTITIONS:
            expected.update(event.partition_key for event in self._read_hub(TELEMETRY_HUB, partition, 100_000))
        for connection in CONNECTIONS:
            reply = await send_until_done(self.world, "ann@t", "GET", f"oi-api/connections/{connection}")
            counted = reply.json["stats"]["messagesReceived"]
            self.world.require(
                counted == expected[connection], f"{connection} counts {counted} of {expected[connection]} messages"
            )

    def _count_blobs(self) -> Counter[Path]:
        return Counter(path.parent for path in (self.world.folder / "blobs" / "cold").glob("impulses/**/*.parquet"))

    def check_invariants(self, folder: Path) -> None:
        """Check the rows in all archive blobs."""
        stored: Counter[tuple[str, str, int]] = Counter()
        names: set[str] = set()
        for path in sorted((folder / "blobs" / "cold").glob("impulses/**/*.parquet")):
            for row in pq.read_table(path).to_pylist():
                stored[path.parts[-6], row["partition"], row["sequence"]] += 1
                names.add(row["message_id"])
        self.world.require(all(count == 1 for count in stored.values()), "an event is in two rows after the last merge")
        self.world.require(self._accepted <= names, f"not in the archive: {self._accepted - names}")
        self.world.require(names <= self._sent.keys(), f"in the archive, but never sent: {names - self._sent.keys()}")


def format_time(moment: datetime) -> str:
    """Return a time in the format of messages and requests."""
    return moment.isoformat().replace("+00:00", "Z")
