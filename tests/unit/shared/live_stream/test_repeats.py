"""Which impulses were handed on a short while ago."""

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from shared.live_stream.publishing import REMEMBERED_SECONDS, RecentImpulses
from shared.telemetry.impulses import encode
from shared.telemetry.models import Impulse

AT = datetime(2026, 1, 5, tzinfo=UTC)


def impulse(message_id: str, number: int = 0) -> bytes:
    """Return an impulse as JSON text."""
    return encode(Impulse(message_id, AT, "a", (), "d", {}, {"n": number, "t": '","Timestamp":"'}))


IDS = st.text(min_size=1, max_size=8) | st.sampled_from(['","Timestamp":"', '\\","Timestamp":"', "\\", '"', '\\"'])


@given(IDS, IDS)
def test_the_id_alone_counts(one: str, other: str) -> None:
    """Another payload under the same ID is a repeat, and another ID is none, whatever characters it has."""
    repeats = RecentImpulses()
    repeats.note("a", impulse(one))
    assert repeats.has("a", impulse(one, 1))
    assert repeats.has("a", impulse(other)) is (one == other)
    assert not repeats.has("b", impulse(one))


def test_what_has_no_id_is_no_repeat() -> None:
    """Text that is no impulse is never taken for one that was there."""
    repeats = RecentImpulses()
    repeats.note("a", b"{}")
    assert not repeats.has("a", b"{}")


def test_memory_is_bounded_in_time_and_number() -> None:
    """An ID is forgotten after ten minutes, or when enough others were noted after it."""
    now = [0.0]
    repeats = RecentImpulses(2, lambda: now[0])
    repeats.note("a", impulse("old"))
    now[0] = REMEMBERED_SECONDS
    assert not repeats.has("a", impulse("old"))
    for number in range(3):
        repeats.note("a", impulse(str(number)))
    assert [repeats.has("a", impulse(str(number))) for number in range(3)] == [False, True, True]
