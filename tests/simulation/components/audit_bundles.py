"""Audit bundle component: background jobs write chains with proofs to a file while clients append records."""

import base64
import hashlib
import io
import json
import zipfile
from collections import Counter
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Final

from shared.catalog.models import Quotas
from shared.wiring import Services
from tests.simulation.chains import read_hashes
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.components.checkpoints import compute_root
from tests.simulation.job_files import (
    attach_files,
    attach_quota,
    expire_jobs,
    find_linked_file,
    read_linked_file,
    require_no_files,
    require_nothing_left,
    try_to_expire_jobs,
)
from tests.simulation.world import World

_PATH: Final = "oi-api/provenance/bundles"
_EVENTS: Final = "oi-api/provenance/events?target=DomainEvents"
_AMENDMENTS: Final = "oi-api/provenance/amendments"
_TARGETS: Final = {"bundled-1": "DomainEvents", "bundled-2": "DomainEvents", "amended": "DomainAmendments"}
"""Targets of the chains by their scopes."""

_SCOPES: Final = tuple(_TARGETS)
_MEMBERS: Final = ("ann@t", "bob@t")
_ENDED: Final = frozenset({"completed", "failed", "cancelled"})


@dataclass
class _RequestedBundle:
    """Audit bundle that a simulated member has requested.

    Attributes:
        member: member who requested it.
        scopes: scopes of its chains.
        entity: entity whose records it contains; empty for all.
        acknowledged: events that were acknowledged before it was requested.
        has_receipts: whether it contains receipts.
        status: last status that the member has read.
        digest: hash of its file; empty before its completion.
        is_cancelled: True after a request to cancel it.
        expiries: number of expiries of all jobs that had ended before it was requested.
    """

    member: str
    scopes: Sequence[str]
    entity: str
    acknowledged: frozenset[str]
    has_receipts: bool
    status: str = "pending"
    digest: str = ""
    is_cancelled: bool = False
    expiries: int = 0


