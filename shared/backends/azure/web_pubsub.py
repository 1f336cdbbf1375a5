"""Message service for live streams over the SDK azure-messaging-webpubsubservice: Azure Web PubSub, or its emulator.

The adapter has never run against Azure.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Protocol, cast

from shared.backends.azure.identity import create_app_credential
from shared.errors import Kind, WorkspaceError
from shared.interpreter import load_modules
from shared.live_stream.ports import OpenStream
from shared.observability.logs import fields, get_logger
from shared.runtime import SYSTEM_RUNTIME, Runtime

if TYPE_CHECKING:
    from azure.core.credentials import AzureKeyCredential
    from azure.core.pipeline.policies import SansIOHTTPPolicy
    from azure.identity.aio import DefaultAzureCredential

_LOGGER = get_logger("web_pubsub")
_SCOPE = "https://webpubsub.azure.com/.default"
_TOKEN_SECONDS = 60.0
_TOKEN_REUSED_SECONDS = 30.0
_MOST_TOKENS = 1_000
_TIMEOUT_SECONDS = 10.0
_CONNECT_SECONDS = 5.0
_CONNECTIONS = 32
_THROTTLED = 429
_SERVER_ERROR = 500
_NOT_FOUND = 404
_MODULES = ("aiohttp", "azure.core.pipeline.transport", "azure.messaging.webpubsubservice.aio", "jwt", "yarl")
"""Modules of the SDK; a worker thread imports them, because the import takes a quarter of a second."""


class WebPubSubClient(Protocol):
    """The methods of the SDK's ``WebPubSubServiceClient`` that the adapter uses; one client serves one hub."""

    async def send_to_group(self, group: str, message: Any, *, content_type: str) -> None:
        """Send a message to all connections of a group."""
        ...

    async def send_to_connection(self, connection_id: str, message: Any, *, content_type: str) -> None:
        """Send a message to one connection."""
        ...

    async def connection_exists(self, connection_id: str) -> bool:
        """Return whether a connection is open."""
        ...

    async def group_exists(self, group: str) -> bool:
        """Return whether a group has at least one connection."""
        ...

    async def close_connection(self, connection_id: str, *, reason: str) -> None:
        """Close a connection."""
        ...

    async def get_client_access_token(self, *, user_id: str, minutes_to_expire: int) -> dict[str, str]:
        """Return an access token with which a user can connect, and a URL that contains the token."""
        ...

    def list_connections(self, *, group: str) -> AsyncIterator[Any]:
        """Yield the connections of a group."""
        ...

    async def close(self) -> None:
        """Close the client."""
        ...


