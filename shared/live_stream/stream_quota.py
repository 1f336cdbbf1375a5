"""Quota of open live streams of each principal, across all instances."""

import hashlib
import math
from typing import Final

from shared.catalog.quotas import resolve_quotas
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose, QuotaStore
from shared.live_stream.ports import MessageService
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.ports import CurrentCatalog

HANDSHAKE_SECONDS: Final = 10.0
"""Maximum seconds between the admission of a stream and its appearance in Web PubSub."""
COMPARE_SECONDS: Final = 1.0
"""Minimum seconds between two comparisons of a principal's reservations with its open streams."""
FULL_SECONDS: Final = 0.25
"""Seconds after a rejection for which further streams of the principal are rejected without calling the store."""
RETRY_AFTER_SECONDS: Final = 10
_REMEMBERED: Final = 10_000
_LOGGER = get_logger("live")


def build_group_name_of_member(member_id: str) -> str:
    """Return the name of the group that contains all streams of a team member in Web PubSub."""
    return f"_member.{hashlib.sha256(member_id.encode()).hexdigest()}"


class StreamQuota:
    """Enforces the limit of open streams per principal.

    A reservation in the quota is made before a stream opens and released when the stream ends. When the quota is used
    up, the reservations are compared with the open streams, because a crash can prevent the report that a stream has
    ended.

    Args:
        quota_store: store of the reservations, shared by all instances.
        catalog: function that returns the current workspace catalog.
        service: lists the open streams.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        quota_store: QuotaStore,
        catalog: CurrentCatalog,
        service: MessageService,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._places = quota_store
        self._catalog = catalog
        self._service = service
        self._compared_at: dict[str, float] = {}
        self._full_until: dict[str, float] = {}
        self._runtime = runtime

    async def reserve_stream(self, member_id: str, stream_id: str) -> None:
        """Add a reservation to the member's quota for a stream that is about to open.

        If the store does not respond, the stream is not counted, and a warning is logged.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_STREAMS``.
        """
        catalog = await self._catalog()
        limit = resolve_quotas(catalog.tier, catalog.policies.quotas).streams
        if self._runtime.monotonic() < self._full_until.get(member_id, -math.inf):
            raise _build_too_many_streams_error(limit)
        try:
            is_taken = await self._try_add_reservation(member_id, stream_id, limit)
            if not is_taken and await self._try_release_ended_streams(member_id):
                is_taken = await self._try_add_reservation(member_id, stream_id, limit)
        except WorkspaceError as error:
            # A failing quota store must not reject callers.
            _LOGGER.warning("live streams are not counted: %s", error.detail)
            return
        if not is_taken:
            if len(self._full_until) >= _REMEMBERED:
                self._full_until.clear()
            self._full_until[member_id] = self._runtime.monotonic() + FULL_SECONDS
            raise _build_too_many_streams_error(limit)

    async def release_stream(self, member_id: str, stream_id: str) -> None:
        """Release the member's quota reservation for a stream that has ended.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUOTAS_UNAVAILABLE``; a later comparison with the open streams releases the
                reservation.
        """
        await self._places.delete_reservations(member_id, Purpose.STREAMS, [stream_id])
        self._full_until.pop(member_id, None)

    async def _try_add_reservation(self, member_id: str, stream_id: str, max_streams: int) -> bool:
        """Add a reservation for a stream; return False if the member already has ``max_streams`` reservations."""
        return await self._places.try_reserve(
            member_id,
            Purpose.STREAMS,
            stream_id,
            at_unix_seconds=self._runtime.now().timestamp(),
            max_reservations=max_streams,
        )

    async def _try_release_ended_streams(self, member_id: str) -> bool:
        """Release the member's reservations for streams that are not open; return whether any was released."""
        instant = self._runtime.monotonic()
        if instant - self._compared_at.get(member_id, -math.inf) < COMPARE_SECONDS:
            return False
        if len(self._compared_at) >= _REMEMBERED:
            self._compared_at.clear()
        self._compared_at[member_id] = instant
        at = self._runtime.now().timestamp()
        held = await self._places.list_reservations(member_id, Purpose.STREAMS)
        open_ids = {
            reader.connection_id
            async for reader in self._service.iterate_streams(build_group_name_of_member(member_id))
        }
        # The time of a reservation is in the future if the clock was set back.
        settled = [place.id for place in held if abs(at - place.taken_at) > HANDSHAKE_SECONDS]
        ended = [stream_id for stream_id in settled if stream_id not in open_ids]
        if ended:
            await self._places.delete_reservations(member_id, Purpose.STREAMS, ended)
            _LOGGER.info("released reservations of ended streams", extra=fields(count=len(ended)))
        return bool(ended)


def _build_too_many_streams_error(max_streams: int) -> WorkspaceError:
    count("workspace.live.quota_refusals")
    detail = (
        f"Your open live streams have reached their limit, {max_streams} (policies.quotas.streamsPerPrincipal); "
        "close one, then try again."
    )
    return WorkspaceError(Kind.THROTTLED, "TOO_MANY_STREAMS", detail, retryAfter=RETRY_AFTER_SECONDS, limit=max_streams)
