"""Tests of the sort order of the list of pending amendments."""

from shared.provenance.overview_ports import PendingPlace
from shared.provenance.ports import ChainKey, Target


def test_pending_amendments_are_sorted_by_time() -> None:
    """Pending amendments are sorted by time, oldest first; those with the same time by scope and sequence number."""
    first = PendingPlace("2026-01-05T08:00:00.000000Z", "b", 9)
    later = [PendingPlace("2026-01-05T08:00:00.000001Z", "a", 1), PendingPlace("2026-01-05T08:00:00.000000Z", "b", 10)]
    assert min(*later, first) == first


def test_the_position_of_a_pending_amendment_contains_its_chain() -> None:
    """The sort position of a pending amendment contains the chain of the amendment's scope."""
    assert PendingPlace("t", "line-1", 1).chain == ChainKey(Target.DOMAIN_AMENDMENTS, "line-1")
