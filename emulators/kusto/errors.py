"""What the endpoint answers when it does not answer rows: the error documents of Azure Data Explorer.

Failure codes, type names and permanence follow the table "Kusto.Data exceptions" of the Data Explorer documentation
and, for failures after execution has begun, "Partial query failures".
"""

from typing import Any

_TYPES = "Kusto.Data.Exceptions."
_OK = 200
_INVALID = "Request is invalid and cannot be executed."


class QueryError(Exception):
    """A query that is not answered with rows.

    Args:
        status: the HTTP status.
        code: the error document's ``code``.
        type_name: the exception's name in ``Kusto.Data.Exceptions``.
        message: the sentence for a person.
        heading: what stands before the sentence; the place, where there is one, stands behind it.
        inner: a short stable code of what exactly was wrong (``SEM0100``, ``EMB0002``).
        permanent: false where trying again may help.
        position: line and column in the query text, both from 1.
        subject: the name that the error is about, ``name()`` for a call; with it the position can be found.
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
        position: tuple[int, int] | None = None,
        subject: str = "",
    ) -> None:
        where = f" [line:position={position[0]}:{position[1]}]" if position else ""
        super().__init__(f"{heading}{message}{where}")
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
        """Heading, sentence and place."""
        return str(self)

    @property
    def partial(self) -> bool:
        """Whether the failure is reported inside a 200, as Data Explorer does once execution has begun."""
        return self.status == _OK

    def arguments(self) -> dict[str, Any]:
        """Return what makes the same error again, in JSON's types."""
        names = ("status", "code", "type_name", "heading", "inner", "permanent", "position", "subject")
        return {"message": self.sentence, **{name: getattr(self, name) for name in names}}

    def at(self, position: tuple[int, int], operator: str = "") -> "QueryError":
        """Return the error with its place: line and column from 1, and the tabular operator where one is known."""
        sentence = f"'{operator}' operator: {self.sentence}" if operator else self.sentence
        return QueryError(**{**self.arguments(), "message": sentence, "position": position})

    def document(self) -> dict[str, Any]:
        """Return the error document, without its request context."""
        error: dict[str, Any] = {
            "code": self.code,
            "message": _INVALID if self.permanent else "Request aborted due to an internal service error.",
            "@type": _TYPES + self.type_name,
            "@message": self.message,
            "@permanent": self.permanent,
        }
        if self.inner:
            error["innererror"] = {"code": self.inner, "message": self.message, **self._place()}
        return {"error": error}

    def _place(self) -> dict[str, str]:
        if self.position is None:
            return {}
        line, column = self.position
        return {"@line": str(line), "@pos": str(column)}


def syntax_error(message: str, position: tuple[int, int] | None = None) -> QueryError:
    """The query text does not parse; ``position`` is line and column from 1."""
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
    message: str, *, inner: str = "SEM0100", position: tuple[int, int] | None = None, subject: str = ""
) -> QueryError:
    """The query parses but does not bind: unknown table, column or parameter, wrong type."""
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


def unresolved(name: str) -> QueryError:
    """A name in an expression is no column, no variable and no parameter."""
    return semantic_error(f"Failed to resolve scalar expression named '{name[:200]}'", subject=name)


def unsupported(
    construct: str, reason: str = "", position: tuple[int, int] | None = None, subject: str = ""
) -> QueryError:
    """Data Explorer knows the construct, this endpoint does not: refused by name, never guessed at.

    Without a ``subject`` the first word of the construct is what its place is looked up by.
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


def faulty(code: str, message: str) -> QueryError:
    """A fault of the query that shows when its types are known; ``code`` is that of the translator's own errors."""
    refused = code == "EMB0001"
    return QueryError(
        status=400,
        code="BadRequest_NotSupported" if refused else "General_BadRequest",
        type_name="CslNotSupportedException" if refused else "SemanticException",
        heading=f"Semantic error: {code}: ",
        message=message,
        inner=code,
    )


