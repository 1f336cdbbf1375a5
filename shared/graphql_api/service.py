"""Execution of GraphQL requests: parsing, limits, resolvers and errors."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass, replace
from functools import cached_property, partial
from inspect import isawaitable
from pathlib import Path
from types import CoroutineType
from typing import Any, Final, TypeGuard

from ariadne import load_schema_from_path, make_executable_schema
from graphql import (
    ExecutionResult,
    GraphQLError,
    GraphQLSchema,
    OperationDefinitionNode,
    OperationType,
    ValueNode,
    execute,
    execute_sync,
    get_operation_ast,
)

from shared.auth.principals import Principal
from shared.catalog.snapshot import Catalog
from shared.errors import Kind, WorkspaceError
from shared.fair_use.fair_scheduler import FairScheduler
from shared.fair_use.principal_slots import PrincipalSlots
from shared.graphql_api.document_cache import DocumentCache, PreparedDocument
from shared.graphql_api.error_codes import INTERNAL_ERROR, VALIDATION_ERROR, to_graphql_extensions
from shared.graphql_api.limits import (
    MAX_MUTATION_LIST_FIELDS,
    estimate_result_fields,
    find_exceeded_limit_message,
    is_introspection,
)
from shared.graphql_api.request import (
    GraphQLRequest,
    PrefetchedColumns,
    build_column_loader,
    build_too_many_fields_error,
)
from shared.graphql_api.resolvers import DATE_TIME, JSON, TYPES
from shared.interpreter import LARGE_VALUES, pause_garbage_collection
from shared.observability import logs
from shared.runtime import LARGE, SYSTEM_RUNTIME, Runtime, run_in_turn
from shared.telemetry.connection_status import ConnectionStatuses
from shared.telemetry.ports import ConnectionStateStore
from shared.warm_queries.columns import QueryColumns
from shared.warm_queries.service import WarmQueries

SCHEMA_FILE: Final = Path(__file__).with_name("schema.graphql")
_STATE_FIELDS: Final = frozenset({"status", "stats", "connections"})
"""Names of fields that need the connections' message statistics."""
_LONG_EXECUTIONS: Final = 1
"""Number of long results that are computed at once; each takes the interpreter from the event loop in turn."""
_LONG_REQUESTS_PER_PRINCIPAL: Final = 4
"""Maximum number of long requests of one principal that run or wait."""
_MAX_FIELDS_IN_EVENT_LOOP: Final = 2_000
"""Maximum number of fields in a result for which an operation is executed in the event loop.

A field takes about 5 µs, and passing an operation to a worker thread takes as long as 20 fields.
"""


type _Execution = Callable[..., ExecutionResult | Awaitable[ExecutionResult]]
"""Function that executes an operation; its argument ``context_value`` is the context of the resolvers."""


@dataclass(frozen=True, slots=True)
class GraphQLResult:
    """Result of a GraphQL request.

    Attributes:
        body: ``data`` and ``errors``, ready for JSON.
        executed: False if the operation was rejected: ``data`` is missing, and no error belongs to a single field.
        row_bytes: size of the rows of all queries in ``data``, which are serialised already.
    """

    body: dict[str, Any]
    executed: bool
    row_bytes: int = 0


