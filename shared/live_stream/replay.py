"""Replay of earlier impulses (telemetry messages) to a live stream.

``Replay`` is for the local host. It pauses the live messages while it reads the history, so no message is sent twice.
``CatchUp`` is for Azure. It replays to a stream that already receives live messages; a message that is sent twice has
the same id both times.
"""

import asyncio
import math
from collections import Counter, OrderedDict
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, contextmanager, nullcontext
from datetime import datetime, timedelta
from functools import partial
from hashlib import blake2b
from typing import Protocol

from shared.errors import Kind, WorkspaceError
from shared.fair_use.acting_member import use_acting_member
from shared.fair_use.fair_scheduler import FairScheduler
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History, HistoryPage, ImpulseKey
from shared.live_stream.ports import StreamSender
from shared.live_stream.publishing import ATTEMPTS, FIRST_PAUSE_SECONDS
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.json_text import parse_lossless_json
from shared.telemetry.ports import CurrentCatalog

REMEMBERED = 200_000
"""Maximum number of remembered messages of a replay; far more than arrive within the time of live data (a minute)."""
MIN_REMEMBERED = 10_000
"""Number of messages that a replay can always remember; a stream buffers as many live messages."""

REMEMBERED_TOGETHER = 8 * REMEMBERED
"""Maximum number of messages that all replays of a host remember, besides ``MIN_REMEMBERED`` of each replay.

A replay that waits for its listener needs memory for them, and many replays can wait.
"""

LAG_SECONDS = 15.0
"""Seconds after which a message in the live stream is usually in the query table, too."""

REREAD_TIME = timedelta(minutes=10)
"""Length of the period before the opening of a stream whose messages are read again after ``LAG_SECONDS``."""

SKEW = timedelta(seconds=5)
"""Tolerated clock difference between instances of the service."""

MAX_SECONDS = 200.0
MAX_IMPULSES = 50_000
CONCURRENT_REPLAYS = 8
"""Maximum number of replays of one process that have a turn at a time; a principal leaves some of the turns to others.

A ``Replay`` has a turn while it reads the query table, and none while it waits for its listener. A ``CatchUp`` has a
turn while it reads and sends, because Web PubSub accepts messages at its own speed, for any speed of the listener.
"""

MAX_REPLAYS_PER_PRINCIPAL = 32
"""Maximum number of replays of a principal in one process.

A ``CatchUp`` counts while it has a turn or waits for one, a ``Replay`` until it ends.
"""

MAX_REPLAYS = 128
"""Maximum number of ``Replay`` objects of one process that run or wait, also for their listeners.

Each one can have a page and a buffer of live messages with texts of 4 MiB each, together 1 GiB. The objects that
contain the texts need up to a quarter more.
"""

TOO_MANY_REPLAYS = "Too many replays of this principal run or wait; try again when one of them has ended."
"""Reason that a client receives if its stream is closed because of ``MAX_REPLAYS_PER_PRINCIPAL``."""

SERVICE_IS_BUSY = "The service has too many replays at the moment; try again later."
"""Reason that a client receives if its replay gets no place, or has waited too long for its turn."""

REPEATS_SECONDS = 5.0
"""Seconds after which a turn of a ``Replay`` begins no further page, although it has read only repeats.

A pass that reads the table again begins with up to ``REMEMBERED`` repeats, so a turn for each page would make it slow.
"""

MAX_PASSES_WITHOUT_PROGRESS = 20
"""Number of passes without progress after which a ``Replay`` gives up; a pass reads the query table to its end.

A further pass follows if the buffer overflowed. It reads the remembered messages again, and sends those that arrived
since the pass before. A pass makes progress if it sends fewer messages than the pass before: the replay catches up.
"""

NOT_CAUGHT_UP = "The replay did not catch up with the live messages; select fewer connections, or try again later."
"""Reason that a client receives if its stream is closed because of ``MAX_PASSES_WITHOUT_PROGRESS``.

Live messages can arrive too fast, the client can read too slowly, or other replays can have too many turns.
"""

type TakeTurn = Callable[[], AbstractAsyncContextManager[None]]
"""Function that returns a context manager, which waits for a turn of a replay and holds the turn."""

MESSAGES_PER_CHECK = 500
"""Number of messages between two checks that the stream is still open."""

