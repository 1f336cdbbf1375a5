"""Helpers that append records to audit chains over the API and damage records in the database file."""

import hashlib
import json
import sqlite3
from contextlib import closing
from typing import Any

import httpx

from tests.service.local_service import Service, wait_until

EVENTS = "/oi-api/provenance/events"


def append_events(client: httpx.Client, scope: str, count: int, **properties: Any) -> list[dict[str, Any]]:
    """Append events with these properties to a scope and return the events, oldest first."""
    made = []
    for number in range(count):
        state = {"setpoint": 4.0 + number, "unit": "bar"}
        body = {
            "ActionType": "SetpointChanged",
            "EntityType": "Pump",
            "EntityID": f"rig-{number}",
            "BeforeState": state,
        }
        body |= {"AfterState": {**state, "setpoint": 4.5 + number}, "ScopeKey": scope, **properties}
        reply = client.post(EVENTS, json=body)
        assert reply.status_code == 201, reply.text
        made.append(reply.json())
    return made


def wait_for_checkpoint(client: httpx.Client, scope: str, size: int) -> None:
    """Wait until a checkpoint covers the given number of records of a scope."""

    def read_newest_size() -> int:
        reply = client.get("/oi-api/provenance/checkpoint", params={"target": "DomainEvents", "scopeKey": scope})
        return int(reply.json()["size"]) if reply.status_code == 200 else 0

    wait_until(read_newest_size, lambda covered: covered >= size, seconds=60)


def edit_record(
    service: Service,
    scope: str,
    sequence: int,
    old: str,
    new: str,
    *,
    target: str = "DomainEvents",
    rehash: bool = False,
) -> None:
    """Edit the text of a record in the database file; ``rehash`` also stores the matching Hash."""
    where = f"sequence = ? AND chain = (SELECT chain FROM chains WHERE target = '{target}' AND scope = ?)"
    with closing(sqlite3.connect(service.data_dir / "provenance.sqlite")) as file, file:
        [(content,)] = file.execute(f"SELECT canonical FROM records WHERE {where}", (sequence, scope)).fetchall()
        assert old in content.decode()
        other = content.decode().replace(old, new).encode()
        assert json.loads(other)
        change = "canonical = ?" + (", hash = ?" if rehash else "")
        values = (other, hashlib.sha256(other).hexdigest()) if rehash else (other,)
        file.execute(f"UPDATE records SET {change} WHERE {where}", (*values, sequence, scope))


def destroy_record(service: Service, scope: str, sequence: int) -> None:
    """Replace the record of an event in the database file with invalid content."""
    where = "sequence = ? AND chain = (SELECT chain FROM chains WHERE target = 'DomainEvents' AND scope = ?)"
    with closing(sqlite3.connect(service.data_dir / "provenance.sqlite")) as file, file:
        file.execute(f"UPDATE records SET canonical = ? WHERE {where}", (b"garbage", sequence, scope))
