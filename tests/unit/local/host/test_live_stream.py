"""Tests of live streams of the local host: the emulator's access key, the wait for the query table, and replays."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload
from local.host.hub_access import HubAccess
from local.host.live_stream import (
    HubProgress,
    ReplayPrelude,
    _ClientStream,
    _handshake_to_plain_request,
    load_or_create_access_key,
)
from local.host.shutdown import ShutdownSignal
from local.http_server.application import Message
from shared.backends.embedded.hub import HubReader, HubWriter
from shared.fair_use.acting_member import acting_member
from shared.live_stream.replay import (
    CONCURRENT_REPLAYS,
    MAX_REPLAYS_PER_PRINCIPAL,
    NOT_CAUGHT_UP,
    TOO_MANY_REPLAYS,
    ReplayError,
    TakeTurn,
)
from shared.live_stream.service import Listener
from shared.telemetry.models import IMPULSES_HUB, HubMessage
from tests.emulators.web_pubsub.test_outbox import Pipe


def test_an_access_key_is_created_once(tmp_path: Path) -> None:
    """The access key is created once, in a file that only its owner can read."""
    path = tmp_path / "key"
    key = load_or_create_access_key(path)
    assert (len(key), path.stat().st_mode & 0o777) == (64, 0o600)
    assert load_or_create_access_key(path) == key


@pytest.mark.parametrize("content", ["", "a" * 63])
def test_an_incomplete_access_key_is_rejected(tmp_path: Path, content: str) -> None:
    """An empty or cut file of the access key is rejected, because its content could be guessed."""
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(OSError, match="must have 64 characters"):
        load_or_create_access_key(path)


async def test_a_client_that_disconnects_from_a_plain_route_is_reported() -> None:
    """If the client of a handshake to a route without WebSocket disconnects, the app is notified of it."""
    messages: list[Message] = [{"type": "websocket.connect"}, {"type": "websocket.disconnect", "code": 1006}]

    async def receive() -> Message:
        return messages.pop(0)

    async def send(_: Message) -> None:
        raise AssertionError("nothing is sent")

    request, receive_body, _ = _handshake_to_plain_request({"type": "websocket"}, receive, send)
    assert (request["type"], request["method"]) == ("http", "GET")
    assert (await receive_body())["type"] == "http.request"
    assert await receive_body() == {"type": "http.disconnect"}


async def test_a_replay_does_not_wait_for_an_engine_that_does_not_read_the_hub(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A replay waits for the query table only if this host runs the engine, or another engine has read the hub."""
    path = tmp_path / "hub.sqlite"
    writer = HubWriter(path)
    await writer.send(IMPULSES_HUB, [HubMessage(b"{}", "c", {})])
    await writer.close()
    hub, stopping = HubAccess(path, timedelta(hours=72)), ShutdownSignal()
    progress = HubProgress(hub, stopping, runs_engine=False)
    await progress.wait_for_query_table()
    assert caplog.messages == []
    assert not await progress.is_hub_read_by_engine()
    assert await HubProgress(hub, stopping, runs_engine=True).is_hub_read_by_engine()
    reader = HubReader(path)
    reader.store_offset(IMPULSES_HUB, "adx", "0", 0)
    reader.close()
    assert await progress.is_hub_read_by_engine()
    await hub.close()


def open_stream(member: str, number: int = 0) -> ClientConnection:
    """Return the connection of a member's stream, whose id is the member's id with a number."""
    user_id = Listener(member, "t", datetime(2030, 1, 1, tzinfo=UTC)).user_id
    return ClientConnection(f"{member}{number}", Pipe(), user_id=user_id, subprotocol=None, roles=())


async def test_replays_of_a_member_leave_room_for_replays_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half of the turns can be of one member; further replays wait, and those above the limit are closed at once."""
    started, gate = list[tuple[str, str]](), asyncio.Event()

    async def record_and_wait(
        _: ReplayPrelude, connection: ClientConnection, _filters: object, _since: object, take_turn: TakeTurn
    ) -> None:
        async with take_turn():
            started.append((connection.id, acting_member.get()))
            await gate.wait()

    monkeypatch.setattr(ReplayPrelude, "_replay_events", record_and_wait)
    hub = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=72))
    prelude = ReplayPrelude(HubProgress(hub, ShutdownSignal(), runs_engine=False))
    streams = [open_stream("many", number) for number in range(MAX_REPLAYS_PER_PRINCIPAL + 1)] + [open_stream("one")]
    replays = [prelude(stream, {"windowSec": ["60"]}) for stream in streams]
    tasks = [asyncio.create_task(replay) for replay in replays if replay is not None]
    await asyncio.sleep(0)
    assert started == [(f"many{number}", "many") for number in range(CONCURRENT_REPLAYS // 2)] + [("one0", "one")]
    assert [stream.id for stream in streams if stream.close_reason] == [f"many{MAX_REPLAYS_PER_PRINCIPAL}"]
    assert streams[MAX_REPLAYS_PER_PRINCIPAL].close_reason == TOO_MANY_REPLAYS
    gate.set()
    await asyncio.gather(*tasks)
    assert len(started) == MAX_REPLAYS_PER_PRINCIPAL + 1
    await hub.close()


async def test_a_replay_creates_few_messages_for_a_client_that_reads_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A replay that waits for its client has created the frames of one batch at most, to save memory."""
    created, pipe = list[bytes](), Pipe()

    def create_payload(text: bytes, data_type: DataType) -> Payload:
        created.append(text)
        return Payload(text, data_type)

    monkeypatch.setattr("local.host.live_stream.Payload", create_payload)
    pipe.set_room(room=False)
    stream = _ClientStream(ClientConnection("c", pipe, user_id=None, subprotocol=None, roles=()))
    sending = asyncio.create_task(stream.try_send([b"x"] * 2_000))
    await asyncio.sleep(0)
    assert len(created) <= 500
    pipe.set_room(room=True)
    assert await sending
    assert len(created) == 2_000


async def test_a_stream_whose_replay_must_end_early_is_closed_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a replay does not catch up with the live messages, the stream is closed with this reason."""

    async def fail(*_: object) -> None:
        raise ReplayError(NOT_CAUGHT_UP)

    monkeypatch.setattr(ReplayPrelude, "_replay_events", fail)
    hub, stream = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=72)), open_stream("ann")
    replay = ReplayPrelude(HubProgress(hub, ShutdownSignal(), runs_engine=False))(stream, {"windowSec": ["60"]})
    assert replay is not None
    await replay
    assert stream.close_reason == NOT_CAUGHT_UP
    await hub.close()


async def test_a_replay_that_waits_for_its_client_counts_as_a_replay_of_its_member(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replay without a turn counts until it ends, so that the memory of waiting replays is limited."""
    gate = asyncio.Event()

    async def wait_for_client(*_: object) -> None:
        await gate.wait()

    monkeypatch.setattr(ReplayPrelude, "_replay_events", wait_for_client)
    hub = HubAccess(tmp_path / "hub.sqlite", timedelta(hours=72))
    prelude = ReplayPrelude(HubProgress(hub, ShutdownSignal(), runs_engine=False))
    streams = [open_stream("many", number) for number in range(MAX_REPLAYS_PER_PRINCIPAL + 1)]
    replays = [prelude(stream, {"windowSec": ["60"]}) for stream in streams]
    tasks = [asyncio.create_task(replay) for replay in replays if replay is not None]
    await asyncio.sleep(0)
    assert [stream.id for stream in streams if stream.close_reason] == [f"many{MAX_REPLAYS_PER_PRINCIPAL}"]
    gate.set()
    await asyncio.gather(*tasks)
    await hub.close()
