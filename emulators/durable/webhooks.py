"""The HTTP API of the Durable Task extension, for clients on this machine that hold the system key."""

import hmac
import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote

from emulators.durable import calls, status
from emulators.durable.calls import WebhookRequest
from emulators.durable.links import PREFIX, ManagementUrls
from emulators.durable.management import Management
from emulators.durable.records import Instance, NewInstance, OrchestrationStatus, new_id
from emulators.durable.turns import FunctionNames, unknown_function_message
from local.http_server.admin import is_local_request
from shared.errors import Kind, WorkspaceError

_NAMED_SEGMENTS, _EVENT_SEGMENTS = 3, 4
_NO_REWIND = "The local host does not rewind orchestrations; restart the instance instead."


@dataclass(frozen=True, slots=True)
class WebhookReply:
    """An answer: status, a document or none, and headers."""

    status: int
    document: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


class Webhooks:
    """Answers the calls that ``DurableOrchestrationClient`` and the addresses in its answers make."""

    def __init__(self, management: Management, links: ManagementUrls, names: FunctionNames) -> None:
        self._management = management
        self._links = links
        self._names = names

    async def handle(self, scope: Mapping[str, Any], raw_path: str, body: bytes) -> WebhookReply:
        """Answer a request under the extension's path.

        Raises:
            WorkspaceError: ADMINISTRATION_IS_LOCAL; SYSTEM_KEY_MISSING.
        """
        if not is_local_request(scope):
            detail = "The Durable Task API answers callers on this machine only."
            raise WorkspaceError(Kind.FORBIDDEN, "ADMINISTRATION_IS_LOCAL", detail)
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        rest = self._below_key(raw_path, query, headers)
        segments = [unquote(segment) for segment in rest.strip("/").split("/")]
        return await self._route(WebhookRequest(scope["method"], segments, query, headers, body))

    def _below_key(self, raw_path: str, query: Mapping[str, str], headers: Mapping[str, str]) -> str:
        given = query.get("code") or headers.get("x-functions-key") or ""
        rpc = self._links.rpc_path().encode()
        path = raw_path.encode("latin-1")
        if len(path) >= len(rpc) and hmac.compare_digest(path[: len(rpc)], rpc):
            return raw_path[len(rpc) :]
        if hmac.compare_digest(given.encode(), self._links.key.encode()):
            return raw_path.removeprefix(PREFIX)
        raise WorkspaceError(Kind.UNAUTHENTICATED, "SYSTEM_KEY_MISSING", "The call holds no valid system key.")

    async def _route(self, call: WebhookRequest) -> WebhookReply:
        if call.segments[0] == "entities":
            return WebhookReply(501, {"Message": "The local host has no entities."})
        raises = len(call.segments) == _EVENT_SEGMENTS and call.segments[2].lower() == "raiseevent"
        handlers: dict[tuple[str, int, str], Callable[[WebhookRequest], Awaitable[WebhookReply]]] = {
            ("orchestrators", 2, "POST"): self._start,
            ("orchestrators", 3, "POST"): self._start,
            ("instances", 1, "GET"): self._list,
            ("instances", 1, "DELETE"): self._purge_all,
            ("instances", 2, "GET"): self._status,
            ("instances", 2, "DELETE"): self._purge,
            ("instances", 3, "POST"): self._operate,
        }
        if raises and call.segments[0] == "instances" and call.method == "POST":
            return await self._raise(call)
        handler = handlers.get((call.segments[0], len(call.segments), call.method))
        return await handler(call) if handler is not None else WebhookReply(404)

    async def _start(self, call: WebhookRequest) -> WebhookReply:
        name = call.segments[1]
        if name not in self._names.orchestrators:
            said = unknown_function_message(name, "orchestrator")
            return WebhookReply(400, {"Message": said, "ExceptionMessage": said})
        given = calls.normalize_json(call.body)
        if given is None and call.body.strip():
            return _no_json()
        instance = call.segments[2] if len(call.segments) == _NAMED_SEGMENTS else new_id()
        started = await self._management.start(
            NewInstance(instance, new_id(), name, call.query.get("version") or self._names.version, given)
        )
        if not started:
            return WebhookReply(409, {"Message": f"An Orchestration instance with the ID {instance} already exists."})
        return await self._begun(instance, call)

    async def _begun(self, instance: str, call: WebhookRequest) -> WebhookReply:
        """Answer with an instance's links, or with its end where the caller waits for that and it comes in time."""
        seconds, pause = calls.parse_seconds(call, "timeout"), calls.parse_seconds(call, "pollingInterval")
        if seconds is not None and pause is not None:
            found = await self._management.wait(instance, seconds, pause)
            if found is not None and found.status is OrchestrationStatus.COMPLETED:
                return WebhookReply(200, status.status_document(found, show_input=False)["output"])
            if found is not None:
                return WebhookReply(200, status.status_document(found, show_input=True))
        return self._accepted(instance)

    def _accepted(self, instance: str) -> WebhookReply:
        links = self._links.management(instance)
        del links["rewindPostUri"]
        return WebhookReply(202, links, {"Location": links["statusQueryGetUri"], "Retry-After": "10"})

    async def _status(self, call: WebhookRequest) -> WebhookReply:
        found = await self._management.find(call.segments[1])
        if found is None:
            return WebhookReply(404)
        document = await self._document(found, call)
        if not found.status.ended:
            location = self._links.management(call.segments[1])["statusQueryGetUri"]
            return WebhookReply(202, document, {"Location": location, "Retry-After": "5"})
        failed = found.status is OrchestrationStatus.FAILED and calls.is_true(
            call, "returnInternalServerErrorOnFailure"
        )
        return WebhookReply(500 if failed else 200, document)

    async def _document(self, found: Instance, call: WebhookRequest) -> dict[str, Any]:
        history = None
        if calls.is_true(call, "showHistory"):
            texts = await self._management.history(found.start.instance)
            history = status.history_document(texts, show_output=calls.is_true(call, "showHistoryOutput"))
        return status.status_document(found, show_input=calls.wants_input(call), history=history)

    async def _list(self, call: WebhookRequest) -> WebhookReply:
        limit = calls.parse_page_size(call)
        after = calls.read_token(call.headers.get(calls.TOKEN, ""))
        if after is None:
            return WebhookReply(400, {"Message": f"The {calls.TOKEN} is none that this host gave."})
        found = await self._management.page(calls.parse_filter(call), after, limit + 1)
        shown = [status.status_document(instance, show_input=calls.wants_input(call)) for instance in found[:limit]]
        token = calls.build_token(found[limit - 1].start.instance) if len(found) > limit else ""
        return WebhookReply(200, shown, {calls.TOKEN: token} if token else {})

    async def _operate(self, call: WebhookRequest) -> WebhookReply:
        instance, reason = call.segments[1], call.query.get("reason")
        operation = call.segments[2].lower()
        if operation == "terminate":
            output = None if reason is None else json.dumps(reason)
            return _changed(await self._management.terminate(instance, output))
        if operation == "suspend":
            return _changed(await self._management.suspend(instance, reason))
        if operation == "resume":
            return _changed(await self._management.resume(instance, reason))
        if operation == "restart":
            return await self._restart(instance, call)
        return WebhookReply(501, _NO_REWIND) if operation == "rewind" else WebhookReply(404)

    async def _restart(self, instance: str, call: WebhookRequest) -> WebhookReply:
        if await self._management.find(instance) is None:
            return WebhookReply(400, {"Message": "InstanceId does not match a valid orchestration instance."})
        new_instance = call.query.get("restartWithNewInstanceId", "").lower() != "false"
        begun = await self._management.restart(instance, new_instance=new_instance)
        if begun is None:
            return WebhookReply(409, {"Message": "A non-terminal instance with this instance ID already exists."})
        return await self._begun(begun, call)

    async def _raise(self, call: WebhookRequest) -> WebhookReply:
        if call.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return WebhookReply(400, {"Message": "Only application/json request content is supported"})
        data = calls.normalize_json(call.body)
        if data is None:
            return _no_json()
        return _changed(await self._management.raise_event(call.segments[1], call.segments[3], data))

    async def _purge(self, call: WebhookRequest) -> WebhookReply:
        found = await self._management.purge(call.segments[1])
        if found is None:
            return WebhookReply(404)
        if not found.ended:
            said = "Only orchestrations in a terminal state can be purged, but the orchestration with instance ID "
            return WebhookReply(412, f"{said}{call.segments[1]} has status {found}")
        return WebhookReply(200, {"instancesDeleted": 1})

    async def _purge_all(self, call: WebhookRequest) -> WebhookReply:
        which = calls.parse_filter(call)
        if which.created_from is None:
            return WebhookReply(400, "Please provide value for 'createdTimeFrom' parameter.")
        deleted = await self._management.purge_all(which)
        return WebhookReply(200, {"instancesDeleted": deleted}) if deleted else WebhookReply(404)


def _changed(before: OrchestrationStatus | None) -> WebhookReply:
    if before is None:
        return WebhookReply(404)
    return WebhookReply(410) if before.ended else WebhookReply(202)


def _no_json() -> WebhookReply:
    return WebhookReply(400, {"Message": "Invalid JSON content", "ExceptionMessage": "Invalid JSON content"})
