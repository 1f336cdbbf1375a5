"""Live stream services."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.access import AccessServices
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
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


class LiveStreamServices:
    """Publishes impulses to listeners."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, access: AccessServices, queries: QueryServices
    ) -> None:
        self._backends = backends
        self._settings = backends.settings
        self._catalog = catalog
        self._access = access
        self._queries = queries

    @cached_property
    def message_service(self) -> "WebPubSub":
        """Client of the message service."""
        from shared.backends.azure.web_pubsub import WebPubSub

        configured = self._settings
        return self._backends.close_at_exit(
            WebPubSub(
                configured.web_pubsub_endpoint,
                configured.web_pubsub_hub,
                configured.web_pubsub_access_key,
                configured.managed_identity_client_id,
            )
        )

    @cached_property
    def audience(self) -> "Audience":
        """Knows the groups without listeners."""
        from shared.live_stream.audience import Audience

        return Audience(self.message_service)

    @cached_property
    def service(self) -> "LiveStream":
        """Controls access to streams."""
        from shared.live_stream.service import LiveStream

        return LiveStream(
            self._catalog.reader.current,
            self.message_service,
            self.audience,
            self._access.authenticator.resume,
            self._stream_quota,
        )

    @cached_property
    def _stream_quota(self) -> "StreamQuota":
        from shared.live_stream.stream_quota import StreamQuota

        return StreamQuota(self._stream_places, self._catalog.reader.current, self.message_service)

    @cached_property
    def _stream_places(self) -> "QuotaStore":
        if self._backends.on_azure:
            from shared.backends.azure.cosmos_places import CosmosPlaceStore

            return CosmosPlaceStore(self._backends.cosmos)
        return self._local_stream_places

    @cached_property
    def _local_stream_places(self) -> "SqlitePlaceStore":
        from shared.backends.embedded.places import SqlitePlaceStore

        return SqlitePlaceStore(self._backends.limits_file)

    async def release_places(self) -> None:
        """Free the places of all streams; for the start of a local host, which has no streams."""
        if not self._backends.on_azure:
            from shared.fair_use.ports import Purpose

            await self._local_stream_places.clear(Purpose.STREAMS)

    @cached_property
    def catch_up(self) -> "CatchUp":
        """Replays impulses to streams that are already live."""
        from shared.live_stream.history import History
        from shared.live_stream.replay import CatchUp

        return CatchUp(self._catalog.reader.current, History(self._queries.engine), self.message_service)

    @cached_property
    def publisher(self) -> "LivePublisher":
        """Publishes impulses."""
        # On Azure, other instances admit listeners, too, so every group may have some.
        from shared.live_stream.publishing import LivePublisher

        if self._backends.on_azure:
            return LivePublisher(self.message_service, None)
        return LivePublisher(self.message_service, self.audience, shares_processor=True)

    @cached_property
    def events(self) -> "EventSource":
        """Authenticates calls of the message service."""
        from shared.auth.entra import EntraTokens, ManagedIdentityTokens, list_audiences
        from shared.live_stream.event_sources import IdentifiedEvents, SignedEvents

        configured = self._settings
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
