"""Services of live streams, which send new telemetry to WebSocket clients."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.access import AccessServices
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.queries import QueryServices

if TYPE_CHECKING:
    from shared.backends.azure.web_pubsub import WebPubSub
    from shared.backends.embedded.quotas import SqliteQuotaStore
    from shared.fair_use.ports import QuotaStore
    from shared.live_stream.audience import Audience
    from shared.live_stream.ports import EventSource, MessageSender
    from shared.live_stream.publishing import LivePublisher
    from shared.live_stream.replay import CatchUp
    from shared.live_stream.service import LiveStream
    from shared.live_stream.stream_quota import StreamQuota


class LiveStreamServices:
    """Publishes new telemetry events (impulses) to connected clients (listeners)."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, access: AccessServices, queries: QueryServices
    ) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._access = access
        self._queries = queries
        self._direct_sender: MessageSender | None = None

    def set_message_sender(self, sender: "MessageSender") -> None:
        """Set a sender in this process that sends new telemetry events instead of Web PubSub's HTTP interface.

        The local host calls this before the first request.
        """
        self._direct_sender = sender

    @cached_property
    def message_service(self) -> "WebPubSub":
        """Client of the service that delivers live messages: Azure Web PubSub, or its local emulator."""
        from shared.backends.azure.web_pubsub import WebPubSub

        configured = self._settings
        return self._backends.register_for_closing(
            WebPubSub(
                configured.web_pubsub_endpoint,
                configured.web_pubsub_hub,
                configured.web_pubsub_access_key,
                configured.managed_identity_client_id,
                runtime=self._backends.runtime,
            )
        )

    @cached_property
    def audience(self) -> "Audience":
        """Cache that remembers which message groups have listeners, so that empty groups get no messages."""
        from shared.live_stream.audience import Audience

        return Audience(self._direct_sender or self.message_service, runtime=self._backends.runtime)

    @cached_property
    def service(self) -> "LiveStream":
        """Service that controls which callers may open which streams."""
        from shared.live_stream.service import LiveStream

        return LiveStream(
            self._catalog.reader.get_catalog,
            self.message_service,
            self.audience,
            self._access.authenticator.recheck_token_access,
            self._stream_quota,
            runtime=self._backends.runtime,
        )

    @cached_property
    def _stream_quota(self) -> "StreamQuota":
        from shared.live_stream.stream_quota import StreamQuota

        return StreamQuota(
            self._stream_quota_store,
            self._catalog.reader.get_catalog,
            self.message_service,
            runtime=self._backends.runtime,
        )

    @cached_property
    def _stream_quota_store(self) -> "QuotaStore":
        if self._backends.uses_azure:
            from shared.backends.azure.cosmos_quotas import CosmosQuotaStore

            return CosmosQuotaStore(self._backends.cosmos)
        return self._local_stream_quota_store

    @cached_property
    def _local_stream_quota_store(self) -> "SqliteQuotaStore":
        from shared.backends.embedded.quotas import SqliteQuotaStore

        return SqliteQuotaStore(self._backends.limits_file)

    async def release_stream_reservations(self) -> None:
        """Delete the quota reservations of all live streams; do nothing on Azure.

        A local host calls this when it starts, because no stream is open then.
        """
        if not self._backends.uses_azure:
            from shared.fair_use.ports import Purpose

            await self._local_stream_quota_store.delete_all_reservations(Purpose.STREAMS)

    @cached_property
    def catch_up(self) -> "CatchUp":
        """Service that sends earlier telemetry events to streams that are already live."""
        from shared.live_stream.history import History
        from shared.live_stream.replay import CatchUp

        return CatchUp(
            self._catalog.reader.get_catalog,
            History(self._queries.engine, runtime=self._backends.runtime),
            self.message_service,
            runtime=self._backends.runtime,
        )

    @cached_property
    def publisher(self) -> "LivePublisher":
        """Service that publishes new telemetry events."""
        # On Azure, other instances admit listeners, too, so every group may have some.
        from shared.live_stream.publishing import LivePublisher

        if self._backends.uses_azure:
            return LivePublisher(self.message_service, None, runtime=self._backends.runtime)
        return LivePublisher(
            self._direct_sender or self.message_service,
            self.audience,
            shares_processor=True,
            runtime=self._backends.runtime,
        )

    @cached_property
    def events(self) -> "EventSource":
        """Authenticator of the events that Web PubSub sends to this app."""
        from shared.auth.entra import EntraTokens, ManagedIdentityTokens, get_client_id_and_app_id_uri
        from shared.live_stream.event_sources import IdentifiedEvents, SignedEvents

        configured = self._settings
        if configured.web_pubsub_access_key:
            return SignedEvents(configured.web_pubsub_access_key)
        from shared.backends.outbound_http import HttpOpenIdProvider

        tenant = configured.entra_tenant_id
        audiences = (
            get_client_id_and_app_id_uri(configured.web_pubsub_audience) if configured.web_pubsub_audience else ()
        )

        def build_token_verifier(version_path: str) -> EntraTokens:
            address = (
                f"{configured.entra_authority.rstrip('/')}/{tenant}{version_path}/.well-known/openid-configuration"
            )
            return EntraTokens(HttpOpenIdProvider(address, runtime=self._backends.runtime), tenant, *audiences)

        tokens = ManagedIdentityTokens({"1.0": build_token_verifier(""), "2.0": build_token_verifier("/v2.0")})
        return IdentifiedEvents(configured.web_pubsub_endpoint, tokens, configured.web_pubsub_identity)
