"""Access to live streams: admission of listeners, stream links, and closing of unauthorised streams.

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
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.ports import CurrentCatalog

LINK_LIFETIME = timedelta(hours=1)
_LOGGER = get_logger("live")


@dataclass(frozen=True, slots=True)
class StreamAdmission:
    """Reply to Web PubSub about an admitted listener.

    Attributes:
        user: user id of the listener.
        groups: groups that the stream joins.
    """

    user: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """WebSocket URL that opens a live stream without another credential until it expires."""

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
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._service = service
        self._audience = audience
        self._resume = resume
        self._quota = quota
        self._runtime = runtime

    async def select_connections(self, filters: StreamFilters) -> tuple[str, ...]:
        """Validate the filters of a stream; return the lookups (ids in URLs) of the selected connections.

        Raises:
            WorkspaceError: INVALID for ``since`` combined with ``windowSec``; NOT_FOUND for an unknown connection or
                surface.
        """
        filters.find_replay_start(self._runtime.now())
        return filters.select_connections(await self._catalog())

    async def admit(self, principal: Principal, filters: StreamFilters, stream_id: str) -> StreamAdmission:
        """Admit a listener and count the stream towards the caller's quota.

        Args:
            principal: the caller.
            filters: filters of the stream.
            stream_id: id of the WebSocket connection in Web PubSub.

        Raises:
            WorkspaceError: as :meth:`select_connections`; THROTTLED ``TOO_MANY_STREAMS``.
        """
        groups = await self.select_connections(filters)
        await self._quota.reserve_stream(principal.member_id, stream_id)
        self._audience.expect_listener(groups)
        return StreamAdmission(
            Listener.from_principal(principal).name, (ALL_STREAMS, build_member_group(principal.member_id), *groups)
        )

    async def end(self, member_id: str, stream_id: str) -> None:
        """Stop counting a stream towards its member's quota, because Web PubSub reports it as closed.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUOTAS_UNAVAILABLE``.
        """
        await self._quota.release_stream(member_id, stream_id)

    async def resume(self, user: str) -> Principal:
        """Return the principal for a stream's user id, restricted to the right to listen, if access is still granted.

        Raises:
            WorkspaceError: UNAUTHENTICATED; FORBIDDEN.
        """
        listener = Listener.from_user_id(user)
        principal = await self._resume(listener.member_id, listener.token_id, listener.expires_at)
        principal.require_right(AccessRight.LIVE_STREAM_READ)
        return replace(principal, rights=frozenset({AccessRight.LIVE_STREAM_READ}))

    async def create_link(self, principal: Principal, filters: StreamFilters, parameters: Mapping[str, str]) -> Link:
        """Create a link that opens the caller's stream; the link expires with the token, but after at most an hour.

        Args:
            principal: the caller.
            filters: filters of the stream.
            parameters: the filters as query parameters.

        Raises:
            WorkspaceError: as :meth:`select_connections`; UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        await self.select_connections(filters)
        listener = Listener.from_principal(principal)
        current = self._runtime.now()
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
