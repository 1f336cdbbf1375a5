"""Tests of orchestrations that fail, and of the messages in their status."""

from collections.abc import Generator
from typing import Any

import pytest
from azure.durable_functions import RetryOptions

from tests.emulators.durable.engine_harness import EngineHarness, SdkFunctions

pytestmark = pytest.mark.filterwarnings("ignore:azure.functions df_loads was called")  # a hint of the SDK, once

type Steps = Generator[Any, Any, Any]


async def test_a_retry_pause_beyond_the_date_range_fails_the_orchestration(
    harness: EngineHarness, functions: SdkFunctions
) -> None:
    """If a retry policy requests a pause beyond the range of dates, the orchestration fails."""

    @functions.register_orchestrator
    def retry_after_too_long_a_pause(context: Any) -> Steps:
        yield context.call_activity_with_retry("refuse", RetryOptions(10**18, 3), "entry")

    await harness.start_orchestration("retry_after_too_long_a_pause")
    assert (await harness.wait_for_end())["runtimeStatus"] == "Failed"


async def test_nondeterministic_orchestrator_fails(harness: EngineHarness, functions: SdkFunctions) -> None:
    """An orchestrator that requests another action in a replay than in its first run fails.

    Its status names the action expected in this step.
    """
    names = iter(["double", "refuse", "refuse"])

    @functions.register_orchestrator
    def call_another_activity_on_replay(context: Any) -> Steps:
        yield context.call_activity(next(names), 1)

    await harness.start_orchestration("call_another_activity_on_replay")
    status = await harness.wait_for_end()
    assert status["runtimeStatus"] == "Failed"
    assert "Non-Deterministic workflow detected: step 1 was call_activity(double)" in status["output"]


@pytest.mark.parametrize("feature", ["call_http", "call_entity", "signal_entity"])
async def test_an_orchestration_with_an_unsupported_feature_fails(
    harness: EngineHarness, functions: SdkFunctions, feature: str
) -> None:
    """An orchestration with an unsupported feature fails, and its status names the feature."""
    from azure.durable_functions import EntityId  # noqa: PLC0415  for this test alone

    @functions.register_orchestrator
    def use_unsupported_feature(context: Any) -> Steps:
        if feature == "call_http":
            yield context.call_http("GET", "http://localhost")
        elif feature == "call_entity":
            yield context.call_entity(EntityId("counter", "a"), "get")
        else:
            context.signal_entity(EntityId("counter", "a"), "add")
            yield context.call_activity("double", 1)

    await harness.start_orchestration("use_unsupported_feature")
    status = await harness.wait_for_end()
    assert (
        status["output"]
        == f"Orchestrator function 'use_unsupported_feature' failed: the local host does not support {feature}"
    )


@pytest.mark.parametrize("sub", [False, True])
async def test_an_orchestration_that_calls_an_unknown_function_fails(
    harness: EngineHarness,
    functions: SdkFunctions,
    sub: bool,  # noqa: FBT001  a case
) -> None:
    """An orchestration that calls an unknown function fails, and its status names the function."""

    @functions.register_orchestrator
    def call_unknown_activity(context: Any) -> Steps:
        yield context.call_sub_orchestrator("nobody") if sub else context.call_activity("nobody")

    await harness.start_orchestration("call_unknown_activity")
    assert "The function 'nobody' doesn't exist" in (await harness.wait_for_end())["output"]
