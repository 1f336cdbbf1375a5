"""Identity with which the app signs in to Azure services."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 10.0
RETRIES: Final = 2
"""Number of retries of a sign-in; with the SDK's defaults (300 s, ten retries) a failed sign-in takes too long."""


def create_app_credential(
    client_id: str, *, connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS
) -> "DefaultAzureCredential":
    """Return the Azure credential of the app's identity; locally, the credential of the signed-in developer.

    Args:
        client_id: client id of the user-assigned identity; empty for the system-assigned identity.
        connect_seconds: timeout in seconds for connecting to the token endpoint.
        read_seconds: timeout in seconds for a reply of the token endpoint.
    """
    # The import takes 0.2 s, which a start without Azure services does not need.
    from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415

    return DefaultAzureCredential(
        managed_identity_client_id=client_id or None,
        connection_timeout=connect_seconds,
        read_timeout=read_seconds,
        retry_total=RETRIES,
    )