_DIGEST_BYTES = 16
_LOGGER = get_logger("live")


class ReplayError(Exception):
    """Raised if a replay must end early; the message is the reason that the listener receives."""


def create_replay_scheduler() -> FairScheduler:
    """Create the scheduler of all replays of one process, so that one principal cannot use its whole capacity."""
    return FairScheduler(CONCURRENT_REPLAYS, MAX_REPLAYS_PER_PRINCIPAL, leaves_slots_free=True)


class IngestionProgress(Protocol):
    """Progress of telemetry ingestion.

    A replay waits until the query table, or the live stream, has received all messages that are now in the hub.
    """

    async def wait_for_query_table(self) -> None:
        """Wait until the query table contains every message that reached the hub ``impulses`` before this call."""
        ...

    async def wait_for_live_stream(self) -> None:
        """Wait until every message that reached the hub ``impulses`` before this call was sent to the live streams."""
        ...


class Stream(Protocol):
    """Live stream of a listener; it already receives live messages and can buffer them."""

    def start_buffering(self) -> None:
        """Start to buffer live messages; discard the current buffer."""
        ...

    def has_overflowed(self) -> bool:
        """Return whether the buffer was full since the last ``start_buffering``, so that live messages were lost."""
        ...

    async def try_send(self, texts: Sequence[bytes]) -> bool:
        """Send telemetry messages as fast as the listener reads them; return whether the stream is still open."""
        ...

    async def send_buffered(self, is_repeated: Callable[[bytes], bool]) -> None:
        """Stop buffering, and send the buffered live messages except those for which ``is_repeated`` returns True."""
        ...


