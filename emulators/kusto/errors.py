"""Query errors in the format of Azure Data Explorer.

Error codes, exception names and the flag "permanent" follow the table "Kusto.Data exceptions" of the Data Explorer
documentation. Failures after the start of execution follow its page "Partial query failures".
"""

from typing import Any

_TYPES = "Kusto.Data.Exceptions."
_OK = 200
_INVALID = "Request is invalid and cannot be executed."


type LineAndColumn = tuple[int, int]
"""Position in a query text: line and column, both counted from 1."""


class QueryError(Exception):
    """Error of a request or query, with the properties of Data Explorer's error document.

    Args:
        status: HTTP status of the reply.
        code: property ``code`` of the error document.
        type_name: name of the exception in the .NET namespace ``Kusto.Data.Exceptions``.
        message: description of the error, without heading and position.
        heading: text before the message, such as ``Semantic error: SEM0100: ``.
        inner: stable code of the cause, such as ``SEM0100`` or ``EMB0002``.
        permanent: True if a retry of the same request cannot succeed.
        position: position of the cause in the query text; None if it is unknown.
        subject: name in the query text that caused the error, ``name()`` for a call; without ``position``, the
            engine reports the position of this name.
    """

    def __init__(
        self,
        *,
        status: int,
        code: str,
        type_name: str,
        message: str,
        heading: str = "",
        inner: str = "",
        permanent: bool = True,
        position: LineAndColumn | None = None,
        subject: str = "",
    ) -> None:
        suffix = f" [line:position={position[0]}:{position[1]}]" if position else ""
        super().__init__(f"{heading}{message}{suffix}")
        self.status = status
        self.code = code
        self.type_name = type_name
        self.sentence = message
        self.heading = heading
        self.inner = inner
        self.permanent = permanent
        self.position = position
        self.subject = subject

    @property
    def message(self) -> str:
        """Complete text of the error: heading, description and, if known, position."""
        return str(self)

    @property
    def is_partial_failure(self) -> bool:
        """True if the query failed after the start of execution; the reply then has status 200, as in Data Explorer."""
        return self.status == _OK

    def to_constructor_arguments(self) -> dict[str, Any]:
        """Return the constructor's arguments as JSON values, from which another process can recreate the error."""
        names = ("status", "code", "type_name", "heading", "inner", "permanent", "position", "subject")
        return {"message": self.sentence, **{name: getattr(self, name) for name in names}}

    def with_position(self, position: LineAndColumn, operator_name: str = "") -> "QueryError":
        """Return a copy of the error with a position.

        If ``operator_name`` is the name of a query operator, the message begins with it.
        """
        sentence = f"'{operator_name}' operator: {self.sentence}" if operator_name else self.sentence
        return QueryError(**{**self.to_constructor_arguments(), "message": sentence, "position": position})

    def to_document(self) -> dict[str, Any]:
        """Return the error document of Data Explorer as JSON, without the property ``@context``."""
        error: dict[str, Any] = {
            "code": self.code,
            "message": _INVALID if self.permanent else "Request aborted due to an internal service error.",
            "@type": _TYPES + self.type_name,
            "@message": self.message,
            "@permanent": self.permanent,
        }
        if self.inner:
            error["innererror"] = {"code": self.inner, "message": self.message, **self._build_position_members()}
        return {"error": error}

    def _build_position_members(self) -> dict[str, str]:
        if self.position is None:
            return {}
        line, column = self.position
        return {"@line": str(line), "@pos": str(column)}


def syntax_error(message: str, position: LineAndColumn | None = None) -> QueryError:
    """Build the error for a query text with a syntax error."""
    return QueryError(
        status=400,
        code="BadRequest_SyntaxError",
        type_name="SyntaxException",
        heading="Syntax error: Query could not be parsed: ",
        message=message,
        inner="SYN0002",
        position=position,
    )


