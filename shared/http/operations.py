"""Operations of the API, each declared once by a decorator on its handler."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, Protocol, Self, TypedDict, Unpack

from pydantic import BaseModel

from shared.auth.principals import CredentialKind, CredentialRestriction, Principal
from shared.auth.rights import AccessRight
from shared.errors import ValidationErrors, WorkspaceError
from shared.http.deprecations import Deprecation
from shared.http.messages import Reply, Request
from shared.http.operation_docs import UNDOCUMENTED, OperationDocs
from shared.http.problems import build_default_error_reply
from shared.http.unknown_names import UnknownNames

MIB = 1024 * 1024
_WITH_BODY = frozenset({"POST", "PUT", "PATCH"})


class Access(Enum):
    """Kinds of credentials that an operation accepts; a public operation needs none."""

    PUBLIC = frozenset[CredentialKind]()
    TOKEN = frozenset({CredentialKind.JWT})
    KEYS = frozenset({CredentialKind.API_KEY, CredentialKind.JWT, CredentialKind.ENTRA})
    KEY_OR_TOKEN = frozenset({CredentialKind.API_KEY, CredentialKind.JWT})


class NoQuery(BaseModel):
    """Query model of an operation without query parameters."""


class NoBody(BaseModel):
    """Body model of an operation without a body; an empty body or a JSON object without properties is also accepted.

    An operation that reports or ignores unknown names accepts any JSON object.
    """


class RawBody(BaseModel):
    """Body model of an operation whose handler parses the body itself, by the rules of another protocol."""


class StrictBody(BaseModel):
    """Body model that pydantic validates in strict mode: a value of a wrong type is rejected, and never converted.

    Attributes:
        validation_context: context that pydantic passes to validators, for example to apply the stricter rules for
            declared names.
    """

    validation_context: ClassVar[Mapping[str, Any] | None] = None


@dataclass(frozen=True, slots=True)
class Call[Q = NoQuery, B = NoBody]:
    """Validated request that is passed to an operation's handler.

    Attributes:
        principal: the caller; ``ANONYMOUS`` on public operations.
        path: decoded path parameters by name.
        query: validated query parameters, an instance of the query model.
        body: validated request body, an instance of the body model.
        request: raw request, for data that no model describes.
        append_id: id that is equal for all requests with the same Idempotency-Key; empty without such a key.
        unknown: names of unknown query parameters and body properties, if the operation reports them.
    """

    principal: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    request: Request
    append_id: str = ""
    unknown: tuple[str, ...] = ()


def is_body_model(body_type: Any) -> bool:
    """Return whether a body type is a pydantic model that declares the body's properties; False for ``RawBody``."""
    return isinstance(body_type, type) and issubclass(body_type, BaseModel) and body_type is not RawBody


def read_authorization_header(request: Request) -> str:
    """Return the Authorization header of a request; empty if it is missing."""
    return request.headers.get("authorization", "")


type ErrorReplyBuilder = Callable[[WorkspaceError, str, Request], Reply]
"""Builder of an error reply from the error, the request id and the request."""

type SenderCheck = Callable[[Request], Awaitable[None]]
"""Function that checks who sent a request to a public operation; it raises UNAUTHENTICATED for an unknown sender."""

type Handler = Callable[[Call[Any, Any]], Awaitable[Reply]]

type Check[Q, B] = Callable[[Call[Q, B], ValidationErrors], Awaitable[None]]
"""Function that checks the rules of a request that its models cannot express, and adds the errors to a collector.

Invalid fields of the call are None or have their default.
"""


type ReadCurrent = Callable[[Mapping[str, str]], Awaitable[Mapping[str, Any]]]
"""Function that takes the path parameters of an item and returns the JSON object that GET returns for the item.

For a missing item, the object contains only the properties that the path determines.
"""