class WebPubSub:
    """Implementation of MessageService: sends live messages to WebSocket clients through Azure Web PubSub.

    Args:
        endpoint: URL of the Web PubSub service; empty if the deployment has no live streams.
        hub: name of the hub.
        access_key: key that signs requests; empty to sign in with the app's identity.
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        timeout_seconds: timeout in seconds of a request, and of each page of a list.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        endpoint: str,
        hub: str,
        access_key: str = "",
        client_id: str = "",
        *,
        timeout_seconds: float = _TIMEOUT_SECONDS,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._endpoint = endpoint
        self._hub = hub
        self._access_key = access_key
        self._client_id = client_id
        self._seconds = timeout_seconds
        self._client: WebPubSubClient | None = None
        self._resources: list[Any] = []
        self._runtime = runtime

    async def publish(self, group: str, text: bytes) -> None:
        with _convert_azure_errors(sends_message=True):
            # As bytes, because azure-core uses the number of characters of a str as Content-Length.
            await self._await_with_timeout(
                (await self._get_or_open_client()).send_to_group(group, text, content_type="text/plain")
            )

    async def send(self, connection_id: str, text: bytes) -> None:
        """Send one text message to a WebSocket connection; a closed connection is ignored."""
        with _convert_azure_errors(sends_message=True), _ignore_closed_stream():
            await self._await_with_timeout(
                (await self._get_or_open_client()).send_to_connection(connection_id, text, content_type="text/plain")
            )

    async def is_open(self, connection_id: str) -> bool:
        """Return whether a WebSocket connection with this id is open."""
        with _convert_azure_errors():
            return await self._await_with_timeout((await self._get_or_open_client()).connection_exists(connection_id))

    async def has_streams(self, group: str) -> bool:
        with _convert_azure_errors():
            return await self._await_with_timeout((await self._get_or_open_client()).group_exists(group))

    async def iterate_streams(self, group: str) -> AsyncIterator[OpenStream]:
        with _convert_azure_errors():
            async for member in (await self._get_or_open_client()).list_connections(group=group):
                yield OpenStream(str(member.connection_id), str(member.user_id or ""))

    async def disconnect(self, connection_id: str, reason: str) -> None:
        with _convert_azure_errors(sends_message=True), _ignore_closed_stream():
            await self._await_with_timeout(
                (await self._get_or_open_client()).close_connection(connection_id, reason=reason)
            )

    async def create_stream_url(self, user_id: str, expires_at: datetime) -> str:
        minutes = max(1, round((expires_at - self._runtime.now()) / timedelta(minutes=1)))
        with _convert_azure_errors():
            client = await self._get_or_open_client()
            token = await self._await_with_timeout(
                client.get_client_access_token(user_id=user_id, minutes_to_expire=minutes)
            )
        return token["url"]

    async def close(self) -> None:
        self._client, resources, self._resources = None, self._resources, []
        for each in resources:
            await each.close()

    async def _await_with_timeout[T](self, call: Awaitable[T]) -> T:
        async with asyncio.timeout(self._seconds):
            return await call

    async def _get_or_open_client(self) -> WebPubSubClient:
        if self._client is None:
            if not self._endpoint:
                raise _build_unavailable_error("This deployment has no live stream; set WEB_PUBSUB_ENDPOINT.")
            await load_modules(self._runtime, *_MODULES)
        if self._client is None:
            self._client = self._create_client()
        return self._client

    def _create_client(self) -> WebPubSubClient:
        # Imported on first use (see _MODULES), because a deployment without live streams does not need them.
        import aiohttp  # noqa: PLC0415
        from azure.core.pipeline.policies import AsyncBearerTokenCredentialPolicy  # noqa: PLC0415
        from azure.core.pipeline.transport import AioHttpTransport  # noqa: PLC0415
        from azure.messaging.webpubsubservice.aio import WebPubSubServiceClient  # noqa: PLC0415

        # The SDK's default session reads proxies and .netrc for each call, which costs more than the call.
        session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=_CONNECTIONS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
        )
        transport = AioHttpTransport(
            session=session,
            session_owner=False,
            use_env_settings=False,
            connection_timeout=_CONNECT_SECONDS,
            read_timeout=self._seconds,
        )
        credential, key_policy = self._create_credential_and_key_policy()
        # The publisher retries, so the SDK must not. Tracing and logging of each message would cost a third more.
        policies = [key_policy or AsyncBearerTokenCredentialPolicy(cast("DefaultAzureCredential", credential), _SCOPE)]
        client = WebPubSubServiceClient(self._endpoint, self._hub, credential, policies=policies, transport=transport)
        self._resources = [client, session, *([] if key_policy else [credential])]
        return cast("WebPubSubClient", client)

    def _create_credential_and_key_policy(
        self,
    ) -> "tuple[AzureKeyCredential | DefaultAzureCredential, SansIOHTTPPolicy[Any, Any] | None]":
        """Return the credential of the SDK's client, and the policy that signs requests.

        Without an access key, the policy is None, and the credential is that of the app's identity.
        """
        from azure.core.credentials import AzureKeyCredential  # noqa: PLC0415  see _MODULES

        if self._access_key:
            return AzureKeyCredential(self._access_key), _create_key_policy(self._access_key, self._runtime)
        return create_app_credential(self._client_id), None


def _create_key_policy(access_key: str, runtime: Runtime) -> "SansIOHTTPPolicy[Any, Any]":
    """Create the SDK policy that signs requests with an access key; a signed token is reused for half its lifetime."""
    import jwt  # noqa: PLC0415  see _MODULES
    from azure.core.pipeline import PipelineRequest  # noqa: PLC0415  see _MODULES
    from azure.core.pipeline.policies import SansIOHTTPPolicy  # noqa: PLC0415  see _MODULES
    from yarl import URL  # noqa: PLC0415  see _MODULES

    class KeyPolicy(SansIOHTTPPolicy[Any, Any]):
        """SDK policy that adds the header ``Authorization`` with a token for the request's URL, signed with HS256."""

        def __init__(self) -> None:
            self._tokens: dict[str, tuple[float, str]] = {}

        def on_request(self, request: PipelineRequest[Any]) -> None:
            """Add the header ``Authorization`` to a request of the SDK."""
            # Tokens expire by the wall clock. The monotonic clock stops while the computer sleeps.
            url, moment = request.http_request.url, runtime.now().timestamp()
            signed_at, header = self._tokens.get(url, (0.0, ""))
            if not 0 <= moment - signed_at < _TOKEN_REUSED_SECONDS:
                # The audience must be the URL that the transport sends, which escapes less than the SDK.
                claims = {"aud": str(URL(url)), "exp": moment + _TOKEN_SECONDS}
                token = jwt.encode(claims, access_key, algorithm="HS256")
                signed_at, header = moment, f"Bearer {token}"
                if len(self._tokens) >= _MOST_TOKENS:
                    self._tokens.clear()
                self._tokens[url] = (signed_at, header)
            request.http_request.headers["Authorization"] = header

    return KeyPolicy()


@contextmanager
def _convert_azure_errors(*, sends_message: bool = False) -> Iterator[None]:
    """Context manager: convert the SDK's exceptions to the errors that the MessageService port documents.

    Args:
        sends_message: True if the call sends a text, which Web PubSub can reject.
    """
    try:
        yield
    except WorkspaceError:
        raise
    except (OSError, TimeoutError) as error:
        raise _build_unavailable_error("Azure Web PubSub does not respond; retry later.") from error
    except Exception as error:
        # Not earlier, because this import loads the SDK: see _MODULES.
        from azure.core.exceptions import AzureError, HttpResponseError  # noqa: PLC0415

        if not isinstance(error, AzureError):
            raise
        status = (error.status_code or _SERVER_ERROR) if isinstance(error, HttpResponseError) else _SERVER_ERROR
        _LOGGER.warning("Azure Web PubSub did not perform a call", extra=fields(status=status))
        if not sends_message or status >= _SERVER_ERROR or status in (_THROTTLED, _NOT_FOUND):
            raise _build_unavailable_error("Azure Web PubSub does not respond; retry later.") from error
        detail = f"Azure Web PubSub rejected a request of this service with status {status}; do not retry it."
        raise WorkspaceError(Kind.INVALID, "LIVE_MESSAGE_REFUSED", detail) from error


@contextmanager
def _ignore_closed_stream() -> Iterator[None]:
    """Context manager: ignore a reply 404 of Web PubSub, because it means that the stream is closed."""
    try:
        yield
    except Exception as error:
        if getattr(error, "status_code", None) != _NOT_FOUND:
            raise


def _build_unavailable_error(detail: str) -> WorkspaceError:
    return WorkspaceError(Kind.UNAVAILABLE, "LIVE_STREAM_UNAVAILABLE", detail)
