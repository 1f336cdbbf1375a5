"""Sign-in of the web console with the organisation's account.

It is a module of its own, without the token libraries, because the pages of the console import it at start.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class ConsoleSignIn:
    """Public client of the web console (OAuth 2.0 authorization code flow with PKCE, RFC 7636); it has no secret.

    Attributes:
        address: base URL of the tenant's ``authorize`` and ``token`` endpoints.
        client_id: client id of the console's app registration.
        scope: requested scopes: the user's identity, and a token for this service's audience.
    """

    address: str
    client_id: str
    scope: str

    @property
    def origin(self) -> str:
        """Origin of the token endpoint."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    def to_json(self) -> Mapping[str, str]:
        """Return the settings for the console's page."""
        return {
            "authorizeUrl": f"{self.address}/authorize",
            "tokenUrl": f"{self.address}/token",
            "clientId": self.client_id,
            "scope": self.scope,
        }


def build_console_sign_in(settings: Settings) -> ConsoleSignIn | None:
    """Return the console's client; None unless tenant, audience and client id are all configured."""
    if not (settings.entra_tenant_id and settings.entra_audience and settings.entra_console_client_id):
        return None
    address = f"{settings.entra_authority.rstrip('/')}/{settings.entra_tenant_id}/oauth2/v2.0"
    return ConsoleSignIn(address, settings.entra_console_client_id, f"openid {settings.entra_audience}/.default")
