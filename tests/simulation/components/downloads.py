"""Download component: background jobs convert the archive to files.

Steps are repeated, and downloads are cancelled or expire.
"""

import csv
import io
import json
import random
from collections import Counter
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, ClassVar, Final

import pyarrow.parquet as pq

from shared.catalog.models import Quotas
from shared.downloads.work import ARCHIVE_TIMEOUT_SECONDS
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB
from shared.wiring import Services
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.components.telemetry import (
    CONNECTIONS,
    END,
    FIRST_HOUR,
    PARTITIONS,
    TelemetryComponent,
    format_time,
)
from tests.simulation.job_files import (
    attach_files,
    attach_quota,
    expire_jobs,
    read_linked_file,
    require_no_files,
    require_nothing_left,
)
from tests.simulation.world import ApiReply, World

_PATH: Final = "oi-api/downloads"
_FORMATS: Final = ("csv", "jsonl", "jsonl", "parquet")
"""Formats from which downloads draw; the conversion to CSV takes the longest time."""
_MEMBERS: Final = ("ann@t", "bob@t")
_WORLDS_WITH_SLOW_ARCHIVE: Final = 0.15
_STALL_RATE: Final = 0.2
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass
class _RequestedDownload:
    """Download that a simulated member has requested.

    Attributes:
        member: member who requested it.
        connections: connections whose messages it contains.
        start: start of its range.
        end: end of its range.
        file_format: format of its files.
        archived: messages that were archived before it was requested.
        accepted: messages that were accepted before it was requested.
        status: last status that the member has read.
        is_cancelled: True after a request to cancel it.
    """

    member: str
    connections: tuple[str, ...]
    start: datetime
    end: datetime
    file_format: str
    archived: frozenset[str]
    accepted: frozenset[str]
    status: str = "pending"
    is_cancelled: bool = False


