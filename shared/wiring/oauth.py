"""Services of the OAuth 2.1 authorization server."""

from functools import cached_property
from typing import TYPE_CHECKING

from shared.wiring.access import AccessServices
from shared.wiring.backends import Backends
from shared.wiring.catalog import CatalogServices
from shared.wiring.outbound import OutboundServices

if TYPE_CHECKING:
    from shared.oauth.authorization import AuthorizationService
    from shared.oauth.client_credentials import ClientCredentialsGrant
    from shared.oauth.errors import RefusalRecorder
    from shared.oauth.grant_service import GrantService
    from shared.oauth.revocation import TokenRevocation


class OAuthServices:
    """Issues access tokens to OAuth clients."""

    def __init__(
        self, backends: Backends, catalog: CatalogServices, access: AccessServices, outbound: OutboundServices
    ) -> None:
        self._backends = backends
        self._catalog = catalog
        self._access = access
        self._outbound = outbound

    @cached_property
    def client_credentials(self) -> "ClientCredentialsGrant":
        """Grant type ``client_credentials``, which issues tokens to services."""
        from shared.oauth.client_credentials import ClientCredentialsGrant

        return ClientCredentialsGrant(self._access.authenticator, self._access.token_issuer)

    @cached_property
    def authorization(self) -> "AuthorizationService":
        """Service that checks authorization requests and records the members' consents."""
        from shared.oauth.authorization import AuthorizationService
        from shared.oauth.clients import ClientDirectory, FetchedClientDocuments

        runtime = self._backends.runtime
        documents = FetchedClientDocuments(self._outbound.http, runtime=runtime)
        return AuthorizationService(
            ClientDirectory(self._catalog.reader, documents),
            self._access.grant_store,
            self._access.lineage,
            self._access.access_audit,
            runtime=runtime,
        )

    @cached_property
    def grants(self) -> "GrantService":
        """Service that issues the tokens of OAuth grants, to which members consented."""
        from shared.oauth.grant_service import GrantService

        return GrantService(
            self._access.grant_store,
            self._access.grant_ender,
            self._access.token_issuer,
            self._access.credential_store,
            self._access.credentials,
            self._access.directory,
            runtime=self._backends.runtime,
        )

    @cached_property
    def revocation(self) -> "TokenRevocation":
        """Service that revokes tokens at the request of their clients."""
        from shared.oauth.revocation import TokenRevocation

        return TokenRevocation(
            self._access.authenticator,
            self._access.token_issuer,
            self._access.credential_store,
            self.client_credentials,
            self.grants,
        )

    @cached_property
    def refusals(self) -> "RefusalRecorder":
        """Service that counts refused requests of clients, and records them as audit events."""
        from shared.oauth.errors import RefusalRecorder

        return RefusalRecorder(self._access.access_audit, runtime=self._backends.runtime)
