"""Lets listeners in, hands out links, and ends streams whose token does not hold any more."""

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
from shared.live_stream.stream_quota import StreamQuota, group_of
from shared.observability.logs import fields, get_logger
from shared.telemetry.ports import CurrentCatalog
from shared.timestamps import now

LINK_LIVES = timedelta(hours=1)
_LOGGER = get_logger("live")


@dataclass(frozen=True, slots=True)
class StreamAdmission:
    """What the message service is told of a listener that may come in.

    Attributes:
        user: the listener's name.
        groups: the groups that the stream joins.
    """

    user: str
    groups: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Link:
    """A WebSocket URL that opens a stream without a further credential, until it expires."""

    url: str
    expires_at: datetime


class LiveStream:
    """Decides who listens to what."""

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

    async def connections(self, filters: StreamFilters) -> tuple[str, ...]:
        """Return the connections that filters select, after checking all that they say.

        Raises:
            WorkspaceError: INVALID for ``since`` beside ``windowSec``; NOT_FOUND for a lookup.
        """
        filters.replay_start(now())
        return filters.connections(await self._catalog())

    async def admit(self, principal: Principal, filters: StreamFilters, stream_id: str) -> StreamAdmission:
        """Let a listener in, and count its stream.

        Args:
            principal: the caller.
            filters: of the stream.
            stream_id: the connection id at the message service.

        Raises:
            WorkspaceError: as ``connections``; THROTTLED ``TOO_MANY_STREAMS``.
        """
        groups = await self.connections(filters)
        await self._quota.take(principal.member_id, stream_id)
        self._audience.expect(groups)
        return StreamAdmission(
            Listener.from_principal(principal).name, (ALL_STREAMS, group_of(principal.member_id), *groups)
        )

    async def end(self, member_id: str, stream_id: str) -> None:
        """Free the place of a stream that the message service reports as closed.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUOTAS_UNAVAILABLE``.
        """
        await self._quota.free(member_id, stream_id)

    async def resume(self, user: str) -> Principal:
        """Return the caller that a link was made for, with the right to listen alone, if its member still has it.

        Raises:
            WorkspaceError: UNAUTHENTICATED; FORBIDDEN.
        """
        listener = Listener.from_user(user)
        principal = await self._resume(listener.member_id, listener.token_id, listener.expires_at)
        principal.require_right(AccessRight.LIVE_STREAM_READ)
        return replace(principal, rights=frozenset({AccessRight.LIVE_STREAM_READ}))

    async def link(self, principal: Principal, filters: StreamFilters, parameters: Mapping[str, str]) -> Link:
        """Return a link that opens the caller's stream; it ends with the caller's token, at the latest in an hour.

        Args:
            principal: the caller.
            filters: what the link is for.
            parameters: the same as query parameters.

        Raises:
            WorkspaceError: as ``connections``; UNAVAILABLE ``LIVE_STREAM_UNAVAILABLE``.
        """
        await self.connections(filters)
        listener = Listener.from_principal(principal)
        moment = now()
        minutes = max(1, math.floor((min(listener.expires_at, moment + LINK_LIVES) - moment) / timedelta(minutes=1)))
        expires_at = min(moment + timedelta(minutes=minutes), listener.expires_at)
        url = await self._service.link(listener.name, moment + timedelta(minutes=minutes))
        return Link(f"{url}&{urlencode(parameters)}" if parameters else url, expires_at)

    async def close_expired(self) -> int:
        """Close the streams whose token has expired or was revoked, or whose member may not listen any more.

        Returns:
            How many were closed.

        Raises:
            WorkspaceError: what kept a stream from being judged or closed, after all others were; UNAVAILABLE: the
                service does not say which streams there are.
        """
        ended, failures = 0, list[WorkspaceError]()
        async for reader in self._service.list_streams(ALL_STREAMS):
            try:
                ended += await self._end_if_lapsed(reader)
            except WorkspaceError as error:
                failures.append(error)
        if ended:
            _LOGGER.info("streams whose token does not hold any more are closed", extra=fields(count=ended))
        if failures:
            _LOGGER.warning("streams could not be judged or closed", extra=fields(count=len(failures)))
            raise failures[0]
        return ended

    async def _end_if_lapsed(self, reader: OpenStream) -> bool:
        reason = await self._lapsed(reader)
        if reason:
            await self._service.disconnect(reader.connection_id, reason)
        return bool(reason)

    async def _lapsed(self, reader: OpenStream) -> str:
        try:
            await self.resume(reader.user)
        except WorkspaceError as error:
            if error.kind in (Kind.UNAUTHENTICATED, Kind.FORBIDDEN):
                return error.detail
            raise
        return ""
