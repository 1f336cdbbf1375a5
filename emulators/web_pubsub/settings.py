"""Settings of hubs and of the service."""

from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.upstream import Upstream

SYSTEM_EVENTS = frozenset({"connect", "connected", "disconnected"})


type Prelude = Callable[[ClientConnection, Mapping[str, Sequence[str]]], Coroutine[None, None, None] | None]
"""Returns work that runs for a client with the given query parameters before it receives live messages, or None.
The Azure service has no preludes; the local host uses them for replays."""


class AnyEvent(Container[str]):
    """All user events, ``*`` in the settings of the Azure service."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class HubSettings:
    """Settings of one hub.

    Attributes:
        upstream: its event handler, if any.
        system_events: which of connect, connected and disconnected the handler receives.
        user_events: which user events the handler receives; messages of plain clients are ``message``.
        anonymous: whether clients can connect without an access token, unless the handler rejects them.
        prelude: work that runs before live messages, if any.
        forwarded_headers: headers of the handler's response to connect, in lower case, that accepted clients receive.
            The Azure service forwards none.
    """

    upstream: Upstream | None = None
    system_events: frozenset[str] = frozenset()
    user_events: Container[str] = frozenset()
    anonymous: bool = False
    prelude: Prelude | None = None
    forwarded_headers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the service.

    Attributes:
        access_key: signs access tokens and events; at least 32 bytes.
        hubs: settings by hub.
        other_hubs: settings of all other hubs.
        count_clients: receives each change of the number of connected clients.
    """

    access_key: str
    hubs: Mapping[str, HubSettings] = field(default_factory=dict)
    other_hubs: HubSettings = field(default_factory=HubSettings)
    count_clients: Callable[[int], None] = lambda _change: None

    def for_hub(self, hub: str) -> HubSettings:
        """Return the settings of a hub."""
        return self.hubs.get(hub, self.other_hubs)
