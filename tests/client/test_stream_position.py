"""Tests of the position from which a live stream continues after a lost connection."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from oi import stream_position as module
from oi.stream_position import StreamPosition


def build_message(number: int, moment: datetime) -> dict[str, Any]:
    """Return a message of the live stream."""
    return {"ID": f"m-{number}", "Timestamp": moment.isoformat(), "Metadata": {"ConnectionLookup": "rig"}}


@pytest.fixture
def _one_replayed_message_is_the_position(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REPLAY_TAIL", 1)


@pytest.mark.usefixtures("_one_replayed_message_is_the_position")
def test_a_live_message_does_not_end_a_replay() -> None:
    """If the connection is lost during a replay, the stream continues where the replay was, despite live messages."""
    now = datetime.now(UTC)
    since = now - timedelta(hours=2)
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(now)
    position.record_if_new(build_message(1, now - timedelta(seconds=2)))
    assert position.find_start_time() == since.isoformat()
    position.record_if_new(build_message(2, since + timedelta(minutes=10)))
    position.record_if_new(build_message(3, now))
    assert position.find_start_time() == (since + timedelta(minutes=9)).isoformat()


def test_repeated_messages_are_progress_of_a_replay() -> None:
    """A replay that is lost continues at the last message that it repeated, because this one is certainly replayed."""
    now = datetime.now(UTC)
    since = now - timedelta(hours=2)
    replayed = [build_message(number, since + timedelta(minutes=10 * number)) for number in range(1, 4)]
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(now)
    assert [position.record_if_new(each) for each in (replayed[0], build_message(9, now))] == [True, True]
    assert position.find_start_time() == since.isoformat()
    position.record_connection_opened(now)
    assert [position.record_if_new(each) for each in replayed] == [False, True, True]
    assert position.find_start_time() == (since + timedelta(minutes=9)).isoformat()
    position.record_connection_opened(now)
    assert position.record_if_new(replayed[2]) is False
    assert position.find_start_time() == (since + timedelta(minutes=29)).isoformat()


@pytest.mark.usefixtures("_one_replayed_message_is_the_position")
@pytest.mark.parametrize("ahead", [timedelta(hours=-12), timedelta(minutes=2)])
def test_the_clock_of_the_computer_does_not_matter(ahead: timedelta) -> None:
    """Whether the clock of this computer is behind or ahead, a stream misses nothing and does not go back too far."""
    now = datetime.now(UTC) - ahead
    since = now - timedelta(hours=2)
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(now)
    for number, moment in enumerate((since + timedelta(minutes=10), now)):
        position.record_if_new(build_message(number, moment))
    assert position.find_start_time() == (since + timedelta(minutes=9)).isoformat()
    position = StreamPosition(None)
    position.record_connection_opened(now)
    position.record_if_new(build_message(1, now))
    assert position.find_start_time() == (now - timedelta(minutes=1)).isoformat()


def test_late_live_messages_do_not_end_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """The position of a replay is its oldest recent message, because later ones can be live messages that are late."""
    monkeypatch.setattr(module, "_REPLAY_TAIL", 3)
    now = datetime.now(UTC)
    since = now - timedelta(hours=2)
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(now)
    replayed = [since + timedelta(minutes=10 * number) for number in range(1, 4)]
    late = [now - timedelta(seconds=seconds) for seconds in (90, 89)]
    for number, moment in enumerate([*replayed, *late]):
        position.record_if_new(build_message(number, moment))
    assert position.find_start_time() == (since + timedelta(minutes=29)).isoformat()


def test_live_messages_are_the_position_after_a_replay(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a replay has made no progress for a long time, the stream continues a minute before the last message."""
    now = datetime.now(UTC)
    position = StreamPosition((now - timedelta(hours=2)).isoformat().lower())
    position.record_connection_opened(now)
    position.record_if_new(build_message(1, now))
    monkeypatch.setattr(module, "_MAX_REPLAY_PAUSE", timedelta(seconds=-1))
    assert position.find_start_time() == (now - timedelta(minutes=1)).isoformat()


