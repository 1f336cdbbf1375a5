"""The app's orchestrators and activities, and how they are called."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulators.durable.turns import FunctionNames, OrchestratorFailed
from local.host.worker import FunctionFailed, LoadedFunction, invoke
from local.host.worker_protocol import TypedData

_PREFIX = re.compile(r"\b\w++: ")


class FunctionRunner(Protocol):
    """What the engine calls."""

    @property
    def names(self) -> FunctionNames:
        """Return what there is."""
        ...

    async def run_orchestrator(self, name: str, context: str) -> str:
        """Call an orchestrator with its context and return its state, both JSON texts.

        Raises:
            OrchestratorFailed: it raised.
        """
        ...

    async def run_activity(self, name: str, given: str) -> str | None:
        """Call an activity with its input and return its result, both JSON texts.

        Raises:
            FunctionFailed: it raised.
        """
        ...


@dataclass(frozen=True, slots=True)
class AppFunctions:
    """The functions of the app that the host has loaded."""

    orchestrators: Mapping[str, LoadedFunction]
    activities: Mapping[str, LoadedFunction]
    version: str | None

    @property
    def names(self) -> FunctionNames:
        """Return what there is."""
        return FunctionNames(frozenset(self.activities), frozenset(self.orchestrators), self.version)

    async def run_orchestrator(self, name: str, context: str) -> str:
        """Call an orchestrator through the worker library."""
        function = self.orchestrators.get(name)
        if function is None:
            raise OrchestratorFailed(f"the app has no orchestrator {name} any more")
        try:
            answer = await invoke(function, TypedData(string=context))
        except FunctionFailed as failure:
            # The SDK raises its own Exception around the state; the library puts the class before the text.
            raise OrchestratorFailed(_PREFIX.sub("", str(failure), count=1)) from None
        if answer is None:
            raise OrchestratorFailed("it returned no state; is it declared with orchestration_trigger?")
        return str(answer.value)

    async def run_activity(self, name: str, given: str) -> str | None:
        """Call an activity through the worker library."""
        function = self.activities.get(name)
        if function is None:
            raise FunctionFailed(f"the app has no activity {name} any more", "")
        answer = await invoke(function, TypedData(string=given))
        return None if answer is None else str(answer.value)


def app_functions(functions: Iterable[LoadedFunction], version: str | None) -> AppFunctions:
    """Return the orchestrators and activities among an app's functions, by the names they are called by."""
    orchestrators: dict[str, LoadedFunction] = {}
    activities: dict[str, LoadedFunction] = {}
    for function in functions:
        if function.kind == "orchestrationTrigger":
            orchestrators[str(function.trigger.get("orchestration") or function.name)] = function
        elif function.kind == "activityTrigger":
            activities[str(function.trigger.get("activity") or function.name)] = function
    return AppFunctions(orchestrators, activities, version)