@dataclass(frozen=True, slots=True)
class ServerManagedProperties:
    """JSON properties of an item that the service sets itself.

    A PUT accepts these properties with their current values, so that a client can send back the result of a GET.

    Attributes:
        names: names of all these properties.
        read_current: reads the stored item, whose values a PUT must repeat.
        nullable: names of properties whose current value can be unknown; a PUT may then send null.
        volatile: names of properties that change with every write. A PUT may send any value, because If-Match protects
            against lost updates.
    """

    names: frozenset[str]
    read_current: ReadCurrent
    nullable: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()


@dataclass(frozen=True, kw_only=True)
class Operation:
    """Method and route of the API, with its access rules, models and handler.

    Attributes:
        group: the endpoint group, a tag in OpenAPI.
        name: unique name of the handler function; in camelCase it is the operationId.
        method: HTTP method in upper case.
        route: template without a leading slash; ``{name}`` is one segment, ``{*name}`` the rest of the path.
        access: kinds of credentials that are accepted.
        right: access right that the caller needs; None if any valid credential suffices.
        further_rights: access rights that the caller needs in addition to ``right``.
        requires_user: whether the caller must be a user; service tokens have no user identity.
        rejects: restrictions of credentials that the handler itself always rejects; callers with such a credential do
            not see the operation in the OpenAPI document and the MCP tools.
        feature: feature that the workspace needs, for example ``provenance``; empty if no feature is needed.
        query: model of the query parameters.
        body: model of the JSON body; ``NoBody`` if the operation has no body, ``RawBody`` if the handler parses the
            body.
        body_limit: maximum size of the body in bytes, after decoding.
        form_limits: media types of bodies that may be larger, each with its maximum size in bytes.
        content_encodings: content encodings of the body that are decoded, such as ``gzip``.
        unknown: treatment of unknown query parameters and body properties.
        extra_parameters: query parameters that the handler reads in addition to the model; ``p.*`` matches all names
            with this prefix.
        server_set: body properties that the service sets itself; None if there are none.
        credential: returns the caller's credential in the form of an Authorization header. The default reads this
            header; an operation can read the credential from another part of the request.
        summary: one line, from the handler's docstring.
        docs: additional documentation for the OpenAPI document.
        build_error_reply: builds the error replies in the group's format.
        is_versioned: whether requests and replies state a version of the API.
        allows_head: whether a GET operation also serves HEAD; False if GET has an effect and not only reads.
        deprecation: dates of a deprecated operation; None if it is not deprecated. :class:`DeprecatedAlias` marks
            deprecated names of body properties.
        check: checks the rules that the models do not express; None if there are no such rules.
        check_sender: checks who sent a request to a public operation; None if anyone may call the operation.
    """

    group: str
    name: str
    method: str
    route: str
    summary: str
    build_error_reply: ErrorReplyBuilder
    is_versioned: bool
    handler: Handler = field(repr=False, compare=False)
    access: Access = Access.TOKEN
    right: AccessRight | None = None
    further_rights: tuple[AccessRight, ...] = ()
    requires_user: bool = False
    rejects: frozenset[CredentialRestriction] = frozenset()
    feature: str = ""
    query: type[BaseModel] = NoQuery
    body: Any = NoBody
    body_limit: int = MIB
    form_limits: tuple[tuple[str, int], ...] = ()
    content_encodings: tuple[str, ...] = ()
    unknown: UnknownNames = UnknownNames.REJECT
    extra_parameters: tuple[str, ...] = ()
    server_set: ServerManagedProperties | None = None
    docs: OperationDocs = UNDOCUMENTED
    credential: Callable[[Request], str] = read_authorization_header
    check: Check[Any, Any] | None = field(default=None, repr=False, compare=False)
    check_sender: SenderCheck | None = field(default=None, repr=False, compare=False)
    deprecation: Deprecation | None = None
    allows_head: bool = True

    @property
    def rights(self) -> tuple[AccessRight, ...]:
        """All access rights that a caller of this operation needs; empty if any valid credential suffices."""
        return (*((self.right,) if self.right else ()), *self.further_rights)

    @property
    def takes_body(self) -> bool:
        """True if the operation reads a body; a body of GET and DELETE is ignored (RFC 9110 section 9.3)."""
        return self.method in _WITH_BODY

    @property
    def has_own_error_format(self) -> bool:
        """True if the error replies are not problem documents."""
        return self.build_error_reply is not build_default_error_reply

    @property
    def is_loaded(self) -> bool:
        """Always True: an operation object exists only after its module was imported, unlike other endpoints."""
        return True

    def load_operation(self) -> Self:
        """Return this operation itself, because its module is already imported."""
        return self


