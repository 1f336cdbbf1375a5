"""Admission of listeners, stream links, and closing of unauthorised streams.

Separate from ``publishing`` because requests open streams, and triggers publish to them.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from urllib.parse import urlencode

from shared.auth.principals import Principal
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import Audience
from shared.live_stream.credentials import Listener
from shared.live_stream.filters import StreamFilters
from shared.live_stream.ports import ALL_STREAMS, MessageService, OpenStream, ResumePrincipal
from shared.live_stream.stream_quota import StreamQuota, build_member_group
from shared.observability.logs import fields, get_logger
from shared.telemetry.ports import CurrentCatalog
from shared.timestamps import now

LINK_LIFETIME = timedelta(hours=1)
_LOGGER = get_logger("live")


@dataclass(frozen=True, slots=True)
class StreamAdmission:
    """Data for the message service about an admitted listener.

    Attributes:
        user: user id of the listener.
        groups: groups that the stream joins.
    """

    user: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A WebSocket URL that opens a stream without another credential until it expires."""

    url: str
    expires_at: datetime


class LiveStream:
    """Controls access to live streams."""

    def __init__(
        self,
        catalog: CurrentCatalog,
        service: MessageService,
        audience: Audience,
        resume: ResumePrincipal,
        quota: StreamQuota,
    ) -> None:
        self._catalog = catalog
        self._service = service
        self._audience = audience
        self._resume = resume
        self._quota = quota

    async def select_connections(self, filters: StreamFilters) -> tuple[str, ...]:
        """Return the connections that filters select, after validating the filters.

        Raises:
            WorkspaceError: INVALID for ``since`` combined with ``windowSec``; NOT_FOUND for an unknown lookup.
        """
        filters.find_replay_start(now())
        return filters.select_connections(await self._catalog())

    async def admit(self, principal: Principal, filters: StreamFilters, stream_id: str) -> StreamAdmission:
        """Admit a listener and count its stream.

        Args:
            principal: the caller.
            filters: filters of the stream.
            stream_id: connection id at the message service.

        Raises:
            WorkspaceError: as ``connections``; THROTTLED ``TOO_MANY_STREAMS``.
        """
        groups = await self.select_connections(filters)
        await self._quota.take(principal.member_id, stream_id)
        self._audience.expect(groups)
        return StreamAdmission(
            Listener.from_principal(principal).name, (ALL_STREAMS, build_member_group(principal.member_id), *groups)
        )

    async def end(self, member_id: str, stream_id: str) -> None:
        """Free the place of a stream that the message service reports as closed.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUOTAS_UNAVAILABLE``.
        """
        await self._quota.free(member_id, stream_id)

    async def resume(self, user: str) -> Principal:
        """Return the principal that a link was created for, restricted to the right to listen.

        Raises:
            WorkspaceError: UNAUTHENTICATED; FORBIDDEN.
        """
        listener = Listener.from_user(user)
        principal = await self._resume(listener.member_id, listener.token_id, listener.expires_at)
        principal.require_right(AccessRight.LIVE_STREAM_READ)
        return replace(principal, rights=frozenset({AccessRight.LIVE_STREAM_READ}))

    async def create_link(self, principal: Principal, filters: StreamFilters, parameters: Mapping[str, str]) -> Link:
        """Return a link that opens the caller's stream; it expires with the token, after an hour at the latest.

        Args:
            principal: the caller.
            filters: filters of the stream.
            parameters: the filters as query parameters.

        Raises:
            WorkspaceError: as ``connections``; UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        await self.select_connections(filters)
        listener = Listener.from_principal(principal)
        current = now()
        minutes = max(
            1, math.floor((min(listener.expires_at, current + LINK_LIFETIME) - current) / timedelta(minutes=1))
        )
        expires_at = min(current + timedelta(minutes=minutes), listener.expires_at)
        url = await self._service.link(listener.name, current + timedelta(minutes=minutes))
        return Link(f"{url}&{urlencode(parameters)}" if parameters else url, expires_at)

    async def close_expired(self) -> int:
        """Close streams whose token expired or was revoked, or whose member lost the right to listen.

        Returns:
            Number of closed streams.

        Raises:
            WorkspaceError: the first error of a stream, after all streams were processed; UNAVAILABLE if the service
                cannot list the streams.
        """
        closed, failures = 0, list[WorkspaceError]()
        async for stream in self._service.list_streams(ALL_STREAMS):
            try:
                closed += await self._close_if_expired(stream)
            except WorkspaceError as error:
                failures.append(error)
        if closed:
            _LOGGER.info("closed streams without a valid token", extra=fields(count=closed))
        if failures:
            _LOGGER.warning("cannot check or close some streams", extra=fields(count=len(failures)))
            raise failures[0]
        return closed

    async def _close_if_expired(self, stream: OpenStream) -> bool:
        reason = await self._find_reason_to_close(stream)
        if reason:
            await self._service.disconnect(stream.connection_id, reason)
        return bool(reason)

    async def _find_reason_to_close(self, stream: OpenStream) -> str:
        try:
            await self.resume(stream.user)
        except WorkspaceError as error:
            if error.kind in (Kind.UNAUTHENTICATED, Kind.FORBIDDEN):
                return error.detail
            raise
        return ""
