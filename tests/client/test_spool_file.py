"""Tests of the spool file, which stores messages until the service accepts them."""

import sqlite3
import threading
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
import pytest
from oi._sync.telemetry import Spool, Telemetry
from oi._sync.transport import Transport
from oi.batches import MAX_BYTES, MAX_MESSAGES
from oi.errors import ApiError, NotFoundError, UnreachableError
from oi.spool_file import SpoolFile


class FakeService:
    """Fake service that stores messages, and can lose its replies."""

    def __init__(self) -> None:
        self.lost = 0
        self.fixed_reply: httpx.Response | None = None
        self.stored: dict[str, int] = {}
        self.refused = set[int]()
        self.unknown = set[str]()
        self.max_bytes = 2 * MAX_BYTES

    def reply_to_request(self, request: httpx.Request) -> httpx.Response:
        """Store each message once by its messageId, and reply; if the test requires it, lose the reply."""
        if self.fixed_reply is not None:
            return self.fixed_reply
        if request.url.path.rpartition("/")[2] in self.unknown:
            return httpx.Response(404, json={"code": "CONNECTION_NOT_FOUND", "detail": "Unknown."})
        if len(request.content) > self.max_bytes:
            return httpx.Response(413, text="<html>413 Request Entity Too Large</html>")
        lines = [httpx.Response(200, content=line).json() for line in request.content.splitlines()]
        wrong = [number for number, line in enumerate(lines, 1) if line["value"] in self.refused]
        if wrong:
            errors = [{"field": f"line {number}", "message": "is wrong"} for number in wrong]
            return httpx.Response(400, json={"code": "INVALID_REQUEST", "detail": "It is wrong.", "errors": errors})
        self.stored |= {line["messageId"]: line["value"] for line in lines}
        if self.lost:
            self.lost -= 1
            raise httpx.ReadError("lost")
        return httpx.Response(202, json={"accepted": len(lines)})


def open_spool(path: Path, fake_service: FakeService) -> Spool:
    transport = Transport("http://service.example", token="jwt")
    transport.client = httpx.Client(
        base_url=transport.url, transport=httpx.MockTransport(fake_service.reply_to_request)
    )
    return Telemetry(transport).spool(path)


