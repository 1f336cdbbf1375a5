"""Drives the worker library in process: indexes a function app and invokes its functions."""

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
from local.host.retries import RetryPolicy, read_retry_policy
from local.host.worker_protocol import InvocationRequest, ParameterBinding, RetryContext, TypedData

_TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")


@dataclass(frozen=True, slots=True)
class LoadedFunction:
    """A function of the app.

    Attributes:
        name: unique in the app.
        function_id: what the worker library calls it by.
        trigger: its trigger binding, as the decorators describe it.
        retry: its retry policy, None where it declares none.
        clients: its durable client bindings: name, and the task hub it names or None.
        inputs: what its input bindings receive with each call, by name.
    """

    name: str
    function_id: str
    trigger: Mapping[str, Any]
    retry: RetryPolicy | None
    clients: Mapping[str, str | None] = field(default_factory=dict)
    inputs: Mapping[str, TypedData] = field(default_factory=dict)

    @property
    def kind(self) -> str:
        """Return the trigger's type, for instance ``httpTrigger``."""
        return str(self.trigger["type"])


class FunctionFailed(Exception):  # noqa: N818  an event in the app's life, not an error of the host
    """A function raised; carries what only the log may show."""

    def __init__(self, message: str, stack_trace: str) -> None:
        super().__init__(message)
        self.stack_trace = stack_trace


async def index(folder: Path) -> tuple[LoadedFunction, ...]:
    """Import the function app of a folder and return its functions. Works once per process.

    Raises:
        StartError: the app cannot be imported or indexed; the text is the real exception.
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
        raise StartError(f"the function app in {folder} cannot be indexed\n{answer.result.exception.stack_trace}")
    metadata = (await runtime.functions_metadata_request(protos.WorkerRequest())).function_metadata_results or []
    for entry in metadata:
        load = protos.RpcFunctionMetadata(function_id=entry.function_id)
        await runtime.function_load_request(protos.WorkerRequest(function_load_request=load))
    return tuple(_loaded(entry) for entry in metadata)


async def invoke(
    function: LoadedFunction,
    data: TypedData,
    *,
    metadata: Mapping[str, TypedData] | None = None,
    traceparent: str = "",
    retry: RetryContext | None = None,
) -> TypedData | None:
    """Call a function and return its ``$return`` value, None when it has none.

    Args:
        function: one that ``index`` returned.
        data: what triggered it.
        metadata: what the trigger knows beside it.
        traceparent: the caller's W3C trace context, empty where it sent none. The invocation is given the same: this
            host makes no spans, so none stands between the caller and the function.
        retry: which attempt this is.

    Raises:
        FunctionFailed: the function raised, or returned what its bindings cannot take.
    """
    call = InvocationRequest(function.function_id, str(uuid.uuid4()), ParameterBinding(function.trigger["name"], data))
    call.trace_context.trace_parent = traceparent if _TRACEPARENT.fullmatch(traceparent) else ""
    call.input_data.extend(ParameterBinding(name, given) for name, given in function.inputs.items())
    if metadata:
        call.trigger_metadata = dict(metadata)
    if retry is not None:
        call.retry_context = retry
    answer = await _guarded(protos.WorkerRequest(invocation_request=call))
    if answer.result.status != protos.StatusResult.Success:
        failure = answer.result.exception
        raise FunctionFailed(failure.message, failure.stack_trace)
    value: TypedData | None = answer.return_value
    return value


async def _guarded(request: protos.WorkerRequest) -> Any:
    """Call the worker library, which lets through what is no ``Exception``; the host must not end with one function."""
    try:
        return await runtime.invocation_request(request)
    except SystemExit as error:
        raise FunctionFailed(f"SystemExit: {error}", traceback.format_exc()) from None
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        raise FunctionFailed("CancelledError: the function was cancelled from within", traceback.format_exc()) from None


def _loaded(entry: Any) -> LoadedFunction:
    bindings: Sequence[dict[str, Any]] = [json.loads(text) for text in entry.raw_bindings]
    trigger = next((binding for binding in bindings if binding["type"].endswith("Trigger")), None)
    if trigger is None:
        raise StartError(f"the function {entry.name} has no trigger")
    clients = {binding["name"]: binding.get("taskHub") for binding in bindings if binding["type"] == "durableClient"}
    return LoadedFunction(entry.name, entry.function_id, trigger, read_retry_policy(entry.retry_options), clients)
