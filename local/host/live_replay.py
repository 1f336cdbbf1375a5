"""Replays for clients of the local live stream, sent before live impulses."""

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
    """Prelude of a stream: replays impulses for the parameters ``since`` and ``windowSec``.

    Args:
        progress: progress of the readers of the hub.
    """

    def __init__(self, progress: IngestionProgress) -> None:
        self._progress = progress

    def __call__(
        self, connection: ClientConnection, query: Mapping[str, Sequence[str]]
    ) -> Coroutine[None, None, None] | None:
        """Hold back live impulses and return the replay, None if the client requests no replay."""
        # The app validated these parameters when it accepted the client.
        filters = StreamFilters.model_validate({name: values[0] for name, values in query.items()})
        since = filters.find_replay_start(now())
        if since is None:
            return None
        connection.hold()
        return self._replay(connection, filters, since)

    async def _replay(self, connection: ClientConnection, filters: StreamFilters, since: datetime) -> None:
        from shared.wiring import services  # noqa: PLC0415  the settings are complete only now

        wired = services()
        connections = filters.select_connections(await wired.catalog.current())
        await Replay(History(wired.queries.engine), self._progress).run(_ClientStream(connection), connections, since)


class _ClientStream:
    """Stream port over a client of the emulator."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.hold: Callable[[], None] = connection.hold
        self.has_overflowed: Callable[[], bool] = connection.has_overflowed

    async def send(self, texts: Sequence[bytes]) -> bool:
        """Send impulses at the client's pace."""
        return await self._connection.send_all_when_drained([Payload(text, DataType.TEXT) for text in texts])

    async def release(self, repeated: Callable[[bytes], bool]) -> None:
        """Continue with live impulses."""
        await self._connection.release(repeated)


class HubProgress:
    """The IngestionProgress port over the offsets of the hub's consumer groups."""

    def __init__(self, hub: HubAccess, stopping: ShutdownSignal) -> None:
        self._hub = hub
        self._stopping = stopping

    async def wait_for_table(self) -> None:
        """Wait until the query table has read all current events."""
        await self._wait_for_group(_TABLE_GROUP)

    async def wait_for_live(self) -> None:
        """Wait until the live stream has read all current events."""
        await self._wait_for_group(_LIVE_GROUP)

    async def _wait_for_group(self, group: str) -> None:
        """Wait for a consumer group, at most half a minute; log a warning if it is slower."""
        ends = await self._hub.run(_last_numbers)
        for _ in range(int(_WAIT_SECONDS / _POLL_SECONDS)):
            read = await self._hub.run(lambda reader: _committed_numbers(reader, group))
            if all(read[partition] >= end for partition, end in ends.items()):
                return
            if await self._stopping.wait_for(_POLL_SECONDS):
                return
        _LOGGER.warning(
            "a replay may have a gap or a duplicate, because a consumer group is slow", extra=fields(group=group)
        )


def _last_numbers(reader: HubReader) -> dict[str, int]:
    return {
        partition: reader.last_sequence_number(IMPULSES_HUB, partition) for partition in reader.partitions(IMPULSES_HUB)
    }


def _committed_numbers(reader: HubReader, group: str) -> dict[str, int]:
    return {
        partition: reader.read_offset(IMPULSES_HUB, group, partition) for partition in reader.partitions(IMPULSES_HUB)
    }
