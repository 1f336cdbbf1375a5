"""Tests of the file of the embedded event hub."""

from contextlib import closing
from pathlib import Path

import pytest

from shared.backends.embedded.hub_file import (
    PARTITIONS,
    compute_partition_id,
    open_hub_file,
    sequence_from_event_id,
    to_event_id,
)


@pytest.mark.parametrize(("key", "partition"), [("rig", "1"), ("sim", "0"), ("", "0")])
def test_the_partition_of_a_key_never_changes(key: str, partition: str) -> None:
    """The partition of a key is the same in each release, because a new partition would change the order of events."""
    assert compute_partition_id(key) == partition


def test_all_partitions_are_used() -> None:
    """Keys are distributed over all partitions."""
    assert {compute_partition_id(f"key-{number}") for number in range(50)} == {str(n) for n in range(PARTITIONS)}


def test_events_of_a_partition_are_adjacent() -> None:
    """The rows of a partition are adjacent: its largest sequence number is below all numbers of the next partition."""
    largest = 2**48 - 1
    assert sequence_from_event_id(to_event_id(7, largest)) == largest
    assert to_event_id(7, largest) < to_event_id(8, 0)


def test_a_hub_file_can_be_opened_again(tmp_path: Path) -> None:
    """Opening a hub creates its folders and tables; opening it again keeps its events."""
    path = tmp_path / "a" / "b" / "hub.sqlite"
    with closing(open_hub_file(path)) as hub:
        hub.execute("INSERT INTO partitions (hub, partition) VALUES ('telemetry', '0')")
        hub.commit()
    with closing(open_hub_file(path)) as hub:
        assert hub.execute("SELECT last_sequence FROM partitions").fetchall() == [(0,)]
