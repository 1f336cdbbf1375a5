"""HTTP client for addresses that users chose: webhooks and metadata documents of OAuth clients."""

from functools import cached_property
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from shared.wiring.backends import Backends

if TYPE_CHECKING:
    from shared.outbound.ports import OutboundHttp


class OutboundServices:
    """Sends requests to addresses that users chose, after a check of the address."""

    def __init__(self, backends: Backends) -> None:
        self._backends = backends

    @cached_property
    def http(self) -> "OutboundHttp":
        """HTTP client that rejects forbidden addresses, such as those of internal networks."""
        from shared.backends.outbound_http import CheckedHttp
        from shared.outbound.addresses import AddressRules, parse_networks

        networks = parse_networks(self._backends.settings.webhook_allowed_networks)
        rules = AddressRules(networks, self._list_forbidden_ports())
        return self._backends.register_for_closing(CheckedHttp(rules, runtime=self._backends.runtime))

    def _list_forbidden_ports(self) -> frozenset[int]:
        """Return the ports of this service and of the services on which it depends; users must not call these ports."""
        configured = self._backends.settings
        addresses = (
            configured.files_url,
            configured.public_url,
            configured.kusto_uri,
            configured.web_pubsub_endpoint,
            configured.cosmos_endpoint,
            configured.blob_endpoint,
        )
        ports = {urlsplit(address).port for address in addresses}
        ports |= {int(port) for port in configured.own_ports.split(",") if port.strip()}
        return frozenset(port for port in ports if port is not None)
