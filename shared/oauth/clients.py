"""OAuth clients: each is declared in the workspace document, or described by a metadata document at its own URL."""

import asyncio
import re
from collections import OrderedDict, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, Protocol
from urllib.parse import urlsplit

from shared.catalog.reader import CatalogReader
from shared.errors import Kind, WorkspaceError
from shared.outbound.addresses import AddressRefusedError, OutboundUrl, parse_outbound_url
from shared.outbound.ports import OutboundFailedError, OutboundHttp, OutboundReply, OutboundRequest
from shared.runtime import SYSTEM_RUNTIME, Runtime
from shared.text_formats.strict_json import parse_json
from shared.validation.names import require_valid_name
from shared.validation.redirect_uris import find_redirect_uri_error, is_redirect_allowed

URL_PREFIX: Final = "https://"
"""Prefix of the ids of clients that metadata documents describe; ids of declared clients contain no colon."""


@dataclass(frozen=True, slots=True)
class Client:
    """Public OAuth client, which has no secret.

    Attributes:
        client_id: id of a declared client, or URL of the client's metadata document.
        name: display name; a metadata document can state any name.
        redirect_uris: permitted redirect URIs.
    """

    client_id: str
    name: str
    redirect_uris: tuple[str, ...]

    @property
    def is_declared_in_workspace(self) -> bool:
        """True if the workspace document declares the client; an administrator has then checked the client's name."""
        return not self.client_id.startswith(URL_PREFIX)

    def resolve_redirect_uri(self, requested_uri: str | None) -> str:
        """Return the requested redirect URI; if none is requested, return the client's only URI.

        Raises:
            WorkspaceError: INVALID ``REDIRECT_URI_MISMATCH`` if the client does not have the URI, or if none is
                requested and the client has several.
        """
        if requested_uri is None and len(self.redirect_uris) == 1:
            return self.redirect_uris[0]
        if requested_uri is None or not any(
            is_redirect_allowed(requested_uri, declared) for declared in self.redirect_uris
        ):
            detail = "Parameter `redirect_uri` must be one of the redirect URIs of the client."
            members = _build_parameter_error_members("redirect_uri", "invalid_request", detail)
            raise WorkspaceError(Kind.INVALID, "REDIRECT_URI_MISMATCH", detail, **members)
        return requested_uri


class ClientDocuments(Protocol):
    """Source of the OAuth clients that metadata documents describe."""

    async def load_client(self, client_id: str, member_id: str) -> Client:
        """Return the client that the metadata document at the URL ``client_id`` describes.

        Args:
            client_id: URL of the metadata document.
            member_id: id of the signed-in member, whose fetches are limited.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN`` if there is no valid document; THROTTLED ``RATE_LIMITED``
                after too many fetches.
        """
        ...


class ClientDirectory:
    """Directory that finds OAuth clients by their ids.

    Args:
        catalog: reader of the catalog, which contains the declared clients.
        documents: source of the clients that metadata documents describe.
    """

    def __init__(self, catalog: CatalogReader, documents: ClientDocuments) -> None:
        self._catalog = catalog
        self._documents = documents

    async def find_declared_client(self, client_id: str) -> Client | None:
        """Return the declared client with an id; return None if the id is the URL of a metadata document.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN`` if the id is neither a valid URL of a document nor the id
                of a declared client.
        """
        if client_id.startswith(URL_PREFIX):
            _parse_document_url(client_id)
            return None
        entry = (await self._catalog.get_catalog()).oauth_clients.get(client_id)
        if entry is None:
            raise build_unknown_client_error("Parameter `client_id` is not the id of a client of this workspace.")
        return Client(entry.value.id, entry.value.name, entry.value.redirect_uris)

    async def get_client(self, client_id: str, member_id: str) -> Client:
        """Return a client: a declared client, or the client that the metadata document at the id describes.

        Args:
            client_id: id of the client.
            member_id: id of the signed-in member, whose fetches of documents are limited.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN``; THROTTLED ``RATE_LIMITED`` after too many fetches.
        """
        return await self.find_declared_client(client_id) or await self._documents.load_client(client_id, member_id)


def build_unknown_client_error(detail: str) -> WorkspaceError:
    """Build the error for an unknown client id.

    The reply must not be a redirect, because the redirect URI is not trusted.
    """
    members = _build_parameter_error_members("client_id", "invalid_client", detail)
    return WorkspaceError(Kind.INVALID, "OAUTH_CLIENT_UNKNOWN", detail, **members)


