"""Checks of the smoke test; each returns a summary, or raises CheckFailedError or FeatureMissingError."""

import hashlib
import time
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from scripts.smoke.calls import (
    OK,
    CheckFailedError,
    CheckSummary,
    FeatureMissingError,
    ServiceReply,
    SmokeContext,
    TokenHolder,
    wait_until,
)
from scripts.smoke.telemetry import choose_connections, find_telemetry_route

SCOPE = "smoke"
CREATED, ACCEPTED, FORBIDDEN, UNAVAILABLE = 201, 202, 403, 503


def check_health(context: SmokeContext) -> CheckSummary:
    """Check that the service is alive and that its stores respond."""
    anonymous = TokenHolder(context.base)
    anonymous.get("/healthz").require_status(OK)
    anonymous.get("/readyz").require_status(OK)
    return "alive and ready"


def check_tokens(context: SmokeContext) -> CheckSummary:
    """Check that a valid API key is exchanged for a token, and that an invalid key is rejected."""
    TokenHolder(context.base, "oik_wrong").get("/workspace/api/keys/jwt").require_status(401)
    for name, key in context.keys.items():
        reply = TokenHolder(context.base, key).get("/workspace/api/keys/jwt", minutes=60)
        if reply.status == OK:
            issued = reply.json
            context.members.append(TokenHolder(context.base, issued["Token"], name, frozenset(issued["AccessRights"])))
    if not context.members:
        raise CheckFailedError("none of the API keys is valid")
    return f"{len(context.members)} of {len(context.keys)} keys"


def check_whoami(context: SmokeContext) -> CheckSummary:
    """Check that the service returns the team member to whom a token belongs."""
    reply = context.members[0].get("/workspace/api/keys/whoami").require_status(OK).json
    context.workspace = reply["workspace"]
    return f"{reply['principal']} of {context.workspace}"


def check_graphql(context: SmokeContext) -> CheckSummary:
    """Check that the connections of the workspace can be listed over GraphQL."""
    return f"{len(list_connections(context, 'id'))} connections"


def list_connections(context: SmokeContext, graphql_fields: str) -> list[dict[str, Any]]:
    """Return the given fields of all data connections of the workspace."""
    document = {"query": f"{{ connections(first: 500) {{ nodes {{ {graphql_fields} }} }} }}"}
    member = context.require_member("Catalog.Read")
    reply = member.send_request("POST", f"/v1/{context.workspace}/graphql", document).require_status(OK).json
    if reply.get("errors"):
        raise CheckFailedError(f"the GraphQL reply contains errors: {reply['errors']}")
    return list(reply["data"]["connections"]["nodes"])


def check_telemetry(context: SmokeContext) -> CheckSummary:
    """Check that a telemetry message that is sent twice is stored only once."""
    context.require_member("Telemetry.Write")
    reader = context.require_member("Catalog.Read", "WarmQuery.AdHoc")
    usable = [each["id"] for each in list_connections(context, "id type status") if _can_receive_messages(each)]
    route = find_telemetry_route(context, reader, choose_connections(usable, context.connection))
    message_id = f"smoke-{uuid.uuid4()}"
    message = route.build_message(message_id)
    for _ in range(2):
        route.sender.send_request("POST", f"/oi-api/telemetry/{route.connection}", message).require_status(ACCEPTED)
    query = f"Telemetry | where MessageId == '{message_id}' | count"
    began = time.monotonic()
    wait_until(
        lambda: (
            reader.send_request("POST", "/oi-api/warm-queries", {"query": query}).require_status(OK).json["results"]
        ),
        [{"Count": 1}],
    )
    return f"{route.connection}, in the table after {time.monotonic() - began:.1f} s"


def _can_receive_messages(connection: Mapping[str, str]) -> bool:
    return connection["type"] != "SIMULATOR" and connection["status"] != "DISCONNECTED"