class GraphQLService:
    """GraphQL interface of the workspace.

    Args:
        catalog: function that returns the current workspace catalog.
        states: store of the connections' message statistics.
        statuses: derives the status of a connection.
        warm_queries: executes saved KQL queries.
        columns: source of the result columns of queries.
        runtime: clock, randomness and threads.
    """

    def __init__(
        self,
        catalog: Callable[[], Awaitable[Catalog]],
        states: ConnectionStateStore,
        statuses: ConnectionStatuses,
        warm_queries: WarmQueries,
        columns: QueryColumns,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._catalog = catalog
        self._states = states
        self._statuses = statuses
        self._warm_queries = warm_queries
        self._columns = columns
        self._runtime = runtime
        self._long_executions = FairScheduler(_LONG_EXECUTIONS)
        self._long_requests = PrincipalSlots(
            _LONG_REQUESTS_PER_PRINCIPAL,
            f"A principal can have {_LONG_REQUESTS_PER_PRINCIPAL} long GraphQL requests at once; retry later.",
        )

    async def run(
        self,
        principal: Principal,
        document_text: str,
        variables: Mapping[str, Any],
        operation_name: str | None,
        *,
        queries_only: bool = False,
    ) -> GraphQLResult:
        """Validate and execute a GraphQL request.

        Args:
            principal: the caller.
            document_text: GraphQL document.
            variables: values of the document's variables.
            operation_name: name of the operation; None if the document has only one.
            queries_only: True to reject mutations, because the HTTP method is GET.

        Raises:
            WorkspaceError: METHOD_NOT_ALLOWED for a mutation if ``queries_only`` is set.
        """
        prepared = await self._document_cache.load(document_text)
        if prepared.document is None or prepared.errors:
            return _build_rejected_result([format_error(error) for error in prepared.errors])
        operation = get_operation_ast(prepared.document, operation_name)
        if operation is None:
            rule = (
                "the document must have exactly one operation, or operationName must name one"
                if operation_name is None
                else "the document has no operation with this name"
            )
            return _build_rejected_result([_build_validation_error_object(f"operationName: {rule}")])
        if queries_only and operation.operation is not OperationType.QUERY:
            detail = "GET accepts only queries; use POST for a mutation."
            raise WorkspaceError(Kind.METHOD_NOT_ALLOWED, "METHOD_NOT_ALLOWED", detail, allow=["POST"])
        exceeded = find_exceeded_limit_message(prepared.document, operation, variables)
        if exceeded is not None:
            return _build_rejected_result([_build_validation_error_object(exceeded)])
        if is_introspection(prepared.document, operation):
            return await self._execute_introspection(prepared, variables, operation_name)
        return await self._execute_operation(principal, prepared, operation, variables)

    async def _execute_introspection(
        self, prepared: PreparedDocument, variables: Mapping[str, Any], operation_name: str | None
    ) -> GraphQLResult:
        """Execute an operation that only reads the schema, in a worker thread, because it takes up to half a second."""
        assert prepared.document is not None  # noqa: S101  documents with errors are rejected above
        # The few threads for large texts also limit how many introspections run at once.
        result = await self._runtime.run_in_thread_if_large(
            LARGE,
            execute_sync,
            self.schema,
            prepared.document,
            variable_values=dict(variables),
            operation_name=operation_name,
        )
        return _to_graphql_result(result, ())

    async def _execute_operation(
        self,
        principal: Principal,
        prepared: PreparedDocument,
        operation: OperationDefinitionNode,
        variables: Mapping[str, Any],
    ) -> GraphQLResult:
        context = await self.build_context(principal, loads_states=not _STATE_FIELDS.isdisjoint(prepared.field_names))
        assert prepared.document is not None  # noqa: S101  documents with errors are rejected above
        start = partial(
            execute,
            self.schema,
            prepared.document,
            variable_values=dict(variables),
            operation_name=operation.name.value if operation.name else None,
            is_awaitable=_is_coroutine,
        )
        max_fields = estimate_result_fields(
            prepared.document, operation, variables, context.catalog.longest_nested_list_length
        )
        # A mutation returns query results, and their rows are serialised in a worker thread if there are many.
        if operation.operation is not OperationType.QUERY:
            context.max_nested_list_fields = MAX_MUTATION_LIST_FIELDS
            return _build_result(await _execute_in_event_loop(start, context), context)
        if max_fields <= _MAX_FIELDS_IN_EVENT_LOOP:
            attempt = replace(context, failures=[], max_nested_list_fields=_MAX_FIELDS_IN_EVENT_LOOP)
            result = await _execute_in_event_loop(start, attempt)
            # The estimate does not contain the items of the lists ``parameters`` and ``columns``.
            if not attempt.has_too_many_fields:
                return _build_result(result, attempt)
        return _build_result(await self._execute_in_thread(start, context), context)

    async def _execute_in_thread(self, start: _Execution, context: GraphQLRequest) -> ExecutionResult:
        """Execute a query in a worker thread; while result columns are missing, load them and execute it again.

        Other long requests can use the thread while this one loads columns. A cancelled request occupies the thread
        until its execution has finished.

        Raises:
            WorkspaceError: THROTTLED if too many long requests of the principal run or wait.
        """
        member_id = context.principal.member_id
        context.prefetched = PrefetchedColumns()
        async with self._long_requests.occupy_slot(member_id, wait_seconds=0):
            while True:
                context.clear_errors_and_field_count()
                result = await run_in_turn(
                    self._long_executions,
                    member_id,
                    self._long_execution_pool,
                    _execute_without_garbage_collection,
                    start,
                    context,
                )
                assert isinstance(result, ExecutionResult)  # noqa: S101  with prefetched columns no resolver is asynchronous
                if context.has_too_many_fields or context.prefetched.is_complete:
                    return result
                # Requests that wait for columns must not occupy the memory of incomplete results.
                del result
                await context.prefetched.load_missing(context.columns)

    async def build_context(self, principal: Principal, *, loads_states: bool) -> GraphQLRequest:
        """Load the catalog for one request, and build the context for its resolvers.

        Args:
            principal: the caller.
            loads_states: True to load the connections' message statistics, because the request selects a field that
                needs them.
        """
        catalog = await self._catalog()
        return GraphQLRequest(
            principal,
            catalog,
            await self._states.load_states_by_connection() if loads_states else {},
            self._statuses,
            self._warm_queries,
            build_column_loader(self._columns, catalog),
            runtime=self._runtime,
        )

    @cached_property
    def schema(self) -> GraphQLSchema:
        """Executable GraphQL schema: the schema file with its resolvers."""
        return make_executable_schema(load_schema_from_path(str(SCHEMA_FILE)), *TYPES, DATE_TIME, JSON)

    @cached_property
    def _long_execution_pool(self) -> Executor:
        # The threads for large texts process telemetry, too, which must not wait for results of a second.
        return self._runtime.open_pool(_LONG_EXECUTIONS, "long GraphQL results")

    @cached_property
    def _document_cache(self) -> DocumentCache:
        return DocumentCache(self.schema, runtime=self._runtime)


def _is_coroutine(value: Any) -> TypeGuard[Awaitable[Any]]:
    """Return whether the result of a GraphQL resolver is a coroutine, which must be awaited."""
    return type(value) is CoroutineType


def _execute_without_garbage_collection(
    start: _Execution, context: GraphQLRequest
) -> ExecutionResult | Awaitable[ExecutionResult]:
    """Execute an operation in the current thread, without a pause for a garbage collection.

    A collection would examine all values of the result, during which the event loop would wait.
    """
    with pause_garbage_collection(LARGE_VALUES):
        return start(context_value=context)


async def _execute_in_event_loop(start: _Execution, context: GraphQLRequest) -> ExecutionResult:
    execution = start(context_value=context)
    return await execution if isawaitable(execution) else execution


def _build_result(result: ExecutionResult, context: GraphQLRequest) -> GraphQLResult:
    """Build the result of an execution with this context, or an error if its lists have too many fields."""
    if context.has_too_many_fields:
        return _build_rejected_result([format_error(build_too_many_fields_error(context.max_nested_list_fields))])
    return replace(_to_graphql_result(result, context.failures), row_bytes=context.row_bytes)


def _to_graphql_result(result: ExecutionResult, failures: Sequence[GraphQLError]) -> GraphQLResult:
    """Convert a result of the GraphQL library; ``failures`` are errors of fields that returned a fallback value."""
    errors = [format_error(error) for error in (*(result.errors or ()), *failures)]
    if result.data is None and all(not error["path"] for error in errors):
        return _build_rejected_result(errors)
    return GraphQLResult({"data": result.data, **({"errors": errors} if errors else {})}, executed=True)


def _build_rejected_result(errors: list[dict[str, Any]]) -> GraphQLResult:
    return GraphQLResult({"errors": errors}, executed=False)


def _build_validation_error_object(message: str) -> dict[str, Any]:
    return {"message": message, "path": [], "extensions": {"code": VALIDATION_ERROR}}


_LOG = logs.get_logger("graphql")


def format_error(error: GraphQLError) -> dict[str, Any]:
    """Convert an error of the GraphQL library to an error object; log unexpected errors and hide their messages."""
    cause = error.original_error
    while isinstance(cause, GraphQLError):
        cause = cause.original_error
    error_object: dict[str, Any] = {"message": error.message, "path": list(error.path or ())}
    if error.locations:
        error_object["locations"] = [{"line": place.line, "column": place.column} for place in error.locations]
    if isinstance(cause, WorkspaceError):
        return {**error_object, "message": cause.detail, "extensions": to_graphql_extensions(cause)}
    if cause is None and (error.path is None or _is_invalid_input(error)):
        return {**error_object, "extensions": {"code": VALIDATION_ERROR}}
    _LOG.error("unexpected error in a resolver", exc_info=cause or error)
    return {
        **error_object,
        "message": "Internal error; the service log contains the reason.",
        "extensions": {"code": INTERNAL_ERROR},
    }


def _is_invalid_input(error: GraphQLError) -> bool:
    """Return whether an error of a field is about a value that the caller sent, such as null for a required argument.

    The library finds the null of a variable only when it executes the field (GraphQL specification, section 5.8.5).
    """
    if isinstance(error.extensions, dict) and error.extensions.get("code") == VALIDATION_ERROR:
        return True
    return any(isinstance(node, ValueNode) for node in error.nodes or ())
