"""Tests of the telemetry archive."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from shared.backends.embedded.hub import HubReader
from tests.service.local_service import Service, wait_until
from tests.unit.shared.cold_data.archived import open_folder_store, read_ids


def read_archive(data_dir: Path, connection: str) -> list[str]:
    return asyncio.run(read_ids(open_folder_store(data_dir / "blobs"), connection))


def send_messages(service: Service, names: Sequence[str]) -> None:
    batch = [{"messageId": name, "ts": "2026-02-01T00:00:00Z"} for name in names]
    reply = service.create_client("editor@t").post("/oi-api/telemetry/pump-rig", json=batch)
    assert (reply.status_code, reply.json()) == (202, {"accepted": len(names)})


def test_unrouted_events_are_archived(own_module_service: Service) -> None:
    """An event without a known connection is archived under `_unrouted`, so that the archive contains every event."""
    from tests.unit.local.host.test_event_hubs import send_events as send_raw  # noqa: PLC0415  only here

    send_raw(own_module_service.data_dir, [b"not json"], "telemetry")
    wait_until(lambda: read_archive(own_module_service.data_dir, "_unrouted"), lambda found: len(found) == 1)
    reader = HubReader(own_module_service.data_dir / "hub.sqlite")
    try:
        wait_until(
            lambda: sum(reader.read_offset("impulses", "archive", each) for each in "01"), lambda count: count > 0
        )
    finally:
        reader.close()


def test_messages_are_archived_once_despite_a_kill(own_module_service: Service) -> None:
    """If the service is killed while it stores messages, the archive still contains each message exactly once."""
    names = [f"m-{number}" for number in range(200)]
    for first in range(0, len(names), 20):
        send_messages(own_module_service, names[first : first + 20])
    own_module_service.kill()
    own_module_service.start()
    send_messages(own_module_service, names[:20])
    send_messages(own_module_service, ["last"])
    found = wait_until(lambda: read_archive(own_module_service.data_dir, "pump-rig"), lambda found: "last" in found)
    assert sorted(found) == sorted([*names, "last"])
    assert own_module_service.stop() == 0
    assert read_archive(own_module_service.data_dir, "pump-rig") == found