class Replay:
    """Replay of earlier impulses (telemetry messages) to a stream, which buffers live messages meanwhile.

    The query table is read after it contains all messages that arrived before the buffering; later messages are in the
    buffer. A message that is in both is sent once; its connection and id identify it. The replay ends after the live
    stream has also processed the messages of the table, so that they are not sent a second time.

    If the buffer overflows, it is emptied, and the table is read again from the oldest remembered message. The replay
    fails after ``MAX_PASSES_WITHOUT_PROGRESS`` passes that found no fewer new messages than the pass before.

    Args:
        history: reads the query table.
        progress: waits until the query table or the live stream has processed earlier messages.
        take_turn: waits for a turn. The replay holds a turn while it reads, and none while it waits for its listener,
            so that slow listeners do not delay other replays.
        memory: memory of all replays of the process for sent messages; None for a memory of this replay alone.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        history: History,
        progress: IngestionProgress,
        take_turn: TakeTurn = nullcontext,
        *,
        memory: "ReplayMemory | None" = None,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._history = history
        self._progress = progress
        self._take_turn = take_turn
        self._memory = memory or ReplayMemory()
        self._runtime = runtime

    async def replay_to_stream(self, stream: Stream, connection_lookups: Sequence[str], since: datetime) -> None:
        """Send earlier messages to a stream that buffers live messages, then send the buffered messages.

        Args:
            stream: stream to which the messages are sent.
            connection_lookups: lookups (ids in URLs) of the stream's connections.
            since: earliest timestamp of the replayed messages.

        Raises:
            ReplayError: the buffer overflows again and again; the stream still buffers live messages.
            WorkspaceError: any error of the query engine; the stream still buffers live messages.
        """
        seen = SentImpulses(REMEMBERED, self._memory)
        try:
            await self._replay_and_remember(stream, connection_lookups, since, seen)
        finally:
            seen.forget_all()

    async def _replay_and_remember(
        self, stream: Stream, connection_lookups: Sequence[str], since: datetime, seen: "SentImpulses"
    ) -> None:
        replay_from = since
        sent_before = passes_without_progress = 0
        while passes_without_progress < MAX_PASSES_WITHOUT_PROGRESS:
            count_before = seen.count
            async for new_impulses in self._read_new_impulses_in_turns(stream, connection_lookups, replay_from, seen):
                if not await stream.try_send(new_impulses):
                    return
            if not stream.has_overflowed():
                await stream.send_buffered(seen.has_impulse)
                return
            replay_from = max(since, seen.get_oldest_remembered_time(since))
            sent = seen.count - count_before
            if sent >= sent_before:
                passes_without_progress += 1
            sent_before = sent
        raise ReplayError(NOT_CAUGHT_UP)

    async def _read_new_impulses_in_turns(
        self, stream: Stream, connection_lookups: Sequence[str], since: datetime, seen: "SentImpulses"
    ) -> AsyncIterator[list[bytes]]:
        """Yield the new messages of each page of :meth:`_read_pages` as JSON texts, and remember them as sent.

        Replays read pages in turns. A turn ends after a page with new messages, or ``REPEATS_SECONDS`` after its start.
        """
        pages = self._read_pages(stream, connection_lookups, since)
        is_last = False
        while not is_last:
            new_impulses: list[bytes] = []
            async with self._take_turn():
                turn_ends_at = self._runtime.monotonic() + REPEATS_SECONDS
                while not (new_impulses or is_last):
                    impulses, is_last = await anext(pages)
                    new_impulses = [each.text for each in impulses if seen.add_if_new(each.key, each.timestamp)]
                    if self._runtime.monotonic() >= turn_ends_at:
                        break
            if new_impulses:
                yield new_impulses

    async def _read_pages(
        self, stream: Stream, connection_lookups: Sequence[str], since: datetime
    ) -> AsyncIterator[HistoryPage]:
        """Wait until the query table has all messages that are missing in the stream's buffer; then yield its pages.

        A buffer that has overflowed is emptied here, in the replay's turn. If it were emptied earlier, it could
        overflow again while the replay waits for its turn. The last page is yielded after the live stream has processed
        all messages of the table.
        """
        if stream.has_overflowed():
            stream.start_buffering()
        await self._progress.wait_for_query_table()
        async for page in self._history.read_pages(connection_lookups, since):
            if page.is_last:
                await self._progress.wait_for_live_stream()
            yield page


class ReplayPlaces:
    """Places for the replays of a process; a replay occupies one until it ends, also while it waits for its listener.

    A principal gets a place only if more places are free than it occupies, so a few principals cannot occupy all.

    Args:
        places: number of places.
        per_principal: maximum number of places of one principal.
    """

    def __init__(self, places: int = MAX_REPLAYS, per_principal: int = MAX_REPLAYS_PER_PRINCIPAL) -> None:
        self._places = places
        self._per_principal = per_principal
        self._occupied: Counter[str] = Counter()

    @contextmanager
    def occupy_place(self, principal_id: str) -> Iterator[None]:
        """Context manager: occupy a place while the block runs.

        Raises:
            ReplayError: the principal has too many replays, or all principals together.
        """
        occupied = self._occupied[principal_id]
        if occupied >= self._per_principal:
            raise ReplayError(TOO_MANY_REPLAYS)
        if self._places - self._occupied.total() <= occupied:
            raise ReplayError(SERVICE_IS_BUSY)
        self._occupied[principal_id] += 1
        try:
            yield
        finally:
            self._occupied[principal_id] -= 1
            if not self._occupied[principal_id]:
                del self._occupied[principal_id]


class ReplayMemory:
    """Memory for sent messages, which all replays of a process share.

    Args:
        limit: number of remembered messages above which each replay forgets its oldest ones.

    Attributes:
        remembered: number of messages that all replays remember.
    """

    def __init__(self, limit: int = REMEMBERED_TOGETHER) -> None:
        self._limit = limit
        self.remembered = 0

    def is_full(self) -> bool:
        """Return whether the replays remember too many messages together."""
        return self.remembered > self._limit


class SentImpulses:
    """Bounded set of the impulses (telemetry messages) that were sent to one stream, to recognise repeats.

    Args:
        limit: maximum number of remembered impulses.
        memory: while it is full, each added impulse removes earlier ones until only ``MIN_REMEMBERED`` are left.

    Attributes:
        count: number of impulses that were added.
    """

    def __init__(self, limit: int, memory: ReplayMemory | None = None) -> None:
        self._limit = limit
        self._memory = memory or ReplayMemory()
        self._has_evicted = False
        self.count = 0
        self._sent: OrderedDict[bytes, datetime] = OrderedDict()

    def add_if_new(self, key: ImpulseKey, timestamp: datetime) -> bool:
        """Remember a telemetry message as sent; return False if it is already remembered.

        Messages are removed in the order in which they were first added; a repeat does not change this order.
        Otherwise, when the table is read again, one late message among the repeats would remove the next message from
        the set. That message would be sent again and remove the one after it, and so on.
        """
        digest = _compute_digest(key)
        if digest in self._sent:
            return False
        self._sent[digest] = timestamp
        self.count += 1
        self._memory.remembered += 1
        limit = min(self._limit, MIN_REMEMBERED) if self._memory.is_full() else self._limit
        # Two at a time, because this loop takes 60 ms for 190,000 messages; ``forget_all`` takes 10 ms for 200,000.
        for _ in range(min(2, len(self._sent) - limit)):
            self._sent.popitem(last=False)
            self._memory.remembered -= 1
            self._has_evicted = True
        return True

    def forget_all(self) -> None:
        """Forget all messages when the replay has ended."""
        self._memory.remembered -= len(self._sent)
        self._sent.clear()

    def has_impulse(self, impulse_json: bytes) -> bool:
        """Return whether a telemetry message, as JSON text, is remembered as sent."""
        impulse = parse_lossless_json(impulse_json)
        return _compute_digest((impulse["Metadata"]["ConnectionLookup"], impulse["ID"])) in self._sent

    def get_oldest_remembered_time(self, default: datetime) -> datetime:
        """Return the timestamp of the oldest remembered message; ``default`` if all sent messages are remembered."""
        return next(iter(self._sent.values())) if self._has_evicted else default


def _compute_digest(key: ImpulseKey) -> bytes:
    """Return a short digest of a message's key, because a stream remembers many keys, and message ids can be long."""
    return blake2b("\n".join(key).encode(errors="surrogatepass"), digest_size=_DIGEST_BYTES).digest()


