"""Live stream component: messages are sent to open streams, and a replay sends a new stream the earlier messages."""

import hashlib
import hmac
import json
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar, Final

from shared.live_stream.audience import Audience
from shared.live_stream.event_sources import SignedEvents
from shared.live_stream.history import History
from shared.live_stream.publishing import LivePublisher
from shared.live_stream.replay import CatchUp
from shared.telemetry.models import IMPULSES_HUB, TELEMETRY_HUB, HubEvent
from shared.wiring import Services
from tests.simulation.components.telemetry import CONNECTIONS, PARTITIONS, TelemetryComponent, format_time
from tests.simulation.engine import TelemetryRow
from tests.simulation.jobs import WorkFailedError, run_on_instance
from tests.simulation.scheduler import MICROSECONDS
from tests.simulation.web_pubsub import SimulatedStream, SimulatedWebPubSub
from tests.simulation.world import ConnectionLostError, World
from tests.virtual_time import START

_PATH: Final = "oi-api/live-stream/events"
_ACCESS_KEY: Final = "key"
_PAGE_ROWS: Final = 2
_LONGEST_LAG_SECONDS: Final = 10
"""Longest time after which a message that was published is in the query table; the service reads it after 15 s."""

_KNOWN_AFTER: Final = 2 * MICROSECONDS
"""Time after which each process knows that a group has a listener; it remembers for one second that it has none."""

_FRESH: Final = timedelta(seconds=55)
_LONGEST_AGE: Final = timedelta(minutes=2)


@dataclass
class _Listener:
    """Simulated client of a live stream.

    Attributes:
        connections: connections that it listens to.
        since: start of its replay.
        stream: its stream.
        in_table: messages that were in the query table when its replay began.
    """

    connections: Sequence[str]
    since: datetime
    stream: SimulatedStream
    in_table: frozenset[str]


