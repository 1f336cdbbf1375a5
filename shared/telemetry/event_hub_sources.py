"""Event Hubs of connections that this deployment reads: the setting ``EVENT_HUB_SOURCES``."""

import re
from dataclasses import dataclass

from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("telemetry.sources")
_ENTRY = re.compile(r"(?P<hub>[A-Za-z0-9][A-Za-z0-9._-]{0,255})/(?P<group>\$Default|[A-Za-z0-9][A-Za-z0-9._-]{0,49})")


@dataclass(frozen=True, slots=True)
class EventHubSource:
    """Event hub from which this app reads telemetry, and the consumer group with which it reads."""

    hub: str
    consumer_group: str

    @property
    def name(self) -> str:
        """Name of the source, ``hub/consumerGroup``, as ``TelemetryIngestor.run`` expects."""
        return f"{self.hub}/{self.consumer_group}"

    @property
    def function_name(self) -> str:
        """Name of the trigger function, with underscores for characters that a function name cannot contain."""
        return "ingest_" + re.sub(r"[^A-Za-z0-9]", "_", self.name)


def parse_event_hub_sources(setting: str) -> tuple[EventHubSource, ...]:
    """Parse the setting ``EVENT_HUB_SOURCES``, ``hub/consumerGroup,...``; return its sources without duplicates.

    An invalid entry, or an entry whose function name is already used, is logged and skipped: an exception during
    function registration would stop all functions.
    """
    sources: dict[str, EventHubSource] = {}
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        match = _ENTRY.fullmatch(entry)
        source = EventHubSource(match["hub"], match["group"]) if match else None
        if source is None or sources.setdefault(source.function_name, source) != source:
            _LOGGER.error(
                "skipped an entry of EVENT_HUB_SOURCES: it is not hub/consumerGroup, or its function name is in use",
                extra=fields(entry=entry),
            )
    return tuple(sources.values())
