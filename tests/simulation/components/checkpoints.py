"""Checkpoint component: a background job signs checkpoints while clients append events and read checkpoints."""

import base64
import hashlib
from collections.abc import Coroutine, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.chains import read_hashes
from tests.simulation.client import send_until_done, send_until_final
from tests.simulation.component import Component
from tests.simulation.world import World

_SCOPES = ("tank-1", "tank-2")
_NOTES = "0*/0*/" + "[0-9]" * 12
_CHECKPOINT = "oi-api/provenance/checkpoint?target=DomainEvents&scopeKey="


class CheckpointsComponent(Component):
    """Clients append events and read the newest checkpoints of their chains.

    Invariants: every checkpoint that a client received or that is stored covers as many records as it states, and its
    root is the root of these records; the sizes that one client receives never decrease; after the last fault, each
    chain gets a checkpoint of all its records.
    """

    name: ClassVar[str] = "checkpoints"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/provenance/checkpoints.py",
        "shared/provenance/signed_tree.py",
        "shared/provenance/chain_trees.py",
        "shared/provenance/merkle_tiles.py",
        "shared/provenance/note_keys.py",
        "shared/backends/embedded/checkpoint_files.py",
        "shared/backends/embedded/jobs.py",
        "shared/background/runner.py",
    )
    background_jobs: ClassVar[tuple[str, ...]] = ("checkpoints",)

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self._known: dict[str, dict[int, str]] = {scope: {} for scope in _SCOPES}

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that append events, and clients that read checkpoints."""
        for number in range(self.world.random.randint(1, 3)):
            yield self._append_events(number, self.world.random.randint(1, 8))
        for _ in range(self.world.random.randint(1, 2)):
            yield self._read_checkpoints(self.world.random.randint(1, 8))

    async def _append_events(self, client: int, count: int) -> None:
        for number in range(count):
            await self._append_event(self.world.random.choice(_SCOPES), f"checked {client}-{number}")
            await self.world.sleep(self.world.random.random() * 12)

    async def _append_event(self, scope: str, text: str) -> None:
        body = {"EntityType": "Test", "EntityID": "1", "Name": text, "ActionType": "Test", "ScopeKey": scope}
        path = "oi-api/provenance/events?target=DomainEvents"
        await send_until_final(self.world, "ann@t", "POST", path, body, key=text)

    async def _read_checkpoints(self, count: int) -> None:
        newest = dict.fromkeys(_SCOPES, 0)
        for _ in range(count):
            scope = self.world.random.choice(_SCOPES)
            reply = await send_until_final(self.world, "viewer@t", "GET", _CHECKPOINT + scope)
            if reply is not None and reply.status == 200:
                size = self._record_checkpoint(scope, reply.json)
                self.world.require(size >= newest[scope], f"the checkpoint of {scope} went back to {size}")
                newest[scope] = size
            elif reply is not None:
                self.world.require(reply.code == "CHECKPOINT_NOT_FOUND", f"{scope}: {reply.status} {reply.code}")
            await self.world.sleep(self.world.random.random() * 12)

    def _record_checkpoint(self, scope: str, content: Any) -> int:
        size, root = int(content["size"]), str(content["rootHash"])
        known = self._known[scope].setdefault(size, root)
        self.world.require(known == root, f"two checkpoints of {scope} with size {size} differ")
        return size

    async def complete_work(self) -> None:
        """Wait until each chain has a checkpoint of all its records."""
        for scope in _SCOPES:
            query = f"oi-api/provenance/events/query?target=DomainEvents&scopeKey={scope}&limit=1"
            while True:
                await self.world.sleep(15)
                newest = (await send_until_done(self.world, "ann@t", "GET", query)).json
                reply = await send_until_done(self.world, "viewer@t", "GET", _CHECKPOINT + scope)
                size = self._record_checkpoint(scope, reply.json) if reply.status == 200 else 0
                records = newest["records"] if isinstance(newest, dict) else newest
                if size == (int(records[0]["RecordID"]) if records else 0):
                    break

    def check_invariants(self, folder: Path) -> None:
        """Compare each checkpoint's root with the root computed from the stored records."""
        for scope, found in self._known.items():
            leaves = read_hashes(folder, "DomainEvents", scope)
            hashed = hashlib.sha256(scope.encode()).hexdigest()[:40]
            stored = dict(map(_parse_note, (folder / "checkpoints" / "DomainEvents" / hashed).glob(_NOTES)))
            for size, root in (*found.items(), *stored.items()):
                self.world.require(
                    size <= len(leaves), f"a checkpoint of {scope} covers {size} of {len(leaves)} records"
                )
                expected = base64.b64encode(compute_root(leaves[:size])).decode()
                self.world.require(root == expected, f"the checkpoint of {scope} with size {size} has another root")


def _parse_note(path: Path) -> tuple[int, str]:
    _, size, root, *_ = path.read_text(encoding="utf-8").splitlines()
    return int(size), root


def compute_root(leaves: Sequence[bytes]) -> bytes:
    """Return the Merkle root by the recursive definition of RFC 6962 section 2.1."""
    if not leaves:
        return hashlib.sha256(b"").digest()
    if len(leaves) == 1:
        return hashlib.sha256(b"\0" + leaves[0]).digest()
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    return hashlib.sha256(b"\1" + compute_root(leaves[:half]) + compute_root(leaves[half:])).digest()


def compute_inclusion_path(index: int, leaves: Sequence[bytes]) -> list[bytes]:
    """Return the inclusion proof of a leaf by the recursive definition of RFC 6962 section 2.1.1."""
    if len(leaves) == 1:
        return []
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    if index < half:
        return [*compute_inclusion_path(index, leaves[:half]), compute_root(leaves[half:])]
    return [*compute_inclusion_path(index - half, leaves[half:]), compute_root(leaves[:half])]


def compute_consistency_path(old: int, leaves: Sequence[bytes], *, is_complete: bool = True) -> list[bytes]:
    """Return the proof that a tree begins with ``old`` leaves by the recursive definition of RFC 6962 section 2.1.2."""
    if old == len(leaves):
        return [] if is_complete else [compute_root(leaves)]
    half = 1 << ((len(leaves) - 1).bit_length() - 1)
    if old <= half:
        return [*compute_consistency_path(old, leaves[:half], is_complete=is_complete), compute_root(leaves[half:])]
    return [*compute_consistency_path(old - half, leaves[half:], is_complete=False), compute_root(leaves[:half])]
