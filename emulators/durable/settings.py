"""Settings of the engine from ``extensions.durableTask`` in host.json."""

from dataclasses import dataclass

DEFAULT_HUB = "TestHubName"
"""Default of the extension for an app without a site name."""

DEFAULT_CONCURRENCY = 10


@dataclass(frozen=True, slots=True)
class DurableSettings:
    """Task hub and concurrency limits.

    Attributes:
        hub: name of the task hub, part of management URLs.
        max_activities: most activities that run concurrently.
        max_orchestrators: most orchestrators that are replayed concurrently.
        version: the version of an orchestration that is started without one.
    """

    hub: str = DEFAULT_HUB
    max_activities: int = DEFAULT_CONCURRENCY
    max_orchestrators: int = DEFAULT_CONCURRENCY
    version: str | None = None