def untranslatable() -> QueryError:
    """The translator fails on the text in a way that it does not tell; the log has the details."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="SemanticException",
        heading="Semantic error: EMB0005: ",
        message="the embedded query engine cannot translate this query",
        inner="EMB0005",
    )


def not_read_only(position: tuple[int, int] | None = None) -> QueryError:
    """A control command where a query belongs."""
    return QueryError(
        status=400,
        code="BadRequest_NotReadOnly",
        type_name="KustoBadRequestException",
        heading="Bad request: EMB0002: ",
        message="control commands are not accepted here; this endpoint answers queries only.",
        inner="EMB0002",
        position=position,
    )


def too_complex(message: str) -> QueryError:
    """The text is too long or nested too deeply to be worked on."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="QueryCslTreeExceedsDepthsLimitsException",
        heading="Semantic error: EMB0003: ",
        message=message,
        inner="EMB0003",
    )


def bad_request(message: str) -> QueryError:
    """The request itself is malformed: not the query's fault."""
    return QueryError(
        status=400, code="General_BadRequest", type_name="KustoBadRequestException", message=f"Bad request: {message}"
    )


def unknown_database(name: str) -> QueryError:
    """The request names a database that is not served here."""
    return QueryError(
        status=400,
        code="BadRequest_DatabaseNotExist",
        type_name="DatabaseNotFoundException",
        message=f"Database '{name[:100]}' could not be found.",
    )


def result_too_large(message: str) -> QueryError:
    """The result exceeds the record or size limit of the request."""
    return QueryError(
        status=200,
        code="LimitsExceeded",
        type_name="KustoServicePartialQueryFailureLimitsExceededException",
        message=f"Query execution has exceeded the allowed limits (80DA0003): {message}, so not all records were "
        "returned (E_QUERY_RESULT_SET_TOO_LARGE, 0x80DA0003).",
    )


def out_of_memory() -> QueryError:
    """The query needs more memory than the engine has."""
    return QueryError(
        status=200,
        code="LimitsExceeded",
        type_name="KustoServicePartialQueryFailureLimitsExceededException",
        message="Query execution has exceeded the allowed limits (80DA0001): the query has exceeded the memory budget "
        "during evaluation (E_RUNAWAY_QUERY).",
    )


def runaway(message: str) -> QueryError:
    """The query makes a single value that is too large."""
    return QueryError(
        status=200,
        code="LimitsExceeded",
        type_name="KustoServicePartialQueryFailureLimitsExceededException",
        message=f"Query execution has exceeded the allowed limits (80DA0007): {message} (E_RUNAWAY_QUERY).",
    )


def timed_out() -> QueryError:
    """The query did not finish within its server time-out."""
    return QueryError(
        status=504,
        code="RequestExecutionTimeout",
        type_name="KustoServiceTimeoutException",
        message="Request execution has timed out on the service side.",
        permanent=False,
    )


def throttled(capacity: int) -> QueryError:
    """As many queries as the engine takes are running and waiting already."""
    return QueryError(
        status=429,
        code="TooManyRequests",
        type_name="KustoRequestThrottledException",
        message=f"The query was aborted due to throttling. Capacity: {capacity}. Retrying after some back-off might "
        "help.",
        permanent=False,
    )


def execution_failed(message: str) -> QueryError:
    """A value could not be worked on while the query ran (a cast, an overflow)."""
    return QueryError(
        status=400,
        code="General_BadRequest",
        type_name="KustoBadRequestException",
        heading="Query execution failed: ",
        message=message,
        inner="EMB0004",
    )


def internal_error() -> QueryError:
    """A defect of the endpoint; the log has the details."""
    return QueryError(
        status=500,
        code="InternalServiceError",
        type_name="KustoServiceException",
        message="An internal error occurred; the endpoint's log has the details.",
        permanent=False,
    )