class AuditBundlesComponent(Component):
    """Clients append events and amendments; members request bundles of the chains and sometimes cancel them.

    Invariants: a bundle ends with one status, and a completed one keeps its file; the records of a bundle are the first
    ones of its chain, with each event that was acknowledged before its request; its checkpoint matches these records,
    and its proofs give the checkpoint's root; equal Idempotency-Keys give one bundle; after the last fault, every
    bundle ends, and a new one completes; after their lifetime, no job, no file and no reservation of a quota is left.
    """

    name: ClassVar[str] = "audit-bundles"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/audit_bundles/work.py",
        "shared/audit_bundles/chain_section.py",
        "shared/audit_bundles/bundle_file.py",
        "functions/audit_bundles.py",
        "functions/bundle_jobs.py",
    )
    owned: ClassVar[str] = "archive"
    """The jobs of downloads and imports, which this component lets expire."""
    weight: ClassVar[int] = 2
    cosmos_weight: ClassVar[int] = 2

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._acknowledged: dict[str, tuple[str, str]] = {}
        self._orders: dict[str, _RequestedBundle] = {}
        self._bundles: list[tuple[_RequestedBundle, bytes]] = []
        self._begun_expiries = 0
        self._ended_expiries = 0
        self._bytes = world.random.choice((*(None,) * 14, 100))

    def attach(self, services: Services) -> None:
        """Give the files of bundles virtual modification times, and set a small quota in some worlds."""
        attach_files(self.world, services)
        if self._bytes is not None:
            attach_quota(services, Quotas.model_validate({"downloadBytes": self._bytes}))

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that append events, and members that request bundles."""
        choices = self.world.random
        for number in range(choices.randint(1, 2)):
            yield self._append_events(number, choices.randint(1, 8))
        for number in range(choices.randint(1, 2)):
            yield self._request_bundles(number, choices.randint(1, 3))
        if choices.random() < 0.1:
            yield self._expire_bundles()

    async def _expire_bundles(self) -> None:
        """Run the expiry at a time at which bundles are built, so that they end without files."""
        await self.world.sleep(self.world.random.random() * 60)
        self._begun_expiries += 1
        await try_to_expire_jobs(self.world)
        self._ended_expiries += 1

    def _may_be_expired(self, bundle: _RequestedBundle) -> bool:
        """Return whether an expiry has begun after the request, so that the bundle or its file can be missing."""
        return self._begun_expiries > bundle.expiries

    async def _append_events(self, client: int, count: int) -> None:
        choices = self.world.random
        for number in range(count):
            text, scope, entity = f"bundled {client}-{number}", choices.choice(_SCOPES), choices.choice(("1", "2"))
            reply = await send_until_final(self.world, "ann@t", "POST", *_build_record(scope, entity, text), key=text)
            if reply is not None:
                self.world.require(reply.status == 201, f"{text} got {reply.status}")
                self._acknowledged[text] = (scope, entity)
            await self.world.sleep(choices.random() * 8)

    async def _request_bundles(self, client: int, count: int) -> None:
        choices = self.world.random
        for number in range(count):
            await self.world.sleep(choices.random() * 20)
            bundle = _RequestedBundle(
                choices.choice(_MEMBERS),
                choices.choice((_SCOPES, _SCOPES[:1], _SCOPES[1:2], _SCOPES[2:])),
                choices.choice(("", "", "1")),
                frozenset(self._acknowledged),
                choices.random() < 0.3,
            )
            job = await self._request_bundle(bundle, f"bundle {client}-{number}")
            if job is not None:
                await self._read_until_ended(job)
            if choices.random() < 0.2:
                await self._list_bundles(choices.choice(_MEMBERS))

    async def _list_bundles(self, member: str) -> None:
        """List a member's bundles; those that were acknowledged before are listed once."""
        known = {job for job, bundle in self._orders.items() if bundle.member == member}
        reply = await send_until_final(self.world, member, "GET", _PATH)
        if reply is not None:
            self.world.require(reply.status == 200, f"a list got {reply.status} {reply.reply.body!r}")
            listed = Counter(each["bundleId"] for each in reply.json["bundles"])
            missing = [job for job in known if not listed[job] and not self._may_be_expired(self._orders[job])]
            self.world.require(not missing, f"a list of {member} lacks the bundles {missing}")
            self.world.require(all(count == 1 for count in listed.values()), f"a list has bundles twice: {listed}")

    async def _request_bundle(self, bundle: _RequestedBundle, key: str) -> str | None:
        """Request a bundle, and return its id."""
        bundle.expiries, body = self._ended_expiries, _build_request(bundle)
        headers = {"prefer": "wait=3"} if self.world.random.random() < 0.3 else {}
        reply = await send_until_final(self.world, bundle.member, "POST", _PATH, body, key=key, headers=headers)
        if reply is None or (reply.status == 404 and self._may_be_expired(bundle)):
            return None
        self.world.require(reply.status in {200, 202}, f"a bundle got {reply.status} {reply.reply.body!r}")
        job = str(reply.json["bundleId"])
        self._orders[job] = bundle
        if self.world.random.random() < 0.3:
            again = await send_until_final(self.world, bundle.member, "POST", _PATH, body, key=key, headers=headers)
            is_same = again is None or (again.status in {200, 202} and again.json["bundleId"] == job)
            is_same = is_same or (again is not None and again.status == 404 and self._may_be_expired(bundle))
            self.world.require(is_same, f"an equal request got another bundle than {job}")
        return job

    async def _read_until_ended(self, job: str) -> None:
        """Read a bundle's status until it has ended, and again later; sometimes cancel the bundle."""
        choices = self.world.random
        for _ in range(choices.randint(1, 20)):
            if await self._read_bundle(job) in _ENDED:
                await self.world.sleep(choices.random() * 20)
                await self._read_bundle(job)
                return
            if choices.random() < 0.05:
                await self._cancel_bundle(job)
            await self.world.sleep(choices.random() * 5)

    async def _cancel_bundle(self, job: str) -> None:
        bundle = self._orders[job]
        bundle.is_cancelled = True
        reply = await send_until_final(self.world, bundle.member, "DELETE", f"{_PATH}/{job}")
        if reply is not None and reply.status == 204:
            self._record_status(job, "cancelled")
        elif reply is not None:
            is_possible = reply.code == "BUNDLE_ENDED" or (reply.status == 404 and self._may_be_expired(bundle))
            self.world.require(is_possible, f"a cancellation got {reply.status} {reply.code}")

    async def _read_bundle(self, job: str) -> str:
        """Read a bundle and check it; return its status, or an empty text if the request failed."""
        bundle = self._orders[job]
        reply = await send_until_final(self.world, bundle.member, "GET", f"{_PATH}/{job}")
        if reply is None or (reply.status == 404 and self._may_be_expired(bundle)):
            return ""
        self.world.require(reply.status == 200, f"bundle {job} got {reply.status} {reply.reply.body!r}")
        self._record_status(job, reply.json["status"])
        if reply.json["status"] == "completed":
            [file] = reply.json["files"]
            if self._may_be_expired(bundle) and not find_linked_file(self.world, file["url"]).exists():
                return "completed"
            content = read_linked_file(self.world, file)
            self.world.require(bundle.digest in ("", file["sha256"]), f"the file of bundle {job} has changed")
            if not bundle.digest:
                bundle.digest = file["sha256"]
                self._bundles.append((bundle, content))
        return str(reply.json["status"])

    def _record_status(self, job: str, status: str) -> None:
        bundle = self._orders[job]
        is_possible = bundle.status not in _ENDED or status == bundle.status
        self.world.require(is_possible, f"bundle {job} was {bundle.status}, and then {status}")
        self.world.require(status != "cancelled" or bundle.is_cancelled, f"nobody cancelled bundle {job}")
        bundle.status = status

    async def complete_work(self) -> None:
        """Wait until all bundles have ended, request another bundle, and wait until all bundles have expired."""
        for member in _MEMBERS:
            listed = await send_until_done(self.world, member, "GET", _PATH)
            for each in listed.json["bundles"]:
                while (await self._read_status(member, each["bundleId"])) not in _ENDED:
                    await self.world.sleep(2)
        # An activity of a bundle that has expired deletes its files when it notices this.
        while self.world.durable.has_activities():
            await self.world.sleep(1)
        for job in self._orders:
            status = await self._read_bundle(job)
            if status in {"failed", "cancelled"}:
                require_no_files(self.world, job, status)
        bundle = _RequestedBundle("ann@t", _SCOPES, "", frozenset(self._acknowledged), has_receipts=True)
        reply = await send_until_done(self.world, "ann@t", "POST", _PATH, _build_request(bundle), key="last bundle")
        job = reply.json["bundleId"]
        self._orders[job] = bundle
        while (status := await self._read_bundle(job)) not in _ENDED:
            await self.world.sleep(1)
        expected = "completed" if self._bytes is None else "failed"
        self.world.require(status == expected, f"the last bundle is {status}")
        await expire_jobs(self.world)
        for member in _MEMBERS:
            listed = await send_until_done(self.world, member, "GET", _PATH)
            self.world.require(not listed.json["bundles"], f"expired bundles are left: {listed.json}")

    async def _read_status(self, member: str, job: str) -> str:
        return str((await send_until_done(self.world, member, "GET", f"{_PATH}/{job}")).json["status"])

    def check_invariants(self, folder: Path) -> None:
        """Compare the records, checkpoints and proofs of all bundles with the stored chains."""
        require_nothing_left(self.world, folder)
        leaves = {scope: read_hashes(folder, target, scope) for scope, target in _TARGETS.items()}
        for bundle, content in self._bundles:
            with zipfile.ZipFile(io.BytesIO(content)) as file:
                manifest = json.loads(file.read("manifest.json"))
                scopes = [each["scopeKey"] for each in manifest["chains"]]
                self.world.require(scopes == list(bundle.scopes), f"a bundle of {bundle.scopes} contains {scopes}")
                for each in manifest["chains"]:
                    self._check_chain(bundle, file, each, leaves[each["scopeKey"]])

    def _check_chain(
        self, bundle: _RequestedBundle, file: zipfile.ZipFile, entry: Any, leaves: Sequence[bytes]
    ) -> None:
        scope = entry["scopeKey"]
        records = json.loads(file.read(entry["file"]))
        names = {record["ReasonText" if scope == "amended" else "Name"] for record in records}
        promised = {
            text
            for text in bundle.acknowledged
            if self._acknowledged[text][0] == scope and bundle.entity in ("", self._acknowledged[text][1])
        }
        self.world.require(promised <= names, f"a bundle of {scope} lacks {promised - names}")
        is_counted = entry["records"] == len(records) == len(names)
        self.world.require(is_counted, f"a bundle of {scope} states {entry['records']} of {len(records)} records")
        if entry["checkpoint"] is None:
            self.world.require(not records, f"a bundle of {scope} has records, but no checkpoint")
            self.world.require(entry["verdict"]["Empty"], f"a bundle of {scope} is empty, its verdict is not")
            return
        _, size_text, root, *_ = file.read(entry["checkpoint"]).decode().splitlines()
        size = int(size_text)
        self.world.require(size <= len(leaves), f"a bundle covers {size} of {len(leaves)} records of {scope}")
        expected = compute_root(leaves[:size])
        self.world.require(root == base64.b64encode(expected).decode(), f"a bundle of {scope} has another root")
        numbers = [int(record["RecordID"]) for record in records]
        if not bundle.entity:
            self.world.require(numbers == list(range(1, size + 1)), f"a bundle of {scope} with {size} has {numbers}")
            self.world.require(entry["verdict"]["ChainValid"], f"a bundle finds that {scope} is broken")
        if entry["proof"] is not None:
            shown = json.loads(file.read(entry["proof"]))
            for proof in [shown] if isinstance(shown, dict) else shown:
                is_proved = _compute_root(leaves[proof["leafIndex"]], proof) == expected and proof["size"] == size
                self.world.require(is_proved, f"a proof in a bundle of {scope} does not lead to its checkpoint")