def check_warm_query(context: SmokeContext) -> CheckSummary:
    """Check that an approved saved query runs, and that the reply names its approver."""
    member = context.require_member("Catalog.Read", "WarmQuery.Execute")
    for query in member.get("/oi-api/warm-queries").require_status(OK).json["warmQueries"]:
        if query["approval"] and all("default" in each for each in query["parameters"]):
            answer = member.get(f"/oi-api/warm-queries/{query['lookup']}", limit=1).require_status(OK).json
            if answer["governance"]["queryApprovedBy"] != query["approval"]["approvedBy"]:
                raise CheckFailedError(f"the reply names the wrong approver: {answer['governance']}")
            return f"{query['lookup']}, {answer['rowCount']} rows"
    raise FeatureMissingError("no approved query can run without parameters")


def check_audit_event(context: SmokeContext) -> CheckSummary:
    """Check that an event is appended to the audit log and that a query returns it."""
    member = context.require_member("Provenance.Write", "Provenance.Read")
    event = {"ScopeKey": SCOPE, "ActionType": "Smoke.Tour", "EntityType": "Service", "EntityID": str(uuid.uuid4())}
    reply = member.send_request("POST", "/oi-api/provenance/events", event)
    record = _require_audit_log_provisioned(reply).require_status(CREATED).json
    found = member.get("/oi-api/provenance/events/query", scopeKey=SCOPE, limit=1).require_status(OK).json
    if found != [record]:
        raise CheckFailedError(f"the query returned {found!r} instead of the appended event")
    return f"record {record['RecordID']}"


def _require_audit_log_provisioned(reply: ServiceReply) -> ServiceReply:
    """Return the reply; raise FeatureMissingError if it says that the workspace has no audit log."""
    if reply.status == UNAVAILABLE and reply.json["code"] == "PROVENANCE_NOT_PROVISIONED":
        raise FeatureMissingError("the audit log is not provisioned")
    return reply


def check_audit_chain_verification(context: SmokeContext) -> CheckSummary:
    """Check that the service reports the hash chain of audit events as valid."""
    body = {"ScopeKey": SCOPE}
    member = context.require_member("Provenance.Verify")
    reply = member.send_request("POST", "/oi-api/provenance/events/verify", body)
    verdict = _require_audit_log_provisioned(reply).require_status(OK).json
    if not verdict["ChainValid"] or verdict["Empty"]:
        raise CheckFailedError(f"the audit chain is not valid: {verdict['Reason']}")
    return str(verdict["Reason"])


def check_export(context: SmokeContext) -> CheckSummary:
    """Check that each exported audit record contains the hash of the record before it."""
    records = context.require_member("Provenance.Export").get(
        "/oi-api/provenance/events/export", scopeKey=SCOPE, limit=100_000
    )
    chain = _require_audit_log_provisioned(records).require_status(OK).json
    for before, after in pairwise(chain):
        if after["PreviousHash"] != before["Hash"]:
            raise CheckFailedError(f"record {after['RecordID']} does not contain the hash of the record before it")
    return f"{len(chain)} records"


def check_checkpoint(context: SmokeContext) -> CheckSummary:
    """Check that the service has signed a checkpoint of the audit chain."""
    member = context.require_member("Provenance.Read")

    def request_checkpoint() -> ServiceReply:
        reply = member.get("/oi-api/provenance/checkpoint", target="DomainEvents", scopeKey=SCOPE)
        return _require_audit_log_provisioned(reply)

    wait_until(lambda: request_checkpoint().status, OK)
    created = request_checkpoint().require_status(OK).json
    return f"of {created['size']} records"


def check_amendment(context: SmokeContext) -> CheckSummary:
    """Check that an amendment of an audit record can be approved by another team member, but not by its author."""
    maker, checker = context.require_two_members("Amendment.Create", "Amendment.Approve")
    reply = maker.get("/oi-api/provenance/reason-categories")
    reasons = _require_audit_log_provisioned(reply).require_status(OK).json
    body = {
        "ScopeKey": SCOPE,
        "EntityType": "Service",
        "EntityID": "smoke",
        "OriginalRecord": {"state": "untried"},
        "AmendedRecord": {"state": "tried"},
        "ChangedFields": ["state"],
        "ReasonCategory": _get_first_reason_category(reasons),
        "ReasonText": "a tour through the service",
    }
    created = maker.send_request("POST", "/oi-api/provenance/amendments", body).require_status(CREATED).json
    if created["Status"] != "pending":
        return f"{created['RecordID']} {created['Status']}: the workspace requires no approval"
    address = f"/oi-api/provenance/amendments/{created['RecordID']}/approve?scopeKey={SCOPE}"
    maker.send_request("POST", address).require_status(FORBIDDEN)
    checker.send_request("POST", address).require_status(OK)
    return f"{created['RecordID']} by {maker.name}, approved by {checker.name}"


