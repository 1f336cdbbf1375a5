"""Sources of messages, such as MQTT brokers. Each kind has one module; the setting ``source.kind`` selects it.

Each module has a function ``create_source(section, context)`` that returns a :class:`Source`. To support another
protocol, add a module and list it in ``KINDS``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from oi.gateway.deliveries import Delivery
from oi.gateway.metrics import Metrics
from oi.gateway.sections import Section, SettingsError

KINDS = {"mqtt": "oi.gateway.sources.mqtt"}
"""Name of the module of each kind of source."""


class Receiver(Protocol):
    """Port that receives the messages of a source."""

    @property
    def is_full(self) -> bool:
        """True if the source must not read further messages, because the receiver has no room for them."""

    def call_when_not_full(self, function: Callable[[], None]) -> None:
        """Register a function that is called once, when :attr:`is_full` becomes False."""

    def accept_delivery(self, delivery: Delivery) -> None:
        """Accept a message, and acknowledge the message to the source when it is on disk."""


class MarkStore(Protocol):
    """Port that stores marks: bytes by which a source recognises a repeated delivery of a message already stored."""

    async def read_marks(self) -> Sequence[bytes]:
        """Return the marks of the newest deliveries, oldest first.

        First wait until all received messages are on disk, so that their marks are included.
        """

    async def clear_marks(self) -> None:
        """Delete the marks of all deliveries.

        A source calls this when a new session begins, because messages of old sessions are not repeated.

        Raises:
            OSError: the marks cannot be deleted, for example because the disk is full.
        """

    @property
    def acknowledged_position(self) -> int:
        """Position, in the order of storage, up to which all deliveries with stored marks have been acknowledged.

        A source passes it to :meth:`forget_marks_up_to` when the broker cannot repeat these deliveries any more.
        """

    def forget_marks_up_to(self, position: int) -> None:
        """Start to delete the marks up to a position, a former :attr:`acknowledged_position`; return immediately.

        When the marks are deleted, a delivery with one of them counts as a new message and not as a repetition.
        """


class SubscriptionStore(Protocol):
    """Port that stores the topic filters to which a source has subscribed at the broker.

    After a change of the configuration, the source reads them to end the subscriptions that are no longer configured.
    """

    async def read_filters(self, client_id: str) -> Sequence[str]:
        """Return the filters to which a client may still be subscribed at the broker."""

    async def write_filters(self, client_id: str, filters: Sequence[str]) -> None:
        """Replace the stored filters of a client.

        Raises:
            OSError: the filters cannot be stored, for example because the disk is full.
        """


@dataclass(frozen=True, slots=True)
class SourceContext:
    """Objects of the gateway that a source uses.

    Attributes:
        filters: filters of the addresses (MQTT topics) to read.
        receiver: object that receives the messages.
        marks: marks of earlier deliveries, by which repeated deliveries are recognised.
        metrics: counters and gauges to update.
        subscriptions: subscriptions of earlier runs; None for a source whose subscriptions end with its connection.
        is_check: True for a test of the configuration, which must not take messages away from a running gateway.
    """

    filters: Sequence[str]
    receiver: Receiver
    marks: MarkStore
    metrics: Metrics
    subscriptions: SubscriptionStore | None = None
    is_check: bool = False


class Source(Protocol):
    """Port that reads messages from a plant system, such as an MQTT broker."""

    async def run(self) -> None:
        """Read messages until the task is cancelled; reconnect after a lost network connection."""


def create_source(kind: str, section: Section, context: SourceContext) -> Source:
    """Create the source of messages of the configured kind.

    Raises:
        SettingsError: the kind is unknown, or a setting of the source is invalid.
    """
    if kind not in KINDS:
        raise SettingsError(f"`source.kind` must be one of {', '.join(KINDS)}.")
    source: Source = import_module(KINDS[kind]).create_source(section, context)
    return source