def semantic_error(
    message: str, *, inner: str = "SEM0100", position: LineAndColumn | None = None, subject: str = ""
) -> QueryError:
    """Build the error for a query with an unknown table, column or parameter, or with a wrong type."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="SemanticException",
        heading=f"Semantic error: {inner}: ",
        message=message,
        inner=inner,
        position=position,
        subject=subject,
    )


def unresolved_name_error(name: str) -> QueryError:
    """Build the error for a name that is not a column, variable or parameter."""
    return semantic_error(f"Failed to resolve scalar expression named '{name[:200]}'", subject=name)


def unsupported_error(
    construct: str, reason: str = "", position: LineAndColumn | None = None, subject: str = ""
) -> QueryError:
    """Build the error for a KQL construct that the emulator does not support.

    Args:
        construct: the construct, as named in the message.
        reason: reason or remedy, which the message contains in parentheses; empty for none.
        position: position of the construct in the query text; None to search for ``subject`` in the query text.
        subject: name in the query text whose position the error reports; empty for the first word of ``construct``.
    """
    because = f" ({reason})" if reason else ""
    return QueryError(
        status=400,
        code="BadRequest_NotSupported",
        type_name="CslNotSupportedException",
        heading="Semantic error: EMB0001: ",
        message=f"'{construct}' is not supported by the embedded query engine{because}",
        inner="EMB0001",
        position=position,
        subject=subject or construct.split(" ", 1)[0],
    )


def error_from_code(inner_code: str, message: str) -> QueryError:
    """Build the error for a query from an inner code and a message; ``EMB0001`` means an unsupported construct.

    DuckDB detects most of these errors during binding or execution, because only DuckDB knows the column types.
    """
    is_unsupported = inner_code == "EMB0001"
    return QueryError(
        status=400,
        code="BadRequest_NotSupported" if is_unsupported else "General_BadRequest",
        type_name="CslNotSupportedException" if is_unsupported else "SemanticException",
        heading=f"Semantic error: {inner_code}: ",
        message=message,
        inner=inner_code,
    )


def untranslatable_error() -> QueryError:
    """Build the error for a query for which the translator library raised an unexpected exception, which is logged."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="SemanticException",
        heading="Semantic error: EMB0005: ",
        message="the embedded query engine cannot translate this query",
        inner="EMB0005",
    )


def not_read_only_error(position: LineAndColumn | None = None) -> QueryError:
    """Build the error for a control command (a statement that begins with a dot), because it may write data."""
    return QueryError(
        status=400,
        code="BadRequest_NotReadOnly",
        type_name="KustoBadRequestException",
        heading="Bad request: EMB0002: ",
        message="control commands are not accepted here; this endpoint accepts queries only.",
        inner="EMB0002",
        position=position,
    )


def too_complex_error(message: str) -> QueryError:
    """Build the error for a query text that is too long, nested too deeply or too expensive to translate."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="QueryCslTreeExceedsDepthsLimitsException",
        heading="Semantic error: EMB0003: ",
        message=message,
        inner="EMB0003",
    )


def bad_request_error(message: str) -> QueryError:
    """Build the error for a malformed HTTP request; ``message`` states the property and the rule."""
    return QueryError(
        status=400, code="General_BadRequest", type_name="KustoBadRequestException", message=f"Bad request: {message}"
    )


def unknown_database_error(name: str) -> QueryError:
    """Build the error for a request to a database that does not exist."""
    return QueryError(
        status=400,
        code="BadRequest_DatabaseNotExist",
        type_name="DatabaseNotFoundException",
        message=f"Database '{name[:100]}' could not be found.",
    )


def result_too_large_error(message: str) -> QueryError:
    """Build the error for a query result that exceeds the record limit or size limit of the request."""
    return QueryError(
        status=200,
        code="LimitsExceeded",
        type_name="KustoServicePartialQueryFailureLimitsExceededException",
        message=f"Query execution has exceeded the allowed limits (80DA0003): {message}, so not all records were "
        "returned (E_QUERY_RESULT_SET_TOO_LARGE, 0x80DA0003).",
    )


def out_of_memory_error() -> QueryError:
    """Build the error for a query that needs more memory than the engine has."""
    return QueryError(
        status=200,
        code="LimitsExceeded",
        type_name="KustoServicePartialQueryFailureLimitsExceededException",
        message="Query execution has exceeded the allowed limits (80DA0001): the query has exceeded the memory budget "
        "during evaluation (E_RUNAWAY_QUERY).",
    )


def runaway_query_error(message: str) -> QueryError:
    """Build the error for a query that creates a very large value, such as a text of gigabytes."""
    return QueryError(
        status=200,
        code="LimitsExceeded",
        type_name="KustoServicePartialQueryFailureLimitsExceededException",
        message=f"Query execution has exceeded the allowed limits (80DA0007): {message} (E_RUNAWAY_QUERY).",
    )


def timeout_error() -> QueryError:
    """Build the error for a query that exceeded its server timeout."""
    return QueryError(
        status=504,
        code="RequestExecutionTimeout",
        type_name="KustoServiceTimeoutException",
        message="Request execution has timed out on the service side.",
        permanent=False,
    )


def throttling_error(max_running: int) -> QueryError:
    """Build the error for a query that is rejected because too many queries are running or waiting."""
    return QueryError(
        status=429,
        code="TooManyRequests",
        type_name="KustoRequestThrottledException",
        message=f"The query was aborted due to throttling. Capacity: {max_running}. Retrying after some back-off might "
        "help.",
        permanent=False,
    )


def execution_error(message: str) -> QueryError:
    """Build the error for a computation that failed during execution, such as an overflow or a failed conversion."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="KustoBadRequestException",
        heading="Query execution failed: ",
        message=message,
        inner="EMB0004",
    )


def internal_error() -> QueryError:
    """Build the error for a defect of the emulator; the log contains the details."""
    return QueryError(
        status=500,
        code="InternalServiceError",
        type_name="KustoServiceException",
        message="An internal error occurred; see the log of the endpoint.",
        permanent=False,
    )
