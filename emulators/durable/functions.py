"""Port and adapter through which the Durable Task engine calls the orchestrators and activities of the app."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from emulators.durable.ports import DurableFunction, FunctionCallError, FunctionInvoker
from emulators.durable.records import JsonText
from emulators.durable.turns import FunctionNames, OrchestratorFailed

_PREFIX = re.compile(r"\b\w++: ")


class FunctionRunner(Protocol):
    """Port through which the engine calls the orchestrators and activities of the app."""

    @property
    def function_names(self) -> FunctionNames:
        """Names of the orchestrators and activities of the app."""
        ...

    async def run_orchestrator(self, name: str, context_json: JsonText) -> JsonText:
        """Call an orchestrator with its context; return its state: the actions that it requests, and its result.

        Raises:
            OrchestratorFailed: the orchestrator raised an exception.
        """
        ...

    async def run_activity(self, name: str, input_json: JsonText) -> JsonText | None:
        """Call an activity with its input; return its result, None if it returns nothing.

        Raises:
            FunctionCallError: the activity raised an exception.
        """
        ...


@dataclass(frozen=True, slots=True)
class AppFunctions[F: DurableFunction]:
    """Orchestrators and activities of the app, by name, which are called through the local Functions host."""

    orchestrators: Mapping[str, F]
    activities: Mapping[str, F]
    invoke: FunctionInvoker[F]
    version: str | None

    @property
    def function_names(self) -> FunctionNames:
        """Names of the orchestrators and activities of the app."""
        return FunctionNames(frozenset(self.activities), frozenset(self.orchestrators), self.version)

    async def run_orchestrator(self, name: str, context_json: JsonText) -> JsonText:
        """Call an orchestrator through the local Functions host."""
        function = self.orchestrators.get(name)
        if function is None:
            raise OrchestratorFailed(f"the app no longer has the orchestrator {name}")
        try:
            state = await self.invoke(function, context_json)
        except FunctionCallError as failure:
            # The SDK wraps the state in its own Exception, and the worker library prefixes the class name.
            raise OrchestratorFailed(_PREFIX.sub("", str(failure), count=1)) from None
        if state is None:
            raise OrchestratorFailed(
                "the orchestrator returned no state; declare the function with orchestration_trigger"
            )
        return state

    async def run_activity(self, name: str, input_json: JsonText) -> JsonText | None:
        """Call an activity through the local Functions host; return its result, or None if it has none.

        Raises:
            FunctionCallError: the app does not have the activity, or the activity raised an exception.
        """
        function = self.activities.get(name)
        if function is None:
            raise FunctionCallError(f"the app no longer has the activity {name}", "")
        return await self.invoke(function, input_json)


def select_app_functions[F: DurableFunction](
    functions: Iterable[F], invoke: FunctionInvoker[F], version: str | None
) -> AppFunctions[F]:
    """Select the orchestrators and activities among all functions of an app."""
    orchestrators: dict[str, F] = {}
    activities: dict[str, F] = {}
    for function in functions:
        if function.kind == "orchestrationTrigger":
            orchestrators[str(function.trigger.get("orchestration") or function.name)] = function
        elif function.kind == "activityTrigger":
            activities[str(function.trigger.get("activity") or function.name)] = function
    return AppFunctions(orchestrators, activities, invoke, version)
