"""Base class of the components of a simulated world: clients, expected state, and invariants."""

from abc import ABC, abstractmethod
from collections.abc import Coroutine, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from shared.wiring import Services

if TYPE_CHECKING:
    from tests.simulation.world import World


class Component(ABC):
    """Part of the service that a simulated world tests over HTTP.

    The component compares the service with its own model of the data that the service may and must store.
    """

    name: ClassVar[str]
    modules: ClassVar[tuple[str, ...]]
    background_jobs: ClassVar[tuple[str, ...]] = ()
    settle_seconds: ClassVar[int] = 600
    owned: ClassVar[str] = ""
    weight: ClassVar[int] = 4
    cosmos_weight: ClassVar[int] = 3

    def __init__(self, world: "World") -> None:
        self.world = world

    def attach(self, services: Services) -> None:  # noqa: B027  most components need no replacement
        """Replace parts of a new process's services that depend on real time or real files, such as file times."""

    @abstractmethod
    def start(self) -> Iterator[Coroutine[Any, Any, None]]:
        """Yield the simulated clients, which run concurrently while faults are injected."""

    async def complete_work(self) -> None:  # noqa: B027  a component can have nothing to finish
        """Complete unfinished work after the last injected fault."""

    @abstractmethod
    def check_invariants(self, folder: Path) -> None:
        """Check the invariants on the stored data, without the code of the service.

        Args:
            folder: folder of the embedded stores.

        Raises:
            ViolationError: an invariant does not hold.
        """
