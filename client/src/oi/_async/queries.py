"""Warm queries (saved, approved KQL queries) and ad-hoc KQL queries."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from oi._async.transport import AsyncTransport
from oi.errors import NotFoundError
from oi.instants import format_instant, format_iso_duration
from oi.json_text import encode_json
from oi.requests import (
    build_if_match_header,
    build_signature_property,
    parse_json_reply,
    quote_path_segment,
    require_media_type,
    require_no_content,
)
from oi.results import QueryResult

if TYPE_CHECKING:
    from oi.models import QueryDefinition

_ROUTE = "/oi-api/warm-queries"


class RawReply(NamedTuple):
    """Reply of the service that was not parsed.

    Attributes:
        body: body of the reply.
        headers: HTTP headers of the reply.
    """

    body: bytes
    headers: Mapping[str, str]


class AsyncQueries:
    """Executes and manages the workspace's warm queries (saved KQL queries), and executes ad-hoc KQL."""

    def __init__(self, transport: AsyncTransport) -> None:
        self._transport = transport

    async def list(self) -> Sequence["QueryDefinition"]:
        """Return the definitions of all warm queries that the caller may read."""
        found: list[QueryDefinition] = []
        cursor: str | None = None
        while True:
            page = await self._transport.get_json(_ROUTE, {"cursor": cursor})
            found += page["warmQueries"]
            cursor = page.get("cursor")
            if not cursor:
                return found

    async def get(self, lookup: str) -> "QueryDefinition":
        """Return the definition of a warm query, for instance its KQL text and parameters.

        Raises:
            NotFoundError: no warm query has this short name (lookup).
        """
        for query in await self.list():
            if query["lookup"] == lookup:
                return query
        detail = f"No warm query has the lookup (short name in URLs) {lookup!r}."
        raise NotFoundError(404, "WARM_QUERY_NOT_FOUND", detail)

    async def run(
        self,
        lookup: str,
        *,
        parameters: Mapping[str, Any] | None = None,
        time_range: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        limit: int | None = None,
    ) -> QueryResult:
        """Execute an approved warm query.

        Args:
            lookup: short name of the query in URLs, or its API path.
            parameters: values of the query's parameters; None selects the default of its parameter. A list or a
                dictionary is sent as JSON, and a `timedelta` as an ISO 8601 duration.
            time_range: ISO 8601 duration of a time range that ends now, for instance ``PT1H`` for the last hour.
            start: start of the time range, inclusive; instead of `time_range`.
            end: end of the time range, exclusive; now if omitted.
            limit: maximum number of rows.

        Raises:
            ForbiddenError: the query is a draft, or the caller lacks the right.
            InvalidRequestError: a parameter is unknown or has an invalid value.
            NotFoundError: no query has this short name or API path.
            TypeError: a list or dictionary contains a value that JSON cannot express, such as a `datetime`.
            ValueError: a list or dictionary contains NaN or an infinite number.
        """
        reply = await self._transport.get_json(
            _build_execution_path(lookup),
            build_execution_parameters(parameters, time_range, start, end, limit),
            is_slow=True,
        )
        return QueryResult.from_reply(reply)

    async def run_raw(self, lookup: str, media_type: str, query: Mapping[str, Any] | None = None) -> RawReply:
        """Execute an approved warm query; return the body and the headers of the reply in a chosen media type.

        Args:
            lookup: short name of the query in URLs, or its API path.
            media_type: media type of the requested reply, such as ``text/csv``.
            query: query parameters of the URL, from :func:`build_execution_parameters`.

        Raises:
            ApiError: as :meth:`run`, or the reply has another media type, most often because a proxy replied.
        """
        response = await self._transport.request(
            "GET", _build_execution_path(lookup), params=query, headers={"Accept": media_type}, is_slow=True
        )
        require_media_type(response, media_type)
        return RawReply(response.content, response.headers)

    async def put(self, lookup: str, definition: Mapping[str, Any], *, etag: str | None = None) -> "QueryDefinition":
        """Create or replace a warm query; return its definition.

        The query is a draft until another person approves it.

        Args:
            lookup: short name of the query in URLs.
            definition: JSON properties of the query.
            etag: replace the query only if its definition still has this ETag.

        Raises:
            PreconditionFailedError: the definition no longer has the ETag `etag`.
        """
        route = f"{_ROUTE}/{quote_path_segment(lookup)}"
        response = await self._transport.request("PUT", route, json=definition, headers=build_if_match_header(etag))
        reply: QueryDefinition = parse_json_reply(response)
        return reply

    async def approve(
        self, lookup: str, *, meaning: str | None = None, statement: str | None = None, etag: str | None = None
    ) -> "QueryDefinition":
        """Approve the draft of a warm query, and return the definition; the last editor of the draft cannot approve it.

        If the query is approved already, nothing changes: the definition with the stored approval is returned. If the
        caller sends another signature than the stored one, an error is raised.

        Args:
            lookup: short name of the query in URLs.
            meaning: meaning of the electronic signature, for instance ``approval``; None for an approval that is not
                signed.
            statement: text that is stored with the signature.
            etag: property ``etag`` of the definition that the caller has read; the decision is refused if the
                definition was changed since then.

        Raises:
            ForbiddenError: the caller edited the draft last.
            ConflictError: the draft was rejected, or the query is approved and `meaning` or `statement` is not that of
                the caller's stored signature (code ``WARM_QUERY_APPROVED``); or the definition was changed while the
                decision was signed (code ``CATALOG_CHANGED``): read it again before you repeat the decision.
            InvalidRequestError: the workspace requires a signature, or does not allow this meaning.
            PreconditionFailedError: the definition no longer has the ETag `etag`.
            SignInError: the sign-in is too old for a signature (code ``REAUTHENTICATION_REQUIRED``); open another
                `AsyncWorkspace` with the API key.
        """
        return await self._send_decision(lookup, "approve", build_signature_property(meaning, statement), etag)

    async def reject(
        self,
        lookup: str,
        comment: str,
        *,
        meaning: str | None = None,
        statement: str | None = None,
        etag: str | None = None,
    ) -> "QueryDefinition":
        """Reject the draft of a warm query, with a comment for its editor.

        Args:
            lookup: short name of the query in URLs.
            comment: changes that the editor should make.
            meaning: ``rejection`` to sign the rejection; None for a rejection that is not signed.
            statement: text that is stored with the signature.
            etag: property ``etag`` of the definition that the caller has read; the decision is refused if the
                definition was changed since then.

        Raises:
            ForbiddenError: the caller edited the draft last.
            InvalidRequestError: the workspace requires a signature, or does not allow this meaning.
            PreconditionFailedError: the definition no longer has the ETag `etag`.
            SignInError: as in :meth:`approve`.
        """
        body = {"comment": comment, **build_signature_property(meaning, statement)}
        return await self._send_decision(lookup, "reject", body, etag)

    async def _send_decision(
        self, lookup: str, decision: Literal["approve", "reject"], body: Mapping[str, Any], etag: str | None
    ) -> "QueryDefinition":
        route = f"{_ROUTE}/{quote_path_segment(lookup)}/{decision}"
        response = await self._transport.request(
            "POST", route, json=body or None, headers=build_if_match_header(etag), appends=True
        )
        reply: QueryDefinition = parse_json_reply(response)
        return reply

    async def delete(self, lookup: str, *, etag: str | None = None) -> None:
        """Delete a warm query. With an ETag, delete it only if its definition still has this ETag."""
        route = f"{_ROUTE}/{quote_path_segment(lookup)}"
        require_no_content(await self._transport.request("DELETE", route, headers=build_if_match_header(etag)))

    async def run_kql(
        self,
        text: str,
        *,
        time_range: str | None = None,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        limit: int | None = None,
    ) -> QueryResult:
        """Execute the text of a KQL query; this requires the access right ``Workspace.WarmQuery.AdHoc``.

        Args:
            text: text of a KQL query, which can only read data.
            time_range: as in :meth:`run`.
            start: as in :meth:`run`.
            end: as in :meth:`run`.
            limit: as in :meth:`run`.

        Raises:
            InvalidRequestError: the text is not valid KQL, or tries to write.
        """
        body = {"query": text, **build_execution_parameters(None, time_range, start, end, limit)}
        return QueryResult.from_reply(
            parse_json_reply(await self._transport.request("POST", _ROUTE, json=body, reads=True, is_slow=True))
        )


