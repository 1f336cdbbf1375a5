"""Replays on a desk: what a client of the stand-in is sent before live impulses."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from datetime import datetime

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload
from local.host.hub_access import HubAccess
from local.host.shutdown import ShutdownSignal
from shared.backends.embedded.hub import HubReader
from shared.live_stream.filters import StreamFilters
from shared.live_stream.history import History
from shared.live_stream.replay import IngestionProgress, Replay
from shared.observability.logs import fields, get_logger
from shared.telemetry.models import IMPULSES_HUB
from shared.timestamps import now

_TABLE_GROUP, _LIVE_GROUP = "adx", "live"
_POLL_SECONDS = 0.02
_WAIT_SECONDS = 30.0
_LOGGER = get_logger("local.live_replay")


class ReplayPrelude:
    """Replays what a client asked for with ``since`` or ``windowSec`` before live impulses.

    Args:
        progress: of the hub's readers.
    """

    def __init__(self, progress: IngestionProgress) -> None:
        self._progress = progress

    def __call__(
        self, connection: ClientConnection, query: Mapping[str, Sequence[str]]
    ) -> Coroutine[None, None, None] | None:
        """Hold live impulses back and return the replay; None for a client that asked for none."""
        # The app has checked the very same parameters when it let the client in.
        filters = StreamFilters.model_validate({name: values[0] for name, values in query.items()})
        since = filters.find_replay_start(now())
        if since is None:
            return None
        connection.hold()
        return self._replay(connection, filters, since)

    async def _replay(self, connection: ClientConnection, filters: StreamFilters, since: datetime) -> None:
        from shared.wiring import services  # noqa: PLC0415  the settings that it reads are complete only now

        wired = services()
        connections = filters.select_connections(await wired.catalog.current())
        await Replay(History(wired.engine), self._progress).run(_ClientStream(connection), connections, since)


class _ClientStream:
    """The Stream of a client of the stand-in."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.hold: Callable[[], None] = connection.hold
        self.has_overflowed: Callable[[], bool] = connection.has_overflowed

    async def send(self, texts: Sequence[bytes]) -> bool:
        """Send impulses at the client's pace."""
        return await self._connection.send_all_when_drained([Payload(text, DataType.TEXT) for text in texts])

    async def release(self, repeated: Callable[[bytes], bool]) -> None:
        """Go on live."""
        await self._connection.release(repeated)


class HubProgress:
    """The IngestionProgress port over the offsets of the hub's consumer groups."""

    def __init__(self, hub: HubAccess, stopping: ShutdownSignal) -> None:
        self._hub = hub
        self._stopping = stopping

    async def wait_for_table(self) -> None:
        """Wait for the query table."""
        await self._reached(_TABLE_GROUP)

    async def wait_for_live(self) -> None:
        """Wait for the live stream."""
        await self._reached(_LIVE_GROUP)

    async def _reached(self, group: str) -> None:
        """Wait, at most half a minute: who falls so far behind is told to the log."""
        ends = await self._hub.do(_ends)
        for _ in range(int(_WAIT_SECONDS / _POLL_SECONDS)):
            read = await self._hub.do(lambda reader: _read(reader, group))
            if all(read[partition] >= end for partition, end in ends.items()):
                return
            if await self._stopping.wait_for(_POLL_SECONDS):
                return
        _LOGGER.warning("a replay may have a gap or a repeat: its hub is read too slowly", extra=fields(group=group))


def _ends(reader: HubReader) -> dict[str, int]:
    return {
        partition: reader.last_sequence_number(IMPULSES_HUB, partition) for partition in reader.partitions(IMPULSES_HUB)
    }


def _read(reader: HubReader, group: str) -> dict[str, int]:
    return {
        partition: reader.read_offset(IMPULSES_HUB, group, partition) for partition in reader.partitions(IMPULSES_HUB)
    }
