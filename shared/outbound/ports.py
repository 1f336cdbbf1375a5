"""Port of the HTTP client for URLs that users chose."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from shared.outbound.addresses import OutboundUrl


class OutboundFailedError(Exception):
    """Raised if a request got no reply: name resolution, connection or TLS failed, or a limit was exceeded.

    Args:
        reason: one sentence for a person; contains no path, query or password of the URL.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class OutboundRequest:
    """HTTP request to a URL that a user chose.

    Attributes:
        url: target of the request.
        method: HTTP method.
        headers: headers of the request.
        body: body of the request.
        seconds: maximum seconds until the status of the reply, including name resolution.
        max_bytes: maximum size of the reply's body in bytes.
        truncate: True to cut off a body that is too long or too slow; False to fail.
        https_only: True to reject plain http even in allowed networks.
    """

    url: OutboundUrl
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    seconds: float = 15.0
    max_bytes: int = 5_120
    truncate: bool = False
    https_only: bool = False


@dataclass(frozen=True, slots=True)
class OutboundReply:
    """HTTP reply to an outbound request.

    Attributes:
        status: HTTP status. Redirects are not followed.
        headers: headers by their names in lowercase; of a repeated header, the first value.
        body: body of at most ``max_bytes`` bytes.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes


class OutboundHttp(Protocol):
    """HTTP client that checks an IP address before it connects to it, and uses exactly this address.

    Names are resolved for each new connection. TLS certificates are verified for the host name. Redirects, proxies and
    cookies are not used, and compressed bodies are not unpacked.
    """

    async def require_allowed_host(self, url: OutboundUrl, *, https_only: bool = False) -> None:
        """Resolve the host of a URL and check its IP addresses, without connecting.

        Raises:
            AddressRefusedError: an address is not allowed, or the name does not resolve.
        """
        ...

    async def send(self, request: OutboundRequest) -> OutboundReply:
        """Send a request and return the reply.

        Raises:
            AddressRefusedError: an address is not allowed; nothing was sent.
            OutboundFailedError: no complete reply was received.
        """
        ...

    async def close(self) -> None:
        """Close all connections."""
        ...
