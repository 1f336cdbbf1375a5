"""Tests of the services of one process: separation, creation at first use, and order of closing."""

import subprocess
import sys
import threading
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import pytest

from shared.backends.embedded.hub import HubReader, StoredEvent
from shared.catalog.document import load_document
from shared.provenance.ports import ChainRecord
from shared.runtime import Runtime
from shared.settings import Settings
from shared.telemetry.models import TELEMETRY_HUB
from shared.timestamps import to_unix_microseconds
from shared.wiring import Services
from tests.inline_executor import InlineExecutor
from tests.unit.shared.catalog.documents import PLANT as AUDITED_PLANT

ROOT = Path(__file__).parents[4]
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
PLANT = "workspace: {{id: {0}, name: Plant}}\nteam: [{{id: admin@t, name: A, role: Admin}}]\n"
SCRIPT = """
import sys
from shared.settings import Settings
from shared.wiring import Services

Services(Settings.read({"DATA_DIR": sys.argv[1]}))
print(*sorted(sys.modules), sep="\\n")
"""


class FakeResource:
    """Fake resource of the services that records when it is closed."""

    def __init__(self, name: str, closed: list[str], *, fails: bool = False) -> None:
        self._name = name
        self._closed = closed
        self._fails = fails

    async def close(self) -> None:
        """Record the name of the closed resource."""
        self._closed.append(self._name)
        if self._fails:
            raise OSError(self._name)


def build_services(folder: Path) -> Services:
    """Return new services with their stores in a folder."""
    return Services(Settings.read({"DATA_DIR": str(folder)}))


async def test_two_instances_of_services_share_nothing(tmp_path: Path) -> None:
    """Two sets of services in one process have separate stores and caches; closing one does not affect the other."""
    first, second = build_services(tmp_path / "first"), build_services(tmp_path / "second")
    for services, name in ((first, "plant-1"), (second, "plant-2")):
        await services.provenance.catalog_service.apply(load_document(PLANT.format(name), "test"), "apply")
    assert await first.catalog.load_workspace_id() == "plant-1"
    await first.close()
    assert await second.catalog.load_workspace_id() == "plant-2"
    await second.close()


async def run_seeded_services(folder: Path, seed: int) -> tuple[list[ChainRecord], list[StoredEvent]]:
    """Use services with a fixed clock, seeded randomness and no threads; return the stored records and events."""
    random = Random(seed)
    runtime = Runtime(
        now=lambda: NOW,
        random_bytes=random.randbytes,
        uniform=random.uniform,
        threads=InlineExecutor(),
        open_pool=lambda _count, _name: InlineExecutor(),
    )
    services = Services(Settings.read({"DATA_DIR": str(folder)}), runtime)
    await services.provenance.catalog_service.apply(load_document(AUDITED_PLANT, "test"), "apply")
    await services.access.api_keys.issue_without_rights_check("admin", "admin@plant-a.example", "key")
    await services.telemetry.service.accept_and_count_messages("rig", [{"t": 1}, {"t": 2}])
    records: list[ChainRecord] = []
    async for chain, _ in services.provenance.chain_store.iterate_tips():
        page = await services.provenance.chain_store.read(chain, 0, limit=100, max_bytes=10**6)
        records += page.records
    await services.close()
    reader = HubReader(folder / "hub.sqlite")
    partitions = reader.list_partition_ids(TELEMETRY_HUB)
    events = [event for each in partitions for event in reader.read_rows(TELEMETRY_HUB, each, 0, 100)]
    reader.close()
    return records, events


async def test_a_seed_determines_the_stored_data(tmp_path: Path) -> None:
    """With an equal clock and seed, two instances store equal records and events, and no thread is started."""
    threads = threading.active_count()
    first, second, other = [
        await run_seeded_services(tmp_path / name, seed) for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert first == second != other
    assert len(first[0]) > 2
    assert [event.enqueued for event in first[1]] == [to_unix_microseconds(NOW)] * 2
    assert threading.active_count() == threads


async def test_unused_services_open_no_file(tmp_path: Path) -> None:
    """Services that are not used create no files and no background jobs, even when they are closed."""
    services = build_services(tmp_path / "data")
    await services.close()
    assert not (tmp_path / "data").exists()
    assert "runner" not in services.background.__dict__


def test_new_services_import_no_adapter(tmp_path: Path) -> None:
    """Creating services imports no adapters and no Azure SDKs."""
    command = [sys.executable, "-c", SCRIPT, str(tmp_path / "data")]
    loaded = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert "shared.wiring.access" in loaded
    slow = ("shared.backends", "azure", "sqlite3", "graphql", "pyarrow")
    assert [name for name in loaded if name in slow or name.startswith(tuple(f"{each}." for each in slow))] == []


async def test_resources_are_closed_in_reverse_order(tmp_path: Path) -> None:
    """Background jobs stop first; then resources close, newest first, also after an error."""
    services, closed = build_services(tmp_path), list[str]()
    services.backends.register_for_closing(FakeResource("first", closed))
    services.backends.register_for_closing(FakeResource("second", closed, fails=True))
    services.background.__dict__["runner"] = FakeResource("jobs", closed, fails=True)
    with pytest.raises(OSError, match="second"):
        await services.close()
    assert closed == ["jobs", "second", "first"]