def _build_record(scope: str, entity: str, text: str) -> tuple[str, dict[str, Any]]:
    """Build the path and the body of a request that appends an event or an amendment."""
    body = {"EntityType": "Test", "EntityID": entity, "ScopeKey": scope}
    if scope != "amended":
        return _EVENTS, {**body, "Name": text, "ActionType": "Test"}
    values = {"OriginalRecord": {"value": 1}, "AmendedRecord": {"value": 2}, "ChangedFields": ["value"]}
    return _AMENDMENTS, {**body, **values, "ReasonCategory": "data-entry-error", "ReasonText": text}


def _build_request(bundle: _RequestedBundle) -> dict[str, Any]:
    scopes = [{"target": _TARGETS[scope], "scopeKey": scope} for scope in bundle.scopes]
    filters = {"entityId": bundle.entity} if bundle.entity else {}
    return {"scopes": scopes, "receipts": bundle.has_receipts, **filters}


def _compute_root(leaf: bytes, proof: Any) -> bytes:
    """Return the Merkle root that results from an inclusion proof (RFC 9162 section 2.1.3.2)."""
    index, last = proof["leafIndex"], proof["size"] - 1
    node = hashlib.sha256(b"\0" + leaf).digest()
    for text in proof["hashes"]:
        other = base64.b64decode(text)
        if index % 2 or index == last:
            node = hashlib.sha256(b"\1" + other + node).digest()
            while not index % 2 and index:
                index, last = index // 2, last // 2
        else:
            node = hashlib.sha256(b"\1" + node + other).digest()
        index, last = index // 2, last // 2
    return node
