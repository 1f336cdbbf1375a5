"""HTTP API of the Durable Task extension; callers need permission and must send the system key."""

import base64
import binascii
import hmac
import json
import math
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, unquote

from emulators.durable.events import build_history_document, build_status_document
from emulators.durable.management import InstanceFilter, Management
from emulators.durable.management_urls import PREFIX, ManagementUrls
from emulators.durable.ports import RequestCheck
from emulators.durable.records import Instance, JsonText, NewInstance, OrchestrationStatus, create_random_id
from emulators.durable.turns import FunctionNames, build_unknown_function_message
from shared.errors import Kind, WorkspaceError

TOKEN = "x-ms-continuation-token"  # noqa: S105  the name of a header
"""Header with the continuation token, which identifies the start of the next page of a list."""

_MIN_SECONDS, _MAX_SECONDS = 0.01, 230.0
_PAGE_SIZE, _MAX_PAGE_SIZE, _MAX_DIGITS = 100, 1_000, 10
_NAMED_SEGMENTS, _EVENT_SEGMENTS = 3, 4
_NO_REWIND = "The local host cannot rewind orchestrations; restart the instance instead."


@dataclass(frozen=True, slots=True)
class WebhookRequest:
    """HTTP request to the Durable Task API whose system key was valid.

    Attributes:
        method: the HTTP method.
        segments: percent-decoded path segments below the base path of the API.
        query: query parameters by name; if a parameter is repeated, its last value.
        headers: headers by name in lower case.
        body: body of the request, unchanged.
    """

    method: str
    segments: list[str]
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


def json_text_from_body_if_valid(body: bytes) -> JsonText | None:
    """Convert a request body to JSON text in the format of Python's ``json``; None if the body is not valid JSON."""
    try:
        return json.dumps(json.loads(body, parse_constant=_reject_json_constant))
    except (ValueError, RecursionError):
        return None


def _reject_json_constant(constant: str) -> None:
    """Raise ValueError for a constant such as ``NaN``, which Python's ``json`` accepts although it is not JSON."""
    raise ValueError(f"the constant {constant} is not valid JSON")


def parse_seconds_if_valid(request: WebhookRequest, parameter_name: str) -> float | None:
    """Parse the query parameter ``parameter_name`` as seconds; None if it is missing or not a number.

    The result is at least 0.01 and at most 230; a number outside of this range is replaced by the nearer bound.
    """
    try:
        given = float(request.query.get(parameter_name, ""))
    except ValueError:
        return None
    return min(max(given, _MIN_SECONDS), _MAX_SECONDS) if math.isfinite(given) else None


def parse_page_size(request: WebhookRequest) -> int:
    """Return the page size in query parameter ``top``, at most 1,000; 100 if the parameter is missing or invalid."""
    given = request.query.get("top", "")
    is_valid = given.isdecimal() and len(given) < _MAX_DIGITS and int(given) > 0
    return min(int(given), _MAX_PAGE_SIZE) if is_valid else _PAGE_SIZE


def has_true_parameter(request: WebhookRequest, parameter_name: str) -> bool:
    """Return whether the query parameter ``parameter_name`` of a request has the value ``true``."""
    return request.query.get(parameter_name, "").lower() == "true"


def is_input_requested(request: WebhookRequest) -> bool:
    """Return whether the reply must contain inputs: True unless the parameter ``showInput`` is ``false``."""
    return request.query.get("showInput", "").lower() != "false"


def parse_instance_filter(request: WebhookRequest) -> InstanceFilter:
    """Parse the query parameters that select instances; ignore invalid values, as in the Durable Task extension."""
    named = {status.lower(): status for status in OrchestrationStatus}
    given = request.query.get("runtimeStatus", "").split(",")
    return InstanceFilter(
        created_from=_parse_instant_if_valid(request.query.get("createdTimeFrom", "")),
        created_to=_parse_instant_if_valid(request.query.get("createdTimeTo", "")),
        statuses=[named[name.strip().lower()] for name in given if name.strip().lower() in named],
        prefix=request.query.get("instanceIdPrefix", ""),
    )


def _parse_instant_if_valid(text: str) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text)
        return instant.astimezone(UTC) if instant.tzinfo else instant.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        return None


def build_continuation_token(last_instance_id: str) -> str:
    """Build the continuation token of a page; ``last_instance_id`` is the last instance id on the page."""
    return base64.urlsafe_b64encode(last_instance_id.encode()).decode()


