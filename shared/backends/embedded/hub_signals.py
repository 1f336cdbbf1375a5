"""Signals of the embedded event hub: a writer wakes the readers in the same process, so that they need not poll."""

from collections.abc import Callable, Collection
from pathlib import Path

type HubPartition = tuple[str, str]
"""Name of an event hub, and id of one of its partitions."""

type OnAppend = Callable[[Collection[HubPartition]], None]
"""Function that is called with the partitions to which events were appended; it must be fast and must not raise."""

type Unsubscribe = Callable[[], None]
"""Function that ends a subscription."""


class HubSignals:
    """Register of functions that are called after events were appended to a hub file. All methods are thread-safe."""

    def __init__(self) -> None:
        self._subscribers: dict[Path, tuple[OnAppend, ...]] = {}

    def subscribe(self, path: Path, on_append: OnAppend) -> Unsubscribe:
        """Register a function that is called after each append to a hub file by this process.

        Return the function that ends this subscription.

        Args:
            path: file of the hub.
            on_append: function to call, in the thread of the writer's event loop.
        """
        key = path.absolute()
        self._subscribers[key] = (*self._subscribers.get(key, ()), on_append)

        def unsubscribe() -> None:
            self._subscribers[key] = tuple(each for each in self._subscribers.get(key, ()) if each is not on_append)

        return unsubscribe

    def notify_subscribers(self, path: Path, hub_partitions: Collection[HubPartition]) -> None:
        """Call the functions that are subscribed to a hub file; the writer calls this after new events are on disk."""
        for on_append in self._subscribers.get(path.absolute(), ()):
            on_append(hub_partitions)


HUB_SIGNALS = HubSignals()
"""Signals of this process."""