class _Turn:
    """Context manager for the turns of one replay: the replay can end a turn and begin another one.

    Leaving the context ends the turn.

    Attributes:
        is_waiting: whether the replay waits for a turn, or was cancelled while it waited.
    """

    def __init__(self, take_turn: TakeTurn) -> None:
        self._take_turn = take_turn
        self._stack = AsyncExitStack()
        self.is_waiting = False

    async def __aenter__(self) -> None:
        """Do nothing, because the turn begins with :meth:`begin`."""

    async def __aexit__(self, *_: object) -> None:
        await self.end()

    async def begin(self) -> None:
        """Wait until it is the replay's turn."""
        self.is_waiting = True
        await self._stack.enter_async_context(self._take_turn())
        self.is_waiting = False

    async def end(self) -> None:
        """End the turn, if there is one."""
        await self._stack.aclose()


class CatchUp:
    """Replay of earlier impulses (telemetry messages) from the query table to streams that are already live.

    Messages that are already in the table are replayed immediately. Messages that were published shortly before the
    stream opened can reach the table later; they are replayed after ``LAG_SECONDS``. A device whose clock is fast sends
    timestamps in the future. The replay therefore also reads timestamps after the opening of the stream, as far ahead
    as the telemetry policy permits.

    Args:
        catalog: function that returns the current workspace catalog.
        history: reads the query table.
        service: sends messages to one stream.
        max_seconds: maximum duration of a replay in seconds.
        max_impulses: maximum number of messages of a replay.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: CurrentCatalog,
        history: History,
        service: StreamSender,
        *,
        max_seconds: float = MAX_SECONDS,
        max_impulses: int = MAX_IMPULSES,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._history = history
        self._service = service
        self._seconds = max_seconds
        self._max_impulses = max_impulses
        self._scheduler = create_replay_scheduler()
        self._runtime = runtime

    async def replay_or_close_stream(self, connection_id: str, member_id: str, filters: StreamFilters) -> None:
        """Replay the messages that a stream's filters request; close the stream with a reason if the replay fails.

        Args:
            connection_id: id of the stream in Web PubSub.
            member_id: id of the team member whose stream it is; empty if unknown.
            filters: filters of the stream; nothing is replayed without ``since``.

        Raises:
            WorkspaceError: UNAVAILABLE if Web PubSub cannot close the stream.
        """
        if filters.since is None or not connection_id:
            return
        failure = await self._replay_and_describe_failure(connection_id, member_id, filters, filters.since)
        if failure:
            _LOGGER.warning("replay failed; the stream is closed", extra=fields(reason=failure))
            await self._service.disconnect(connection_id, failure)

    async def _replay_and_describe_failure(
        self, connection_id: str, member_id: str, filters: StreamFilters, since: datetime
    ) -> str:
        """Replay messages to a stream; return the reason for its listener if the replay fails, else an empty text."""
        if not self._scheduler.has_room(member_id):
            return TOO_MANY_REPLAYS
        turn = _Turn(partial(self._scheduler.occupy_slot, member_id))
        try:
            async with asyncio.timeout(self._seconds), turn:
                with use_acting_member(member_id):
                    await self._replay_impulses(connection_id, turn, filters, since)
        except TimeoutError:
            return SERVICE_IS_BUSY if turn.is_waiting else "The replay takes too long; request a shorter time range."
        except OverflowError:
            return f"The replay exceeds {self._max_impulses} messages; request a shorter time range."
        except WorkspaceError as error:
            return f"The replay failed: {error.code}."
        except Exception:
            # Catch every error: otherwise the client waits for a replay that never continues.
            _LOGGER.exception("unexpected error in a replay")
            return "The replay failed."
        return ""

    async def _replay_impulses(
        self, connection_id: str, turn: "_Turn", filters: StreamFilters, since: datetime
    ) -> None:
        await turn.begin()
        opened_at = self._runtime.now()
        lag_ends_at = self._runtime.monotonic() + LAG_SECONDS
        catalog = await self._catalog()
        read = partial(self._iterate_new_impulses, filters.select_connection_lookups(catalog), SentImpulses(REMEMBERED))
        latest = opened_at + timedelta(seconds=catalog.policies.telemetry.max_ahead_seconds) + SKEW
        # Messages of fast clocks are read first, because live messages soon have the same timestamps.
        ahead, earlier = read(max(since, opened_at), latest), read(since, opened_at)
        if not await self._try_send_messages(connection_id, [ahead, earlier], lag_ends_at):
            return
        pause = lag_ends_at - self._runtime.monotonic()
        if pause > 0:
            await turn.end()
            await self._runtime.sleep(pause)
            await turn.begin()
        now = self._runtime.now()
        late = read(max(since, opened_at - REREAD_TIME), min(now, latest))
        still_ahead = [read(max(since, now), latest)] if now < latest else []
        await self._try_send_messages(connection_id, [*still_ahead, earlier, late])

    async def _iterate_new_impulses(
        self, connection_lookups: Sequence[str], sent_impulses: SentImpulses, since: datetime, until: datetime
    ) -> AsyncIterator[bytes]:
        """Yield the stored messages of a time range that were not sent before, and remember them as sent.

        Raises:
            OverflowError: the replay exceeds its maximum number of messages.
        """
        async for page in self._history.read_pages(connection_lookups, since, until):
            for impulse in page.impulses:
                if sent_impulses.add_if_new(impulse.key, impulse.timestamp):
                    if sent_impulses.count > self._max_impulses:
                        raise OverflowError
                    yield impulse.text

    async def _try_send_messages(
        self, connection_id: str, sources: Sequence[AsyncIterator[bytes]], pause_at_monotonic: float = math.inf
    ) -> bool:
        """Send the telemetry messages of the sources to a stream one after another.

        Args:
            connection_id: id of the stream in Web PubSub.
            sources: iterators over messages; a later call can continue with their remaining messages.
            pause_at_monotonic: time of the monotonic clock, in seconds, after which no further message is sent.

        Returns:
            False if the stream was closed meanwhile.
        """
        count = 0
        for source in sources:
            async for text in source:
                if count % MESSAGES_PER_CHECK == 0 and not await self._service.is_open(connection_id):
                    return False
                await self._send_with_retries(connection_id, text)
                count += 1
                if self._runtime.monotonic() >= pause_at_monotonic:
                    return True
        return True

    async def _send_with_retries(self, connection_id: str, text: bytes) -> None:
        """Send one message to a stream; retry while the service is unavailable.

        Skip a message that the service rejects.
        """
        for attempt in range(1, ATTEMPTS + 1):
            try:
                await self._service.send(connection_id, text)
            except WorkspaceError as error:
                if error.kind is not Kind.UNAVAILABLE:
                    _LOGGER.warning("the message service rejected a message", extra=fields(code=error.code))
                    return
                if attempt == ATTEMPTS:
                    raise
            else:
                return
            await self._runtime.sleep(FIRST_PAUSE_SECONDS * 2**attempt * self._runtime.uniform(0.5, 1))
