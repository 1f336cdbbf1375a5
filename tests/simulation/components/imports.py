"""Import component: jobs add files with old messages to the archive and the query table."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow.parquet as pq

from shared.wiring import Services
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.components.telemetry import CONNECTIONS, TelemetryComponent, format_time
from tests.simulation.job_files import (
    attach_files,
    expire_jobs,
    find_linked_file,
    read_linked_file,
    require_no_files,
    require_nothing_left,
)
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.telemetry_table import SimulatedTable
from tests.simulation.world import ConnectionLostError, World
from tests.virtual_time import START

_PATH: Final = "oi-api/imports"
_MEMBERS: Final = ("ann@t", "bob@t")
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})
_START_CODES: Final = frozenset({"IMPORT_ENDED"})
_MAPPING: Final = {"timestamp": "time", "messageId": "id", "columns": ["name"]}


@dataclass
class _File:
    """File that a simulated member imports.

    Attributes:
        member: member who imports it.
        connection: connection that receives its messages.
        lines: its lines: the name of a message, or None for a line that is not a message.
        status: last status that the member has read.
        is_cancelled: True after a request to cancel the import.
        is_started: True after a request to start the import.
        has_work: True after the service has confirmed the start.
    """

    member: str
    connection: str
    lines: Sequence[str | None]
    status: str = "pending"
    is_cancelled: bool = False
    is_started: bool = False
    has_work: bool = False

    @property
    def names(self) -> set[str]:
        """Ids of the messages in the file."""
        return {name for name in self.lines if name is not None}


class ImportsComponent(TelemetryComponent):
    """Members import files that share some messages, while the archive is compacted and read.

    Invariants: an import ends with one status; a completed one has counted each line of its file once, as accepted,
    duplicate or rejected, lists the rejected ones, and has added its messages to the archive, whose readers return each
    once, and to the query table; after the last fault, every import ends; then archive and query table have the same
    messages; after their lifetime, no job, no file and no reservation of a quota is left.
    """

    name: ClassVar[str] = "imports"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/imports/service.py",
        "shared/imports/work.py",
        "shared/imports/archive_writer.py",
        "shared/imports/preview.py",
        "shared/imports/uploads.py",
        "functions/imports.py",
        "functions/import_jobs.py",
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._files: dict[str, _File] = {}
        self._table = SimulatedTable(world)
        faults = world.faults
        self._is_calm = not (world.stores_fail or faults.request_lost or faults.reply_lost or faults.crash)

    def attach(self, services: Services) -> None:
        """Give import files virtual modification times, and make all processes use one query table."""
        super().attach(services)
        attach_files(self.world, services)
        vars(services.imports).update(_telemetry_table=self._table)

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start members that import files, runs of the compaction, and reads of the archive."""
        choices = self.world.random
        for number in range(choices.randint(1, 3)):
            self._sending += 1
            yield self._import_often(number, choices.randint(1, 2))
        for _ in range(choices.randint(0, 1)):
            yield self._merge_while_sending()
        yield self._read_while_sending()

    async def _import_often(self, client: int, count: int) -> None:
        choices = self.world.random
        for number in range(count):
            await self.world.sleep(choices.random() * 20)
            file = self._draw_file()
            job = await self._create_import(file, f"import {client}-{number}")
            if job is not None:
                await self._read_until_ended(job)
            if choices.random() < 0.3:
                await self._list_imports(choices.choice(_MEMBERS))
        self._sending -= 1

    async def _list_imports(self, member: str) -> None:
        """List a member's imports; those that were acknowledged before are listed once."""
        known = {job for job, file in self._files.items() if file.member == member}
        reply = await send_until_final(self.world, member, "GET", _PATH)
        if reply is not None:
            self.world.require(reply.status == 200, f"a list got {reply.status} {reply.reply.body!r}")
            listed = Counter(each["importId"] for each in reply.json["imports"])
            self.world.require(all(listed[job] == 1 for job in known), f"a list has {listed}, but {known} exist")

    def _draw_file(self) -> _File:
        choices = self.world.random
        connection = choices.choice(CONNECTIONS)
        lines = [None if choices.random() < 0.2 else f"{connection}-{choices.randint(1, 20)}" for _ in range(12)]
        file = _File(choices.choice(_MEMBERS), connection, lines[: choices.randint(1, 12)])
        self._sent |= dict.fromkeys(file.names, connection)
        return file

    async def _create_import(self, file: _File, key: str) -> str | None:
        """Create an import, upload its file and start it; return its id."""
        content = "".join(f"{self._build_line(name)}\n" for name in file.lines).encode()
        body = {"format": "ndjson", "fileName": "old.ndjson", "bytes": len(content), "mapping": _MAPPING}
        path = f"{_PATH}/data-connections/{file.connection}"
        created = await send_until_final(self.world, file.member, "POST", path, body, key=key)
        if created is None:
            return None
        self.world.require(created.status == 201, f"an import got {created.status} {created.reply.body!r}")
        job = str(created.json["importId"])
        self._files[job] = file
        await self.world.sleep(self.world.random.random())
        self._upload_file(find_linked_file(self.world, created.json["uploadUrl"]), content)
        if self.world.random.random() < 0.3:
            preview = await send_until_final(self.world, file.member, "POST", f"{_PATH}/{job}/preview", {})
            is_right = preview is None or (preview.status == 200 and len(preview.json["messages"]) <= len(file.lines))
            self.world.require(is_right, f"a preview got {preview and preview.reply.body!r}")
        file.is_started = True
        headers = {"prefer": "wait=3"} if self.world.random.random() < 0.3 else {}
        started = await send_until_final(self.world, file.member, "POST", f"{_PATH}/{job}/start", {}, headers=headers)
        is_possible = started is None or started.status in {200, 202} or started.code in _START_CODES
        self.world.require(is_possible, f"a start got {started and started.reply.body!r}")
        file.has_work = started is not None and started.status in {200, 202}
        if started is not None and self._is_calm and self.world.random.random() < 0.5:
            # Without repetitions, which would hide a 503; a crash at which the world aims can still lose the reply.
            with suppress(ConnectionLostError):
                again = await self.world.send(file.member, "POST", f"{_PATH}/{job}/start", {})
                is_possible = again.status == 202 or again.code in _START_CODES
                self.world.require(is_possible, f"a repeated start got {again.reply.body!r}")
        return job

    def _build_line(self, name: str | None) -> str:
        if name is None:
            return "no message"
        # A message has the same time in each file.
        moment = START.replace(hour=9, minute=int(name.rpartition("-")[2]) * 5 % 60)
        return json.dumps({"id": name, "time": format_time(moment), "name": name})

    def _upload_file(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        at = START.timestamp() + self.world.scheduler.now / MICROSECONDS
        os.utime(path, (at, at))

    async def _read_until_ended(self, job: str) -> None:
        """Read an import's status until it has ended; sometimes cancel the import."""
        choices = self.world.random
        for _ in range(choices.randint(1, 20)):
            if await self._read_import(job) in _ENDED:
                return
            if choices.random() < 0.05:
                await self._cancel_import(job)
            await self.world.sleep(choices.random() * 5)

    async def _cancel_import(self, job: str) -> None:
        file = self._files[job]
        file.is_cancelled = True
        reply = await send_until_final(self.world, file.member, "DELETE", f"{_PATH}/{job}")
        if reply is not None and reply.status == 204:
            self._record_status(job, "cancelled")
        elif reply is not None:
            self.world.require(reply.code == "IMPORT_ENDED", f"a cancellation got {reply.status} {reply.code}")

    async def _read_import(self, job: str) -> str:
        """Read an import and check it; return its status, or an empty text if the request failed."""
        file = self._files[job]
        reply = await send_until_final(self.world, file.member, "GET", f"{_PATH}/{job}")
        if reply is None:
            return ""
        self.world.require(reply.status == 200, f"import {job} got {reply.status} {reply.reply.body!r}")
        self._record_status(job, reply.json["status"])
        if reply.json["status"] == "completed":
            self._check_completed_import(file, reply.json)
        return str(reply.json["status"])

    def _record_status(self, job: str, status: str) -> None:
        file = self._files[job]
        is_possible = file.status not in _ENDED or status == file.status
        self.world.require(is_possible, f"import {job} was {file.status}, and then {status}")
        self.world.require(status != "cancelled" or file.is_cancelled, f"nobody cancelled import {job}")
        file.status = status

    def _check_completed_import(self, file: _File, shown: Any) -> None:
        counts = {name: shown[name] for name in ("accepted", "duplicates", "rejected")}
        rejected = [number for number, name in enumerate(file.lines, start=1) if name is None]
        self.world.require(shown["progress"]["rows"] == len(file.lines), f"{file} has {shown['progress']} rows")
        self.world.require(counts["rejected"] == len(rejected), f"{file} has {counts}")
        is_complete = counts["accepted"] + counts["duplicates"] == len(file.lines) - len(rejected)
        self.world.require(is_complete and counts["accepted"] <= len(file.names), f"{file} has {counts}")
        if not self._find_overlapping_imports(file):
            self.world.require(counts["accepted"] == len(file.names), f"{file}, whose messages are new, has {counts}")
        listed: list[int] = []
        for each in shown["files"]:
            content = read_linked_file(self.world, each).decode()
            listed += [int(row["row"]) for row in csv.DictReader(io.StringIO(content))]
        self.world.require(listed == rejected, f"the rejected rows of {file} are {rejected}, but {listed} are listed")
        self._archived |= file.names
        if all(other.status == "completed" for other in self._find_overlapping_imports(file)):
            missing = file.names - self._table.names
            self.world.require(not missing, f"messages of a completed import are not in the query table: {missing}")

    def _find_overlapping_imports(self, file: _File) -> list[_File]:
        """Return the other started imports whose files share a message with the given file."""
        return [
            other
            for other in self._files.values()
            if other is not file and other.is_started and not other.names.isdisjoint(file.names)
        ]

    async def complete_work(self) -> None:
        """Wait until all imports have ended, read all messages, and wait until all have expired."""
        for member in _MEMBERS:
            listed = await send_until_done(self.world, member, "GET", _PATH)
            for each in listed.json["imports"]:
                await self._wait_until_ended(member, each["importId"])
        for job in self._files:
            # The work of an import that has ended can still complete a step. Its activity runs on after a cancellation.
            while self.world.durable.is_running(job) or self.world.durable.has_activities():
                await self.world.sleep(1)
            status = await self._read_import(job)
            # A file whose import was cancelled before its start stays if the member sends no second cancellation.
            if status in {"failed", "cancelled"} and self._files[job].has_work:
                require_no_files(self.world, job, status)
        for connection in CONNECTIONS:
            while not await self._read_archive(connection):
                await self.world.sleep(1)
        await expire_jobs(self.world)
        for member in _MEMBERS:
            listed = await send_until_done(self.world, member, "GET", _PATH)
            self.world.require(not listed.json["imports"], f"expired imports are left: {listed.json}")

    async def _wait_until_ended(self, member: str, job: str) -> None:
        """Wait until an import has ended; cancel an import that was never started."""
        while True:
            shown = (await send_until_done(self.world, member, "GET", f"{_PATH}/{job}")).json
            if shown["status"] in _ENDED:
                return
            if shown["startedAt"] is None:
                if job in self._files:
                    self._files[job].is_cancelled = True
                await send_until_done(self.world, member, "DELETE", f"{_PATH}/{job}")
            await self.world.sleep(2)

    def check_invariants(self, folder: Path) -> None:
        """Check that archive and query table have the messages of each completed import, and that no file remains."""
        require_nothing_left(self.world, folder)
        stored: Counter[str] = Counter()
        for path in sorted((folder / "blobs" / "cold").glob("impulses/**/*.parquet")):
            stored.update(row["message_id"] for row in pq.read_table(path).to_pylist())
        self.world.require(self._archived <= stored.keys(), f"not in the archive: {self._archived - stored.keys()}")
        self.world.require(stored.keys() <= self._sent.keys(), "messages are in the archive that no file has")
        differing = stored.keys() ^ self._table.names
        self.world.require(not differing, f"messages are in the archive or in the query table only: {differing}")
