"""Operations of the API, each declared once by a decorator on its handler."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol, Self

from pydantic import BaseModel

from shared.auth.principals import CredentialKind, Principal
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors, WorkspaceError
from shared.http.messages import Reply, Request
from shared.http.operation_docs import UNDOCUMENTED, OperationDocs
from shared.http.problems import problem_document
from shared.http.unknown_names import UnknownNames

MIB = 1024 * 1024
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Access(Enum):
    """Kinds of credentials that an operation accepts."""

    PUBLIC = frozenset[CredentialKind]()
    TOKEN = frozenset({CredentialKind.JWT})
    KEYS = frozenset({CredentialKind.API_KEY, CredentialKind.JWT, CredentialKind.ENTRA})
    KEY_OR_TOKEN = frozenset({CredentialKind.API_KEY, CredentialKind.JWT})


class NoQuery(BaseModel):
    """Query model of an operation without query parameters."""


class NoBody(BaseModel):
    """Body model of an operation without body members; POST and PUT accept an empty body or an object."""


class RawBody(BaseModel):
    """Body model of an operation whose handler parses the body itself, by the rules of another protocol."""


@dataclass(frozen=True, slots=True)
class Call[Q = NoQuery, B = NoBody]:
    """Validated request of a handler.

    Attributes:
        principal: the caller; ``ANONYMOUS`` on public operations.
        path: decoded path parameters by name.
        query: the query parameters.
        body: the body.
        request: the raw request, for data without a model.
        append_id: id that is equal for all requests with the same Idempotency-Key; empty without such a key.
        unknown: names of unknown parameters and members, if the operation reports them.
    """

    principal: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    request: Request
    append_id: str = ""
    unknown: tuple[str, ...] = ()


def is_model(body: Any) -> bool:
    """Return whether the type of a body is a pydantic model, which declares all members."""
    return isinstance(body, type) and issubclass(body, BaseModel) and body is not RawBody


def authorization_header(request: Request) -> str:
    """Return the Authorization header of a request; empty if it is missing."""
    return request.headers.get("authorization", "")


type ErrorReplyBuilder = Callable[[WorkspaceError, str, Request], Reply]
"""Builder of an error reply from the error, the request id and the request."""

type SenderCheck = Callable[[Request], Awaitable[None]]
"""Check of a request's sender; raises WorkspaceError UNAUTHENTICATED for any other sender."""

type Handler = Callable[[Call[Any, Any]], Awaitable[Reply]]

type Check[Q, B] = Callable[[Call[Q, B], ValidationErrors], Awaitable[None]]
"""Check of rules that the models cannot state; it adds the errors to the collector.

Invalid fields of the call are None or have their default.
"""


type ReadCurrent = Callable[[Mapping[str, str]], Awaitable[Mapping[str, Any]]]
"""Reader of an item: takes the path parameters and returns the JSON object that GET returns.

For a missing item, the object contains only the members that the path determines.
"""


@dataclass(frozen=True, slots=True)
class ServerSetMembers:
    """Members of an item that the service sets itself.

    A PUT accepts them with their current value, so that a client can send back the result of a GET.

    Attributes:
        names: names of the members.
        read_current: reads the stored item.
        nullable: members whose current value may be unknown; a PUT may then send null.
        volatile: members that change with every write. Any value is accepted, because If-Match protects against lost
            writes.
    """

    names: frozenset[str]
    read_current: ReadCurrent
    nullable: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Operation:
    """Method and route of the API, with its access rules, models and handler.

    Attributes:
        group: the endpoint group, a tag in OpenAPI.
        name: unique name of the handler function; in camelCase it is the operationId.
        method: HTTP method in upper case.
        route: template without a leading slash; ``{name}`` is one segment, ``{*name}`` the rest.
        access: kinds of credentials that are accepted.
        right: access right that the caller needs; None if any valid credential suffices.
        requires_user: whether the caller must be a user; service tokens have no user identity.
        feature: feature that the workspace needs, for example ``provenance``; empty for none.
        query: model of the query parameters.
        body: model of the JSON body; ``NoBody`` if none is used, ``RawBody`` if the handler parses it.
        body_limit: maximum size of the body in bytes.
        unknown: treatment of unknown query parameters and body members.
        extra_parameters: query parameters that the handler reads in addition to the model; ``p.*`` matches all names
            with this prefix.
        server_set: members of the body that the service sets itself; None if there are none.
        credential: returns the value of the Authorization header or of its substitute.
        summary: one line, from the handler's docstring.
        docs: further documentation for the OpenAPI document.
        build_error_reply: builds the error replies.
        check: checks rules that the models do not state; None if there are none.
        check_sender: checks the sender of a request to a public operation; None if anyone may call it.
    """

    group: str
    name: str
    method: str
    route: str
    access: Access
    right: AccessRight | None
    requires_user: bool
    feature: str
    query: type[BaseModel]
    body: Any
    body_limit: int
    unknown: UnknownNames
    extra_parameters: tuple[str, ...]
    server_set: ServerSetMembers | None
    credential: Callable[[Request], str]
    summary: str
    docs: OperationDocs
    build_error_reply: ErrorReplyBuilder
    handler: Handler = field(repr=False, compare=False)
    check: Check[Any, Any] | None = field(default=None, repr=False, compare=False)
    check_sender: SenderCheck | None = field(default=None, repr=False, compare=False)

    @property
    def takes_body(self) -> bool:
        """True if the operation reads a body; a body of GET and DELETE is ignored (RFC 9110 section 9.3)."""
        return self.method in _WITH_BODY

    @property
    def has_own_error_format(self) -> bool:
        """True if the error replies are not problem documents."""
        return self.build_error_reply is not problem_document

    @property
    def is_loaded(self) -> bool:
        """True, because an operation needs no import."""
        return True

    def load(self) -> Self:
        """Return the operation itself."""
        return self


