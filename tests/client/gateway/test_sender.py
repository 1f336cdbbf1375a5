"""Tests of the sender of stored messages and of its reaction to errors."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from oi.errors import ApiError, UnreachableError, build_api_error
from oi.gateway import sender as module
from oi.gateway.clock import ReceiveClock
from oi.gateway.messages import build_ndjson_line
from oi.gateway.metrics import Metrics
from oi.gateway.routes import Fields, MessageTarget
from oi.gateway.sections import SettingsError
from oi.gateway.sender import Sender, Upstream
from oi.gateway.settings import STOP, ServiceSettings, SpoolSettings
from oi.gateway.spool import GatewaySpool
from oi.gateway.spool_thread import SpoolThread
from oi.gateway.uplink import Uplink

from tests.client.gateway.http_service import HTML, JSON, HttpReply, accept_lines, serve_replies
from tests.client.gateway.running import wait_for_count

type Answer = Callable[[str, list[Any]], Exception | None]


class FakeUpstream:
    """Fake service that stores messages, or raises the errors that a test sets."""

    def __init__(self, answer: Answer) -> None:
        self.answer = answer
        self.requests: list[tuple[str, list[Any]]] = []
        self.stored: dict[str, list[Any]] = {}
        self.active = self.most_active = 0

    async def send(self, lookup: str, ndjson_lines: bytes) -> None:
        """Store the values of the messages, or raise the error that the test has set."""
        values = [json.loads(line) for line in ndjson_lines.splitlines()]
        self.requests.append((lookup, values))
        self.active += 1
        self.most_active = max(self.active, self.most_active)
        await asyncio.sleep(0)
        self.active -= 1
        if error := self.answer(lookup, values):
            raise error
        self.stored.setdefault(lookup, []).extend(values)


@pytest.fixture
def spool(tmp_path: Path) -> Any:
    """Yield an empty spool (file of waiting messages)."""
    thread = SpoolThread(GatewaySpool(SpoolSettings(tmp_path / "spool.db", 2**30, STOP)))
    yield thread
    thread.close()


@pytest.fixture(autouse=True)
def shorten_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten the sender's pauses between attempts for a test."""
    for name in ("_FIRST_LINGER_SECONDS", "_LONGEST_LINGER_SECONDS", "_FIRST_PAUSE_SECONDS", "_HOLD_SECONDS"):
        monkeypatch.setattr(module, name, 0.001)


@asynccontextmanager
async def run_sender(spool: SpoolThread, upstream: Upstream) -> AsyncIterator[Metrics]:
    """Context manager: run a sender of the spool's messages for the duration of the block."""
    metrics = Metrics()
    task = asyncio.create_task(Sender(upstream, spool, metrics).run())
    try:
        yield metrics
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


@asynccontextmanager
async def run_sender_over_http(
    spool: SpoolThread, reply_to_lines: Callable[[list[bytes]], HttpReply], monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Metrics]:
    """Context manager: run a sender whose requests reach a local HTTP server for the duration of the block."""
    monkeypatch.setenv("OI_KEY", "good")
    with serve_replies(reply_to_lines) as url:
        uplink = Uplink(ServiceSettings(url, None), ReceiveClock())
        async with run_sender(spool, uplink) as metrics:
            yield metrics
        await uplink.close()


def store_messages(spool: SpoolThread, lookup: str, *values: int) -> None:
    """Store messages with these values for a connection in the spool."""
    spool.spool.append_and_count_dropped({lookup: [b"%d\n" % value for value in values]}, [], b"")


def build_error(status: int, code: str, detail: str = "Why.", *fields: str) -> Exception:
    """Return the exception that the client raises for an error reply."""
    errors = [{"field": each, "message": "bad"} for each in fields]
    return build_api_error(status, {"code": code, "detail": detail, "errors": errors})


