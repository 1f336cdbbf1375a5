"""Tests of the whole app with STORES=azure over emulators."""

import asyncio
import json
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import urlencode

import jwt
import pytest
from websockets.asyncio.client import ClientConnection, connect

from emulators.web_pubsub.asgi import Message, Receive, Send
from emulators.web_pubsub.settings import HubSettings, ServiceSettings
from emulators.web_pubsub.upstream import AsgiUpstream
from functions.http_blueprint import get_pipeline
from functions.live_stream import CONNECT, CONNECTED, ROUTE
from shared.errors import WorkspaceError
from shared.fair_use.acting_member import acting_member
from shared.http.messages import Request
from shared.live_stream.history import History
from shared.live_stream.replay import CatchUp
from shared.provenance.notes import VerifierKey, verify_and_parse_checkpoint
from shared.runtime import Runtime
from shared.telemetry.models import TELEMETRY_HUB, HubEvent
from shared.timestamps import format_rfc3339, now
from tests.emulators.web_pubsub.serving import KEY, Handler, run_emulator
from tests.receipts import verify_growth, verify_inclusion
from tests.unit.functions.azure_plant import ADMIN, AMENDMENTS, EDITOR, EVENTS, QUALITY, Instance
from tests.unit.shared.wiring.azure import Deployment

AT = datetime(2026, 1, 5, 8, tzinfo=UTC)
type Apply = Callable[[str], str]


async def test_the_service_works_on_azure_stores(
    start_instance: Callable[[], Instance], apply_sample_document: Apply
) -> None:
    """Documents, tokens, audit log, amendments, checkpoints and queries work on two instances."""
    keys = {member: await asyncio.to_thread(apply_sample_document, member) for member in (ADMIN, EDITOR, QUALITY)}
    first = start_instance()
    assert (await first.request("GET", "/readyz")).status == 200
    tokens = {member: await first.issue_token(key) for member, key in keys.items()}
    await _check_tokens(first, tokens, keys)
    await _check_audit_trail(first, tokens)
    await _check_amendments(first, tokens)
    await _check_checkpoints(first, tokens)
    await _check_queries(first, tokens)
    await _check_telemetry(first, tokens)
    await first.services.close()
    second = start_instance()
    verdict = await second.request("POST", f"{EVENTS}/verify", tokens[EDITOR], {"ScopeKey": "line-1"})
    assert verdict.body["ChainValid"] is True
    revoked = await second.request("DELETE", f"/workspace/api/keys/{keys[EDITOR].split('_')[1]}", keys[ADMIN])
    assert revoked.status == 204
    assert (await second.request("GET", "/oi-api/warm-queries", tokens[EDITOR])).status == 401


async def _check_tokens(app: Instance, tokens: dict[str, str], keys: dict[str, str]) -> None:
    published = (await app.request("GET", "/.well-known/jwks.json")).body["keys"]
    assert jwt.get_unverified_header(tokens[ADMIN])["kid"] == published[0]["kid"]
    whoami = await app.request("GET", "/workspace/api/keys/whoami", tokens[ADMIN])
    assert (whoami.status, whoami.body["principal"]) == (200, ADMIN)
    assert whoami.headers["RateLimit-Policy"] == '"default";q=100000;w=60'
    created = [
        await app.request("POST", "/workspace/api/keys", keys[ADMIN], {"name": "twice"}, idempotency_key="k1")
        for _ in range(2)
    ]
    assert [each.status for each in created] == [201, 201]
    assert created[0].body == created[1].body


async def _check_audit_trail(app: Instance, tokens: dict[str, str]) -> None:
    event = {"ActionType": "Batch.Released", "EntityType": "Batch", "EntityID": "B-1", "ScopeKey": "line-1"}
    replies = [await app.request("POST", EVENTS, tokens[EDITOR], event, idempotency_key="e1") for _ in range(2)]
    assert [reply.status for reply in replies] == [201, 201]
    assert replies[0].body == replies[1].body
    others = await asyncio.gather(
        *(app.request("POST", EVENTS, tokens[EDITOR], event | {"EntityID": f"C-{n}"}) for n in range(20))
    )
    assert {reply.status for reply in others} == {201}
    found = await app.request("GET", f"{EVENTS}/query?scopeKey=line-1&fromSequence=1&toSequence=1", tokens[EDITOR])
    assert [record["Hash"] for record in found.body] == [replies[0].body["Hash"]]
    verdict = await app.request("POST", f"{EVENTS}/verify", tokens[EDITOR], {"ScopeKey": "line-1"})
    assert (verdict.body["ChainValid"], verdict.body["Empty"]) == (True, False)
    changes = await app.request("GET", f"{EVENTS}/query?target=PlatformConfig&limit=1000", tokens[ADMIN])
    assert {"pump-rig", "chiller-sim"} <= {record["EntityID"] for record in changes.body}


