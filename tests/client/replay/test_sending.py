"""Tests of the sending of rows: batches, pace and errors."""

import asyncio
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from oi import AsyncWorkspace, ConflictError, ServerError, UnreachableError
from oi.replay import sending
from oi.replay.csv_rows import CsvRow
from oi.replay.sending import Pace, send_rows, stream_due_batches

START = datetime(2026, 1, 5, 8, tzinfo=UTC)


def build_rows(seconds: Sequence[float], size: int = 10) -> Iterator[CsvRow]:
    """Yield one row for each of the given times; the payload of a row has the given size."""
    for number, second in enumerate(seconds, 1):
        message = b"{}".ljust(size)
        yield CsvRow(f"rig.csv: row {number}", START + timedelta(seconds=second), message, str(number), "")


async def send_in_batches(
    replies: list[httpx.Response | Exception], count: int, monkeypatch: pytest.MonkeyPatch
) -> list[int]:
    """Send rows in batches of 10 to a fake service with these replies; return the number of rows in each request.

    An exception in place of a reply is the error of the HTTP client.
    """
    sent: list[int] = []

    def reply_to_request(request: httpx.Request) -> httpx.Response:
        rows = request.content.count(b"\n")
        sent.append(rows)
        reply = replies.pop(0) if replies else httpx.Response(202)
        if isinstance(reply, Exception):
            raise reply
        return reply if reply.status_code != 202 else httpx.Response(202, json={"accepted": rows})

    async def skip_wait(_seconds: float) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr("oi._async.transport.sleep", skip_wait)
    async with AsyncWorkspace("https://plant.example", token="t") as workspace:
        client = httpx.AsyncClient(transport=httpx.MockTransport(reply_to_request), base_url="https://plant.example")
        workspace._transport.client = client
        accepted: list[int] = []
        await send_rows(build_rows([0] * count), workspace.telemetry, "rig", Pace(10, 0, 2), accepted.append)
    assert sum(accepted) == count
    return sent


async def test_a_replay_repeats_requests_while_the_service_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service is busy or restarting, the replay repeats requests until each row is accepted."""
    busy: list[Any] = [httpx.Response(429, headers={"Retry-After": "0"}), httpx.Response(503)]
    assert sorted(await send_in_batches(busy, 35, monkeypatch)) == [5, 10, 10, 10, 10, 10]


async def test_a_rejected_batch_is_reported_with_its_row_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service rejects a batch, the replay ends with the reason and the row numbers."""
    refusal = httpx.Response(409, json={"code": "CONNECTION_DISABLED", "detail": "It is disabled."})
    with pytest.raises(ConflictError, match=r"rig\.csv: row 1 to rig\.csv: row 10: It is disabled\. \(CONNECTION_"):
        await send_in_batches([refusal], 10, monkeypatch)


async def test_the_error_of_a_batch_states_whether_the_batch_may_be_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service fails during a batch, the error names the rows and states that the outcome is unknown."""
    failure = httpx.Response(500, json={"code": "INTERNAL", "detail": "It failed."}, headers={"Retry-After": "7"})
    with pytest.raises(ServerError, match=r"rig\.csv: row 1 to rig\.csv: row 10: It failed\. \(INTERNAL\)") as failed:
        await send_in_batches([failure], 10, monkeypatch)
    assert (failed.value.is_outcome_unknown, failed.value.retry_after) == (True, 7.0)


async def test_the_error_of_a_lost_reply_names_the_rows_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the service closes the connection without a reply, the error names the rows that were possibly stored."""
    lost: list[httpx.Response | Exception] = [httpx.RemoteProtocolError("Server disconnected.")] * 5
    with pytest.raises(UnreachableError, match=r"rig\.csv: row 1 to rig\.csv: row 10: The outcome of a") as failed:
        await send_in_batches(lost, 10, monkeypatch)
    assert failed.value.is_outcome_unknown


async def test_replay_batches_have_a_maximum_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch has at most the maximum number of rows and the maximum number of bytes."""
    monkeypatch.setattr(sending, "MAX_BYTES", 100)
    batches = [len(batch) async for batch in stream_due_batches(build_rows([0] * 7, size=30), Pace(batch=4))]
    assert batches == [3, 3, 1]


async def test_replayed_rows_are_sent_when_they_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a speed, rows that are due together form one batch; pauses have the recorded length divided by the speed."""
    now = 0.0

    async def advance_clock(seconds: float) -> None:
        nonlocal now
        now += seconds

    monkeypatch.setattr("asyncio.sleep", advance_clock)
    monkeypatch.setattr("oi.replay.sending.time.monotonic", lambda: now)
    rows = build_rows([0, 0, 1, 30, 30])
    batches = [(now, len(batch)) async for batch in stream_due_batches(rows, Pace(speed=100))]
    assert batches == [(0.0, 3), (pytest.approx(0.3), 2)]
