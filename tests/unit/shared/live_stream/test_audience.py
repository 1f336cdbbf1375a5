"""Tests of the cache of groups that have listeners (open live streams)."""

from shared.live_stream.audience import ABSENT_SECONDS, PRESENT_SECONDS, Audience
from tests.virtual_time import VirtualTime


class Groups:
    """Fake message service that knows which groups have listeners, and counts calls.

    Attributes:
        occupied: groups with listeners.
        questions: number of calls that ask whether a group has listeners.
        during: pairs of an audience and a group; each call admits a listener to the group while it runs.
    """

    def __init__(self) -> None:
        self.occupied: set[str] = set()
        self.questions = 0
        self.during: list[tuple[Audience, str]] = []

    async def has_streams(self, group: str) -> bool:
        """Return whether a group has listeners."""
        self.questions += 1
        for audience, admitted in self.during:
            audience.expect_listener((admitted,))
        return group in self.occupied


def build_audience() -> tuple[Audience, Groups, VirtualTime]:
    """Return an ``Audience`` (cache of groups with listeners), its fake message service and its clock."""
    groups, time = Groups(), VirtualTime()
    return Audience(groups, runtime=time.runtime), groups, time  # type: ignore[arg-type]  # one method is used


async def test_a_group_without_listeners_is_checked_again_after_a_second() -> None:
    """If a group has no listeners, it is checked again after a second, because other processes admit listeners, too."""
    audience, groups, time = build_audience()
    assert [await audience.can_have_listeners("a") for _ in range(3)] == [False] * 3
    groups.occupied.add("a")
    time.advance(ABSENT_SECONDS)
    assert await audience.can_have_listeners("a")
    assert groups.questions == 2


async def test_a_group_with_listeners_is_checked_again_after_a_minute() -> None:
    """If a group has listeners, it is checked again only after a minute, because extra messages cost little."""
    audience, groups, time = build_audience()
    groups.occupied.add("a")
    assert await audience.can_have_listeners("a")
    groups.occupied.clear()
    time.advance(PRESENT_SECONDS - 1)
    assert await audience.can_have_listeners("a")
    time.advance(1)
    assert not await audience.can_have_listeners("a")


async def test_a_group_counts_as_occupied_after_an_admission() -> None:
    """From the admission of a listener on, its group counts as occupied, even before the listener connects."""
    audience, groups, _ = build_audience()
    assert not await audience.can_have_listeners("a")
    audience.expect_listener(("a", "b"))
    assert await audience.can_have_listeners("a")
    assert await audience.can_have_listeners("b")
    assert groups.questions == 1


async def test_a_group_counts_as_occupied_after_an_admission_during_its_check() -> None:
    """If a listener is admitted during a check, its group counts as occupied, whatever the check returns."""
    audience, groups, _ = build_audience()
    groups.during.append((audience, "a"))
    assert await audience.can_have_listeners("a")
