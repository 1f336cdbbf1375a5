"""The identity that the app signs in with at Azure's services, and how long its token endpoint may take."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from azure.identity.aio import DefaultAzureCredential

CONNECT_SECONDS: Final = 5.0
READ_SECONDS: Final = 10.0
RETRIES: Final = 2
"""The SDK's own waits are 300 s and ten retries."""


def app_identity(
    client_id: str, *, connect_seconds: float = CONNECT_SECONDS, read_seconds: float = READ_SECONDS
) -> "DefaultAzureCredential":
    """Return the app's identity; on a desk, what the developer is signed in with.

    Args:
        client_id: of the user-assigned identity; empty for the system-assigned one.
        connect_seconds: how long a connection to the token endpoint may take.
        read_seconds: how long that endpoint may be silent.
    """
    # Costs a start that never signs in 0.2 s.
    from azure.identity.aio import DefaultAzureCredential  # noqa: PLC0415

    return DefaultAzureCredential(
        managed_identity_client_id=client_id or None,
        connection_timeout=connect_seconds,
        read_timeout=read_seconds,
        retry_total=RETRIES,
    )