async def test_messages_of_connections_are_sent_in_parallel_and_each_in_order(spool: SpoolThread) -> None:
    """At most four requests run at once, and at most one of them for each connection."""
    upstream = FakeUpstream(lambda *_: None)
    for number in range(12):
        store_messages(spool, f"c{number % 6}", number, number + 100)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 24)
    assert upstream.stored == {f"c{n}": [n, n + 100, n + 6, n + 106] for n in range(6)}
    assert upstream.most_active <= 4
    assert metrics.get_count("sent_messages_total") == 24


async def test_connections_take_turns(spool: SpoolThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection with full batches sends its next batch only after each other connection has sent one."""

    async def run_at_once(function: Callable[..., Any], *arguments: Any) -> Any:
        return function(*arguments)

    # Otherwise requests that run concurrently could wait for the thread and arrive in another order.
    monkeypatch.setattr(spool, "run", run_at_once)
    monkeypatch.setattr(module, "MAX_MESSAGES", 1)
    monkeypatch.setattr("oi.gateway.spool.MAX_MESSAGES", 1)
    upstream = FakeUpstream(lambda *_: None)
    for number in range(3):
        for connection in range(6):
            store_messages(spool, f"c{connection}", number)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 18)
    sent = [lookup for lookup, _ in upstream.requests]
    assert [len(set(sent[start : start + 6])) for start in range(0, 18, 6)] == [6, 6, 6]


async def test_pauses_grow_while_batches_are_small(spool: SpoolThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """The pause of a connection doubles up to its maximum while batches are small; a full batch resets it."""
    monkeypatch.setattr(module, "_FIRST_LINGER_SECONDS", 1.0)
    monkeypatch.setattr(module, "_LONGEST_LINGER_SECONDS", 3.0)
    monkeypatch.setattr(module, "MAX_MESSAGES", 4)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: 0.0, time=lambda: 0.0))
    sender, pauses = Sender(FakeUpstream(lambda *_: None), spool, Metrics()), []
    for count in (1, 2, 1, 1, 3, 1):
        store_messages(spool, "press", *range(count))
        await sender._send_next_batch("press")
        pauses.append(sender._next_at["press"])
    assert pauses == [1.0, 2.0, 3.0, 3.0, 0.0, 1.0]


async def test_a_connection_without_requests_is_forgotten(spool: SpoolThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """An hour after the last request of a connection, the sender has no data of this connection in memory."""
    now = 0.0
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now, time=lambda: 0.0))
    errors = {"unknown": build_error(404, "CONNECTION_NOT_FOUND"), "large": build_error(413, "")}
    sender = Sender(FakeUpstream(lambda lookup, _: errors.get(lookup)), spool, Metrics())

    async def send_and_list_connections(*lookups: str) -> set[str]:
        for lookup in lookups:
            store_messages(spool, lookup, 1, 2)
        sender._start_requests_and_get_wait_seconds()
        await asyncio.gather(*sender._sending.values())
        return {lookup for values in vars(sender).values() if isinstance(values, dict) for lookup in values}

    assert await send_and_list_connections("unknown", "large", "small") == {"unknown", "large", "small"}
    for lookup in errors:
        batch = spool.spool.find_next_batch(lookup)
        assert batch is not None
        spool.spool.remove_batch(batch)
    now = 3600.0
    assert await send_and_list_connections("new") == {"unknown", "large", "small", "new"}
    now = 3601.0
    assert await send_and_list_connections("new") == {"new"}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (UnreachableError("refused"), "The service cannot be reached"),
        (build_error(502, ""), "The service cannot be reached"),
        (build_error(504, ""), "The service cannot be reached"),
        (build_error(503, "OVERLOADED"), "accepts no more messages now"),
        (build_error(507, "STORAGE_FULL"), "accepts no more messages now"),
        (build_error(429, "RATE_LIMITED"), "accepts no more messages now"),
        (
            build_error(401, "KEY_REVOKED", "The key was revoked."),
            "The service rejects the API key: The key was revoked.",
        ),
        (
            build_error(400, "INVALID_REQUEST", "scopes: Workspace.Telemetry.Write is not among them.", "scopes"),
            "The service rejects the API key: scopes: Workspace.Telemetry.Write is not among them.",
        ),
        (build_error(403, "ACCESS_RIGHT_MISSING"), "The service rejects the API key"),
        (build_error(403, "BOUND_KEY_REQUIRED"), "The service rejects the API key"),
        (SettingsError("The API key is missing."), "The API key is missing."),
        (build_error(403, "CONNECTION_NOT_ALLOWED"), "refuses messages of the connection press"),
        (build_error(404, "CONNECTION_NOT_FOUND"), "refuses messages of the connection press"),
        (build_error(409, "CONNECTION_DISABLED"), "refuses messages of the connection press"),
        (build_error(400, "VALIDATION"), "refuses messages of the connection press"),
        (build_error(500, "INTERNAL"), "refuses messages of the connection press"),
    ],
)
async def test_an_error_leaves_messages_in_the_spool(
    spool: SpoolThread, caplog: pytest.LogCaptureFixture, error: Exception, text: str
) -> None:
    """An error is logged once and counted by its code; messages stay in the spool until the service accepts them."""
    caplog.set_level(logging.INFO)
    upstream = FakeUpstream(lambda *_: error if len(upstream.requests) < 4 else None)
    store_messages(spool, "press", 1, 2)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 2)
    assert upstream.stored == {"press": [1, 2]}
    assert [record.levelname for record in caplog.records] == ["ERROR", "INFO"]
    assert text in caplog.text
    assert "(2 messages wait in the spool)" in caplog.text
    code = (error.code or "UNREACHABLE") if isinstance(error, ApiError) else "NO_API_KEY"
    assert metrics.get_count("failed_requests_total", f'code="{code}"') == 3


async def test_a_long_retry_after_does_not_stop_the_gateway(
    spool: SpoolThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pause that a reply requests has an upper limit, because a proxy may have a wrong clock."""
    assert module._LONGEST_RETRY_AFTER_SECONDS == 300
    monkeypatch.setattr(module, "_LONGEST_RETRY_AFTER_SECONDS", 0.001)
    busy = build_api_error(429, {"code": "RATE_LIMITED"}, retry_after=1e9)
    upstream = FakeUpstream(lambda *_: busy if len(upstream.requests) < 2 else None)
    store_messages(spool, "press", 1)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 1)
    assert upstream.stored == {"press": [1]}


