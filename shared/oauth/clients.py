"""OAuth clients: declared in the workspace document, or described by a metadata document at their own address."""

from dataclasses import dataclass
from typing import Final, Protocol

from shared.catalog.reader import CatalogReader
from shared.errors import Kind, WorkspaceError
from shared.validation.redirect_uris import is_redirect_allowed

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
    def is_declared(self) -> bool:
        """True if the workspace document declares the client; an administrator has then checked the client's name."""
        return not self.client_id.startswith(URL_PREFIX)

    def find_redirect_uri(self, requested: str | None) -> str:
        """Return the requested redirect URI if the client declares it; without a requested one, the only declared URI.

        Raises:
            WorkspaceError: INVALID ``REDIRECT_URI_MISMATCH``.
        """
        if requested is None and len(self.redirect_uris) == 1:
            return self.redirect_uris[0]
        if requested is None or not any(is_redirect_allowed(requested, declared) for declared in self.redirect_uris):
            detail = "Parameter `redirect_uri` must be one of the redirect URIs of the client."
            raise WorkspaceError(
                Kind.INVALID, "REDIRECT_URI_MISMATCH", detail, error="invalid_request", error_description=detail
            )
        return requested


class ClientDocuments(Protocol):
    """Source of the OAuth clients that metadata documents describe."""

    async def load(self, client_id: str) -> Client:
        """Return the client that the metadata document at an address describes.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN`` if there is no valid document.
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

    async def find_declared(self, client_id: str) -> Client | None:
        """Return the declared client with an id; None if the id can only be the address of a metadata document.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN``.
        """
        if client_id.startswith(URL_PREFIX):
            return None
        declared = (await self._catalog.current()).oauth_clients.get(client_id)
        if declared is None:
            raise unknown_client_error("Parameter `client_id` is not the id of a client of this workspace.")
        return Client(declared.id, declared.name, declared.redirect_uris)

    async def find(self, client_id: str) -> Client:
        """Return a client: a declared client, or the client that the metadata document at the id describes.

        Raises:
            WorkspaceError: INVALID ``OAUTH_CLIENT_UNKNOWN``.
        """
        return await self.find_declared(client_id) or await self._documents.load(client_id)


def unknown_client_error(detail: str) -> WorkspaceError:
    """Build the error for a client id without a client; its reply must not be a redirect, for no URI is trusted."""
    return WorkspaceError(
        Kind.INVALID, "OAUTH_CLIENT_UNKNOWN", detail, error="invalid_client", error_description=detail
    )