def _get_first_reason_category(reply_json: Any) -> str:
    listed = (
        reply_json
        if isinstance(reply_json, list)
        else next(each for each in reply_json.values() if isinstance(each, list))
    )
    return str(listed[0])


def check_openapi(context: SmokeContext) -> CheckSummary:
    """Check that the OpenAPI document is available."""
    document = context.members[0].get("/oi-api/openapi").require_status(OK).json
    return f"OpenAPI {document['openapi']}, {len(document['paths'])} paths"


def check_mcp(context: SmokeContext) -> CheckSummary:
    """Check that the MCP server returns a list of its tools."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    member, message = (
        context.require_member("Mcp.Use"),
        {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
    )
    answer = member.send_request("POST", "/oi-api/mcp", message, headers).require_status(OK).json
    if "result" not in answer:
        raise CheckFailedError(f"the reply of the MCP server has no result: {answer}")
    return f"{len(answer['result']['tools'])} tools"


def check_live_stream(context: SmokeContext) -> CheckSummary:
    """Check that the service gives a client the URL of the live stream."""
    member = context.require_member("LiveStream.Read")
    reply = member.get("/oi-api/live-stream/negotiate")
    if reply.status == UNAVAILABLE and reply.json["code"] == "LIVE_STREAM_UNAVAILABLE":
        raise FeatureMissingError("the service has no live stream")
    address = reply.require_status(OK).json["url"]
    member.get("/oi-api/live-stream").require_status(426)
    return str(urllib.parse.urlsplit(address).netloc)


def check_download(context: SmokeContext) -> CheckSummary:
    """Check that an hour of archived telemetry can be downloaded, and that the file has the stated SHA-256 digest."""
    member = context.require_member("ColdData.Export", "Catalog.Read")
    known = list_connections(context, "id")
    if not known:
        raise FeatureMissingError("the workspace has no connection")
    now = datetime.now(UTC)
    day = {"start": (now - timedelta(hours=1)).isoformat(), "end": now.isoformat()}
    address = f"/oi-api/downloads/data-connections/{known[0]['id']}"
    started = member.send_request("POST", address, {"format": "jsonl", "dateRange": day}, {"Prefer": "wait=30"})
    job = f"/oi-api/downloads/{started.require_status(OK, ACCEPTED).json['downloadId']}"
    wait_until(lambda: member.get(job).require_status(OK).json["status"], "completed")
    [file, *_] = member.get(job).json["files"]
    content = TokenHolder(context.base).send_request("GET", file["url"]).require_status(OK).body
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise CheckFailedError("the SHA-256 digest of the file is not the one in the reply of the service")
    return f"{known[0]['id']}, {file['rows']} rows"


CHECKS: Mapping[str, Callable[[SmokeContext], CheckSummary]] = {
    "health": check_health,
    "tokens": check_tokens,
    "whoami": check_whoami,
    "graphql": check_graphql,
    "telemetry": check_telemetry,
    "warm_query": check_warm_query,
    "audit_event": check_audit_event,
    "verification": check_audit_chain_verification,
    "export": check_export,
    "checkpoint": check_checkpoint,
    "amendment": check_amendment,
    "openapi": check_openapi,
    "mcp": check_mcp,
    "live_stream": check_live_stream,
    "download": check_download,
}
"""Checks by name, in the order in which they run."""
FIRST = ("health", "tokens", "whoami")
"""Names of the first checks; if one of them fails, the remaining checks do not run."""