async def test_a_rejected_connection_does_not_stop_messages_of_others(spool: SpoolThread) -> None:
    """If the service rejects one connection, the messages of other connections are still sent."""
    upstream = FakeUpstream(lambda lookup, _: build_error(409, "CONNECTION_DISABLED") if lookup == "off" else None)
    store_messages(spool, "off", 1)
    store_messages(spool, "on", 2)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 1)
    assert (upstream.stored, spool.spool.lookups_with_messages) == ({"on": [2]}, ["off"])


@pytest.mark.parametrize(
    ("error", "rejected"),
    [
        (build_error(403, "CONNECTION_NOT_ALLOWED"), 2),
        (build_error(404, "CONNECTION_NOT_FOUND"), 2),
        (build_error(409, "CONNECTION_DISABLED"), 2),
        (build_error(403, ""), 0),
        (build_error(500, "INTERNAL"), 0),
        (UnreachableError("refused"), 0),
    ],
)
async def test_only_a_refused_connection_makes_room_in_a_full_spool(
    spool: SpoolThread, monkeypatch: pytest.MonkeyPatch, error: Exception, rejected: int
) -> None:
    """Messages can be rejected to make room only if the service has refused their connection."""
    monkeypatch.setattr("oi.gateway.spool.REFUSED_PART", 2**30)
    store_messages(spool, "press", 1, 2)
    async with run_sender(spool, FakeUpstream(lambda *_: error)) as metrics:
        await wait_for_count(metrics, "failed_requests_total", 2)
    assert spool.spool.reject_refused_connections(2**30) == rejected


