"""Messages between the Azure Functions worker library and its host, as plain classes with attributes.

The host passes this module to the library as ``protos``; the names are those of the Functions language worker protocol
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
    """Protocol message: type, data type and direction of a function's binding."""

    undefined: ClassVar[int] = 0
    out: ClassVar[int] = 1
    inout: ClassVar[int] = 2


class StatusResult(_Message):
    """Protocol message: whether a call succeeded, with the exception if it failed."""

    Failure: ClassVar[int] = 0
    Success: ClassVar[int] = 1


class WorkerInitResponse(_Message):
    """Protocol message: reply to the first call; it contains an error if the app's functions cannot be listed."""


class WorkerMetadata(_Message):
    """Protocol message: versions of the worker library."""


class RpcFunctionMetadata(_Message):
    """Protocol message: a function's id, name, bindings as JSON texts, and retry options."""


class FunctionMetadataResponse(_Message):
    """Protocol message: all functions of the app."""


class FunctionLoadResponse(_Message):
    """Protocol message: reply to the request to load a function."""


class InvocationResponse(_Message):
    """Protocol message: reply to the invocation of a function."""


class RpcException(_Message):
    """Protocol message: an exception's message and stack trace as texts."""


class RpcRetryOptions(_Message):
    """Protocol message: a function's retry policy."""


class NullableString(_Message):
    """Protocol message: a text that can be missing."""


class NullableBool(_Message):
    """Protocol message: a flag that can be missing."""


class NullableDouble(_Message):
    """Protocol message: a number that can be missing."""


class NullableTimestamp(_Message):
    """Protocol message: a time that can be missing."""


class Timestamp(_Message):
    """Protocol message: a time in seconds since 1970."""


class CollectionString(_Message):
    """Protocol message: a list of texts in its field ``string``."""


class CollectionBytes(_Message):
    """Protocol message: a list of byte strings in its field ``bytes``."""


class CollectionSInt64(_Message):
    """Protocol message: a list of whole numbers in its field ``sint64``."""


class _SameSite:
    Lax = "Lax"
    Strict = "Strict"
    ExplicitNone = "None"


setattr(_SameSite, "None", "")  # a keyword; the worker library's name for a cookie without the attribute


class RpcHttpCookie(_Message):
    """Protocol message: a cookie that a function sets."""

    SameSite = _SameSite


class RpcHttp(_Message):
    """Protocol message: an HTTP request or response."""


class TypedData:
    """Protocol message: a value of one of several types.

    The message has one attribute, whose name is the type of the value, such as ``string`` for a text.
    """

    __slots__ = ("kind", "value")

    def __init__(self, **field: Any) -> None:
        ((self.kind, self.value),) = field.items()

    def WhichOneof(self, _group: str) -> str:  # noqa: N802  the protocol's name
        """Return the name of the field that is set, which is the type of the value."""
        return self.kind

    @property
    def TypedData(self) -> "TypedData":  # noqa: N802  the library reads it first, and an exception is slow
        """Return this object.

        The worker library reads this property because it expects a value that is wrapped in a message.
        """
        return self

    def __getattr__(self, name: str) -> Any:
        if name == self.kind:
            return self.value
        raise AttributeError(name)


class ParameterBinding:
    """Protocol message: an input or output of an invocation, with the name of its binding."""

    __slots__ = ("data", "name")

    def __init__(self, name: str, data: TypedData | None) -> None:
        self.name = name
        self.data = data

    def WhichOneof(self, _group: str) -> str:  # noqa: N802  the protocol's name
        """Return the name of the field that is set; this message has only one."""
        return "data"


class TraceContext:
    """Protocol message: the W3C trace context of an invocation."""

    __slots__ = ("attributes", "trace_parent", "trace_state")

    def __init__(self, trace_parent: str, trace_state: str) -> None:
        self.trace_parent = trace_parent
        self.trace_state = trace_state
        self.attributes: dict[str, str] = {}


class RetryContext:
    """Protocol message: how often an invocation was retried."""

    __slots__ = ("exception", "max_retry_count", "retry_count")

    def __init__(self, retry_count: int, max_retry_count: int) -> None:
        self.retry_count = retry_count
        self.max_retry_count = max_retry_count
        self.exception = None


class InvocationRequest:
    """Protocol message: the call of one function."""

    __slots__ = ("function_id", "input_data", "invocation_id", "retry_context", "trace_context", "trigger_metadata")

    def __init__(self, function_id: str, invocation_id: str, trigger: ParameterBinding) -> None:
        self.function_id = function_id
        self.invocation_id = invocation_id
        self.input_data = [trigger]
        self.trigger_metadata: dict[str, TypedData] = {}
        self.trace_context = TraceContext("", "")
        self.retry_context = _FIRST_ATTEMPT


class WorkerRequest:
    """Protocol message of a call: the content is in ``request``, and its metadata in ``properties``."""

    __slots__ = ("properties", "request")

    def __init__(self, **content: Any) -> None:
        self.request = _Message(**content)
        self.properties: dict[str, Any] = {}


_FIRST_ATTEMPT = RetryContext(0, 0)
