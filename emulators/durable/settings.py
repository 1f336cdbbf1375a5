"""What the engine heeds of ``extensions.durableTask`` in host.json."""

from dataclasses import dataclass

DEFAULT_HUB = "TestHubName"
"""The extension's own default, where the app has no site name."""

DEFAULT_CONCURRENCY = 10


@dataclass(frozen=True, slots=True)
class DurableSettings:
    """The task hub and how much runs at once.

    Attributes:
        hub: name of the task hub; it stands in links.
        max_activities: activities that run at once.
        max_orchestrators: orchestrators that are replayed at once.
        version: the version of an orchestration whose caller names none.
    """

    hub: str = DEFAULT_HUB
    max_activities: int = DEFAULT_CONCURRENCY
    max_orchestrators: int = DEFAULT_CONCURRENCY
    version: str | None = None