async def test_during_an_outage_a_connection_refused_before_makes_no_room(
    spool: SpoolThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the last request of a refused connection failed for another reason, its messages are not rejected."""
    monkeypatch.setattr("oi.gateway.spool.REFUSED_PART", 2**30)
    errors: list[Exception] = [build_error(409, "CONNECTION_DISABLED"), UnreachableError("gone")]
    store_messages(spool, "press", 1, 2)
    async with run_sender(spool, FakeUpstream(lambda *_: errors.pop(0) if len(errors) > 1 else errors[0])) as metrics:
        await wait_for_count(metrics, "failed_requests_total", 3)
    assert spool.spool.reject_refused_connections(2**30) == 0


@pytest.mark.parametrize(
    "error",
    [
        build_error(400, "VALIDATION", "Invalid.", "line 2.timestamp", "line 4"),
        build_error(413, "MESSAGE_TOO_LARGE", "Line 2 has more than 262144 bytes."),
    ],
)
async def test_messages_that_an_error_names_are_stored_separately(spool: SpoolThread, error: Exception) -> None:
    """If an error names one message, this message is stored separately with the reason.

    The rest of the batch is sent.
    """
    upstream = FakeUpstream(lambda _, values: error if 2 in values else None)
    store_messages(spool, "press", 1, 2, 3)
    store_messages(spool, "press", 4)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 2)
    rejected = [int(each.message) for _, each in spool.spool.list_newest_rejected(9)]
    assert sorted([*upstream.stored["press"], *rejected]) == [1, 2, 3, 4]
    assert 2 in rejected
    assert upstream.stored["press"] == sorted(upstream.stored["press"])
    assert metrics.get_count("rejected_messages_total", 'reason="service"') == len(rejected)


async def test_a_carriage_return_in_a_message_ends_no_line(spool: SpoolThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """A carriage return within a message does not shift the line numbers of an error."""

    def reply_to_lines(lines: list[bytes]) -> HttpReply:
        for number, line in enumerate(lines, 1):
            if json.loads(line).get("odd"):
                problem = {"code": "VALIDATION_FAILED", "errors": [{"field": f"line {number}.odd", "message": "odd"}]}
                return 400, JSON, json.dumps(problem).encode()
        accepted.extend(json.loads(line)["messageId"] for line in lines)
        return accept_lines(lines)

    payloads = [b'{"messageId":"1",\r"value":1}', b'{"messageId":"2","odd":1}', b'{"messageId":"3",\r\n"value":1}']
    target, accepted = MessageTarget("press", None, Fields()), list[str]()
    spool.spool.append_and_count_dropped(
        {"press": [build_ndjson_line(each, target, 0.0, str) for each in payloads]}, [], b""
    )
    async with run_sender_over_http(spool, reply_to_lines, monkeypatch) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 2)
    assert accepted == ["1", "3"]
    assert [json.loads(each.message)["messageId"] for _, each in spool.spool.list_newest_rejected(9)] == ["2"]


async def test_messages_of_a_rejected_device_are_stored_separately(spool: SpoolThread) -> None:
    """If the service rejects a device, all messages of this device in the batch are stored separately."""
    error = build_error(403, "DEVICE_NOT_ALLOWED", "line 2: the credential is not bound to device 'x'.", "line 2")
    upstream = FakeUpstream(lambda _, values: error if {"deviceId": "x"} in values else None)
    lines = [b'{"deviceId":"%s"}\n' % name for name in (b"a", b"x", b"b", b"x")] + [b"{}\n"]
    spool.spool.append_and_count_dropped({"press": lines}, [], b"")
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 3)
    assert upstream.stored["press"] == [{"deviceId": "a"}, {"deviceId": "b"}, {}]
    assert [each.message for _, each in spool.spool.list_newest_rejected(9)] == [lines[3], lines[1]]
    assert len(upstream.requests) == 2


async def test_a_page_of_a_proxy_leaves_messages_in_the_spool(
    spool: SpoolThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a proxy replies to a batch with a page of its own, the batch is sent again until the service accepts it."""
    seen: list[list[bytes]] = []

    def reply_to_lines(lines: list[bytes]) -> HttpReply:
        seen.append(lines)
        return accept_lines(lines) if len(seen) > 2 else (200, HTML, b"<html>Maintenance</html>")

    store_messages(spool, "press", 1, 2, 3)
    async with run_sender_over_http(spool, reply_to_lines, monkeypatch) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 3)
    assert seen == [[b"1", b"2", b"3"]] * 3
    assert spool.spool.waiting.messages == 0
    assert "The reply does not come from the service" in caplog.text