async def _check_amendments(app: Instance, tokens: dict[str, str]) -> None:
    body = {
        "ScopeKey": "line-1",
        "EntityType": "Batch",
        "EntityID": "B-1",
        "ReasonCategory": "other",
        "OriginalRecord": {"kg": 10},
        "AmendedRecord": {"kg": 11},
        "ChangedFields": ["kg"],
        "ReasonText": "typo",
    }
    created = await app.request("POST", AMENDMENTS, tokens[EDITOR], body)
    assert created.status == 201, created.body
    address = f"{AMENDMENTS}/{created.body['RecordID']}/approve?scopeKey=line-1"
    assert (await app.request("POST", address, tokens[EDITOR])).status == 403
    decided = await asyncio.gather(*(app.request("POST", address, tokens[who]) for who in (ADMIN, QUALITY)))
    assert sorted(reply.status for reply in decided) == [200, 409]


async def _check_checkpoints(app: Instance, tokens: dict[str, str]) -> None:
    assert await app.services.provenance.checkpoints.create_all_and_count_them() >= 4
    reply = await app.request("GET", "/oi-api/provenance/checkpoint?scopeKey=line-1", tokens[EDITOR])
    key = VerifierKey.parse((await app.request("GET", "/.well-known/oi-checkpoint-key")).body.decode())
    opened = verify_and_parse_checkpoint(reply.body["signedNote"].encode(), key, reply.body["origin"])
    assert (opened.size, reply.body["size"]) == (21, 21)
    proof = await app.request("GET", "/oi-api/provenance/proof?scopeKey=line-1&sequence=2&size=21", tokens[EDITOR])
    assert proof.status == 200
    await _check_receipts(app, tokens)


async def _check_receipts(app: Instance, tokens: dict[str, str]) -> None:
    events = f"{EVENTS}/query?scopeKey=line-1&limit=1000"
    hashes = [record["Hash"] for record in (await app.request("GET", events, tokens[EDITOR])).body][::-1]
    key_set = (await app.request("GET", "/.well-known/oi-checkpoint-key?format=cose")).body
    address = "/oi-api/provenance/receipt?scopeKey=line-1"
    reply = await app.request("GET", f"{address}&recordId=000000000002", tokens[EDITOR])
    assert verify_inclusion(reply.body, hashes[1], key_set).ok
    missing = await app.request("GET", f"{address}&recordId=000000000002&size=20", tokens[EDITOR])
    assert (missing.status, missing.body["code"]) == (404, "CHECKPOINT_NOT_FOUND")
    event = {"ActionType": "Batch.Released", "EntityType": "Batch", "EntityID": "B-2", "ScopeKey": "line-1"}
    assert (await app.request("POST", EVENTS, tokens[EDITOR], event)).status == 201
    waiting = await app.request("GET", f"{address}&recordId=000000000022", tokens[EDITOR])
    assert (waiting.body["code"], waiting.headers["Retry-After"]) == ("RECEIPT_NOT_READY", "15")
    await app.services.provenance.checkpoints.create_all_and_count_them()
    hashes = [record["Hash"] for record in (await app.request("GET", events, tokens[EDITOR])).body][::-1]
    growth = await app.request("GET", f"{address}&from=21", tokens[EDITOR])
    assert verify_growth(growth.body, hashes, key_set) == (21, 22)


async def _check_queries(app: Instance, tokens: dict[str, str]) -> None:
    listed = await app.request("GET", "/oi-api/warm-queries", tokens[EDITOR])
    assert len(listed.body["warmQueries"]) > 1
    draft = {"name": "Mine", "surface": "cooling", "kql": "Telemetry | count"}
    created = await app.request("PUT", "/oi-api/warm-queries/mine", tokens[EDITOR], draft)
    assert created.status == 201, created.body
    assert (await app.request("POST", "/oi-api/warm-queries/mine/approve", tokens[EDITOR])).status == 403
    assert (await app.request("POST", "/oi-api/warm-queries/mine/approve", tokens[QUALITY])).status == 200
    assert (await app.request("GET", "/oi-api/warm-queries/mine", tokens[EDITOR])).body["rowCount"] == 1
    assert (await app.services.catalog.store.list_pending_events()) == []


async def _check_telemetry(app: Instance, tokens: dict[str, str]) -> None:
    message = json.dumps({"ts": "2026-01-05T08:00:00Z", "deviceId": "rig-1", "messageId": "m-1", "v": 1}).encode()
    events = [HubEvent(message, "0", number, AT, {}, "rig-1") for number in (1, 2)]
    for _ in range(2):
        await app.services.telemetry.ingestor.run(TELEMETRY_HUB, events)
    query = {"query": '{connection(id: "pump-rig") {status stats {messagesReceived}}}'}
    reply = await app.request("POST", "/v1/plant-a/graphql", tokens[EDITOR], query)
    assert reply.body["data"]["connection"] == {"status": "CONNECTED", "stats": {"messagesReceived": 2}}, reply.body


