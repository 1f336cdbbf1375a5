"""Operations: what the service can be asked, recorded once where the handler stands."""

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
    """Which credentials open an operation."""

    PUBLIC = frozenset[CredentialKind]()
    TOKEN = frozenset({CredentialKind.JWT})
    KEYS = frozenset({CredentialKind.API_KEY, CredentialKind.JWT, CredentialKind.ENTRA})
    KEY_OR_TOKEN = frozenset({CredentialKind.API_KEY, CredentialKind.JWT})


class NoQuery(BaseModel):
    """An operation without query parameters of its own."""


class NoBody(BaseModel):
    """An operation that has no use for a body; what POST and PUT are sent is an object all the same, or nothing."""


class RawBody(BaseModel):
    """An operation whose handler reads the body itself, by the rules of another protocol."""


@dataclass(frozen=True, slots=True)
class Call[Q = NoQuery, B = NoBody]:
    """One validated request, as a handler receives it.

    Attributes:
        principal: the caller; ``ANONYMOUS`` on public operations.
        path: decoded path parameters by name.
        query: the query model.
        body: the body model.
        request: the request itself, for what no model covers.
        append_id: the same when the work is done again for the same Idempotency-Key; empty without one.
        unknown: names of parameters and members that the operation does not know, where it reports them.
    """

    principal: Principal
    path: Mapping[str, str]
    query: Q
    body: B
    request: Request
    append_id: str = ""
    unknown: tuple[str, ...] = ()


def is_model(body: Any) -> bool:
    """Return whether a type of bodies is a model whose members are known."""
    return isinstance(body, type) and issubclass(body, BaseModel) and body is not RawBody


def authorization_header(request: Request) -> str:
    """Return the request's Authorization header, empty where there is none."""
    return request.headers.get("authorization", "")


type Problems = Callable[[WorkspaceError, str, Request], Reply]
"""Makes the reply that tells of an error, given the request's id and the request."""

type SenderCheck = Callable[[Request], Awaitable[None]]
"""Returns when a request is from whom it must be from; raises WorkspaceError UNAUTHENTICATED when not."""

type Handler = Callable[[Call[Any, Any]], Awaitable[Reply]]

type Check[Q, B] = Callable[[Call[Q, B], ValidationErrors], Awaitable[None]]
"""Adds what breaks rules that no model states; fields that are not readable hold None or their default."""


type Current = Callable[[Mapping[str, str]], Awaitable[Mapping[str, Any]]]
"""Returns an item as a GET shows it, given the path parameters; of one that does not exist, what its path fixes."""


@dataclass(frozen=True, slots=True)
class ServerSetMembers:
    """Members of an item that the service sets itself.

    A PUT accepts them with their current value, so that a client can send back what a GET gave it.

    Attributes:
        names: as a GET shows them.
        current: reads the item.
        unknown_when_null: those whose value the service may not know yet; null is then no claim.
        live: those that change with every write. Any value is accepted, since the condition of the request protects
            against the loss of another write.
    """

    names: frozenset[str]
    current: Current
    nullable: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Operation:
    """A route with a method: who may call it and what it takes.

    Attributes:
        group: the endpoint group, a tag in OpenAPI.
        name: unique; the handler's function name, and the operationId in camelCase.
        method: upper case.
        route: template without a leading slash; ``{name}`` is one segment, ``{*name}`` the rest.
        access: which credentials are taken.
        right: what the caller must hold, None where any valid credential will do.
        identity: whether the caller must be somebody; the token of a service is nobody.
        feature: what the workspace must have for it, for instance ``provenance``; empty for nothing.
        query: model of the query parameters.
        body: model of the JSON body; ``NoBody`` where none is of use, ``RawBody`` where the handler reads it.
        body_limit: largest body in bytes.
        unknown: what is done with query parameters and body members that the models do not have.
        further: query parameters that the operation reads besides its model; ``p.*`` stands for all that begin so.
        owned: members of the body that the service sets itself; None where there are none.
        credential: gives what stands for the Authorization header.
        summary: one line, from the handler's docstring.
        docs: what the OpenAPI document says beyond that.
        problems: makes the replies that tell of errors.
        check: finds what the models do not; None where they say everything.
        sender: judges who sends a request to a public operation that is another service's; None for anybody.
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
    problems: Problems
    handler: Handler = field(repr=False, compare=False)
    check: Check[Any, Any] | None = field(default=None, repr=False, compare=False)
    check_sender: SenderCheck | None = field(default=None, repr=False, compare=False)

    @property
    def takes_body(self) -> bool:
        """Whether a body is looked at; what GET and DELETE are sent means nothing (RFC 9110 section 9.3)."""
        return self.method in _WITH_BODY

    @property
    def has_own_error_format(self) -> bool:
        """Whether it tells of errors otherwise than by problem documents."""
        return self.problems is not problem_document

    @property
    def is_loaded(self) -> bool:
        """True: an operation is an endpoint that is there."""
        return True

    def load(self) -> Self:
        """Return the operation itself: it is an endpoint that is there."""
        return self


class Endpoint(Protocol):
    """A method at a route: all that is known of an operation until somebody asks for it."""

    @property
    def method(self) -> str:
        """Upper case."""
        ...

    @property
    def route(self) -> str:
        """Template without a leading slash, as an operation has it."""
        ...

    @property
    def has_own_error_format(self) -> bool:
        """Whether it tells of errors otherwise than by problem documents."""
        ...

    @property
    def is_loaded(self) -> bool:
        """Whether the operation is there without a module being imported for it."""
        ...

    def load(self) -> Operation:
        """Return the operation that answers here."""
        ...


class Group:
    """An endpoint group: collects the operations that its module declares.

    Args:
        name: a tag in OpenAPI.
        problems: makes the replies that tell of errors; problem documents unless told.
    """

    def __init__(self, name: str, problems: Problems = problem_document) -> None:
        self.name = name
        self._problems = problems
        self.operations: list[Operation] = []

    def endpoint[Q: BaseModel, B](  # noqa: PLR0913  one for each thing that a route can say, nearly all left out
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
        """Record the decorated handler as the operation at a method and route.

        Raises:
            TypeError: the operation is to refuse unknown members of a body that no model describes.
        """
        if unknown is not UnknownNames.IGNORE and not is_model(body):
            raise TypeError(f"{method} /{route} has a body without a model; it can only ignore unknown names")

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
                    problems=self._problems,
                    handler=handler,
                    check=check,
                    check_sender=check_sender,
                )
            )
            return handler

        return record