def _build_parameter_error_members(parameter: str, oauth_error: str, detail: str) -> dict[str, object]:
    """Build the properties of a problem document that name the invalid parameter and the OAuth error code."""
    errors = [{"field": parameter, "message": detail}]
    return {"errors": errors, "error": oauth_error, "error_description": detail}


MAX_BYTES: Final = 5 * 1024
FETCH_SECONDS: Final = 3.0
SHORTEST_SECONDS: Final = 300.0
LONGEST_SECONDS: Final = 86_400.0
FAILURE_SECONDS: Final = 60.0
"""Time in seconds for which a failed fetch is not repeated."""

FETCHES_PER_HOST: Final = 10
FETCHES: Final = 60
"""Maximum number of fetches per minute for one member, from one host and from all hosts together."""

MEMBERS_AT_LIMIT: Final = 10
"""Number of members at their limits whose fetches, taken together, reach the limit of the workspace."""

_WINDOW_SECONDS: Final = 60.0
_CACHED: Final = 1_000
_MAX_REDIRECT_URIS: Final = 20
_MAX_NAME: Final = 100
_OK: Final = 200
_MAX_AGE: Final = re.compile(r"max-age=([0-9]{1,9})")
_JSON: Final = re.compile(r"application/(?:[a-z0-9.+-]+\+)?json")


class _Fetch(NamedTuple):
    """Fetch of a metadata document for a member, at a time on the monotonic clock."""

    at: float
    host_name: str
    member_id: str


@dataclass(frozen=True, slots=True)
class _CachedDocument:
    """Cached metadata document or error of an OAuth client, valid until a time on the monotonic clock."""

    result: Client | WorkspaceError
    until: float


class FetchedClientDocuments:
    """Implementation of ClientDocuments: requests metadata documents of OAuth clients over HTTP.

    Args:
        http: HTTP client that rejects forbidden addresses, such as internal ones.
        runtime: clock.
    """

    def __init__(self, http: OutboundHttp, *, runtime: Runtime = SYSTEM_RUNTIME) -> None:
        self._http = http
        self._runtime = runtime
        self._cache: OrderedDict[str, _CachedDocument] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}
        self._fetches: deque[_Fetch] = deque()

    async def load_client(self, client_id: str, member_id: str) -> Client:
        """Return the OAuth client that a metadata document describes, from the cache or from the document's URL."""
        url = _parse_document_url(client_id)
        lock = self._locks.setdefault(client_id, asyncio.Lock())
        try:
            async with lock:
                cached = self._cache.get(client_id)
                if cached is None or cached.until <= self._runtime.monotonic():
                    cached = await self._fetch_document(url, member_id)
                    self._store_in_cache(client_id, cached)
        finally:
            if not lock.locked():
                self._locks.pop(client_id, None)
        if isinstance(cached.result, WorkspaceError):
            raise build_unknown_client_error(cached.result.detail)
        return cached.result

    def _store_in_cache(self, client_id: str, cached: _CachedDocument) -> None:
        self._cache[client_id] = cached
        self._cache.move_to_end(client_id)
        if len(self._cache) > _CACHED:
            self._cache.popitem(last=False)

    async def _fetch_document(self, url: OutboundUrl, member_id: str) -> _CachedDocument:
        self._enforce_fetch_limits(url.host, member_id)
        request = OutboundRequest(
            url, headers={"Accept": "application/json"}, seconds=FETCH_SECONDS, max_bytes=MAX_BYTES, https_only=True
        )
        try:
            # The limit of the port ends with the status of the reply; the body counts here, too.
            async with asyncio.timeout(FETCH_SECONDS):
                reply = await self._http.send(request)
            client, seconds = _parse_client_document(url, reply), _read_cache_seconds(reply.headers)
        except (AddressRefusedError, OutboundFailedError) as error:
            return self._build_cached_failure(error.reason)
        except TimeoutError:
            return self._build_cached_failure(
                f"The client metadata document was not received within {FETCH_SECONDS:.0f} seconds."
            )
        except ValueError as error:
            return self._build_cached_failure(str(error))
        return _CachedDocument(client, self._runtime.monotonic() + seconds)

    def _build_cached_failure(self, reason: str) -> _CachedDocument:
        error = build_unknown_client_error(f"The metadata document of the client cannot be used: {reason}")
        return _CachedDocument(error, self._runtime.monotonic() + FAILURE_SECONDS)

    def _enforce_fetch_limits(self, host_name: str, member_id: str) -> None:
        """Count a request for a metadata document; reject it if the member, or all members, sent too many.

        Raises:
            WorkspaceError: THROTTLED ``RATE_LIMITED``.
        """
        at = self._runtime.monotonic()
        while self._fetches and self._fetches[0].at <= at - _WINDOW_SECONDS:
            self._fetches.popleft()
        of_member = [fetch for fetch in self._fetches if fetch.member_id == member_id]
        # A member who uses up the limit must not prevent others from consenting to clients.
        if _exceeds_limits(of_member, host_name, 1) or _exceeds_limits(self._fetches, host_name, MEMBERS_AT_LIMIT):
            detail = "Too many metadata documents of clients were requested; retry after the stated time."
            raise WorkspaceError(Kind.THROTTLED, "RATE_LIMITED", detail, retryAfter=int(_WINDOW_SECONDS))
        self._fetches.append(_Fetch(at, host_name, member_id))


