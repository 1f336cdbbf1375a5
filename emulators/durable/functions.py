"""Calls of the app's orchestrators and activities."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulators.durable.ports import DurableFunction, FunctionCallError, FunctionInvoker
from emulators.durable.turns import FunctionNames, OrchestratorFailed

_PREFIX = re.compile(r"\b\w++: ")


class FunctionRunner(Protocol):
    """Functions that the engine calls."""

    @property
    def names(self) -> FunctionNames:
        """Names of the orchestrators and activities."""
        ...

    async def run_orchestrator(self, name: str, context: str) -> str:
        """Call an orchestrator with its context and return its state, both JSON texts.

        Raises:
            OrchestratorFailed: the orchestrator raised an exception.
        """
        ...

    async def run_activity(self, name: str, given: str) -> str | None:
        """Call an activity with its input and return its result, both JSON texts.

        Raises:
            FunctionCallError: the activity raised an exception.
        """
        ...


@dataclass(frozen=True, slots=True)
class AppFunctions[F: DurableFunction]:
    """Orchestrators and activities of the app that the host has loaded."""

    orchestrators: Mapping[str, F]
    activities: Mapping[str, F]
    invoke: FunctionInvoker[F]
    version: str | None

    @property
    def names(self) -> FunctionNames:
        """Names of the orchestrators and activities."""
        return FunctionNames(frozenset(self.activities), frozenset(self.orchestrators), self.version)

    async def run_orchestrator(self, name: str, context: str) -> str:
        """Call an orchestrator."""
        function = self.orchestrators.get(name)
        if function is None:
            raise OrchestratorFailed(f"the app no longer has the orchestrator {name}")
        try:
            state = await self.invoke(function, context)
        except FunctionCallError as failure:
            # The SDK wraps the state in its own Exception, and the worker library prefixes the class name.
            raise OrchestratorFailed(_PREFIX.sub("", str(failure), count=1)) from None
        if state is None:
            raise OrchestratorFailed("it returned no state; is it declared with orchestration_trigger?")
        return state

    async def run_activity(self, name: str, given: str) -> str | None:
        """Call an activity."""
        function = self.activities.get(name)
        if function is None:
            raise FunctionCallError(f"the app no longer has the activity {name}", "")
        return await self.invoke(function, given)


def app_functions_from[F: DurableFunction](
    functions: Iterable[F], invoke: FunctionInvoker[F], version: str | None
) -> AppFunctions[F]:
    """Return the orchestrators and activities among an app's functions."""
    orchestrators: dict[str, F] = {}
    activities: dict[str, F] = {}
    for function in functions:
        if function.kind == "orchestrationTrigger":
            orchestrators[str(function.trigger.get("orchestration") or function.name)] = function
        elif function.kind == "activityTrigger":
            activities[str(function.trigger.get("activity") or function.name)] = function
    return AppFunctions(orchestrators, activities, invoke, version)