class LiveStreamComponent(TelemetryComponent):
    """Clients send messages, which are published; other clients open streams with a replay of earlier messages.

    A published message is in the query table some seconds later. Invariants: a stream receives only messages of its
    connections, with their contents; the recent messages of a processed batch are published; after a successful replay,
    an open stream has received every message since its start time that was in the table when the replay began, or that
    was published before or after the stream opened.
    """

    name: ClassVar[str] = "live-stream"
    modules: ClassVar[tuple[str, ...]] = (
        "shared/live_stream/history.py",
        "shared/live_stream/publishing.py",
        "shared/live_stream/replay.py",
    )
    weight: ClassVar[int] = 8
    cosmos_weight: ClassVar[int] = 12

    def __init__(self, world: World) -> None:
        super().__init__(world)
        # The replay finds late messages by the times of their measurement, near the time of its host.
        world.faults.clock_jump = 0
        self._service = SimulatedWebPubSub(world)
        self._times: dict[str, datetime] = {}
        self._replayed: list[_Listener] = []
        self._tabled: set[str] = set()
        self._listening = 0
        # In some worlds, a message without listeners need not be published.
        self._has_audience = world.random.random() < 0.3

    def attach(self, services: Services) -> None:
        """Make all processes use one Web PubSub, as on Azure, and set a small page size for reading the query table."""
        super().attach(services)
        runtime = services.runtime
        history = History(services.queries.engine, _PAGE_ROWS, runtime=runtime)
        audience = Audience(self._service, runtime=runtime)
        vars(services.live_stream).update(
            message_service=self._service,
            events=SignedEvents(_ACCESS_KEY),
            audience=audience,
            publisher=LivePublisher(self._service, audience if self._has_audience else None, runtime=runtime),
            catch_up=CatchUp(services.catalog.reader.get_catalog, history, self._service, runtime=runtime),
        )

    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Start clients that send messages, the delivery of events, and clients that open streams."""
        choices = self.world.random
        for client in range(choices.randint(1, 2)):
            self._sending += 1
            yield self._send_messages(client, choices.randint(1, 4))
        for number in range(choices.randint(1, 3)):
            self._sending += 1
            yield self._listen_often(number, choices.randint(1, 2))
        for partition in PARTITIONS:
            yield self._deliver_while_sending(TELEMETRY_HUB, partition)
            yield self._deliver_while_sending(IMPULSES_HUB, partition)
        if choices.random() < 0.2:
            yield self._check_streams_while_sending()

    async def _check_streams_while_sending(self) -> None:
        """Close the streams of listeners without access; all listeners have access."""

        async def close_expired(services: Services) -> int:
            return await services.live_stream.service.close_and_count_unauthorised_streams()

        while self._sending:
            await self.world.sleep(self.world.random.random() * 40)
            try:
                closed = await run_on_instance(self.world, close_expired)
            except WorkFailedError as error:
                self.world.trace(f"the check of streams failed: {error}")
            else:
                self.world.require(closed == 0, f"{closed} streams of listeners with access were closed")

    def _read_clock(self) -> datetime:
        return START + timedelta(microseconds=self.world.scheduler.now)

    def _build_message(self, name: str) -> dict[str, Any]:
        # Some messages have equal times, so that a page of the table ends between them.
        moment = self._read_clock() - _LONGEST_AGE * self.world.random.random()
        self._times[name] = moment.replace(microsecond=0, second=moment.second // 10 * 10)
        return {"messageId": name, "timestamp": format_time(self._times[name]), "name": name}

    async def _process_batch(self, hub: str, batch: Sequence[HubEvent]) -> None:
        if hub == TELEMETRY_HUB:
            await super()._process_batch(hub, batch)
            return
        for event in batch:
            self.world.start_task(self._add_to_table(json.loads(event.body)))

        async def publish(services: Services) -> None:
            await services.live_stream.publisher.publish_events(batch)

        known = self._list_known_streams()
        await run_on_instance(self.world, publish)
        # The service need not publish to a stream that was closed meanwhile.
        heard = {group for stream in known if stream.is_open for group in stream.groups}
        for event in batch:
            # Older messages are no longer live data.
            is_fresh = event.enqueued_at > self._read_clock() - _FRESH
            key = (event.partition_key, json.loads(event.body)["ID"])
            is_required = is_fresh and (not self._has_audience or event.partition_key in heard)
            self.world.require(not is_required or key in self._service.published, f"{key} was not published")
        self._archived.update(json.loads(event.body)["ID"] for event in batch)

    def _list_known_streams(self) -> list[SimulatedStream]:
        """Return the streams that have been open for so long that all processes know their groups."""
        until = self.world.scheduler.now - _KNOWN_AFTER
        return [each for each in self._service.streams.values() if each.is_open and each.opened_at < until]

    async def _add_to_table(self, impulse: Any) -> None:
        """Add a message to the query table; on Azure, the table gets messages directly from the Event Hub."""
        name = impulse["ID"]
        await self.world.sleep(self.world.random.random() * _LONGEST_LAG_SECONDS)
        if name not in self._tabled:
            self._tabled.add(name)
            row = TelemetryRow(self._times[name], self._sent[name], name, impulse["Payload"])
            self.world.telemetry.append(row)

    async def _listen_often(self, client: int, count: int) -> None:
        for number in range(count):
            await self.world.sleep(self.world.random.random() * 60)
            await self._open_stream(f"stream-{client}-{number}")
        self._sending -= 1

    async def _open_stream(self, name: str) -> bool:
        """Open a stream and request a replay; return whether the replay has succeeded."""
        choices = self.world.random
        connections = CONNECTIONS if choices.random() < 0.5 else (choices.choice(CONNECTIONS),)
        since = self._read_clock() - timedelta(minutes=3) * choices.random()
        chosen = {"surface": ["hall"]} if len(connections) > 1 else {"connection": list(connections)}
        query = {"token": [self.world.template.tokens["ann@t"]], "since": [format_time(since)], **chosen}
        headers = _sign_connection(name)
        try:
            admitted = await self._send_event("connect", headers, {"query": query})
        except ConnectionLostError:
            return False
        if admitted.status != 200:
            is_possible = admitted.status in {429, 503}
            self.world.require(is_possible, f"a stream got {admitted.status} {admitted.reply.body!r}")
            return False
        reply = admitted.json
        stream = SimulatedStream(reply["userId"], reply["groups"], self.world.scheduler.now)
        self._service.streams[name] = stream
        listener = _Listener(connections, since, stream, frozenset(self._tabled))
        state = {"ce-connectionstate": admitted.get_header("ce-connectionstate")}
        try:
            replayed = await self._send_event("connected", {**headers, **state}, {})
        except ConnectionLostError:
            return False
        has_succeeded = replayed.status == 204 and stream.is_open
        if has_succeeded:
            self._replayed.append(listener)
            self._check_replay(listener)
        return has_succeeded

    async def _send_event(self, kind: str, headers: dict[str, str], body: Any) -> Any:
        return await self.world.send("", "POST", _PATH, body, {**headers, "ce-type": f"azure.webpubsub.sys.{kind}"})

    def _check_replay(self, listener: _Listener) -> None:
        """Check that a stream has received all messages that were in the table or were published long enough ago."""
        stream, received = listener.stream, set[str]()
        for message in listener.stream.received:
            name, connection = message["ID"], message["Metadata"]["ConnectionLookup"]
            is_right = self._sent.get(name) == connection and message["Payload"]["name"] == name
            self.world.require(is_right, f"a stream receives {message}")
            self.world.require(connection in listener.connections, f"a stream receives a message of {connection}")
            received.add(name)
        wanted = {
            name
            for (connection, name), at in self._service.published.items()
            if connection in listener.connections and (self._times[name] >= listener.since or at >= stream.opened_at)
        }
        wanted |= {
            name
            for name in listener.in_table
            if self._sent[name] in listener.connections and self._times[name] >= listener.since
        }
        self.world.require(wanted <= received, f"a stream lacks messages: {wanted - received}")

    async def complete_work(self) -> None:
        """Deliver all messages, then open one more stream that replays all messages."""
        await self._deliver_all()
        await self.world.sleep(_LONGEST_LAG_SECONDS)
        number = 0
        while not await self._open_stream(f"last-{number}"):
            number += 1
            await self.world.sleep(5)
        for listener in self._replayed:
            if listener.stream.is_open:
                self._check_replay(listener)

    def check_invariants(self, folder: Path) -> None:
        """Do nothing, because each stream is checked during the run."""


def _sign_connection(name: str) -> dict[str, str]:
    digest = hmac.new(_ACCESS_KEY.encode(), name.encode(), hashlib.sha256).hexdigest()
    return {"ce-connectionid": name, "ce-signature": f"sha256={digest}"}