def test_no_message_of_the_last_minute_is_returned_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a lost connection, all messages of the last minute are recognised, however many they are."""
    monkeypatch.setattr(module, "_REMEMBERED", 10)
    now = datetime.now(UTC)
    messages = [build_message(number, now) for number in range(100)]
    position = StreamPosition(None)
    position.record_connection_opened(now)
    assert all(position.record_if_new(each) for each in messages)
    assert position.find_start_time() is not None
    position.record_connection_opened(now)
    assert not any(position.record_if_new(each) for each in messages)


def test_ids_of_old_messages_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of messages that a replay cannot return, only the newest ones are remembered."""
    monkeypatch.setattr(module, "_REMEMBERED", 10)
    now = datetime.now(UTC)
    position = StreamPosition(None)
    position.record_connection_opened(now)
    for number in range(100):
        position.record_if_new(build_message(number, now if number == 0 else now - timedelta(hours=1)))
    assert len(position._timestamps) <= 22
    assert not position.record_if_new(build_message(0, now))
    assert not position.record_if_new(build_message(99, now))


def test_a_start_time_in_the_future_causes_no_gap() -> None:
    """A stream whose start time is in the future continues with all messages since the first connection."""
    now = datetime.now(UTC)
    for moment, expected in ((None, now), (now, now - timedelta(minutes=1))):
        position = StreamPosition((now + timedelta(minutes=10)).isoformat())
        position.record_connection_opened(now)
        if moment:
            position.record_if_new(build_message(1, moment))
        assert position.find_start_time() == expected.isoformat()


def test_a_start_time_in_the_second_of_the_connection_is_not_in_the_future() -> None:
    """A stream whose start time is now never continues before it, although the service's time has whole seconds."""
    opened_at = datetime.now(UTC).replace(microsecond=0) - timedelta(seconds=10)
    since = opened_at + timedelta(milliseconds=900)
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(opened_at)
    position.record_if_new(build_message(1, since + timedelta(seconds=5)))
    assert position.find_start_time() == since.isoformat()


def test_a_stream_continues_not_before_its_start() -> None:
    """If the newest message is less than a minute newer than the start of the stream, it continues at its start."""
    now = datetime.now(UTC)
    since = now - timedelta(seconds=10)
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(now)
    position.record_if_new(build_message(1, now))
    assert position.find_start_time() == since.isoformat()


def test_messages_with_late_timestamps_cause_no_gap() -> None:
    """If all timestamps are hours old, the stream continues a minute before the newest one, not at its start."""
    now = datetime.now(UTC)
    for start in (None, (now - timedelta(minutes=30)).isoformat()):
        for lag in (timedelta(hours=1), timedelta(hours=23)):
            position = StreamPosition(start)
            position.record_connection_opened(now)
            position.record_if_new(build_message(1, now - lag))
            assert position.find_start_time() == (now - lag - timedelta(minutes=1)).isoformat()


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(2001, 6, 1, tzinfo=UTC)])
def test_an_implausible_time_does_not_start_a_replay_from_before_the_stream(moment: datetime) -> None:
    """After a lost connection, the stream continues at its start if all timestamps are over 24 hours older."""
    now = datetime.now(UTC)
    since = now - timedelta(hours=2)
    for start, expected in ((None, now - timedelta(minutes=1)), (since.isoformat(), since)):
        position = StreamPosition(start)
        position.record_connection_opened(now)
        position.record_if_new(build_message(1, moment))
        assert position.find_start_time() == expected.isoformat()
        position.record_connection_opened(now + timedelta(minutes=5))
        assert position.find_start_time() == expected.isoformat()


def test_a_stream_from_the_year_1_continues_at_its_start() -> None:
    """A stream whose start and newest message are in the first minute of the year 1 continues at its start."""
    now, since = datetime.now(UTC), datetime(1, 1, 1, tzinfo=UTC)
    position = StreamPosition(since.isoformat())
    position.record_connection_opened(now)
    position.record_if_new(build_message(1, since + timedelta(seconds=30)))
    assert position.find_start_time() == since.isoformat()
