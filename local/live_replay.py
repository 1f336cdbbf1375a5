"""Replays on a desk: what a client of the stand-in is sent before live impulses."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime

from local.hub_access import HubAccess
from local.stopping import Stopping
from local.web_pubsub.connection import Connection
from local.web_pubsub.payloads import DataType, Payload
from shared.backends.embedded.hub import HubReader
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History
from shared.live_stream.replay import Replay, Settled
from shared.logs import logger
from shared.telemetry.models import IMPULSES_HUB
from shared.timestamps import now

_TABLE_GROUP = "adx"
_POLL_SECONDS = 0.02
_SETTLE_SECONDS = 30.0
_LOGGER = logger("local.live_replay")


class ReplayFirst:
    """Replays what a client asked for with ``since`` or ``windowSec`` before live impulses.

    Args:
        settled: waits until the table holds what the hub holds.
    """

    def __init__(self, settled: Settled) -> None:
        self._settled = settled

    def __call__(
        self, connection: Connection, query: Mapping[str, Sequence[str]]
    ) -> Coroutine[None, None, None] | None:
        """Hold live impulses back and return the replay; None for a client that asked for none."""
        # The app has checked the very same parameters when it let the client in.
        filters = StreamFilters.model_validate({name: values[0] for name, values in query.items()})
        since = filters.begins_at(now())
        if since is None:
            return None
        connection.hold()
        return self._replay(connection, filters, since)

    async def _replay(self, connection: Connection, filters: StreamFilters, since: datetime) -> None:
        from shared.wiring import services  # noqa: PLC0415  the settings that it reads are complete only now

        wired = services()
        connections = filters.connections(await wired.catalog.current())
        await Replay(History(wired.engine), self._settled).run(_Client(connection), connections, since)


class _Client:
    """The Stream of a client of the stand-in."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self.hold: Callable[[], None] = connection.hold
        self.spilled: Callable[[], bool] = connection.spilled

    async def send(self, texts: Sequence[bytes]) -> bool:
        """Send impulses at the client's pace."""
        return await self._connection.send_all_paced([Payload(text, DataType.TEXT) for text in texts])

    async def release(self, repeated: Callable[[bytes], bool]) -> None:
        """Go on live."""
        await self._connection.release(repeated)


class TableSettled:
    """Waits until the query table holds every impulse that the hub holds at the time of the call."""

    def __init__(self, hub: HubAccess, stopping: Stopping) -> None:
        self._hub = hub
        self._stopping = stopping

    async def __call__(self) -> None:
        """Wait, at most half a minute: a table that falls so far behind is told to the log."""
        ends = await self._hub.do(_ends)
        for _ in range(int(_SETTLE_SECONDS / _POLL_SECONDS)):
            read = await self._hub.do(_read)
            if all(read[partition] >= end for partition, end in ends.items()):
                return
            if await self._stopping.within(_POLL_SECONDS):
                return
        _LOGGER.warning("the query table is far behind the hub; a replay may miss impulses")


def _ends(reader: HubReader) -> dict[str, int]:
    return {partition: reader.last(IMPULSES_HUB, partition) for partition in reader.partitions(IMPULSES_HUB)}


def _read(reader: HubReader) -> dict[str, int]:
    return {
        partition: reader.committed(IMPULSES_HUB, _TABLE_GROUP, partition)
        for partition in reader.partitions(IMPULSES_HUB)
    }
