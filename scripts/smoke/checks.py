"""Checks of the smoke test. Each returns a summary or raises an error."""

import hashlib
import time
import urllib.parse
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

from scripts.smoke.calls import OK, CheckFailedError, FeatureMissingError, SmokeContext, TokenHolder, wait_until

SCOPE = "smoke"
CREATED, ACCEPTED, FORBIDDEN, UNAVAILABLE = 201, 202, 403, 503


def health(context: SmokeContext) -> str:
    """The process is alive, and its stores answer."""
    anonymous = TokenHolder(context.base)
    anonymous.get("/healthz").expect(OK)
    anonymous.get("/readyz").expect(OK)
    return "alive and ready"


def tokens(context: SmokeContext) -> str:
    """A valid key is exchanged for a token; an invalid one is rejected."""
    TokenHolder(context.base, "oik_wrong").get("/workspace/api/keys/jwt").expect(401)
    for name, key in context.keys.items():
        reply = TokenHolder(context.base, key).get("/workspace/api/keys/jwt", minutes=30)
        if reply.status == OK:
            issued = reply.json
            context.members.append(TokenHolder(context.base, issued["Token"], name, frozenset(issued["AccessRights"])))
    if not context.members:
        raise CheckFailedError("none of the keys is valid")
    return f"{len(context.members)} of {len(context.keys)} keys"


def whoami(context: SmokeContext) -> str:
    """A token identifies its member."""
    reply = context.members[0].get("/workspace/api/keys/whoami").expect(OK).json
    context.workspace = reply["workspace"]
    return f"{reply['principal']} of {context.workspace}"


def graphql(context: SmokeContext) -> str:
    """The catalog is available over GraphQL."""
    return f"{len(connections(context, 'id'))} connections"


def connections(context: SmokeContext, fields: str) -> list[dict[str, Any]]:
    """Return the workspace's connections."""
    document = {"query": f"{{ connections(first: 500) {{ nodes {{ {fields} }} }} }}"}
    member = context.member("Catalog.Read")
    reply = member.call("POST", f"/v1/{context.workspace}/graphql", document).expect(OK).json
    if reply.get("errors"):
        raise CheckFailedError(str(reply["errors"]))
    return list(reply["data"]["connections"]["nodes"])


def telemetry(context: SmokeContext) -> str:
    """A message that is sent twice is stored once."""
    member = context.member("Telemetry.Write", "WarmQuery.AdHoc")
    real = [each["id"] for each in connections(context, "id type status") if _accepts_messages(each)]
    if not real:
        raise FeatureMissingError("no connection accepts messages")
    message = {"messageId": f"smoke-{uuid.uuid4()}", "deviceId": "smoke", "value": 1.5}
    for _ in range(2):
        member.call("POST", f"/oi-api/telemetry/{real[0]}", message).expect(ACCEPTED)
    query = f"Telemetry | where MessageId == '{message['messageId']}' | count"
    began = time.monotonic()
    wait_until(
        lambda: member.call("POST", "/oi-api/warm-queries", {"query": query}).expect(OK).json["results"], [{"Count": 1}]
    )
    return f"{real[0]}, in the table after {time.monotonic() - began:.1f} s"


def _accepts_messages(connection: Mapping[str, str]) -> bool:
    return connection["type"] != "SIMULATOR" and connection["status"] != "DISCONNECTED"


def warm_query(context: SmokeContext) -> str:
    """An approved query runs and returns its approver."""
    member = context.member("Catalog.Read", "WarmQuery.Execute")
    for query in member.get("/oi-api/warm-queries").expect(OK).json["warmQueries"]:
        if query["approval"] and all("default" in each for each in query["parameters"]):
            answer = member.get(f"/oi-api/warm-queries/{query['lookup']}", limit=1).expect(OK).json
            if answer["governance"]["queryApprovedBy"] != query["approval"]["approvedBy"]:
                raise CheckFailedError(f"wrong approver: {answer['governance']}")
            return f"{query['lookup']}, {answer['rowCount']} rows"
    raise FeatureMissingError("no approved query can run without parameters")


def audit_event(context: SmokeContext) -> str:
    """An event is appended and returned by a query."""
    member = context.member("Provenance.Write", "Provenance.Read")
    event = {"ScopeKey": SCOPE, "ActionType": "Smoke.Tour", "EntityType": "Service", "EntityID": str(uuid.uuid4())}
    reply = member.call("POST", "/oi-api/provenance/events", event)
    if reply.status == UNAVAILABLE and reply.json["code"] == "PROVENANCE_NOT_PROVISIONED":
        raise FeatureMissingError("provenance is not provisioned")
    record = reply.expect(CREATED).json
    found = member.get("/oi-api/provenance/events/query", scopeKey=SCOPE, limit=1).expect(OK).json
    if found != [record]:
        raise CheckFailedError(f"{found!r} instead of the event")
    return f"record {record['RecordID']}"


