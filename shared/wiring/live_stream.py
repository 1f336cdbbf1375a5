"""Live stream services."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.access import AccessServices, LimitServices
from shared.wiring.queries import QueryServices

if TYPE_CHECKING:
    from shared.backends.azure.web_pubsub import WebPubSub
    from shared.backends.embedded.places import SqlitePlaceStore
    from shared.fair_use.ports import QuotaStore
    from shared.live_stream.audience import Audience
    from shared.live_stream.ports import EventSource
    from shared.live_stream.publishing import LivePublisher
    from shared.live_stream.replay import CatchUp
    from shared.live_stream.service import LiveStream
    from shared.live_stream.stream_quota import StreamQuota


class LiveStreamServices(AccessServices, QueryServices, LimitServices):
    """Publishes impulses to listeners."""

    @cached_property
    def message_service(self) -> "WebPubSub":
        """Client of the message service."""
        from shared.backends.azure.web_pubsub import WebPubSub

        configured = self.settings
        return self.close_at_exit(
            WebPubSub(
                configured.web_pubsub_endpoint,
                configured.web_pubsub_hub,
                configured.web_pubsub_access_key,
                configured.managed_identity_client_id,
            )
        )

    @cached_property
    def live_audience(self) -> "Audience":
        """Knows the groups without listeners."""
        from shared.live_stream.audience import Audience

        return Audience(self.message_service)

    @cached_property
    def live_stream(self) -> "LiveStream":
        """Controls access to streams."""
        from shared.live_stream.service import LiveStream

        return LiveStream(
            self.catalog.current,
            self.message_service,
            self.live_audience,
            self.authenticator.resume,
            self._stream_quota,
        )

    @cached_property
    def _stream_quota(self) -> "StreamQuota":
        from shared.live_stream.stream_quota import StreamQuota

        return StreamQuota(self._stream_places, self.catalog.current, self.message_service)

    @cached_property
    def _stream_places(self) -> "QuotaStore":
        if self.on_azure:
            from shared.backends.azure.cosmos_places import CosmosPlaceStore

            return CosmosPlaceStore(self.cosmos)
        return self._local_stream_places

    @cached_property
    def _local_stream_places(self) -> "SqlitePlaceStore":
        from shared.backends.embedded.places import SqlitePlaceStore

        return SqlitePlaceStore(self._limits_file)

    async def release_stream_places(self) -> None:
        """Free the places of all streams; for the start of a local host, which has no streams."""
        if not self.on_azure:
            from shared.fair_use.ports import Purpose

            await self._local_stream_places.clear(Purpose.STREAMS)

    @cached_property
    def live_catch_up(self) -> "CatchUp":
        """Replays impulses to streams that are already live."""
        from shared.live_stream.history import History
        from shared.live_stream.replay import CatchUp

        return CatchUp(self.catalog.current, History(self.engine), self.message_service)

    @cached_property
    def live_publisher(self) -> "LivePublisher":
        """Publishes impulses."""
        # On Azure, other instances admit listeners, too, so every group may have some.
        from shared.live_stream.publishing import LivePublisher

        if self.on_azure:
            return LivePublisher(self.message_service, None)
        return LivePublisher(self.message_service, self.live_audience, shares_processor=True)

    @cached_property
    def live_events(self) -> "EventSource":
        """Authenticates calls of the message service."""
        from shared.auth.entra import EntraTokens, ManagedIdentityTokens, list_audiences
        from shared.live_stream.event_sources import IdentifiedEvents, SignedEvents

        configured = self.settings
        if configured.web_pubsub_access_key:
            return SignedEvents(configured.web_pubsub_access_key)
        from shared.backends.open_id import HttpOpenIdProvider

        tenant = configured.entra_tenant_id
        audiences = list_audiences(configured.web_pubsub_audience) if configured.web_pubsub_audience else ()

        def verifier(path: str) -> EntraTokens:
            address = f"{configured.entra_authority.rstrip('/')}/{tenant}{path}/.well-known/openid-configuration"
            return EntraTokens(HttpOpenIdProvider(address), tenant, *audiences)

        tokens = ManagedIdentityTokens({"1.0": verifier(""), "2.0": verifier("/v2.0")})
        return IdentifiedEvents(configured.web_pubsub_endpoint, tokens, configured.web_pubsub_identity)
