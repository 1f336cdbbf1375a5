"""Where and as what the web console signs people in with their organisation's account."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from shared.settings import Settings


@dataclass(frozen=True, slots=True)
class ConsoleSignIn:
    """The public client of the web console (OAuth 2.0 authorization code flow with PKCE, RFC 7636); it has no secret.

    Attributes:
        address: of the tenant's endpoints, below which Entra ID has ``authorize`` and ``token``.
        client_id: of the console's app registration.
        scope: what is asked for: who signs in, and a token for this service's audience.
    """

    address: str
    client_id: str
    scope: str

    @property
    def origin(self) -> str:
        """The origin that the console exchanges the code with."""
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    def to_json(self) -> Mapping[str, str]:
        """Return what the page is told."""
        return {
            "authorizeUrl": f"{self.address}/authorize",
            "tokenUrl": f"{self.address}/token",
            "clientId": self.client_id,
            "scope": self.scope,
        }


def build_console_sign_in(settings: Settings) -> ConsoleSignIn | None:
    """Return how the console signs people in, None unless tenant, audience and the console's client are all named."""
    if not (settings.entra_tenant_id and settings.entra_audience and settings.entra_console_client_id):
        return None
    address = f"{settings.entra_authority.rstrip('/')}/{settings.entra_tenant_id}/oauth2/v2.0"
    return ConsoleSignIn(address, settings.entra_console_client_id, f"openid {settings.entra_audience}/.default")