def _exceeds_limits(fetches: Collection[_Fetch], host_name: str, factor: int) -> bool:
    """Return whether one more fetch from a host would exceed the limits of a member, multiplied by a factor."""
    of_host = sum(1 for fetch in fetches if fetch.host_name == host_name)
    return of_host >= FETCHES_PER_HOST * factor or len(fetches) >= FETCHES * factor


def _parse_document_url(client_id: str) -> OutboundUrl:
    """Parse a client id, which must be an https URL with a path and without the path segments ``.`` and ``..``.

    Raises:
        WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN``.
    """
    try:
        url = parse_outbound_url(client_id)
    except AddressRefusedError as error:
        detail = f"Parameter `client_id` is neither a declared client nor a valid URL: {error.reason}"
        raise build_unknown_client_error(detail) from None
    path = urlsplit(client_id).path
    if url.scheme != "https" or path in {"", "/"} or {".", ".."} & set(path.split("/")):
        detail = "Parameter `client_id` must be the id of a declared client, or an https URL with a path."
        raise build_unknown_client_error(detail)
    return url


def _parse_client_document(url: OutboundUrl, reply: OutboundReply) -> Client:
    """Parse the reply that contains a metadata document.

    Raises:
        ValueError: the document breaks a rule, which the message states.
    """
    if reply.status != _OK:
        raise ValueError(f"The address of the client metadata document returned the HTTP status {reply.status}.")
    if not _JSON.fullmatch(reply.headers.get("content-type", "").partition(";")[0].strip().lower()):
        raise ValueError("The Content-Type of the client metadata document must be application/json.")
    document = parse_json(reply.body)
    if not isinstance(document, dict):
        raise ValueError("The client metadata document must be a JSON object.")  # noqa: TRY004  callers catch one error
    if document.get("client_id") != url.text:
        raise ValueError("Property `client_id` of the client metadata document must be equal to its URL.")
    if document.get("token_endpoint_auth_method", "none") != "none" or "client_secret" in document:
        raise ValueError("Property `token_endpoint_auth_method` of the client metadata document must be `none`.")
    return Client(url.text, _read_client_name(url, document.get("client_name")), _read_redirect_uris(document))


def _read_redirect_uris(document: Mapping[str, Any]) -> tuple[str, ...]:
    uris = document.get("redirect_uris")
    if not isinstance(uris, list) or not 1 <= len(uris) <= _MAX_REDIRECT_URIS:
        rule = f"must be a list of 1 to {_MAX_REDIRECT_URIS} URIs"
        raise ValueError(f"Property `redirect_uris` of the client metadata document {rule}.")
    for index, uri in enumerate(uris):
        fault = find_redirect_uri_error(uri) if isinstance(uri, str) else "must be a string"
        if fault is not None:
            raise ValueError(f"Property `redirect_uris[{index}]` of the client metadata document {fault}.")
    return tuple(uris)


def _read_client_name(document_url: OutboundUrl, stated_name: object) -> str:
    """Return the display name of a client, or the host of its metadata document if its name is missing or invalid."""
    try:
        return (
            require_valid_name(stated_name)
            if isinstance(stated_name, str) and 1 <= len(stated_name) <= _MAX_NAME
            else document_url.host
        )
    except ValueError:
        return document_url.host


def _read_cache_seconds(headers: Mapping[str, str]) -> float:
    """Return the seconds for which a metadata document may be cached, by the headers of its reply."""
    directives = headers.get("cache-control", "").lower()
    found = _MAX_AGE.search(directives)
    if found is None or "no-store" in directives or "no-cache" in directives:
        return SHORTEST_SECONDS
    return min(max(float(found[1]), SHORTEST_SECONDS), LONGEST_SECONDS)
