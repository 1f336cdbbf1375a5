"""Reads and verifies stored audit chains without the code of the service."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from tests.simulation.world import World

_TIMES: Final = ("Timestamp", "AmendedAt", "ApprovedAt", "RejectedAt")


def read_chains(world: World, folder: Path) -> list[dict[str, Any]]:
    """Read and verify all stored audit chains without the code of the service; return their records in order.

    Raises:
        ViolationError: a chain is damaged.
    """
    records: list[dict[str, Any]] = []
    with closing(sqlite3.connect(folder / "provenance.sqlite")) as file:
        chains = file.execute("SELECT chain, target, scope, sequence, hash, timestamp FROM chains").fetchall()
        for number, target, scope, size, last_hash, last_time in chains:
            sql = "SELECT sequence, canonical, hash FROM records WHERE chain = ? ORDER BY sequence"
            rows = file.execute(sql, (number,)).fetchall()
            chain = f"{target}/{scope}"
            start = f"oi-provenance/v1\nplant-t\n{target}\n{scope}"
            previous, time = hashlib.sha256(start.encode()).hexdigest(), ""
            for expected, (sequence, canonical, stored_hash) in enumerate(rows, start=1):
                text = canonical.encode() if isinstance(canonical, str) else canonical
                digest = hashlib.sha256(text).hexdigest()
                record = json.loads(text)
                place = f"{chain} {expected}"
                world.require(sequence == expected, f"{place}: the sequence number is {sequence}")
                world.require(record["RecordID"] == f"{expected:012d}", f"{place}: RecordID {record['RecordID']}")
                hashed = stored_hash if isinstance(stored_hash, str) else stored_hash.decode()
                world.require(digest == hashed, f"{place}: the hash does not match")
                world.require(record["PreviousHash"] == previous, f"{place}: the link does not match")
                moment = next(str(record[name]) for name in _TIMES if name in record)
                world.require(moment >= time, f"{place}: the time goes back")
                previous, time = digest, moment
                records.append({**record, "Hash": digest, "Chain": chain})
            head = (last_hash if isinstance(last_hash, str) else last_hash.decode(), size)
            world.require(head == (previous, len(rows)), f"{chain}: the head {head} is not the last record")
            world.require(last_time == time, f"{chain}: the time of the head differs")
    return records


def read_hashes(folder: Path, target: str, scope: str) -> list[bytes]:
    """Return the hashes of a chain's records, in the order of the chain."""
    sql = (
        "SELECT records.hash FROM records JOIN chains USING (chain) "
        "WHERE target = ? AND scope = ? ORDER BY records.sequence"
    )
    with closing(sqlite3.connect(folder / "provenance.sqlite")) as file:
        return [bytes.fromhex(row[0]) for row in file.execute(sql, (target, scope))]