class Endpoint(Protocol):
    """Method and route of an operation whose module may not be imported yet."""

    @property
    def method(self) -> str:
        """HTTP method in upper case."""
        ...

    @property
    def route(self) -> str:
        """Route template without a leading slash."""
        ...

    @property
    def has_own_error_format(self) -> bool:
        """True if the error replies are not problem documents."""
        ...

    @property
    def is_loaded(self) -> bool:
        """True if the module of the operation is imported."""
        ...

    def load(self) -> Operation:
        """Import the module if necessary and return the operation."""
        ...


class Group:
    """Endpoint group, which collects the operations that its module declares.

    Args:
        name: tag in OpenAPI.
        build_error_reply: builds the error replies; by default problem documents.
    """

    def __init__(self, name: str, build_error_reply: ErrorReplyBuilder = problem_document) -> None:
        self.name = name
        self._build_error_reply = build_error_reply
        self.operations: list[Operation] = []

    def endpoint[Q: BaseModel, B](  # noqa: PLR0913  one parameter for each property of an operation, most with a default
        self,
        method: str,
        route: str,
        *,
        right: AccessRight | None = None,
        access: Access = Access.TOKEN,
        requires_user: bool = False,
        feature: str = "",
        query: type[Q] = NoQuery,  # type: ignore[assignment]  # mypy checks a default against every Q
        body: type[B] = NoBody,  # type: ignore[assignment]  # the same
        body_limit: int = MIB,
        unknown: UnknownNames = UnknownNames.REJECT,
        extra_parameters: tuple[str, ...] = (),
        server_set: ServerSetMembers | None = None,
        docs: OperationDocs = UNDOCUMENTED,
        credential: Callable[[Request], str] = authorization_header,
        check: Check[Q, B] | None = None,
        check_sender: SenderCheck | None = None,
    ) -> Callable[[Callable[[Call[Q, B]], Awaitable[Reply]]], Callable[[Call[Q, B]], Awaitable[Reply]]]:
        """Declare the decorated handler as the operation for a method and route.

        Raises:
            TypeError: unknown members must be rejected or reported, but the body has no model.
        """
        if unknown is not UnknownNames.IGNORE and not is_model(body):
            raise TypeError(f"{method} /{route}: rejecting or reporting unknown names requires a body model")

        def record(handler: Callable[[Call[Q, B]], Awaitable[Reply]]) -> Callable[[Call[Q, B]], Awaitable[Reply]]:
            self.operations.append(
                Operation(
                    group=self.name,
                    name=handler.__name__,
                    method=method,
                    route=route,
                    access=access,
                    right=right,
                    requires_user=requires_user,
                    feature=feature,
                    query=query,
                    body=body,
                    body_limit=body_limit,
                    unknown=unknown,
                    extra_parameters=extra_parameters,
                    server_set=server_set,
                    credential=credential,
                    summary=(handler.__doc__ or "").strip().partition("\n")[0],
                    docs=docs,
                    build_error_reply=self._build_error_reply,
                    handler=handler,
                    check=check,
                    check_sender=check_sender,
                )
            )
            return handler

        return record
