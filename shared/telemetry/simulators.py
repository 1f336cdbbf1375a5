"""Simulated devices, which send telemetry messages to the event hub.

Separate from ``ingest`` because simulated messages pass through the hub like the messages of real devices.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

from shared.catalog.models import Connection, ConnectionType
from shared.catalog.snapshot import Catalog
from shared.observability.logs import fields, get_logger
from shared.telemetry.json_text import serialise
from shared.telemetry.models import TELEMETRY_HUB, HubMessage
from shared.telemetry.ports import CurrentCatalog, EventSender
from shared.telemetry.properties import SIMULATOR, build_properties
from shared.telemetry.variables import Generator, Tick, build_generator

FILL_MS = 10_000
"""Milliseconds before now for which messages are sent later, after a start or a gap."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LOGGER = get_logger("telemetry.simulators")


class SimulatedConnection:
    """Devices of one simulated connection. A message depends only on its tick (time), so a repeated send is harmless.

    Args:
        connection: a connection with a simulator.

    Raises:
        ValueError: if the connection has no simulator, or the declaration of a variable is invalid.
    """

    def __init__(self, connection: Connection) -> None:
        simulator = connection.simulator
        if simulator is None:
            raise ValueError(f"{connection.lookup} has no simulator")
        self._lookup = connection.lookup
        self._interval_ms = simulator.interval_ms
        self._devices: list[tuple[str, list[tuple[str, Generator]]]] = [
            (
                f"{connection.lookup}-{device:02d}",
                [
                    (variable.name, build_generator(variable, simulator.seed, device))
                    for variable in simulator.variables
                ],
            )
            for device in range(1, simulator.devices + 1)
        ]

    def iter_due_messages(self, after_ms: int, until_ms: int) -> Iterator[HubMessage]:
        """Yield the simulated messages due after ``after_ms`` up to ``until_ms``; both are milliseconds since 1970."""
        for number in range(after_ms // self._interval_ms + 1, until_ms // self._interval_ms + 1):
            yield from self._build_messages(Tick(number, self._interval_ms))

    def _build_messages(self, tick: Tick) -> Iterator[HubMessage]:
        timestamp = _EPOCH + timedelta(milliseconds=tick.milliseconds)
        for device_id, variables in self._devices:
            message_id = f"{device_id}-{tick.number}"
            yield HubMessage(
                serialise({name: value(tick) for name, value in variables}),
                self._lookup,
                build_properties(self._lookup, timestamp, message_id, device_id, SIMULATOR),
            )


class Simulators:
    """Sends the messages of all simulated connections in the workspace."""

    def __init__(self, catalog: CurrentCatalog, sender: EventSender) -> None:
        self._catalog = catalog
        self._sender = sender
        self._version: int | None = None
        self._running: dict[str, SimulatedConnection] = {}
        self._sent_until_ms: dict[str, int] = {}

    async def run(self, moment: datetime) -> int:
        """Send all simulated messages that are due at a moment, and return their number.

        Raises:
            WorkspaceError: from the hub; the next run sends the messages again.
        """
        catalog = await self._catalog()
        if catalog.version != self._version:
            self._running = _create_simulators(catalog)
            self._version = catalog.version
        until_ms = (moment - _EPOCH) // timedelta(milliseconds=1)
        messages = [
            message
            for lookup, simulated in self._running.items()
            for message in simulated.iter_due_messages(self._get_start_ms(lookup, until_ms), until_ms)
        ]
        if messages:
            await self._sender.send(TELEMETRY_HUB, messages)
        self._sent_until_ms = dict.fromkeys(self._running, until_ms)
        return len(messages)

    def _get_start_ms(self, lookup: str, until_ms: int) -> int:
        sent_until_ms = self._sent_until_ms.get(lookup, 0)
        oldest_ms = until_ms - FILL_MS
        # A clock that was set back counts as a start; the same ticks give the same messages.
        return sent_until_ms if oldest_ms <= sent_until_ms <= until_ms else oldest_ms


def _create_simulators(catalog: Catalog) -> dict[str, SimulatedConnection]:
    running: dict[str, SimulatedConnection] = {}
    for lookup, stored in sorted(catalog.connections.items()):
        connection = stored.value
        if connection.type is not ConnectionType.SIMULATOR or not connection.enabled or connection.simulator is None:
            continue
        try:
            running[lookup] = SimulatedConnection(connection)
        except ValueError:
            # An invalid simulator must not stop the others.
            _LOGGER.exception("a simulator cannot run", extra=fields(connection=lookup))
    return running