def _build_execution_path(lookup: str) -> str:
    """Return the URL path that executes a warm query; ``lookup`` is its short name or its API path, such as ``a/b``.

    Raises:
        NotFoundError: a segment of the path is empty, ``.`` or ``..``.
    """
    try:
        return "/".join((_ROUTE, *map(quote_path_segment, lookup.split("/"))))
    except NotFoundError:
        detail = f"No part of the lookup {lookup!r} may be empty, `.` or `..`."
        raise NotFoundError(404, "WARM_QUERY_NOT_FOUND", detail) from None


def build_execution_parameters(
    parameters: Mapping[str, Any] | None,
    time_range: str | None,
    start: datetime | str | None,
    end: datetime | str | None,
    limit: int | None,
) -> dict[str, Any]:
    """Build the parameters with which a query is executed, for the URL or the JSON body of the request.

    Args:
        parameters: values of the query's own parameters, by name; None for no values. A value None is left out.
        time_range: ISO 8601 duration of a time range that ends now; None for none.
        start: start of the time range; None for none.
        end: end of the time range; None for none.
        limit: maximum number of rows; None for the default of the service.
    """
    built: dict[str, Any] = {
        f"p.{name}": _format_parameter_value(value) for name, value in (parameters or {}).items() if value is not None
    }
    named = {"timeRange": time_range, "from": format_instant(start), "to": format_instant(end), "limit": limit}
    return {**built, **{name: value for name, value in named.items() if value is not None}}


def _format_parameter_value(value: Any) -> str:
    if isinstance(value, bool | dict | list | tuple):
        return encode_json(value).decode()
    if isinstance(value, timedelta):
        return format_iso_duration(value)
    return format_instant(value) or "" if isinstance(value, datetime) else str(value)
