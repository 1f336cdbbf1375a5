"""In-process calls of the Azure Functions worker library, which loads a function app and calls its functions."""

import asyncio
import json
import re
import sys
import traceback
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import azure_functions_runtime as runtime

from local.errors import StartError
from local.host import worker_protocol as protos
from local.host.retries import RetryPolicy, retry_policy_from_worker_options
from local.host.worker_protocol import InvocationRequest, ParameterBinding, RetryContext, TypedData
from shared.warm_queries.disconnects import is_cancelled_by_client

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function of the loaded app.

    Attributes:
        name: unique name in the app.
        function_id: id of the function in the worker library.
        trigger: trigger binding of the function, as its decorators declare it.
        retry: retry policy, None if the function declares no retry policy.
        clients: names of the durable client bindings, each with its task hub; None for the default task hub.
        inputs: values of the function's input bindings by the binding's name.
    """

    name: str
    function_id: str
    trigger: Mapping[str, Any]
    retry: RetryPolicy | None
    clients: Mapping[str, str | None] = field(default_factory=dict)
    inputs: Mapping[str, TypedData] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Type of the trigger, for instance ``httpTrigger``."""
        return str(self.trigger["type"])


class FunctionFailed(Exception):  # noqa: N818  an event in the app's life, not an error of the host
    """Failed call of a function, with the text of the function's exception, and its stack trace for the log."""

    def __init__(self, message: str, stack_trace: str) -> None:
        super().__init__(message)
        self.stack_trace = stack_trace


async def load_app(folder: Path) -> tuple[LoadedFunction, ...]:
    """Import the function app in a folder and return its functions; call this only once per process.

    Raises:
        StartError: the app cannot be imported, or its functions cannot be listed; the message contains the exception.
    """
    if not (folder / "function_app.py").is_file():
        raise StartError(f"there is no function_app.py in {folder}")
    sys.path.insert(0, str(folder))
    runtime.start_threadpool_executor()
    request = protos.WorkerRequest(
        worker_init_request=protos.RpcHttp(capabilities={}, function_app_directory=str(folder))
    )
    request.properties.update(host="127.0.0.1", protos=protos)
    answer = await runtime.worker_init_request(request)
    if answer.result.status != protos.StatusResult.Success:
        raise StartError(f"the function app in {folder} cannot be loaded\n{answer.result.exception.stack_trace}")
    metadata = (await runtime.functions_metadata_request(protos.WorkerRequest())).function_metadata_results or []
    for entry in metadata:
        load = protos.RpcFunctionMetadata(function_id=entry.function_id)
        await runtime.function_load_request(protos.WorkerRequest(function_load_request=load))
    return tuple(_to_loaded_function(entry) for entry in metadata)


async def invoke_function(
    function: LoadedFunction,
    data: TypedData,
    *,
    metadata: Mapping[str, TypedData] | None = None,
    traceparent: str = "",
    retry: RetryContext | None = None,
) -> TypedData | None:
    """Call a function and return the value of its ``$return`` binding; None if it has no such binding.

    Args:
        function: function to call, as ``load_app`` returned it.
        data: input of the function's trigger.
        metadata: metadata of the trigger's input, for instance the sequence numbers of events.
        traceparent: W3C trace context of the caller, or empty; it is passed on unchanged, because this host creates no
            trace spans.
        retry: number of retries before this call, and maximum number; None for a function without retries.

    Raises:
        FunctionFailed: the function raised, or its result does not fit its bindings.
    """
    call = InvocationRequest(function.function_id, str(uuid.uuid4()), ParameterBinding(function.trigger["name"], data))
    call.trace_context.trace_parent = traceparent if _TRACEPARENT.fullmatch(traceparent) else ""
    call.input_data.extend(ParameterBinding(name, given) for name, given in function.inputs.items())
    if metadata:
        call.trigger_metadata = dict(metadata)
    if retry is not None:
        call.retry_context = retry
    answer = await _call_worker_library(protos.WorkerRequest(invocation_request=call))
    if answer.result.status != protos.StatusResult.Success:
        failure = answer.result.exception
        raise FunctionFailed(failure.message, failure.stack_trace)
    value: TypedData | None = answer.return_value
    return value


async def _call_worker_library(request: protos.WorkerRequest) -> Any:
    """Call the worker library.

    Convert SystemExit and CancelledError to ``FunctionFailed``, so that the host does not stop.
    """
    try:
        return await runtime.invocation_request(request)
    except SystemExit as error:
        raise FunctionFailed(f"SystemExit: the app called sys.exit({error})", traceback.format_exc()) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        # The MCP SDK resets the task's count of cancellations.
        if (task is not None and task.cancelling()) or is_cancelled_by_client():
            raise
        raise FunctionFailed(
            "CancelledError: the function itself raised CancelledError", traceback.format_exc()
        ) from None


def _to_loaded_function(metadata_entry: Any) -> LoadedFunction:
    bindings: Sequence[dict[str, Any]] = [json.loads(text) for text in metadata_entry.raw_bindings]
    trigger = next((binding for binding in bindings if binding["type"].endswith("Trigger")), None)
    if trigger is None:
        raise StartError(f"the function {metadata_entry.name} has no trigger")
    clients = {binding["name"]: binding.get("taskHub") for binding in bindings if binding["type"] == "durableClient"}
    return LoadedFunction(
        metadata_entry.name,
        metadata_entry.function_id,
        trigger,
        retry_policy_from_worker_options(metadata_entry.retry_options),
        clients,
    )
