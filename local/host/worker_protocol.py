"""Messages between the worker library and its host, as plain classes with attributes.

The library is given this module as its ``protos``; the names are those of the Functions language worker protocol
(github.com/Azure/azure-functions-language-worker-protobuf).
"""

from typing import Any, ClassVar


class _Message:
    """Message of the protocol, with its fields as attributes."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)


class BindingInfo(_Message):
    """A binding's type, data type and direction."""

    undefined: ClassVar[int] = 0
    out: ClassVar[int] = 1
    inout: ClassVar[int] = 2


class StatusResult(_Message):
    """Result of a call, with the exception if it failed."""

    Failure: ClassVar[int] = 0
    Success: ClassVar[int] = 1


class WorkerInitResponse(_Message):
    """Reply to the first call; it fails if the app cannot be indexed."""


class WorkerMetadata(_Message):
    """Versions of the worker library."""


class RpcFunctionMetadata(_Message):
    """Function: id, name, bindings as JSON texts, retry options."""


class FunctionMetadataResponse(_Message):
    """All functions of the app."""


class FunctionLoadResponse(_Message):
    """Reply to the load of a function."""


class InvocationResponse(_Message):
    """Reply to an invocation."""


class RpcException(_Message):
    """An exception as text: message and stack trace."""


class RpcRetryOptions(_Message):
    """A function's retry policy."""


class NullableString(_Message):
    """A text that may be missing."""


class NullableBool(_Message):
    """A flag that may be missing."""


class NullableDouble(_Message):
    """A number that may be missing."""


class NullableTimestamp(_Message):
    """An instant that may be missing."""


class Timestamp(_Message):
    """Seconds since 1970."""


class CollectionString(_Message):
    """Texts, under ``string``."""


class CollectionBytes(_Message):
    """Byte strings, under ``bytes``."""


class CollectionSInt64(_Message):
    """Whole numbers, under ``sint64``."""


class _SameSite:
    Lax = "Lax"
    Strict = "Strict"
    ExplicitNone = "None"


setattr(_SameSite, "None", "")  # a keyword; the worker library's name for a cookie without the attribute


class RpcHttpCookie(_Message):
    """A cookie that a function sets."""

    SameSite = _SameSite


class RpcHttp(_Message):
    """An HTTP request or response."""


class TypedData:
    """Value with its kind: ``TypedData(bytes=b"")`` has the attribute ``bytes``."""

    __slots__ = ("kind", "value")

    def __init__(self, **field: Any) -> None:
        ((self.kind, self.value),) = field.items()

    def WhichOneof(self, _group: str) -> str:  # noqa: N802  the protocol's name
        """Return the kind."""
        return self.kind

    @property
    def TypedData(self) -> "TypedData":  # noqa: N802  the library reads it first, and an exception is slow
        """Return itself."""
        return self

    def __getattr__(self, name: str) -> Any:
        if name == self.kind:
            return self.value
        raise AttributeError(name)


class ParameterBinding:
    """An input or output of an invocation, by the name of its binding."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: TypedData | None) -> None:
        self.name = name
        self.data = data

    def WhichOneof(self, _group: str) -> str:  # noqa: N802  the protocol's name
        """Return the only kind of value."""
        return "data"


class TraceContext:
    """The W3C trace context of an invocation."""

    __slots__ = ("attributes", "trace_parent", "trace_state")

    def __init__(self, trace_parent: str, trace_state: str) -> None:
        self.trace_parent = trace_parent
        self.trace_state = trace_state
        self.attributes: dict[str, str] = {}


class RetryContext:
    """Attempt number of an invocation."""

    __slots__ = ("exception", "max_retry_count", "retry_count")

    def __init__(self, retry_count: int, max_retry_count: int) -> None:
        self.retry_count = retry_count
        self.max_retry_count = max_retry_count
        self.exception = None


class InvocationRequest:
    """A call of one function."""

    __slots__ = ("function_id", "input_data", "invocation_id", "retry_context", "trace_context", "trigger_metadata")

    def __init__(self, function_id: str, invocation_id: str, trigger: ParameterBinding) -> None:
        self.function_id = function_id
        self.invocation_id = invocation_id
        self.input_data = [trigger]
        self.trigger_metadata: dict[str, TypedData] = {}
        self.trace_context = TraceContext("", "")
        self.retry_context = _FIRST_ATTEMPT


class WorkerRequest:
    """Envelope of a call: its content in ``request``, and ``properties``."""

    __slots__ = ("properties", "request")

    def __init__(self, **content: Any) -> None:
        self.request = _Message(**content)
        self.properties: dict[str, Any] = {}


_FIRST_ATTEMPT = RetryContext(0, 0)
