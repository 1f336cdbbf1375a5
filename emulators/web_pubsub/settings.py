"""Settings of the Web PubSub emulator and its hubs."""

from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from emulators.web_pubsub.connection import NORMAL, ClientConnection
from emulators.web_pubsub.upstream import Upstream

SYSTEM_EVENTS = frozenset({"connect", "connected", "disconnected"})


type Prelude = Callable[[ClientConnection, Mapping[str, Sequence[str]]], Coroutine[None, None, None] | None]
"""Function that creates work for a new client, such as a replay, which runs before the client gets live messages.

The function receives the connection and its query parameters; it returns None for no work. The Azure service has no
such function.
"""


class AnyEvent(Container[str]):
    """Collection that contains every event name, like ``*`` in the settings of the Azure service."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class HubSettings:
    """Settings of one hub (set of clients that exchange messages).

    Attributes:
        upstream: connection to the event handler of the hub; None for no event handler.
        system_events: names of the system events (connect, connected, disconnected) that the event handler receives.
        user_events: names of the user events that the event handler receives; ``message`` for messages of clients
            without subprotocol.
        anonymous: True if clients may connect without an access token, unless the event handler rejects them.
        prelude: function that creates work for a new client, such as a replay, which runs before live messages are
            sent to the client; None for no such work.
        forwarded_headers: names (in lower case) of headers in the event handler's response to ``connect`` that are sent
            to the client; the Azure service sends none.
        close_code: WebSocket close code for connections that the REST API closes; the Azure service uses 1000.
    """

    upstream: Upstream | None = None
    system_events: frozenset[str] = frozenset()
    user_events: Container[str] = frozenset()
    anonymous: bool = False
    prelude: Prelude | None = None
    forwarded_headers: frozenset[str] = frozenset()
    close_code: int = NORMAL


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of the whole emulator.

    Attributes:
        access_key: key that signs access tokens and events; at least 32 bytes.
        hubs: settings of individual hubs, by name.
        other_hubs: settings of all other hubs.
        count_clients: function that is called with 1 or -1 when a client connects or disconnects.
    """

    access_key: str
    hubs: Mapping[str, HubSettings] = field(default_factory=dict)
    other_hubs: HubSettings = field(default_factory=HubSettings)
    count_clients: Callable[[int], None] = lambda _change: None

    def get_hub_settings(self, hub: str) -> HubSettings:
        """Return the settings of the hub with this name."""
        return self.hubs.get(hub, self.other_hubs)