def find_instance_id_in_continuation_token(token: str) -> str | None:
    """Return the instance id in a continuation token; empty for an empty token, None for an invalid token."""
    try:
        return base64.b64decode(token, altchars=b"-_", validate=True).decode()
    except (ValueError, binascii.Error):
        return None


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """HTTP reply of the Durable Task API: status, JSON value (None for no body), and headers."""

    status: int
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Webhooks:
    """Handler of the Durable Task API, which ``DurableOrchestrationClient`` and management URLs call."""

    def __init__(
        self, management: Management, urls: ManagementUrls, names: FunctionNames, may_manage: RequestCheck
    ) -> None:
        self._management = management
        self._urls = urls
        self._names = names
        self._may_manage = may_manage

    async def handle_request(self, scope: Mapping[str, Any], raw_path: str, body: bytes) -> WebhookReply:
        """Handle an HTTP request below the base path of the Durable Task API.

        Raises:
            WorkspaceError: ADMINISTRATION_IS_LOCAL if the caller is not permitted; SYSTEM_KEY_MISSING if the request
                has no valid system key.
        """
        if not self._may_manage(scope):
            detail = "The Durable Task API answers callers on this machine only."
            raise WorkspaceError(Kind.FORBIDDEN, "ADMINISTRATION_IS_LOCAL", detail)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        rest = self._check_key_and_get_path_below_api(raw_path, query, headers)
        segments = [unquote(segment) for segment in rest.strip("/").split("/")]
        return await self._route_request(WebhookRequest(scope["method"], segments, query, headers, body))

    def _check_key_and_get_path_below_api(
        self, raw_path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> str:
        """Check that a request has the system key; return its path below the base path of the API.

        Raises:
            WorkspaceError: SYSTEM_KEY_MISSING if the request has no valid system key.
        """
        given = query.get("code") or headers.get("x-functions-key") or ""
        rpc = self._urls.build_rpc_path().encode()
        path = raw_path.encode("latin-1")
        if len(path) >= len(rpc) and hmac.compare_digest(path[: len(rpc)], rpc):
            return raw_path[len(rpc) :]
        if hmac.compare_digest(given.encode(), self._urls.key.encode()):
            return raw_path.removeprefix(PREFIX)
        raise WorkspaceError(
            Kind.UNAUTHENTICATED,
            "SYSTEM_KEY_MISSING",
            "The request has no valid system key; send it as parameter `code` or header `x-functions-key`.",
        )

    async def _route_request(self, request: WebhookRequest) -> WebhookReply:
        if request.segments[0] == "entities":
            return WebhookReply(501, {"Message": "The local host does not support entities."})
        raises = len(request.segments) == _EVENT_SEGMENTS and request.segments[2].lower() == "raiseevent"
        handlers: dict[tuple[str, int, str], Callable[[WebhookRequest], Awaitable[WebhookReply]]] = {
            ("orchestrators", 2, "POST"): self._start_instance,
            ("orchestrators", 3, "POST"): self._start_instance,
            ("instances", 1, "GET"): self._list_instances,
            ("instances", 1, "DELETE"): self._purge_instances,
            ("instances", 2, "GET"): self._reply_with_instance_status,
            ("instances", 2, "DELETE"): self._purge_instance,
            ("instances", 3, "POST"): self._run_instance_operation,
        }
        if raises and request.segments[0] == "instances" and request.method == "POST":
            return await self._raise_event(request)
        handler = handlers.get((request.segments[0], len(request.segments), request.method))
        return await handler(request) if handler is not None else WebhookReply(404)

    async def _start_instance(self, request: WebhookRequest) -> WebhookReply:
        name = request.segments[1]
        if name not in self._names.orchestrators:
            message = build_unknown_function_message(name, "orchestrator")
            return WebhookReply(400, {"Message": message, "ExceptionMessage": message})
        given = json_text_from_body_if_valid(request.body)
        if given is None and request.body.strip():
            return _build_invalid_json_reply()
        instance = request.segments[2] if len(request.segments) == _NAMED_SEGMENTS else create_random_id()
        started = await self._management.try_start_instance(
            NewInstance(instance, create_random_id(), name, request.query.get("version") or self._names.version, given)
        )
        if not started:
            return WebhookReply(409, {"Message": f"An Orchestration instance with the ID {instance} already exists."})
        return await self._wait_and_build_started_reply(instance, request)

    async def _wait_and_build_started_reply(self, instance_id: str, request: WebhookRequest) -> WebhookReply:
        """Build the reply to a request that started an instance; first wait for its end, if the request demands this.

        The reply contains the output of a completed instance, the status of any other ended instance, or the management
        URLs of an instance that has not ended.
        """
        seconds, pause = (
            parse_seconds_if_valid(request, "timeout"),
            parse_seconds_if_valid(request, "pollingInterval"),
        )
        if seconds is not None and pause is not None:
            found = await self._management.wait_for_ended_instance(instance_id, seconds, pause)
            if found is not None and found.status is OrchestrationStatus.COMPLETED:
                return WebhookReply(200, build_status_document(found, show_input=False)["output"])
            if found is not None:
                return WebhookReply(200, build_status_document(found, show_input=True))
        return self._build_accepted_reply(instance_id)

    def _build_accepted_reply(self, instance_id: str) -> WebhookReply:
        urls = self._urls.build_management_urls(instance_id)
        del urls["rewindPostUri"]
        return WebhookReply(202, urls, {"Location": urls["statusQueryGetUri"], "Retry-After": "10"})

    async def _reply_with_instance_status(self, request: WebhookRequest) -> WebhookReply:
        found = await self._management.find_instance(request.segments[1])
        if found is None:
            return WebhookReply(404)
        document = await self._build_status_document(found, request)
        if not found.status.has_ended:
            location = self._urls.build_management_urls(request.segments[1])["statusQueryGetUri"]
            return WebhookReply(202, document, {"Location": location, "Retry-After": "5"})
        failed = found.status is OrchestrationStatus.FAILED and has_true_parameter(
            request, "returnInternalServerErrorOnFailure"
        )
        return WebhookReply(500 if failed else 200, document)

    async def _build_status_document(self, instance: Instance, request: WebhookRequest) -> dict[str, Any]:
        history = None
        if has_true_parameter(request, "showHistory"):
            texts = await self._management.load_history_events(instance.start.instance)
            history = build_history_document(texts, show_output=has_true_parameter(request, "showHistoryOutput"))
        return build_status_document(instance, show_input=is_input_requested(request), history=history)

    async def _list_instances(self, request: WebhookRequest) -> WebhookReply:
        limit = parse_page_size(request)
        after = find_instance_id_in_continuation_token(request.headers.get(TOKEN, ""))
        if after is None:
            return WebhookReply(400, {"Message": f"The {TOKEN} is not a continuation token of this host."})
        found = await self._management.list_instance_page(parse_instance_filter(request), after, limit + 1)
        shown = [build_status_document(instance, show_input=is_input_requested(request)) for instance in found[:limit]]
        token = build_continuation_token(found[limit - 1].start.instance) if len(found) > limit else ""
        return WebhookReply(200, shown, {TOKEN: token} if token else {})

    async def _run_instance_operation(self, request: WebhookRequest) -> WebhookReply:
        """Run the operation in the path of a request: ``terminate``, ``suspend``, ``resume`` or ``restart``."""
        instance, reason = request.segments[1], request.query.get("reason")
        operation = request.segments[2].lower()
        if operation == "terminate":
            output = None if reason is None else json.dumps(reason)
            return _build_state_change_reply(
                await self._management.terminate_and_find_previous_status(instance, output)
            )
        if operation == "suspend":
            return _build_state_change_reply(await self._management.suspend_and_find_previous_status(instance, reason))
        if operation == "resume":
            return _build_state_change_reply(await self._management.resume_and_find_previous_status(instance, reason))
        if operation == "restart":
            return await self._restart_instance(instance, request)
        return WebhookReply(501, _NO_REWIND) if operation == "rewind" else WebhookReply(404)

    async def _restart_instance(self, instance_id: str, request: WebhookRequest) -> WebhookReply:
        if await self._management.find_instance(instance_id) is None:
            return WebhookReply(400, {"Message": "InstanceId does not match a valid orchestration instance."})
        assign_new_id = request.query.get("restartWithNewInstanceId", "").lower() != "false"
        restarted = await self._management.restart_and_find_instance_id(instance_id, assign_new_id=assign_new_id)
        if restarted is None:
            return WebhookReply(409, {"Message": "A non-terminal instance with this instance ID already exists."})
        return await self._wait_and_build_started_reply(restarted, request)

    async def _raise_event(self, request: WebhookRequest) -> WebhookReply:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return WebhookReply(400, {"Message": "Only application/json request content is supported"})
        data = json_text_from_body_if_valid(request.body)
        if data is None:
            return _build_invalid_json_reply()
        return _build_state_change_reply(
            await self._management.raise_event_and_find_previous_status(request.segments[1], request.segments[3], data)
        )

    async def _purge_instance(self, request: WebhookRequest) -> WebhookReply:
        found = await self._management.purge_if_ended_and_find_status(request.segments[1])
        if found is None:
            return WebhookReply(404)
        if not found.has_ended:
            message = "Only orchestrations in a terminal state can be purged, but the orchestration with instance ID "
            return WebhookReply(412, f"{message}{request.segments[1]} has status {found}")
        return WebhookReply(200, {"instancesDeleted": 1})

    async def _purge_instances(self, request: WebhookRequest) -> WebhookReply:
        which = parse_instance_filter(request)
        if which.created_from is None:
            return WebhookReply(400, "Please provide value for 'createdTimeFrom' parameter.")
        deleted = await self._management.purge_and_count_matching_instances(which)
        return WebhookReply(200, {"instancesDeleted": deleted}) if deleted else WebhookReply(404)


def _build_state_change_reply(previous_status: OrchestrationStatus | None) -> WebhookReply:
    """Build the reply to a change of an instance: 404 if it is unknown, 410 if it had already ended, else 202."""
    if previous_status is None:
        return WebhookReply(404)
    return WebhookReply(410) if previous_status.has_ended else WebhookReply(202)


def _build_invalid_json_reply() -> WebhookReply:
    return WebhookReply(400, {"Message": "Invalid JSON content", "ExceptionMessage": "Invalid JSON content"})