class OperationOptions(TypedDict, total=False):
    """Optional attributes of an :class:`Operation`, in the declaration of its handler."""

    access: Access
    right: AccessRight | None
    further_rights: tuple[AccessRight, ...]
    requires_user: bool
    rejects: frozenset[CredentialRestriction]
    feature: str
    body_limit: int
    form_limits: tuple[tuple[str, int], ...]
    content_encodings: tuple[str, ...]
    unknown: UnknownNames
    extra_parameters: tuple[str, ...]
    server_set: ServerManagedProperties | None
    docs: OperationDocs
    credential: Callable[[Request], str]
    check_sender: SenderCheck | None
    deprecation: Deprecation | None
    allows_head: bool


class Endpoint(Protocol):
    """Method and route of an operation; the operation's module is possibly not imported yet."""

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
    def is_versioned(self) -> bool:
        """True if requests and replies state a version of the API."""
        ...

    @property
    def allows_head(self) -> bool:
        """True if a GET operation also serves HEAD."""
        ...

    @property
    def is_loaded(self) -> bool:
        """True if the module of the operation is imported."""
        ...

    def load_operation(self) -> Operation:
        """Import the module if necessary and return the operation."""
        ...


class Group:
    """Endpoint group, which collects the operations that its module declares.

    Args:
        name: tag in OpenAPI.
        build_error_reply: builds the error replies; by default problem documents.
        is_versioned: whether requests and replies state a version of the API.
    """

    def __init__(
        self, name: str, build_error_reply: ErrorReplyBuilder = build_default_error_reply, *, is_versioned: bool = True
    ) -> None:
        self.name = name
        self._is_versioned = is_versioned
        self._build_error_reply = build_error_reply
        self.operations: list[Operation] = []

    def endpoint[Q: BaseModel, B](
        self,
        method: str,
        route: str,
        *,
        query: type[Q] = NoQuery,  # type: ignore[assignment]  # mypy checks a default against every Q
        body: type[B] = NoBody,  # type: ignore[assignment]  # the same
        check: Check[Q, B] | None = None,
        **options: Unpack[OperationOptions],
    ) -> Callable[[Callable[[Call[Q, B]], Awaitable[Reply]]], Callable[[Call[Q, B]], Awaitable[Reply]]]:
        """Return a decorator that declares a handler as the operation for a method and route.

        The options are attributes of :class:`Operation`.

        Raises:
            TypeError: unknown body properties must be rejected or reported, but the body has no model that lists the
                known properties. A ``RawBody`` is accepted, because its handler checks the properties itself.
        """
        if options.get("unknown") is not UnknownNames.IGNORE and not (is_body_model(body) or body is RawBody):
            raise TypeError(
                f"{method} /{route}: only an operation with a body model can reject or report unknown names; declare a "
                "model, or set unknown=UnknownNames.IGNORE"
            )

        def register_operation(
            handler: Callable[[Call[Q, B]], Awaitable[Reply]],
        ) -> Callable[[Call[Q, B]], Awaitable[Reply]]:
            operation = Operation(
                group=self.name,
                name=handler.__name__,
                method=method,
                route=route,
                summary=(handler.__doc__ or "").strip().partition("\n")[0],
                build_error_reply=self._build_error_reply,
                is_versioned=self._is_versioned,
                handler=handler,
                query=query,
                body=body,
                check=check,
                **options,
            )
            self.operations.append(operation)
            return handler

        return register_operation
