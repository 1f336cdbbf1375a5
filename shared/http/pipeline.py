"""Pipeline that processes every HTTP request.

Its steps: find the route, authenticate, apply the rate limit, authorise, validate, call the handler, build the reply.
"""

import re
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext
from http import HTTPStatus
from typing import Protocol

from shared.auth.principals import ANONYMOUS, CredentialKind, Principal, build_unauthenticated_error
from shared.errors import Kind, WorkspaceError
from shared.fair_use.acting_member import use_acting_member
from shared.fair_use.fair_scheduler import FairScheduler
from shared.http import size_limits
from shared.http.cors import Cors
from shared.http.deprecations import add_deprecation_headers
from shared.http.load_shedding import LoadShedder
from shared.http.messages import Reply, Request
from shared.http.operations import Access, Endpoint, ErrorReplyBuilder, Operation
from shared.http.problems import build_default_error_reply
from shared.http.request_span import RequestSpan, open_request_span
from shared.http.router import Match, Router, UnmatchedRequestError
from shared.http.security_headers import add_security_headers
from shared.http.unknown_names import add_unknown_names_header
from shared.http.validation import build_call_from_request
from shared.http.versions import add_version_header
from shared.interpreter import exempt_objects_from_garbage_collection, pause_garbage_collection
from shared.observability import logs
from shared.observability.metrics import count
from shared.observability.tracing import record_exception_on_span
from shared.runtime import SYSTEM_RUNTIME, Runtime

_REQUEST_ID = re.compile(r"[\x21-\x7e]{1,128}")
_LOG = logs.get_logger("http")
_INTERNAL_ERROR = WorkspaceError(Kind.INTERNAL, "INTERNAL_ERROR", "The service failed; see its log.")


