"""Rules for the URLs and IP addresses that the service may call for users (protection against request forgery)."""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from hashlib import sha256
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import SplitResult, urlsplit

MAX_URL_LENGTH: Final = 2_048
HTTPS_PORT: Final = 443
HTTP_PORT: Final = 80
LOWEST_HIGH_PORT: Final = 1_024

type Address = IPv4Address | IPv6Address
type Network = IPv4Network | IPv6Network

ALWAYS_REFUSED: Final[frozenset[Address]] = frozenset(
    map(
        ip_address,
        (
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "168.63.129.16",
            "100.100.100.200",
            "fd00:ec2::23",
            "fd00:ec2::254",
            "fd20:ce::254",
        ),
    )
)
"""Metadata addresses of cloud platforms, which return credentials or machine settings; no setting allows them."""

_NOT_PUBLIC: Final[tuple[Network, ...]] = tuple(
    map(
        ip_network,
        (
            "0.0.0.0/8",  # this network
            "10.0.0.0/8",  # private
            "100.64.0.0/10",  # shared
            "127.0.0.0/8",  # loopback
            "169.254.0.0/16",  # link-local
            "172.16.0.0/12",  # private
            "192.0.0.0/24",  # protocol assignments
            "192.0.2.0/24",  # documentation
            "192.31.196.0/24",  # AS112
            "192.52.193.0/24",  # AMT
            "192.88.99.0/24",  # 6to4 relay
            "192.168.0.0/16",  # private
            "192.175.48.0/24",  # AS112
            "198.18.0.0/15",  # benchmarking
            "198.51.100.0/24",  # documentation
            "203.0.113.0/24",  # documentation
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, broadcast
        ),
    )
)
_EMBEDDING: Final[tuple[IPv6Network, ...]] = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # IPv4-compatible
            "::ffff:0:0/96",  # IPv4-mapped
            "::ffff:0:0:0/96",  # IPv4-translated
            "64:ff9b::/96",  # NAT64
            "64:ff9b:1::/48",  # local NAT64
        ),
    )
)
"""Networks whose addresses can contain an IPv4 address in their last 32 bits."""
_PUBLIC_IPV6: Final = IPv6Network("2000::/3")
"""Global unicast addresses. Other IPv6 addresses are local, embed an IPv4 address, or are not assigned."""
_NOT_PUBLIC_IPV6: Final[tuple[Network, ...]] = tuple(
    map(
        ip_network,
        (
            "2001::/23",  # protocol assignments: Teredo, benchmarking, ORCHID
            "2001:db8::/32",  # documentation
            "2002::/16",  # 6to4
            "2620:4f:8000::/48",  # AS112
            "3fff::/20",  # documentation
        ),
    )
)
_VISIBLE: Final = re.compile(r"[!-\[\]-~]+")
"""Visible ASCII characters except the backslash, which some parsers treat as a slash."""
_HOST_AND_PORT: Final = re.compile(r"(?:\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+)(?::[0-9]{1,5})?")
_LABEL: Final = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?")
_NUMBER: Final = re.compile(r"[0-9]+|0[xX][0-9A-Fa-f]*")
_MAX_NAME: Final = 253


