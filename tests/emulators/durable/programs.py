"""Orchestration programs as data, an orchestrator that runs such a program, and the expected results of a program."""

from collections.abc import Callable, Generator
from datetime import timedelta
from typing import Any

from azure.durable_functions import RetryOptions
from hypothesis import strategies as st

from tests.emulators.durable.engine_harness import SdkFunctions

type Steps = Generator[Any, Any, Any]

EVENTS = ("red", "green")
_RETRIES = RetryOptions(2000, 2)

_leaves = st.one_of(
    st.tuples(st.sampled_from(["work", "refused", "retried"]), st.integers(0, 9)),
    st.tuples(st.just("timer"), st.integers(1, 90)),
    st.tuples(st.just("event"), st.sampled_from(EVENTS)),
).map(list)
_subs = st.tuples(st.just("sub"), st.lists(_leaves, max_size=3)).map(list)
_alls = st.tuples(st.just("all"), st.lists(st.one_of(_leaves, _subs), min_size=1, max_size=6)).map(list)
_races = st.tuples(st.just("race"), st.integers(0, 9)).map(list)
programs = st.lists(st.one_of(_leaves, _subs, _alls, _races), min_size=1, max_size=5)
"""Programs whose outcome does not depend on what ends first."""


def register_program_functions(functions: SdkFunctions) -> None:
    """Register the orchestrator that runs programs, and its activities."""

    @functions.register_activity
    def square(value: int) -> int:
        return value * value

    @functions.register_activity
    def refuse(value: int) -> None:
        raise ValueError(f"no {value}")

    @functions.register_orchestrator
    def interpret(context: Any) -> Steps:
        program = context.get_input()
        results = []
        for position, (kind, argument) in enumerate(program["steps"]):
            context.set_custom_status(position + 1)
            if kind == "race":
                results.append((yield from _run_race(context, argument)))
            else:
                results.append((yield from _catch_failure(_create_task(context, kind, argument))))
        if program["rounds"] > 1:
            context.continue_as_new(program | {"rounds": program["rounds"] - 1})
            return None
        return results


def _catch_failure(task: Any) -> Steps:
    try:
        return (yield task)
    except Exception as error:  # noqa: BLE001  what the SDK raises
        return "refused" if "ValueError: no" in str(error) else str(error)


def _create_task(context: Any, kind: str, argument: Any) -> Any:
    make: dict[str, Callable[[], Any]] = {
        "all": lambda: context.task_all([_create_task(context, *step) for step in argument]),
        "timer": lambda: context.create_timer(context.current_utc_datetime + timedelta(seconds=argument)),
        "event": lambda: context.wait_for_external_event(argument),
        "sub": lambda: context.call_sub_orchestrator("interpret", {"steps": argument, "rounds": 1}),
        "work": lambda: context.call_activity("square", argument),
        "refused": lambda: context.call_activity("refuse", argument),
        "retried": lambda: context.call_activity_with_retry("refuse", _RETRIES, argument),
    }
    return make[kind]()


def _run_race(context: Any, argument: int) -> Steps:
    late = context.create_timer(context.current_utc_datetime + timedelta(days=1))
    early = context.call_activity("square", argument)
    winner = yield context.task_any([late, early])
    late.cancel()
    return [winner == early, early.result]


def compute_expected_results(program: dict[str, Any]) -> list[Any]:
    """Return the output that an orchestration of this program must have."""
    return [_compute_expected_result(*step) for step in program["steps"]]


def _compute_expected_result(kind: str, argument: Any) -> Any:
    if kind == "all":
        parts = [_compute_expected_result(*step) for step in argument]
        return "refused" if any(step[0] in {"refused", "retried"} for step in argument) else parts
    if kind == "sub":
        return [_compute_expected_result(*step) for step in argument]
    if kind == "race":
        return [True, argument * argument]
    fixed = {"timer": None, "event": "data", "refused": "refused", "retried": "refused"}
    return fixed[kind] if kind in fixed else argument * argument
