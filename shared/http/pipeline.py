"""The one pass of every HTTP request: identify, authenticate, authorise, validate, handle, answer."""

import asyncio
import re
import time
import uuid
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from http import HTTPStatus
from typing import Protocol

from shared.auth.principals import ANONYMOUS, CredentialKind, Principal, unauthenticated
from shared.errors import Kind, WorkspaceError
from shared.http import size_limits
from shared.http.cors import Cors
from shared.http.load_shedding import LoadShedder
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Endpoint, Operation, Problems
from shared.http.problems import problem_document
from shared.http.request_span import RequestSpan, request_span
from shared.http.router import Match, Router
from shared.http.security_headers import add_security_headers
from shared.http.unknown_names import report_unknown_names
from shared.http.validation import read_call
from shared.observability import logs
from shared.observability.metrics import count
from shared.observability.tracing import record_exception
from shared.worker_threads import pause_garbage_collection

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_LOG = logs.get_logger("http")
_UNEXPECTED = WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", "The service failed; its log has the reason.")


class Authenticate(Protocol):
    """Finds out who calls."""

    async def __call__(self, authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        """Return the caller that an Authorization header names, empty text where there is none.

        Raises:
            WorkspaceError: UNAUTHENTICATED.
        """
        ...


class RequireFeature(Protocol):
    """Refuses what the workspace does not have."""

    async def __call__(self, feature: str) -> None:
        """Return when the workspace has a feature; raise WorkspaceError UNAVAILABLE when it is not provisioned."""
        ...


class AdmittedRequest(Protocol):
    """Whether a caller's request may go on."""

    @property
    def refusal(self) -> WorkspaceError | None:
        """THROTTLED when it may not."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """What the reply tells of the caller's limits."""
        ...


class RateLimits(Protocol):
    """Counts the requests of callers."""

    def __call__(self, caller: Principal) -> AbstractAsyncContextManager[AdmittedRequest]:
        """Count a request for as long as it is worked on."""
        ...


class RequestPipeline:
    """Serves requests over a set of endpoints."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        authenticate: Authenticate,
        require_feature: RequireFeature,
        limits: RateLimits | None = None,
        cors: Cors | None = None,
        load_shedder: LoadShedder | None = None,
    ) -> None:
        self._router = Router(endpoints)
        self._authenticate = authenticate
        self._require_feature = require_feature
        self._limits = limits
        self._cors = cors or Cors()
        self._load_shedder = load_shedder

    async def serve(self, request: Request, known: Principal | None = None) -> Reply:
        """Return the reply to a request; whatever goes wrong becomes a problem document.

        Args:
            request: what is asked.
            known: the caller, where another interface has authenticated it; its rights count all the same.
        """
        started = time.perf_counter()
        request_id = _request_id(request)
        token = logs.request_id.set(request_id)
        try:
            # Around everything that holds the body's values: calls, and errors with their tracebacks.
            with pause_garbage_collection(len(request.body)), request_span(request, request_id) as told:
                reply = await self._pass(request, request_id, started, known, told)
                told.answered(reply)
        finally:
            logs.request_id.reset(token)
        # One that is there is of a request within this one, that of a listener whom the message service asks about.
        reply.headers.setdefault("x-request-id", request_id)
        reply.headers.update(self._cors.headers(request))
        if self._cors.varies():
            reply.headers["Vary"] = ", ".join(filter(None, (reply.headers.get("Vary"), "Origin")))
        add_security_headers(reply.headers)
        return reply

    async def _pass(
        self, request: Request, request_id: str, started: float, known: Principal | None, told: RequestSpan
    ) -> Reply:
        route, caller = "-", ANONYMOUS
        problems: Problems | None = None
        try:
            match = self._router.match(request.method, request.path)
            if not match.endpoint.is_loaded:
                # Importing a group takes longer than the event loop may be held.
                await asyncio.to_thread(match.endpoint.load)
            route, problems = match.operation.route, match.operation.problems
            told.matched(route, match.operation.name)
            async with self._turn(request):
                if known is None:
                    size_limits.check_request_size(request)
                caller = await self._caller(match.operation, request, known)
                # What another interface asks for its caller was counted when that caller came.
                limits = None if known is not None or caller is ANONYMOUS else self._limits
                reply = await self._limited(match, caller, request, request_id, limits)
        except WorkspaceError as error:
            allowed = error.members.get("allow")
            preflight = self._cors.preflight(request, allowed) if isinstance(allowed, list) else None
            # Without a match, what answers other methods there says how.
            tell = problems or self._router.problems(request.path)
            reply = preflight or tell(error, request_id, request)
        except Exception as error:  # noqa: BLE001  every failure ends here, and its message stays in the log
            reply = _unexpected(error, route, problems or problem_document, request_id, request)
        _log(request, route, caller, reply, started)
        return reply

    def _turn(self, request: Request) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._load_shedder is None else self._load_shedder.admit(request.path)

    async def _limited(
        self, match: Match, caller: Principal, request: Request, request_id: str, limits: RateLimits | None
    ) -> Reply:
        if limits is None:
            return await self._answered(match, caller, request, None)
        async with limits(caller) as admitted:
            try:
                reply = await self._answered(match, caller, request, admitted.refusal)
            except WorkspaceError as error:
                reply = match.operation.problems(error, request_id, request)
            except Exception as error:  # noqa: BLE001  as above; the caller is told of its limits all the same
                reply = _unexpected(error, match.operation.route, match.operation.problems, request_id, request)
            reply.headers.update(admitted.headers)
            return reply

    async def _answered(
        self, match: Match, caller: Principal, request: Request, refusal: WorkspaceError | None
    ) -> Reply:
        if refusal is not None:
            raise refusal
        operation = match.operation
        if operation.requires_user and caller.identity is None:
            raise unauthenticated("This records who acts, and the token of a service names nobody.")
        if operation.right is not None:
            caller.require_right(operation.right)
        if operation.feature:
            await self._require_feature(operation.feature)
        call = await read_call(operation, caller, match.path, request)
        reply = await operation.handler(call)
        if call.unknown:
            report_unknown_names(reply, call.unknown)
        return reply

    async def _caller(self, operation: Operation, request: Request, known: Principal | None) -> Principal:
        if operation.access is Access.PUBLIC:
            if operation.check_sender is not None:
                await operation.check_sender(request)
            return ANONYMOUS
        return known or await self._authenticate(operation.credential(request), operation.access.value)


def _unexpected(error: Exception, route: str, problems: Problems, request_id: str, request: Request) -> Reply:
    _LOG.error("unexpected failure", extra=logs.fields(route=route), exc_info=error)
    record_exception(error)
    return problems(_UNEXPECTED, request_id, request)


def _request_id(request: Request) -> str:
    given = request.headers.get("x-request-id", "")
    return given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex


def _log(request: Request, route: str, caller: Principal, reply: Reply, started: float) -> None:
    _LOG.info(
        "request",
        extra=logs.fields(
            method=request.method,
            route=route,
            status=reply.status,
            ms=round((time.perf_counter() - started) * 1000, 2),
            principal=caller.member_id,
        ),
    )
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status == HTTPStatus.TOO_MANY_REQUESTS:
        # Alerts read the metric, since the host may drop log lines of requests whose trace is not sampled.
        count("workspace.http.errors", **{"http.response.status_code": reply.status})
        # Lines below this level are not stored in the cloud.
        _LOG.warning("answered %d", reply.status, extra=logs.fields(method=request.method, route=route))