class AddressRefusedError(Exception):
    """Raised if the rules do not allow a URL or one of its IP addresses.

    Args:
        reason: one sentence for a person; contains no path, query or password of the URL.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class OutboundUrl:
    """URL whose text satisfies the rules; the IP addresses of its host are checked later.

    Attributes:
        text: the whole URL. It can contain secrets; use :attr:`origin` and :attr:`digest` in logs and errors.
        scheme: ``https`` or ``http``.
        host: host name in lowercase, or IP address without brackets.
        port: port number.
    """

    text: str
    scheme: str
    host: str
    port: int

    @property
    def origin(self) -> str:
        """Scheme, host and port, which contain no secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}"

    @property
    def digest(self) -> str:
        """SHA-256 of the URL's text, in hexadecimal digits."""
        return sha256(self.text.encode()).hexdigest()

    @property
    def literal_address(self) -> Address | None:
        """IP address of a URL whose host is an IP address; None if the host is a name."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def parse_networks(comma_separated_networks: str) -> tuple[Network, ...]:
    """Parse a comma-separated list of IP networks in CIDR form, such as ``10.1.0.0/16, fd00::/8``.

    Raises:
        ValueError: a part is not a network.
    """
    return tuple(ip_network(part.strip()) for part in comma_separated_networks.split(",") if part.strip())


def parse_outbound_url(url_text: str) -> OutboundUrl:
    """Parse a URL, and check the rules that do not depend on the IP addresses of its host.

    Raises:
        AddressRefusedError: the URL breaks a rule.
    """
    if not _VISIBLE.fullmatch(url_text) or len(url_text) > MAX_URL_LENGTH:
        raise AddressRefusedError(
            f"The URL must have 1 to {MAX_URL_LENGTH} visible ASCII characters and no backslash; write other "
            "characters in percent-encoded form, and international host names in their ASCII form `xn--`."
        )
    try:
        parts = urlsplit(url_text)
        port = parts.port
    except ValueError:
        raise AddressRefusedError("The URL has no valid host and port.") from None
    scheme = parts.scheme.lower()
    if scheme not in {"https", "http"}:
        raise AddressRefusedError("The URL must begin with `https://`, or in an allowed network with `http://`.")
    if "@" in parts.netloc:
        raise AddressRefusedError("The URL must not contain a user name or password.")
    if not _HOST_AND_PORT.fullmatch(parts.netloc):
        raise AddressRefusedError("The URL has no valid host and port.")
    if "#" in url_text:
        raise AddressRefusedError("The URL must not contain a fragment (`#`).")
    port = port if port is not None else HTTPS_PORT if scheme == "https" else HTTP_PORT
    if port != HTTPS_PORT and port < LOWEST_HIGH_PORT:
        raise AddressRefusedError(f"The port must be {HTTPS_PORT} or between {LOWEST_HIGH_PORT} and 65535, not {port}.")
    return OutboundUrl(url_text, scheme, _require_valid_host(parts), port)


def _require_valid_host(parts: SplitResult) -> str:
    """Check that the host of a URL satisfies the rules, and return the host.

    IPv4 addresses are accepted in their usual form only, because resolvers read ``2130706433``, ``0x7f.1`` and
    ``0177.0.0.1`` as 127.0.0.1.
    """
    host = (parts.hostname or "").lower()
    try:
        if parts.netloc.startswith("["):
            return str(IPv6Address(host))
        labels = host.split(".")
        if _NUMBER.fullmatch(labels[-1]):
            return str(IPv4Address(host))
    except ValueError:
        raise AddressRefusedError(
            "The host must be a name, an IPv4 address of four decimal numbers, or an IPv6 address in brackets."
        ) from None
    if len(host) > _MAX_NAME or not all(map(_LABEL.fullmatch, labels)):
        raise AddressRefusedError("The host is not a valid host name.")
    return host


def is_public_address(address: Address) -> bool:
    """Return whether an IP address belongs to a machine on the public internet.

    IPv6 addresses that contain an IPv4 address (IPv4-mapped, NAT64, 6to4, Teredo) are not public.
    """
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _NOT_PUBLIC) and address not in ALWAYS_REFUSED
    return address in _PUBLIC_IPV6 and not any(address in network for network in _NOT_PUBLIC_IPV6)


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Rules for the IP addresses to which the host of a URL resolves.

    Attributes:
        allowed_networks: internal networks that the operator allows; plain http is allowed in them.
        own_ports: ports of this service, which are not allowed at internal addresses.
    """

    allowed_networks: tuple[Network, ...] = ()
    own_ports: frozenset[int] = frozenset()

    def require_allowed_addresses(
        self, url: OutboundUrl, addresses: Collection[Address], *, https_only: bool = False
    ) -> None:
        """Check all IP addresses of a URL's host.

        Args:
            url: URL from ``parse_outbound_url``.
            addresses: IP addresses to which the host name resolves.
            https_only: True to reject plain http even in allowed networks.

        Raises:
            AddressRefusedError: one of the addresses is not allowed, or the host has no address.
        """
        if not addresses:
            raise AddressRefusedError(f"The host `{url.host}` has no IP address.")
        for address in addresses:
            self._require_allowed_address(url, address)
        if url.scheme != "https" and (https_only or not all(map(self._is_in_allowed_network, addresses))):
            raise AddressRefusedError("The URL must begin with `https://`.")

    def _require_allowed_address(self, url: OutboundUrl, address: Address) -> None:
        if not (is_public_address(address) or self._is_in_allowed_network(address)):
            raise AddressRefusedError(f"The host `{url.host}` resolves to an address that is not public.")
        if url.port in self.own_ports and not is_public_address(address):
            raise AddressRefusedError(
                f"Port {url.port} is a port of this service, and is allowed only at public addresses; use another port."
            )

    def _is_in_allowed_network(self, address: Address) -> bool:
        if not ALWAYS_REFUSED.isdisjoint((address, _unwrap_embedded_address(address))):
            return False
        return any(address in network for network in self.allowed_networks)


def _unwrap_embedded_address(address: Address) -> Address:
    """Return the IPv4 address in an IPv6 address, for example of NAT64; return any other address unchanged."""
    if isinstance(address, IPv4Address):
        return address
    if any(address in network for network in _EMBEDDING):
        return IPv4Address(int(address) & 0xFFFF_FFFF)
    return address.sixtofour or (address.teredo[1] if address.teredo else address)


def parse_addresses(address_texts: Iterable[str]) -> tuple[Address, ...]:
    """Parse the IP addresses that a resolver returned, each once.

    The zone of an address (``%eth0`` in ``fe80::1%eth0``) is removed.
    """
    return tuple(dict.fromkeys(ip_address(text.partition("%")[0]) for text in address_texts))
