"""Access to live streams: credentials and admission of listeners, stream links, and closing of unauthorised streams.

This module is separate from ``publishing`` because requests open streams, and triggers publish to them.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from urllib.parse import quote, unquote, urlencode

from shared.auth.principals import Principal, build_unauthenticated_error
from shared.auth.rights import AccessRight
from shared.errors import Kind, WorkspaceError
from shared.live_stream.audience import Audience
from shared.live_stream.filters import StreamFilters
from shared.live_stream.ports import ALL_STREAMS, MessageService, OpenStream, ResumePrincipal
from shared.live_stream.stream_quota import StreamQuota, build_group_name_of_member
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.telemetry.ports import CurrentCatalog

MOVED_HEADER = "x-workspace-authorization"
"""Header to which the gateway moves Authorization, because Web PubSub would interpret Authorization."""

TOKEN_PARAMETER = "token"  # noqa: S105  name of a parameter
SUBPROTOCOL_PREFIX = "bearer."
_FOREVER = datetime(9999, 1, 1, tzinfo=UTC)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_USER_ID = re.compile(
    r"(?P<second>\d{1,12})\.(?P<token>[A-Za-z0-9_-]*)(?:~(?P<key>[A-Za-z0-9_-]+))?\.(?P<member>.+)",
    re.DOTALL | re.ASCII,
)


@dataclass(frozen=True, slots=True)
class StreamCredential:
    """Credential that a listener sent in the WebSocket handshake.

    Attributes:
        authorization: credential in the form of an Authorization header; empty without a credential.
        subprotocol: offered subprotocol ``bearer.<token>``, which the server must echo, also if the credential was
            sent in another way; empty if none was offered.
    """

    authorization: str
    subprotocol: str = ""


def extract_credential(
    authorization: str, token_parameters: Sequence[str], subprotocols: Sequence[str]
) -> StreamCredential:
    """Return a listener's credential: from the Authorization header, else the query parameter, else the subprotocol.

    Args:
        authorization: value of the Authorization header; empty if missing.
        token_parameters: values of the query parameter ``token``.
        subprotocols: offered subprotocols; browsers cannot set headers and offer ``bearer.<token>``.
    """
    subprotocol = next((each for each in subprotocols if each.startswith(SUBPROTOCOL_PREFIX)), "")
    if authorization:
        return StreamCredential(authorization, subprotocol)
    if token_parameters:
        return StreamCredential(f"Bearer {token_parameters[0]}", subprotocol)
    return StreamCredential(
        f"Bearer {subprotocol.removeprefix(SUBPROTOCOL_PREFIX)}" if subprotocol else "", subprotocol
    )


@dataclass(frozen=True, slots=True)
class Listener:
    """Listener of a live stream: team member and token, encoded in the stream's user id in Web PubSub.

    Nothing else is stored about a stream, so every instance can check whether the stream is still authorised.

    Attributes:
        member_id: id of the team member.
        token_id: id of the token that opened the stream.
        expires_at: expiry of the token that opened the stream.
        key_id: ``kid`` of this service's key that signed the token; empty for a token of Entra ID, and for a stream
            that an earlier version of the service opened.
    """

    member_id: str
    token_id: str
    expires_at: datetime
    key_id: str = ""

    @classmethod
    def from_principal(cls, principal: Principal) -> "Listener":
        """Build the listener from the authenticated principal of a request."""
        return cls(principal.member_id, principal.credential_id, principal.expires_at or _FOREVER, principal.key_id)

    @classmethod
    def from_user_id(cls, user_id: str) -> "Listener":
        """Build the listener from its user id at the message service (Azure Web PubSub).

        Raises:
            WorkspaceError: UNAUTHENTICATED if the user id was not issued by this service.
        """
        found = _USER_ID.fullmatch(user_id)
        if found is None:
            raise build_unauthenticated_error("The stream link was not issued by this service; request a new link.")
        expires_at = _EPOCH + timedelta(seconds=int(found["second"]))
        return cls(unquote(found["member"]), found["token"], expires_at, found["key"] or "")

    @property
    def user_id(self) -> str:
        """User id of the stream at the message service (Azure Web PubSub): expiry, token id, key id and member id.

        The member id is percent-encoded, because the service sends the user id in an HTTP header.
        """
        key = f"~{self.key_id}" if self.key_id else ""
        return f"{int(self.expires_at.timestamp())}.{self.token_id}{key}.{quote(self.member_id, safe='@')}"


def read_authorization_moved_by_gateway(headers: Mapping[str, str]) -> str:
    """Return the Authorization header of the client, which the gateway has moved to another header."""
    return headers.get(MOVED_HEADER, "")


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
class StreamLink:
    """WebSocket URL that opens a live stream without another credential until it expires."""

    url: str
    expires_at: datetime


class LiveStream:
    """Controls access to live streams.

    Args:
        catalog: function that returns the current workspace catalog.
        service: message service, which opens, lists and closes streams.
        audience: records each listener before the listener is admitted.
        resume: checks that the member of an open stream still has access.
        quota: counts the open streams of each member.
        runtime: clock, randomness and threads.
    """

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

    async def select_connection_lookups(self, filters: StreamFilters) -> tuple[str, ...]:
        """Validate the filters of a stream; return the lookups (ids in URLs) of the selected connections.

        Raises:
            WorkspaceError: INVALID for ``since`` combined with ``windowSec``; NOT_FOUND for an unknown connection or
                surface.
        """
        filters.compute_replay_start(self._runtime.now())
        return filters.select_connection_lookups(await self._catalog())

    async def admit_listener(self, principal: Principal, filters: StreamFilters, stream_id: str) -> StreamAdmission:
        """Admit a listener and count the stream towards the caller's quota.

        Args:
            principal: the caller.
            filters: filters of the stream.
            stream_id: id of the WebSocket connection in Web PubSub.

        Raises:
            WorkspaceError: the same errors as :meth:`select_connection_lookups`; THROTTLED ``TOO_MANY_STREAMS``.
        """
        groups = await self.select_connection_lookups(filters)
        await self._quota.reserve_stream(principal.member_id, stream_id)
        self._audience.expect_listener(groups)
        return StreamAdmission(
            Listener.from_principal(principal).user_id,
            (ALL_STREAMS, build_group_name_of_member(principal.member_id), *groups),
        )

    async def release_stream(self, member_id: str, stream_id: str) -> None:
        """Stop counting a stream towards its member's quota, because Web PubSub reports it as closed.

        Raises:
            WorkspaceError: UNAVAILABLE ``QUOTAS_UNAVAILABLE``.
        """
        await self._quota.release_stream(member_id, stream_id)

    async def authenticate_stream_user(self, user_id: str) -> Principal:
        """Return the principal for a stream's user id, restricted to the right to listen, if access is still granted.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the member or the token is no longer valid; FORBIDDEN if the member no
                longer has the right to listen.
        """
        listener = Listener.from_user_id(user_id)
        principal = await self._resume(listener.member_id, listener.token_id, listener.expires_at, listener.key_id)
        principal.require_right(AccessRight.LIVE_STREAM_READ)
        return replace(principal, rights=frozenset({AccessRight.LIVE_STREAM_READ}))

    async def create_stream_link(
        self, principal: Principal, filters: StreamFilters, query_parameters: Mapping[str, str]
    ) -> StreamLink:
        """Create a link that opens the caller's stream; the link expires with the token, but after at most an hour.

        Args:
            principal: the caller.
            filters: filters of the stream.
            query_parameters: the filters as query parameters.

        Raises:
            WorkspaceError: the same errors as :meth:`select_connection_lookups`; UNAVAILABLE
                ``LIVE_STREAM_UNAVAILABLE``.
        """
        await self.select_connection_lookups(filters)
        listener = Listener.from_principal(principal)
        current = self._runtime.now()
        minutes = max(
            1, math.floor((min(listener.expires_at, current + LINK_LIFETIME) - current) / timedelta(minutes=1))
        )
        expires_at = min(current + timedelta(minutes=minutes), listener.expires_at)
        url = await self._service.create_stream_url(listener.user_id, current + timedelta(minutes=minutes))
        return StreamLink(f"{url}&{urlencode(query_parameters)}" if query_parameters else url, expires_at)

    async def close_and_count_unauthorised_streams(self) -> int:
        """Close streams whose token is no longer valid, or whose member lost the right to listen.

        Returns:
            Number of closed streams.

        Raises:
            WorkspaceError: the first error of a stream, after all streams were processed; UNAVAILABLE if the service
                cannot list the streams.
        """
        closed, failures = 0, list[WorkspaceError]()
        async for stream in self._service.iterate_streams(ALL_STREAMS):
            try:
                closed += await self._try_close_if_unauthorised(stream)
            except WorkspaceError as error:
                failures.append(error)
        if closed:
            _LOGGER.info("closed streams without a valid token", extra=fields(count=closed))
        if failures:
            _LOGGER.warning("cannot check or close some streams", extra=fields(count=len(failures)))
            raise failures[0]
        return closed

    async def _try_close_if_unauthorised(self, stream: OpenStream) -> bool:
        """Close a stream that is no longer authorised; return whether it was closed."""
        reason = await self._find_reason_to_close(stream)
        if reason is not None:
            await self._service.disconnect(stream.connection_id, reason)
        return reason is not None

    async def _find_reason_to_close(self, stream: OpenStream) -> str | None:
        """Return the reason why a stream is no longer authorised; None if it still is."""
        try:
            await self.authenticate_stream_user(stream.user)
        except WorkspaceError as error:
            if error.kind in (Kind.UNAUTHENTICATED, Kind.FORBIDDEN):
                return error.detail
            raise
        return None
