"""The file of messages that wait."""

from pathlib import Path

import httpx
import pytest
from oi._sync.telemetry import Spool, Telemetry
from oi._sync.transport import Transport
from oi.errors import UnreachableError
from oi.spool_file import SpoolFile


class Wire:
    """Fake service that loses some replies after it has stored the messages."""

    def __init__(self) -> None:
        self.lost = 0
        self.stored: dict[str, int] = {}

    def handle(self, request: httpx.Request) -> httpx.Response:
        """Store each messageId once."""
        lines = [httpx.Response(200, content=line).json() for line in request.content.splitlines()]
        self.stored |= {line["messageId"]: line["value"] for line in lines}
        if self.lost:
            self.lost -= 1
            raise httpx.ReadError("lost")
        return httpx.Response(202, json={"accepted": len(lines)})


def _open(path: Path, wire: Wire) -> Spool:
    transport = Transport("http://service.example", token="jwt")
    transport.client = httpx.Client(base_url=transport.url, transport=httpx.MockTransport(wire.handle))
    return Telemetry(transport).spool(path)


def test_messages_wait_for_the_service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages survive a lost reply and a restart, and are sent once each, in order."""
    monkeypatch.setattr("oi._sync.transport.sleep", lambda _seconds: None)
    wire = Wire()
    wire.lost = 5
    with _open(tmp_path / "spool", wire) as spool:
        spool.put("press", [{"value": n} for n in range(3)])
        with pytest.raises(UnreachableError):
            spool.flush()
        assert len(spool) == 3
    with _open(tmp_path / "spool", wire) as spool:
        spool.put("press", {"value": 3})
        assert (spool.flush(), len(spool)) == (4, 0)
    assert list(wire.stored.values()) == [0, 1, 2, 3]


def test_a_batch_is_stored_whole_or_not_at_all(tmp_path: Path) -> None:
    """A message without a JSON form stores nothing of its batch."""
    spool = _open(tmp_path / "spool", Wire())
    with spool, pytest.raises(ValueError, match="not JSON compliant"):
        spool.put("press", [{"value": 1}, {"value": float("nan")}])
    file = SpoolFile(tmp_path / "spool")
    assert len(file) == 0
    file.close()