async def test_a_batch_that_is_too_large_is_sent_in_parts(
    spool: SpoolThread, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """If a proxy permits only small requests, the messages are sent in parts.

    A message that is too large on its own is stored separately.
    """
    accepted: list[int] = []

    def reply_to_lines(lines: list[bytes]) -> HttpReply:
        if len(b"".join(lines)) > 40:
            return 413, HTML, b"<html>413 Request Entity Too Large</html>"
        accepted.extend(map(int, lines))
        return accept_lines(lines)

    large = 10**50
    store_messages(spool, "press", *range(100, 180), large, *range(180, 300))
    store_messages(spool, "press", 300)
    async with run_sender_over_http(spool, reply_to_lines, monkeypatch) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 201)
    assert accepted == list(range(100, 301))
    assert [(int(each.message), each.lookup) for _, each in spool.spool.list_newest_rejected(9)] == [(large, "press")]
    assert caplog.text.count("Sending fewer messages in one request") == 1


async def test_a_batch_whose_body_is_invalid_is_sent_in_parts(spool: SpoolThread) -> None:
    """If the service refuses the body of a request without naming a message, fewer messages are sent at once."""
    error = build_error(400, "VALIDATION", "Invalid.", "body")
    upstream = FakeUpstream(lambda _, values: error if len(values) > 2 else None)
    store_messages(spool, "press", 1, 2, 3, 4)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 4)
    assert upstream.stored == {"press": [1, 2, 3, 4]}


async def test_a_single_message_in_an_invalid_body_waits(spool: SpoolThread) -> None:
    """If the service refuses the body of a request with one message, the message stays in the spool."""
    error = build_error(400, "BODY_NOT_DECODABLE", "Invalid.", "body")
    upstream = FakeUpstream(lambda *_: error if len(upstream.requests) < 3 else None)
    store_messages(spool, "press", 1)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 1)
    assert (upstream.stored, spool.spool.list_newest_rejected(9)) == ({"press": [1]}, [])


async def test_messages_are_sent_without_a_notification(spool: SpoolThread, monkeypatch: pytest.MonkeyPatch) -> None:
    """An idle sender looks for waiting messages again after a pause, also if nothing notifies it."""
    monkeypatch.setattr(module, "_LONGEST_PAUSE_SECONDS", 0.001)
    upstream = FakeUpstream(lambda *_: None)
    async with run_sender(spool, upstream) as metrics:
        await asyncio.sleep(0)
        store_messages(spool, "press", 1)
        await wait_for_count(metrics, "sent_messages_total", 1)
    assert upstream.stored == {"press": [1]}


async def test_an_unknown_line_number_leaves_the_batch_in_the_spool(spool: SpoolThread) -> None:
    """If an error names a line number beyond the end of the batch, the whole batch stays in the spool."""
    upstream = FakeUpstream(
        lambda *_: build_error(400, "VALIDATION", "Invalid.", "line 9") if len(upstream.requests) < 3 else None
    )
    store_messages(spool, "press", 1)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 1)
    assert upstream.stored == {"press": [1]}


async def test_a_programming_error_keeps_the_gateway_running(
    spool: SpoolThread, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After an unexpected exception for one connection, the gateway continues to run and sends the messages later."""
    monkeypatch.setattr(module, "_LONGEST_PAUSE_SECONDS", 0.001)
    upstream = FakeUpstream(lambda *_: RuntimeError("odd") if len(upstream.requests) < 2 else None)
    store_messages(spool, "press", 1)
    async with run_sender(spool, upstream) as metrics:
        await wait_for_count(metrics, "sent_messages_total", 1)
    assert "odd" in caplog.text