async def test_a_client_receives_replayed_late_and_live_messages(
    start_instance: Callable[[], Instance], apply_sample_document: Apply, azure_deployment: Deployment
) -> None:
    """A client receives replayed messages, as work of its member, messages that are stored late, and live messages."""
    key = await asyncio.to_thread(apply_sample_document, EDITOR)
    events = frozenset({CONNECT, CONNECTED})
    hub = HubSettings(AsgiUpstream(_handle_event, f"/{ROUTE}/events"), events, anonymous=True)
    async with run_emulator(ServiceSettings(KEY, {"live": hub}), Handler()) as service:
        azure_deployment.message_service = service.url
        app = start_instance()
        second_read, acting_members = asyncio.Event(), list[str]()

        async def wait_for_second_read(_: float) -> None:
            acting_members.append(acting_member.get())
            await second_read.wait()

        app.services.live_stream.catch_up = CatchUp(
            app.services.catalog.get_current_catalog,
            History(app.services.queries.engine),
            app.services.live_stream.message_service,
            runtime=Runtime(sleep=wait_for_second_read),
        )
        token = await app.issue_token(key)
        await _ingest_messages(app, token, "m-1", "m-2")
        query = urlencode({"token": token, "windowSec": "600", "connection": "pump-rig"})
        async with connect(f"{service.client_url()}?{query}") as stream:
            assert [await _receive_message_id(stream) for _ in range(2)] == ["m-1", "m-2"]
            await _ingest_messages(app, token, "m-3")
            second_read.set()
            assert await _receive_message_id(stream) == "m-3"
            assert acting_members == [EDITOR]
            impulse = json.dumps({"ID": "m-4", "Metadata": {"ConnectionLookup": "pump-rig"}}).encode()
            await app.services.live_stream.publisher.publish_events(
                [HubEvent(impulse, "0", 9, now(), {}, partition_key="pump-rig")]
            )
            assert await _receive_message_id(stream) == "m-4"
        async with connect(f"{service.client_url()}?{urlencode({'token': token})}") as stream:
            await app.services.live_stream.publisher.publish_events(
                [HubEvent(impulse, "0", 10, now(), {}, partition_key="pump-rig")]
            )
            assert await _receive_message_id(stream) == "m-4"
        await app.services.close()


async def _ingest_messages(app: Instance, token: str, *names: str) -> None:
    """Ingest messages and wait until the table contains them."""
    for name in names:
        message = {"ts": format_rfc3339(now()), "deviceId": "rig-1", "messageId": name, "v": 1}
        event = HubEvent(json.dumps(message).encode(), "0", int(name.removeprefix("m-")), AT, {}, "rig-1")
        await app.services.telemetry.ingestor.run(TELEMETRY_HUB, [event])
    query = {"query": f'Telemetry | where MessageId == "{names[-1]}" | count'}
    async with asyncio.timeout(30):
        while (await app.request("POST", "/oi-api/warm-queries", token, query)).body["results"] != [{"Count": 1}]:  # noqa: ASYNC110  another process writes the table
            await asyncio.sleep(0.05)


async def _receive_message_id(stream: ClientConnection) -> str:
    async with asyncio.timeout(30):
        return str(json.loads(await stream.recv())["ID"])


async def _handle_event(scope: Message, receive: Receive, send: Send) -> None:
    """Send an event of Web PubSub to the app."""
    body = (await receive())["body"]
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    reply = await get_pipeline().serve(Request(scope["method"], scope["path"], "", headers, body))
    raw = [(name.lower().encode(), value.encode()) for name, value in reply.headers.items()]
    await send({"type": "http.response.start", "status": reply.status, "headers": raw})
    await send({"type": "http.response.body", "body": reply.body})


async def test_an_outage_of_cosmos_db_returns_503(
    start_instance: Callable[[], Instance], apply_sample_document: Apply, azure_deployment: Deployment
) -> None:
    """While the Cosmos DB account is unavailable, writes and the readiness probe return 503."""
    key = await asyncio.to_thread(apply_sample_document, EDITOR)
    app = start_instance()
    token = await app.issue_token(key)
    await asyncio.to_thread(azure_deployment.cosmos.stop)
    event = {"ActionType": "A", "EntityType": "T", "EntityID": "1", "ScopeKey": "s"}
    assert (await app.request("POST", EVENTS, token, event)).status == 503
    assert (await app.request("GET", "/readyz")).status == 503
    with pytest.raises(WorkspaceError):
        await app.services.telemetry.connection_states.load_states_by_connection()