class DownloadsComponent(TelemetryComponent):
    """Members download messages and sometimes cancel; steps are repeated, even in two processes at once.

    Invariants: a download ends with one status; a completed one has each message of its range once, with its content,
    and no other one; it has those that were archived before its request, and all that were accepted if it states so;
    equal idempotency keys give one download; a member has at most as many unfinished downloads and bytes as the quota;
    after the last fault, every download ends, and a new one completes; after their lifetime, no job, no file and no
    reservation of a quota is left.
    """

    name: ClassVar[str] = "downloads"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/downloads/service.py",
        "shared/downloads/work.py",
        "shared/downloads/job_quota.py",
        "shared/downloads/expiry.py",
        "shared/fair_use/fair_scheduler.py",
        "shared/downloads/row_feed.py",
        "shared/backends/embedded/jobs.py",
        "shared/backends/embedded/hub_retention.py",
        "shared/backends/embedded/quotas.py",
        "functions/downloads.py",
        "functions/download_jobs.py",
        "functions/durable_runner.py",
    )

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._times: dict[str, datetime] = {}
        self._orders: dict[str, _RequestedDownload] = {}
        self._quota = world.random.choice((None, None, 1, 1, 2))
        self._bytes = world.random.choice((None, None, None, None, 500, 2_000))
        # A source of its own, so that worlds whose archive is not slow keep their schedules.
        self._stalls = random.Random(f"archive {world.seed}")
        self._is_archive_slow = self._stalls.random() < _WORLDS_WITH_SLOW_ARCHIVE

    def attach(self, services: Services) -> None:
        """Give the files of downloads virtual modification times, and set a small quota in some worlds."""
        super().attach(services)
        attach_files(self.world, services)
        if self._quota is None and self._bytes is None:
            return
        quotas = Quotas.model_validate({"jobsPerPrincipal": self._quota, "downloadBytes": self._bytes})
        attach_quota(services, quotas)

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that send messages, the delivery of events, and members that download."""
        choices = self.world.random
        for client in range(choices.randint(1, 2)):
            self._sending += 1
            yield self._send_messages(client, choices.randint(1, 3))
        for number in range(choices.randint(1, 2)):
            self._sending += 1
            yield self._download_often(number, choices.randint(1, 3))
        for partition in PARTITIONS:
            yield self._deliver_while_sending(TELEMETRY_HUB, partition)
            yield self._deliver_while_sending(IMPULSES_HUB, partition)

    async def _deliver_while_sending(self, hub: str, partition: str) -> None:
        """Deliver events; in some worlds, the archive stops for longer than a download waits for it."""
        while self._sending:
            await self._deliver_batch(hub, partition)
            await self.world.sleep(self.world.random.random() * 3)
            if self._is_archive_slow and hub == IMPULSES_HUB and self._stalls.random() < _STALL_RATE:
                await self.world.sleep(self._stalls.uniform(1, 3) * ARCHIVE_TIMEOUT_SECONDS)

    def _build_message(self, name: str) -> dict[str, Any]:
        self._times[name] = moment = self._draw_time()
        # Messages have different properties, so that parts of a CSV file are written again with more columns.
        other = f"value{self.world.random.randint(1, 3)}"
        return {"messageId": name, "timestamp": format_time(moment), "name": name, other: 1}

    async def _download_often(self, client: int, count: int) -> None:
        choices = self.world.random
        for number in range(count):
            await self.world.sleep(choices.random() * 40)
            job = await self._request_download(choices.choice(_MEMBERS), f"download {client}-{number}")
            if job is not None:
                await self._read_until_ended(job)
            if choices.random() < 0.3:
                await self._list_downloads(choices.choice(_MEMBERS))
        self._sending -= 1

    async def _list_downloads(self, member: str) -> None:
        """List a member's downloads, and check their number."""
        known = {job for job, order in self._orders.items() if order.member == member}
        reply = await send_until_final(self.world, member, "GET", _PATH)
        if reply is None:
            return
        self.world.require(reply.status == 200, f"a list got {reply.status} {reply.reply.body!r}")
        listed = reply.json["downloads"]
        missing = known - {each["downloadId"] for each in listed}
        self.world.require(not missing, f"a list of {member} lacks the downloads {missing}")
        size = sum(file["bytes"] for each in listed for file in each["files"])
        self.world.require(self._bytes is None or size <= self._bytes, f"{member} has {size} bytes of {self._bytes}")
        unfinished = [each["downloadId"] for each in listed if each["status"] not in _ENDED]
        is_within = self._quota is None or self.world.faults.clock_jump > 0 or len(unfinished) <= self._quota
        self.world.require(is_within, f"{member} has {len(unfinished)} unfinished downloads, more than {self._quota}")

    async def _request_download(self, member: str, key: str) -> str | None:
        """Request a download, and return its id."""
        choices = self.world.random
        is_surface = choices.random() < 0.4
        connections = CONNECTIONS if is_surface else (choices.choice(CONNECTIONS),)
        route = choices.choice(("data-connections", "data-connections", "surfaces/hall/connection"))
        path = f"{_PATH}/surfaces/hall" if is_surface else f"{_PATH}/{route}/{connections[0]}"
        start, end = sorted((self._draw_time(), self._draw_time())) if choices.random() < 0.5 else (FIRST_HOUR, END)
        order = _RequestedDownload(
            member,
            connections,
            start,
            end,
            choices.choice(_FORMATS),
            frozenset(self._archived),
            frozenset(self._accepted),
        )
        body = {"format": order.file_format, "dateRange": {"start": format_time(start), "end": format_time(end)}}
        headers = {"prefer": "wait=3"} if choices.random() < 0.3 else {}
        # Without a key, a repeated request starts another download.
        key = key if choices.random() < 0.9 else ""
        attempts = 0 if key else 1
        reply = await send_until_final(
            self.world, member, "POST", path, body, key=key, headers=headers, attempts=attempts
        )
        if reply is None or self._is_above_quota(reply):
            return None
        self.world.require(reply.status in {200, 202}, f"a download got {reply.status} {reply.reply.body!r}")
        job = str(reply.json["downloadId"])
        self._orders[job] = order
        if key and choices.random() < 0.3:
            again = await send_until_final(self.world, member, "POST", path, body, key=key, headers=headers)
            is_same = again is None or (again.status in {200, 202} and again.json["downloadId"] == job)
            self.world.require(is_same, f"an equal request got another download than {job}")
        return job

    def _is_above_quota(self, reply: ApiReply) -> bool:
        return self._bytes is not None and reply.code == "DOWNLOAD_QUOTA_EXCEEDED"

    async def _read_until_ended(self, job: str) -> None:
        """Read a download's status until it has ended; sometimes cancel the download."""
        choices = self.world.random
        for _ in range(choices.randint(1, 30)):
            if await self._read_download(job) in _ENDED:
                return
            if choices.random() < 0.05:
                await self._cancel_download(job)
            await self.world.sleep(choices.random() * 5)

    async def _cancel_download(self, job: str) -> None:
        order = self._orders[job]
        order.is_cancelled = True
        reply = await send_until_final(self.world, order.member, "DELETE", f"{_PATH}/{job}")
        if reply is not None and reply.status == 204:
            self._record_status(job, "cancelled")
        elif reply is not None:
            self.world.require(reply.code == "DOWNLOAD_ENDED", f"a cancellation got {reply.status} {reply.code}")

    async def _read_download(self, job: str) -> str:
        """Read a download and check it; return its status, or an empty text if the request failed."""
        order = self._orders[job]
        # Administrators can read the downloads of all members.
        member = order.member if self.world.random.random() < 0.9 else "eve@t"
        reply = await send_until_final(self.world, member, "GET", f"{_PATH}/{job}")
        if reply is None:
            return ""
        self.world.require(reply.status == 200, f"download {job} got {reply.status} {reply.reply.body!r}")
        shown = reply.json
        self._record_status(job, shown["status"])
        if shown["status"] == "completed":
            self._check_files(order, shown)
        else:
            self.world.require(not shown["files"], f"download {job}, which is {shown['status']}, has files")
        return str(shown["status"])

    def _record_status(self, job: str, status: str) -> None:
        order = self._orders[job]
        is_possible = order.status not in _ENDED or status == order.status
        self.world.require(is_possible, f"download {job} was {order.status}, and then {status}")
        self.world.require(status != "cancelled" or order.is_cancelled, f"nobody cancelled download {job}")
        order.status = status

    def _check_files(self, order: _RequestedDownload, shown: Any) -> None:
        found: Counter[str] = Counter()
        for file in shown["files"]:
            self.world.require(file["connection"] in order.connections, f"a file of {file['connection']}")
            content = read_linked_file(self.world, file)
            rows = list(_read_rows(order.file_format, content))
            self.world.require(len(rows) == file["rows"], f"{file['url']} has {len(rows)} rows, not {file['rows']}")
            for connection, message, name in rows:
                is_right = message == name and self._sent.get(message) == connection == file["connection"]
                self.world.require(is_right, f"message {message} has the content {name} and is of {connection}")
                in_range = order.start <= self._times[message] < order.end
                self.world.require(in_range, f"message {message} is outside of the range of its download")
                found[message] += 1
        twice = [name for name, count in found.items() if count > 1]
        self.world.require(not twice, f"a download has messages twice: {twice}")
        promised = order.accepted if shown["completeUpTo"] is not None else order.archived
        missing = {name for name in promised if self._belongs_to_download(order, name)} - found.keys()
        self.world.require(not missing, f"a download lacks messages: {missing}")

    def _belongs_to_download(self, order: _RequestedDownload, name: str) -> bool:
        return self._sent[name] in order.connections and order.start <= self._times[name] < order.end

    async def complete_work(self) -> None:
        """Deliver all messages, wait for all downloads, download everything, and wait until all have expired."""
        await self._deliver_all()
        for member in _MEMBERS:
            listed = await send_until_done(self.world, member, "GET", _PATH)
            waiting = [each["downloadId"] for each in listed.json["downloads"]]
            while waiting:
                shown = await send_until_done(self.world, member, "GET", f"{_PATH}/{waiting[0]}")
                if shown.json["status"] in _ENDED:
                    del waiting[0]
                else:
                    await self.world.sleep(2)
        # An activity of a download that has ended deletes its files when it notices this.
        while self.world.durable.has_activities():
            await self.world.sleep(1)
        for job in self._orders:
            status = await self._read_download(job)
            if status in {"failed", "cancelled"}:
                require_no_files(self.world, job, status)
        await self._download_everything()
        await self._expire_all()

    async def _download_everything(self) -> None:
        file_format = self.world.random.choice(_FORMATS)
        order = _RequestedDownload(
            "ann@t", CONNECTIONS, FIRST_HOUR, END, file_format, frozenset(self._archived), frozenset(self._accepted)
        )
        body = {"format": file_format, "dateRange": {"start": format_time(FIRST_HOUR), "end": format_time(END)}}
        path = f"{_PATH}/surfaces/hall"
        reply = await send_until_done(self.world, "ann@t", "POST", path, body, key="last download")
        if self._is_above_quota(reply):
            return
        job = reply.json["downloadId"]
        self._orders[job] = order
        while (status := await self._read_download(job)) not in _ENDED:
            await self.world.sleep(1)
        is_possible = status == "completed" or (self._bytes is not None and status == "failed")
        self.world.require(is_possible, f"the last download is {status}")

    async def _expire_all(self) -> None:
        await expire_jobs(self.world)
        for member in _MEMBERS:
            listed = await send_until_done(self.world, member, "GET", _PATH)
            self.world.require(not listed.json["downloads"], f"expired downloads are left: {listed.json}")

    def check_invariants(self, folder: Path) -> None:
        """Check that no job, file or reservation of a download remains."""
        require_nothing_left(self.world, folder)


def _read_rows(file_format: str, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield connection, message id and name from each row of a downloaded file."""
    if file_format == "parquet":
        for row in pq.read_table(io.BytesIO(content)).to_pylist():
            yield row["connection"], row["messageId"], json.loads(row["payload"])["name"]
    elif file_format == "jsonl":
        for line in content.decode().splitlines():
            row = json.loads(line)
            yield row["connection"], row["messageId"], row["payload"]["name"]
    else:
        for cells in csv.DictReader(io.StringIO(content.decode())):
            yield cells["connection"], cells["messageId"], cells["name"]