def verification(context: SmokeContext) -> str:
    """The chain of events is valid."""
    body = {"ScopeKey": SCOPE}
    verdict = context.member("Provenance.Verify").call("POST", "/oi-api/provenance/events/verify", body).expect(OK).json
    if not verdict["ChainValid"] or verdict["Empty"]:
        raise CheckFailedError(str(verdict["Reason"]))
    return str(verdict["Reason"])


def export(context: SmokeContext) -> str:
    """Exported records link to each other."""
    records = context.member("Provenance.Export").get("/oi-api/provenance/events/export", scopeKey=SCOPE, limit=100_000)
    chain = records.expect(OK).json
    for before, after in pairwise(chain):
        if after["PreviousHash"] != before["Hash"]:
            raise CheckFailedError(f"record {after['RecordID']} does not link to the one before")
    return f"{len(chain)} records"


def checkpoint(context: SmokeContext) -> str:
    """The chain has a signed checkpoint."""
    member = context.member("Provenance.Read")
    address = "/oi-api/provenance/checkpoint"
    wait_until(lambda: member.get(address, target="DomainEvents", scopeKey=SCOPE).status, OK)
    created = member.get(address, target="DomainEvents", scopeKey=SCOPE).expect(OK).json
    return f"of {created['size']} records"


def amendment(context: SmokeContext) -> str:
    """The author of an amendment cannot approve it; another member can."""
    maker, checker = context.pair("Amendment.Create", "Amendment.Approve")
    reasons = maker.get("/oi-api/provenance/reason-categories").expect(OK).json
    body = {
        "ScopeKey": SCOPE,
        "EntityType": "Service",
        "EntityID": "smoke",
        "OriginalRecord": {"state": "untried"},
        "AmendedRecord": {"state": "tried"},
        "ChangedFields": ["state"],
        "ReasonCategory": _first_category(reasons),
        "ReasonText": "a tour through the service",
    }
    created = maker.call("POST", "/oi-api/provenance/amendments", body).expect(CREATED).json
    if created["Status"] != "pending":
        return f"{created['RecordID']} {created['Status']}: the workspace requires no approval"
    address = f"/oi-api/provenance/amendments/{created['RecordID']}/approve?scopeKey={SCOPE}"
    maker.call("POST", address).expect(FORBIDDEN)
    checker.call("POST", address).expect(OK)
    return f"{created['RecordID']} by {maker.name}, approved by {checker.name}"


def _first_category(reasons: Any) -> str:
    listed = reasons if isinstance(reasons, list) else next(each for each in reasons.values() if isinstance(each, list))
    return str(listed[0])


def openapi(context: SmokeContext) -> str:
    """The OpenAPI document is available."""
    document = context.members[0].get("/oi-api/openapi").expect(OK).json
    return f"OpenAPI {document['openapi']}, {len(document['paths'])} paths"


def mcp(context: SmokeContext) -> str:
    """The MCP server lists its tools."""
    headers = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-11-25"}
    member, message = context.member("Mcp.Use"), {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}
    answer = member.call("POST", "/oi-api/mcp", message, headers).expect(OK).json
    if "result" not in answer:
        raise CheckFailedError(str(answer))
    return f"{len(answer['result']['tools'])} tools"


def live_stream(context: SmokeContext) -> str:
    """A listener receives the address of the live stream."""
    member = context.member("LiveStream.Read")
    reply = member.get("/oi-api/live-stream/negotiate")
    if reply.status == UNAVAILABLE and reply.json["code"] == "LIVE_STREAM_UNAVAILABLE":
        raise FeatureMissingError("this host has no live stream")
    address = reply.expect(OK).json["url"]
    member.get("/oi-api/live-stream").expect(426)
    return str(urllib.parse.urlsplit(address).netloc)


def download(context: SmokeContext) -> str:
    """An hour of a connection's archive is downloaded, and the file has the announced digest."""
    member = context.member("ColdData.Export", "Catalog.Read")
    known = connections(context, "id")
    if not known:
        raise FeatureMissingError("no connection")
    now = datetime.now(UTC)
    day = {"start": (now - timedelta(hours=1)).isoformat(), "end": now.isoformat()}
    address = f"/oi-api/downloads/data-connections/{known[0]['id']}"
    started = member.call("POST", address, {"format": "jsonl", "dateRange": day}, {"Prefer": "wait=30"})
    job = f"/oi-api/downloads/{started.expect(OK, ACCEPTED).json['downloadId']}"
    wait_until(lambda: member.get(job).expect(OK).json["status"], "completed")
    [file, *_] = member.get(job).json["files"]
    content = TokenHolder(context.base).call("GET", file["url"]).expect(OK).body
    if hashlib.sha256(content).hexdigest() != file["sha256"]:
        raise CheckFailedError("the file does not have the announced digest")
    return f"{known[0]['id']}, {file['rows']} rows"


CHECKS: tuple[Callable[[SmokeContext], str], ...] = (
    health,
    tokens,
    whoami,
    graphql,
    telemetry,
    warm_query,
    audit_event,
    verification,
    export,
    checkpoint,
    amendment,
    openapi,
    mcp,
    live_stream,
    download,
)
FIRST = (health, tokens, whoami)
"""The other checks depend on these."""
