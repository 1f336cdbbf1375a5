"""Event Hubs of connections' own, as the app setting names them."""

import re
from dataclasses import dataclass

from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("telemetry.sources")
_ENTRY = re.compile(r"(?P<hub>[A-Za-z0-9][A-Za-z0-9._-]{0,255})/(?P<group>\$Default|[A-Za-z0-9][A-Za-z0-9._-]{0,49})")


@dataclass(frozen=True, slots=True)
class EventHubSource:
    """A hub and the consumer group that this app reads it with."""

    hub: str
    consumer_group: str

    @property
    def name(self) -> str:
        """The source's name for ``Ingest.run``."""
        return f"{self.hub}/{self.consumer_group}"

    @property
    def function_name(self) -> str:
        """A name for its trigger function; underscores stand for what such a name cannot hold."""
        return "ingest_" + re.sub(r"[^A-Za-z0-9]", "_", self.name)


def parse_event_hub_sources(setting: str) -> tuple[EventHubSource, ...]:
    """Return the sources that ``hub/consumerGroup,...`` names, each once.

    An entry that is malformed, or whose function name another one has, is logged and left out: this is read while
    functions are registered, where an exception would take every function down.
    """
    sources: dict[str, EventHubSource] = {}
    for entry in filter(None, (part.strip() for part in setting.split(","))):
        match = _ENTRY.fullmatch(entry)
        source = EventHubSource(match["hub"], match["group"]) if match else None
        if source is None or sources.setdefault(source.function_name, source) != source:
            _LOGGER.error("EVENT_HUB_SOURCES holds an entry that cannot be used", extra=fields(entry=entry))
    return tuple(sources.values())