class Authenticate(Protocol):
    """Function that authenticates a caller."""

    async def __call__(self, authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
        """Return the caller whom an Authorization header identifies; ``authorization`` is empty without this header.

        Raises:
            WorkspaceError: UNAUTHENTICATED if the credential is missing, invalid or of another kind.
        """
        ...


class RequireFeature(Protocol):
    """Function that checks that the workspace has a feature."""

    async def __call__(self, feature: str) -> None:
        """Raise WorkspaceError UNAVAILABLE if a feature is not provisioned for the workspace."""
        ...


class LimitDecision(Protocol):
    """Decision of the rate limiter to admit or reject a request."""

    @property
    def rejection(self) -> WorkspaceError | None:
        """THROTTLED error if the request is rejected, else None."""
        ...

    @property
    def headers(self) -> Mapping[str, str]:
        """Rate-limit headers of the reply."""
        ...


class RateLimits(Protocol):
    """Function that counts a caller's request against the rate limit, and decides whether the request is admitted."""

    def __call__(self, caller: Principal) -> AbstractAsyncContextManager[LimitDecision]:
        """Context manager: yield the decision to admit or reject a request.

        An admitted request counts as concurrent while the block runs, and stays counted in the limit per minute.
        """
        ...


class RequestPipeline:
    """Pipeline that processes the requests for a set of endpoints."""

    def __init__(
        self,
        endpoints: Iterable[Endpoint],
        authenticate: Authenticate,
        require_feature: RequireFeature,
        limits: RateLimits | None = None,
        cors: Cors | None = None,
        load_shedder: LoadShedder | None = None,
        *,
        runtime: Runtime = SYSTEM_RUNTIME,
    ) -> None:
        self._router = Router(endpoints)
        self._authenticate = authenticate
        self._require_feature = require_feature
        self._limits = limits
        self._cors = cors or Cors()
        self._load_shedder = load_shedder
        self._runtime = runtime
        self._decoded_bodies = FairScheduler(size_limits.MAX_DECODED_BODIES, leaves_slots_free=True)

    async def serve(self, request: Request, known_principal: Principal | None = None) -> Reply:
        """Process a request; every error becomes a reply.

        Args:
            request: HTTP request, or the equivalent of a call through another interface.
            known_principal: the caller, if the other interface (such as MCP) has already authenticated the caller; the
                caller's rights are still checked.
        """
        started = self._runtime.monotonic()
        request_id = _read_request_id(request, self._runtime)
        token = logs.request_id.set(request_id)
        try:
            # The pause includes error handling, because tracebacks also reference the values of the body.
            with pause_garbage_collection(len(request.body)), open_request_span(request, request_id) as span:
                reply = await self._process_request(request, request_id, started, known_principal, span)
                span.set_reply(reply)
        finally:
            logs.request_id.reset(token)
        # The reply to a live-stream event already has the id of the client's own request.
        reply.headers.setdefault("x-request-id", request_id)
        reply.headers.update(self._cors.build_headers(request))
        if self._cors.is_reply_dependent_on_origin():
            reply.headers["Vary"] = ", ".join(filter(None, (reply.headers.get("Vary"), "Origin")))
        add_security_headers(reply.headers)
        return reply

    async def _process_request(
        self,
        request: Request,
        request_id: str,
        started_at_seconds: float,
        known_principal: Principal | None,
        span: RequestSpan,
    ) -> Reply:
        route, caller, is_versioned = "-", ANONYMOUS, True
        build_error_reply: ErrorReplyBuilder = build_default_error_reply
        try:
            match = self._router.match(request.method, request.path)
            is_versioned = match.endpoint.is_versioned
            await self._load_group_module(match.endpoint)
            route, build_error_reply = match.operation.route, match.operation.build_error_reply
            span.set_operation(route, match.operation.name)
            if match.operation.deprecation is not None:
                request.deprecations.append(match.operation.deprecation)
            async with self._wait_for_admission(request):
                if known_principal is None:
                    size_limits.check_url_and_header_sizes(request)
                caller = await self._authenticate_caller(match.operation, request, known_principal)
                # A nested request of another interface was counted when its outer request arrived.
                limits = None if known_principal is not None or caller is ANONYMOUS else self._limits
                with use_acting_member(caller.member_id):
                    reply = await self._handle_request_within_limits(match, caller, request, request_id, limits)
        except UnmatchedRequestError as error:
            allowed = error.members.get("allow")
            preflight = self._cors.build_preflight_reply(request, allowed) if isinstance(allowed, list) else None
            reply = preflight or await self._build_unmatched_reply(error, request_id, request)
            is_versioned = error.is_versioned
        except WorkspaceError as error:
            reply = build_error_reply(error, request_id, request)
        except Exception as error:  # noqa: BLE001  the message of an unexpected error must only go to the log
            reply = _build_failure_reply(error, route, build_error_reply, request_id, request)
        if is_versioned:
            add_version_header(reply)
        add_deprecation_headers(reply, request.deprecations)
        _log_request(request, route, caller, reply, self._runtime.monotonic() - started_at_seconds)
        return reply

    async def _load_group_module(self, endpoint: Endpoint) -> None:
        """Import the module of an endpoint's group in a worker thread; it takes too long for the event loop."""
        if not endpoint.is_loaded:
            await self._runtime.run_in_thread(endpoint.load_operation)
            exempt_objects_from_garbage_collection()

    async def _build_unmatched_reply(self, error: UnmatchedRequestError, request_id: str, request: Request) -> Reply:
        """Build the reply to a request that matches no operation.

        If the path belongs to an endpoint group with its own error format, the reply has this format.
        """
        endpoint = error.endpoint_with_own_error_format
        if endpoint is None:
            return build_default_error_reply(error, request_id, request)
        await self._load_group_module(endpoint)
        return endpoint.load_operation().build_error_reply(error, request_id, request)

    def _wait_for_admission(self, request: Request) -> AbstractAsyncContextManager[None]:
        return nullcontext() if self._load_shedder is None else self._load_shedder.admit(request.path)

    async def _handle_request_within_limits(
        self, match: Match, caller: Principal, request: Request, request_id: str, limits: RateLimits | None
    ) -> Reply:
        """Handle a request within the caller's rate limits, and add the rate-limit headers to its reply.

        Errors become replies, so that they have these headers, too. None for ``limits`` means no limits and no headers.
        """
        if limits is None:
            return await self._authorise_and_handle_request(match, caller, request, None)
        async with limits(caller) as decision:
            try:
                reply = await self._authorise_and_handle_request(match, caller, request, decision.rejection)
            except WorkspaceError as error:
                reply = match.operation.build_error_reply(error, request_id, request)
            except Exception as error:  # noqa: BLE001  as above; this reply needs the rate-limit headers, too
                reply = _build_failure_reply(
                    error, match.operation.route, match.operation.build_error_reply, request_id, request
                )
            reply.headers.update(decision.headers)
            return reply

    async def _authorise_and_handle_request(
        self, match: Match, caller: Principal, request: Request, rejection: WorkspaceError | None
    ) -> Reply:
        """Authorise and validate a request, and call the operation's handler.

        ``rejection`` is the rate limiter's error, which is raised first; None if the limiter admitted the request.
        """
        if rejection is not None:
            raise rejection
        operation = match.operation
        if operation.requires_user and caller.identity is None:
            raise build_unauthenticated_error("This operation records a user; service tokens have no user identity.")
        for right in operation.rights:
            caller.require_right(right)
        if operation.feature:
            await self._require_feature(operation.feature)
        async with self._wait_for_decoding_turn(operation, caller, request):
            call = await build_call_from_request(operation, caller, match.path, request, self._runtime)
            reply = await operation.handler(call)
        if call.unknown:
            add_unknown_names_header(reply, call.unknown)
        return reply

    def _wait_for_decoding_turn(
        self, operation: Operation, caller: Principal, request: Request
    ) -> AbstractAsyncContextManager[None]:
        """Return a context manager that waits until a request with an encoded body may occupy memory to decode it."""
        encodings = size_limits.read_content_encodings(request) if request.body else []
        # A body with another encoding, or with several, is rejected without being decoded.
        if len(encodings) != 1 or encodings[0] not in operation.content_encodings:
            return nullcontext()
        return self._decoded_bodies.occupy_slot(caller.member_id)

    async def _authenticate_caller(
        self, operation: Operation, request: Request, known_principal: Principal | None
    ) -> Principal:
        """Return the caller of an operation; ``ANONYMOUS`` for a public operation, whose sender is checked."""
        if operation.access is Access.PUBLIC:
            if operation.check_sender is not None:
                await operation.check_sender(request)
            return ANONYMOUS
        return known_principal or await self._authenticate(operation.credential(request), operation.access.value)


def _build_failure_reply(
    error: Exception, route: str, build_error_reply: ErrorReplyBuilder, request_id: str, request: Request
) -> Reply:
    """Log an unexpected error, and build the reply 500, which does not contain the error's message."""
    _LOG.error("unexpected failure", extra=logs.fields(route=route), exc_info=error)
    record_exception_on_span(error)
    return build_error_reply(_INTERNAL_ERROR, request_id, request)


def _read_request_id(request: Request, runtime: Runtime) -> str:
    """Return the id in the header ``x-request-id``; a new id if it is missing or invalid."""
    from_header = request.headers.get("x-request-id", "")
    return from_header if _REQUEST_ID.fullmatch(from_header) else runtime.new_id()


def _log_request(request: Request, route: str, caller: Principal, reply: Reply, duration_seconds: float) -> None:
    """Log a processed request, and count a reply 429 or 5xx in the metric of errors."""
    _LOG.info(
        "request",
        extra=logs.fields(
            method=request.method,
            route=route,
            status=reply.status,
            ms=round(duration_seconds * 1000, 2),
            principal=caller.member_id,
        ),
    )
    if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status == HTTPStatus.TOO_MANY_REQUESTS:
        # Alerts use the metric, because the host drops log records of requests whose trace is not sampled.
        count("workspace.http.errors", **{"http.response.status_code": reply.status})
        # On Azure, records below this level are not stored.
        _LOG.warning("answered %d", reply.status, extra=logs.fields(method=request.method, route=route))