def test_messages_survive_a_lost_reply_and_a_restart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages survive a lost reply and a restart, and are sent once and in order."""
    monkeypatch.setattr("oi._sync.transport.sleep", lambda _seconds: None)
    fake_service = FakeService()
    fake_service.lost = 5
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", [{"value": n} for n in range(3)])
        with pytest.raises(UnreachableError):
            spool.flush()
        assert len(spool) == 3
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", {"value": 3})
        assert (spool.flush(), len(spool)) == (4, 0)
    assert list(fake_service.stored.values()) == [0, 1, 2, 3]


def test_a_batch_of_messages_is_stored_completely_or_not_at_all(tmp_path: Path) -> None:
    """If one message of a batch cannot be encoded as JSON, no message of the batch is stored."""
    spool = open_spool(tmp_path / "spool", FakeService())
    with spool, pytest.raises(ValueError, match="NaN or infinite"):
        spool.put("press", [{"value": 1}, {"value": float("nan")}])
    file = SpoolFile(tmp_path / "spool")
    assert len(file) == 0
    file.close()


def test_two_threads_can_store_messages_in_one_spool(tmp_path: Path) -> None:
    """Threads that store messages in one spool at the same time lose none of them and get no error."""
    is_ready = threading.Barrier(2)

    def put_messages(lookup: str) -> None:
        is_ready.wait()
        for number in range(100):
            spool.put(lookup, {"value": number})

    with open_spool(tmp_path / "spool", FakeService()) as spool, ThreadPoolExecutor(2) as threads:
        list(threads.map(put_messages, ("press", "lathe")))
        assert len(spool) == 200


def test_a_rejected_message_does_not_delay_others(tmp_path: Path) -> None:
    """A rejected message does not delay other messages.

    It stays on disk with the reason until a user removes it.
    """
    fake_service = FakeService()
    fake_service.refused = {1, 4}
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", [{"value": n} for n in range(3)])
        spool.put("lathe", [{"value": n} for n in range(3, 6)])
        assert (spool.flush(), len(spool)) == (4, 0)
    with open_spool(tmp_path / "spool", fake_service) as spool:
        refused = spool.list_refused()
        assert [(each.lookup, each.message["value"], each.reason) for each in refused] == [
            ("press", 1, "is wrong"),
            ("lathe", 4, "is wrong"),
        ]
        spool.remove_refused(refused[:1])
        assert spool.list_refused() == refused[1:]
    assert sorted(fake_service.stored.values()) == [0, 2, 3, 5]


def test_a_rejected_connection_delays_no_other_connection(tmp_path: Path) -> None:
    """Messages of an unknown connection stay on disk with an error; messages of other connections are sent."""
    fake_service = FakeService()
    fake_service.unknown = {"press"}
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", {"value": 1})
        spool.put("lathe", {"value": 2})
        with pytest.raises(NotFoundError):
            spool.flush()
        assert (len(spool), list(fake_service.stored.values())) == (1, [2])
        fake_service.unknown = set()
        assert (spool.flush(), len(spool)) == (1, 0)


def test_a_batch_reads_no_messages_of_other_connections(tmp_path: Path) -> None:
    """The oldest batch of the other connections is found without reading each message of a rejected connection."""
    spool = SpoolFile(tmp_path / "spool")
    spool.append_lines("rejected", [b"{}\n"] * 10_000)
    for lookup in ("press", "rig", "press"):
        spool.append_lines(lookup, [b"{}\n"])
    steps: list[int] = []
    spool._database.set_progress_handler(lambda: steps.append(1), 100)
    assert spool.read_oldest_batch({"rejected"}) == ("press", [(10_001, b"{}\n"), (10_003, b"{}\n")])
    assert len(steps) < 10
    spool.close()


def test_a_batch_of_large_messages_needs_little_memory(tmp_path: Path) -> None:
    """A batch is read without the messages after it: the memory for large messages is that of two batches at most."""
    with open_spool(tmp_path / "spool", FakeService()) as spool:
        for _ in range(60):
            spool.put("press", {"value": 1, "text": "x" * 256 * 1024})
        tracemalloc.start()
        try:
            lookup, rows = spool._file.read_oldest_batch()
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert (lookup, len(rows), peak < 2 * MAX_BYTES) == ("press", 15, True)
        assert (spool.flush(), len(spool)) == (60, 0)


def test_a_spool_is_sent_in_batches_of_limited_size(tmp_path: Path) -> None:
    """More messages than one request may contain are sent in several requests, each once and in order."""
    count = MAX_MESSAGES + 1
    fake_service = FakeService()
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", ({"value": n} for n in range(count)))
        assert len(spool._file.read_oldest_batch()[1]) == MAX_MESSAGES
        assert (spool.flush(), len(spool)) == (count, 0)
    assert list(fake_service.stored.values()) == list(range(count))


def test_a_batch_that_is_too_large_for_a_proxy_is_sent_in_parts(tmp_path: Path) -> None:
    """If a proxy permits only small requests, fewer messages are sent at once; a larger single message is refused."""
    fake_service = FakeService()
    fake_service.max_bytes = 500
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", [{"value": n, "text": "x" * (1_000 if n == 5 else 1)} for n in range(20)])
        assert (spool.flush(), len(spool)) == (19, 0)
        assert [each.message["value"] for each in spool.list_refused()] == [5]
    assert list(fake_service.stored.values()) == [n for n in range(20) if n != 5]


@pytest.mark.parametrize(
    "reply",
    [
        httpx.Response(202, json={"status": "maintenance"}),
        httpx.Response(202, json=[1]),
        httpx.Response(202, json={"accepted": 1}),
        httpx.Response(200, json={"accepted": 2}),
    ],
)
def test_messages_stay_in_the_file_until_a_reply_confirms_all_of_them(tmp_path: Path, reply: httpx.Response) -> None:
    """A success that does not confirm all messages, such as that of a proxy, is an error, and no message is deleted."""
    fake_service = FakeService()
    fake_service.fixed_reply = reply
    with open_spool(tmp_path / "spool", fake_service) as spool:
        spool.put("press", [{"value": 1}, {"value": 2}])
        with pytest.raises(ApiError, match="does not confirm 2 messages"):
            spool.flush()
        assert len(spool) == 2


def test_a_full_disk_is_reported_as_such(tmp_path: Path) -> None:
    """If the disk is full, the error says so, and the spool can be used again when there is room."""
    spool = SpoolFile(tmp_path / "spool.db")
    spool.append_lines("press", [b"1\n"])
    spool._database.execute("PRAGMA max_page_count = 1")
    for _ in range(2):
        with pytest.raises(sqlite3.OperationalError, match="full"):
            spool.append_lines("press", [b"x" * 100_000])
    spool._database.execute("PRAGMA max_page_count = 1000000")
    spool.append_lines("press", [b"2\n"])
    assert len(spool) == 2
    spool.close()
