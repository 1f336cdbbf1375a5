"""Quota of open live streams of each principal, over all instances and however a stream was opened."""

import hashlib
import time
from collections.abc import Callable
from typing import Final

from shared.catalog.quotas import resolve_quotas
from shared.errors import Kind, WorkspaceError
from shared.fair_use.ports import Purpose, QuotaStore
from shared.live_stream.ports import MessageService
from shared.observability.logs import fields, get_logger
from shared.observability.metrics import count
from shared.telemetry.ports import CurrentCatalog

HANDSHAKE_SECONDS: Final = 10.0
"""Longest time between the admission of a stream and its appearance at the message service."""
COMPARE_SECONDS: Final = 1.0
"""Minimum time between comparisons of a principal's places with its open streams."""
FULL_SECONDS: Final = 0.25
"""Time after a rejection during which the principal is rejected without calling the store."""
RETRY_AFTER_SECONDS: Final = 10
_REMEMBERED: Final = 10_000
_LOGGER = get_logger("live")


def build_member_group(member_id: str) -> str:
    """Return the group at the message service that holds all streams of a member."""
    return f"_member.{hashlib.sha256(member_id.encode()).hexdigest()}"


class StreamQuota:
    """Enforces the limit of open streams per principal.

    A place is reserved before a stream opens and freed when it ends. When the quota is reached, places are compared
    with the open streams. This frees places of streams whose end was not reported because a process or client crashed.

    Args:
        places: counter shared by all instances.
        catalog: returns the current catalog.
        service: lists the open streams.
        clock: returns seconds since the epoch.
    """

    def __init__(
        self,
        places: QuotaStore,
        catalog: CurrentCatalog,
        service: MessageService,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._places = places
        self._catalog = catalog
        self._service = service
        self._clock = clock
        self._compared_at: dict[str, float] = {}
        self._full_until: dict[str, float] = {}

    async def take(self, member_id: str, stream_id: str) -> None:
        """Reserve a place for a stream that is about to open.

        If the store does not answer, streams are admitted without counting and a warning is logged.

        Raises:
            WorkspaceError: THROTTLED ``TOO_MANY_STREAMS``.
        """
        catalog = await self._catalog()
        limit = resolve_quotas(catalog.tier, catalog.policies.quotas).streams
        if self._clock() < self._full_until.get(member_id, 0.0):
            raise _count_rejection(limit)
        try:
            is_taken = await self._try_take(member_id, stream_id, limit)
            if not is_taken and await self._free_ended(member_id):
                is_taken = await self._try_take(member_id, stream_id, limit)
        except WorkspaceError as error:
            # A failing quota store must not reject callers.
            _LOGGER.warning("live streams are not counted: %s", error.detail)
            return
        if not is_taken:
            if len(self._full_until) >= _REMEMBERED:
                self._full_until.clear()
            self._full_until[member_id] = self._clock() + FULL_SECONDS
            raise _count_rejection(limit)

    async def free(self, member_id: str, stream_id: str) -> None:
        """Free the place of a stream that has ended.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUOTAS_UNAVAILABLE``; a later comparison frees the place.
        """
        await self._places.free(member_id, Purpose.STREAMS, [stream_id])
        self._full_until.pop(member_id, None)

    async def _try_take(self, member_id: str, stream_id: str, limit: int) -> bool:
        return await self._places.take(member_id, Purpose.STREAMS, stream_id, at=self._clock(), limit=limit)

    async def _free_ended(self, member_id: str) -> bool:
        """Free places without an open stream; return whether there were any."""
        at = self._clock()
        if at - self._compared_at.get(member_id, 0.0) < COMPARE_SECONDS:
            return False
        if len(self._compared_at) >= _REMEMBERED:
            self._compared_at.clear()
        self._compared_at[member_id] = at
        held = await self._places.list_reservations(member_id, Purpose.STREAMS)
        open_ids = {reader.connection_id async for reader in self._service.list_streams(build_member_group(member_id))}
        settled = at - HANDSHAKE_SECONDS
        ended = [place.id for place in held if place.id not in open_ids and place.taken_at < settled]
        if ended:
            await self._places.free(member_id, Purpose.STREAMS, ended)
            _LOGGER.info("freed places of ended streams", extra=fields(count=len(ended)))
        return bool(ended)


def _count_rejection(limit: int) -> WorkspaceError:
    count("workspace.live.quota_refusals")
    detail = (
        f"You have {limit} open live streams, the most allowed (policies.quotas.streamsPerPrincipal); "
        "close one, then try again."
    )
    return WorkspaceError(Kind.THROTTLED, "TOO_MANY_STREAMS", detail, retryAfter=RETRY_AFTER_SECONDS, limit=limit)
