"""How a hub treats its clients."""

from collections.abc import Callable, Container, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.upstream import Upstream

SYSTEM_EVENTS = frozenset({"connect", "connected", "disconnected"})


type Prelude = Callable[[ClientConnection, Mapping[str, Sequence[str]]], Coroutine[None, None, None] | None]
"""Given a client that is about to join its groups, and its query parameters, returns what is done for it first, or None
for nothing. The service itself has no such thing: it is how a replay comes before live messages."""


class AnyEvent(Container[str]):
    """Every user event, which the service's own settings write as ``*``."""

    def __contains__(self, name: object) -> bool:
        return True


@dataclass(frozen=True, slots=True)
class HubSettings:
    """The settings of one hub.

    Attributes:
        upstream: its event handler, None for none.
        system_events: which of connect, connected and disconnected the handler is told.
        user_events: which events that clients send it is told; ``message`` is what plain clients send.
        anonymous: whether clients without access token may connect, where the handler does not refuse them.
        prelude: what clients get before anything else, None for nothing.
        passed: headers of the handler's answer to connect that a client who is let in sees, in lower case. The service
            itself passes none.
    """

    upstream: Upstream | None = None
    system_events: frozenset[str] = frozenset()
    user_events: Container[str] = frozenset()
    anonymous: bool = False
    prelude: Prelude | None = None
    passed: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """The settings of the service.

    Attributes:
        access_key: signs access tokens and events; at least 32 bytes.
        hubs: the settings of hubs by name.
        other_hubs: those of every other hub.
    """

    access_key: str
    hubs: Mapping[str, HubSettings] = field(default_factory=dict)
    other_hubs: HubSettings = field(default_factory=HubSettings)

    def for_hub(self, hub: str) -> HubSettings:
        """Return the settings of a hub."""
        return self.hubs.get(hub, self.other_hubs)
