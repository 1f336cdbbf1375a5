"""Tests of the live stream over WebSocket."""

import asyncio
import json
import os
import sys
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from shared.http.versions import CURRENT
from shared.timestamps import now
from tests.service.local_service import Service, check_failing_fields, check_problem, query_rows, wait_until
from tests.service.stream_client import (
    build_stream_url,
    connect_stream,
    decode_token_id,
    read_rejection,
    receive_impulses,
    request_token,
    sign_short_lived_token,
)

_NUMBERS = count()
HANDSHAKE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


def create_message_id(prefix: str = "live-stream") -> str:
    """Return a new message id, because the live stream sends each id of a connection only once in 10 minutes."""
    return f"{prefix}-{next(_NUMBERS)}"


def send_telemetry(service: Service, connection: str, *messages: dict[str, Any]) -> None:
    """Send telemetry of a connection."""
    reply = service.create_client("editor@t").post(f"/oi-api/telemetry/{connection}", json=list(messages))
    assert reply.status_code == 202, reply.text


async def test_an_impulse_is_one_json_message(service: Service) -> None:
    """A client of the live stream receives a telemetry message as one impulse with all its properties."""
    identifier = create_message_id()
    payload = {"Pressure": 4.25, "big": 9007199254740993, "nested": {"a": [1, None, "ü"]}}
    async with connect_stream(build_stream_url(service), request_token(service, "viewer@t")) as client:
        details = {"messageId": identifier, "ts": "2026-02-01T01:00:00+01:00", "deviceId": "rig-1"}
        send_telemetry(service, "pump-rig", {**details, **payload})
        [impulse] = await receive_impulses(client, 1)
    headers = impulse.pop("Headers")
    assert isinstance(headers, dict)
    assert impulse == {
        "ID": identifier,
        "Timestamp": "2026-02-01T00:00:00.000000Z",
        "Source": "DataConnection",
        "Subject": "rig-1",
        "Metadata": {"ConnectionLookup": "pump-rig", "SurfaceLookups": ["hall"]},
        "Payload": payload,
    }


@pytest.mark.parametrize(
    ("query", "matching_connections"),
    [
        ({}, ["pump-rig", "press", "lathe"]),
        ({"connection": "press"}, ["press"]),
        ({"surface": "hall"}, ["pump-rig", "press"]),
        ({"surface": "hall", "connection": "pump-rig"}, ["pump-rig"]),
        ({"surface": "hall", "connection": "lathe"}, []),
    ],
)
async def test_filters_of_a_live_stream_are_combined(
    service: Service, query: dict[str, str], matching_connections: list[str]
) -> None:
    """A client receives only the impulses of connections that match all given filters."""
    bearer = request_token(service, "viewer@t")
    async with (
        connect_stream(build_stream_url(service, **query), bearer) as client,
        connect_stream(build_stream_url(service), bearer) as all_,
    ):
        sent = []
        for connection in ("lathe", "press", "pump-rig", "press", "lathe", "pump-rig"):
            sent.append((connection, create_message_id()))
            send_telemetry(service, connection, {"messageId": sent[-1][1]})
        await receive_impulses(all_, len(sent))
        expected = {identifier for connection, identifier in sent if connection in matching_connections}
        got = await receive_impulses(client, len(expected))
        assert {impulse["ID"] for impulse in got} == expected
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(client.recv(), 0.3)


@pytest.mark.parametrize("token_location", ["header", "query", "subprotocol", "link"])
async def test_the_token_can_be_sent_in_four_ways(service: Service, token_location: str) -> None:
    """A client can send the token as header, query parameter or subprotocol, or use a signed URL instead."""
    bearer = request_token(service, "viewer@t", minutes="5")
    url, given, subprotocols = build_stream_url(service, connection="press"), None, []
    if token_location == "header":
        given = bearer
    elif token_location == "query":
        url = build_stream_url(service, connection="press", token=bearer)
    elif token_location == "subprotocol":
        subprotocols = [f"bearer.{bearer}"]
    else:
        reply = service.create_anonymous_client(bearer=bearer).get("/oi-api/live-stream/negotiate?connection=press")
        assert reply.status_code == 200, reply.text
        assert set(reply.json()) == {"url", "expiresAt"}
        url = reply.json()["url"]
    async with connect_stream(url, given, subprotocols) as client:
        assert client.subprotocol == (subprotocols[0] if subprotocols else None)
        identifier = create_message_id()
        send_telemetry(service, "lathe", {"messageId": create_message_id()})
        send_telemetry(service, "press", {"messageId": identifier})
        assert [impulse["ID"] for impulse in await receive_impulses(client, 1)] == [identifier]


@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ({"connection": "nothing"}, 404, "CONNECTION_NOT_FOUND"),
        ({"connection": "PRESS"}, 404, "CONNECTION_NOT_FOUND"),
        ({"surface": "nothing"}, 404, "SURFACE_NOT_FOUND"),
        ({"surface": "hall", "connection": "nothing"}, 404, "CONNECTION_NOT_FOUND"),
        ({"since": "yesterday"}, 400, "INVALID_REQUEST"),
        ({"since": "2026-01-01T00:00:00"}, 400, "INVALID_REQUEST"),
        ({"since": "2026-01-01T00:00:00Z", "windowSec": "5"}, 400, "INVALID_REQUEST"),
        ({"windowSec": "0"}, 400, "INVALID_REQUEST"),
        ({"windowSec": "3601"}, 400, "INVALID_REQUEST"),
        ({"windowSec": "1.5"}, 400, "INVALID_REQUEST"),
        ({"windowSec": ""}, 400, "INVALID_REQUEST"),
        ({"connection": ""}, 400, "INVALID_REQUEST"),
        ({"surface": ""}, 400, "INVALID_REQUEST"),
        ({"connection": "press", "surface": ""}, 400, "INVALID_REQUEST"),
        ({"windowSec": "x", "connection": "nothing"}, 400, "INVALID_REQUEST"),
    ],
)
async def test_invalid_stream_requests_are_rejected_before_the_upgrade(
    service: Service, query: dict[str, str], status: int, code: str
) -> None:
    """An invalid request gets the same error as WebSocket handshake, as plain GET, and as request for a signed URL."""
    bearer = request_token(service, "viewer@t")
    replies = [
        await read_rejection(build_stream_url(service, **query), bearer),
        service.create_anonymous_client(bearer=bearer).get("/oi-api/live-stream", params=query),
        service.create_anonymous_client(bearer=bearer).get("/oi-api/live-stream/negotiate", params=query),
    ]
    for reply in replies:
        check_problem(reply, status, code)
        assert reply.headers["x-request-id"]
        if status == 400:
            assert set(check_failing_fields(reply)) <= set(query)


async def test_the_error_about_an_unknown_stream_parameter_lists_all_parameters(service: Service) -> None:
    """The error about an unknown parameter of a WebSocket handshake lists all parameters, also `token`."""
    reply = await read_rejection(build_stream_url(service, x="1"), request_token(service, "viewer@t"))
    check_problem(reply, 400, "INVALID_REQUEST")
    assert reply.json()["errors"] == [
        {
            "field": "x",
            "message": "Unknown parameter `x`; known: `connection`, `surface`, `since`, `windowSec`, `token`.",
        }
    ]


async def test_missing_credentials_and_rights_are_rejected_before_unknown_lookups(service: Service) -> None:
    """A missing token gets 401 and a missing right 403, even if the lookups (ids in URLs) are unknown."""
    url = build_stream_url(service, connection="nothing", windowSec="x")
    for bearer in (None, "nonsense", service.read_api_key("viewer@t"), request_token(service, "viewer@t") + "x"):
        reply = await read_rejection(url, bearer)
        check_problem(reply, 401, "UNAUTHENTICATED")
        assert reply.headers["www-authenticate"] == "Bearer"
    check_problem(await read_rejection(build_stream_url(service, token="nonsense")), 401, "UNAUTHENTICATED")
    check_problem(await read_rejection(url, subprotocols=["bearer.nonsense"]), 401, "UNAUTHENTICATED")
    check_problem(await read_rejection(url, subprotocols=["chat"]), 401, "UNAUTHENTICATED")
    unprivileged = request_token(service, "viewer@t", scopes="Workspace.Catalog.Read")
    check_problem(await read_rejection(url, unprivileged), 403, "ACCESS_RIGHT_MISSING")
    check_problem(await read_rejection(url, sign_short_lived_token(service, "viewer@t", -1)), 401, "UNAUTHENTICATED")


async def test_service_tokens_can_open_streams(service: Service) -> None:
    """A service token, which has no user identity, can open a live stream, also through a signed URL."""
    bearer = request_token(service, "historian")
    link = service.create_anonymous_client(bearer=bearer).get("/oi-api/live-stream/negotiate").json()["url"]
    async with connect_stream(build_stream_url(service), bearer) as one, connect_stream(link) as other:
        send_telemetry(service, "press", {"messageId": create_message_id()})
        assert await receive_impulses(one, 1) == await receive_impulses(other, 1)


def test_a_request_without_upgrade_gets_426(service: Service) -> None:
    """A plain GET of the live stream gets 426 if its credential and filters are valid."""
    caller = service.create_client("viewer@t")
    reply = caller.get("/oi-api/live-stream")
    check_problem(reply, 426, "UPGRADE_REQUIRED")
    assert reply.headers["upgrade"] == "websocket"
    bearer = request_token(service, "viewer@t")
    assert service.create_anonymous_client().get("/oi-api/live-stream", params={"token": bearer}).status_code == 426
    check_problem(service.create_anonymous_client().get("/oi-api/live-stream"), 401, "UNAUTHENTICATED")
    check_problem(caller.post("/oi-api/live-stream"), 405, "METHOD_NOT_ALLOWED")


def test_a_token_among_too_many_query_parameters_is_ignored(service: Service) -> None:
    """If a query string has too many parameters, its token is ignored; with a token in the header, the reply is 400."""
    path = f"/oi-api/live-stream?{'&'.join('a=1' for _ in range(300))}"
    check_problem(service.create_anonymous_client().get(path), 401, "UNAUTHENTICATED")
    check_problem(service.create_client("viewer@t").get(path), 400, "INVALID_REQUEST")


async def test_routes_without_a_live_stream_do_not_upgrade(service: Service) -> None:
    """A WebSocket handshake at a route that has no live stream gets the same reply as a plain GET."""
    base = service.url.replace("http", "ws", 1)
    assert (await read_rejection(f"{base}/healthz")).status_code == 200
    check_problem(await read_rejection(f"{base}/nowhere"), 404, "ROUTE_NOT_FOUND")
    check_problem(await read_rejection(f"{base}/oi-api/warm-queries"), 401, "UNAUTHENTICATED")


async def test_a_url_without_signature_or_valid_token_is_rejected(service: Service) -> None:
    """A WebSocket URL is rejected if it has no signature or if its token was revoked."""
    caller = service.create_client("viewer@t")
    link = caller.get("/oi-api/live-stream/negotiate").json()["url"]
    assert (await read_rejection(link[:-3])).status_code == 401
    who = caller.get("/workspace/api/keys/whoami").json()
    assert who["via"] == "jwt"
    async with connect_stream(link):
        pass


def test_web_pubsub_events_without_a_signature_are_rejected(service: Service) -> None:
    """The route for Web PubSub's events rejects events without a valid signature of Web PubSub."""
    event = {"ce-type": "azure.webpubsub.sys.connect", "ce-connectionId": "c", "ce-signature": "sha256=00"}
    for headers in ({}, event, event | {"ce-signature": ""}, {**event, "ce-connectionId": ""}):
        reply = service.create_anonymous_client().post("/oi-api/live-stream/events", json={}, headers=headers)
        check_problem(reply, 401, "UNAUTHENTICATED")
        for content in (b"{", b" ", b"[]", b"x" * 2_000_000):
            reply = service.create_anonymous_client().post(
                "/oi-api/live-stream/events", content=content, headers=headers
            )
            check_problem(reply, 401, "UNAUTHENTICATED")


async def test_handshake_replies_have_rate_limit_headers(service: Service) -> None:
    """The reply to a WebSocket handshake has rate-limit headers, even if the handshake is rejected."""
    bearer = request_token(service, "viewer@t")
    async with connect_stream(build_stream_url(service), bearer) as listener:
        assert listener.response is not None
        details = listener.response.headers
        assert details["RateLimit-Policy"].endswith(";w=60")
        assert details["RateLimit"].startswith('"default";r=')
        assert not [name for name in details if name.lower().startswith("ce-")]
    refused = await read_rejection(build_stream_url(service, connection="nothing"), bearer)
    assert refused.headers["ratelimit"].startswith('"default";r=')


async def test_handshake_replies_state_the_api_version(service: Service) -> None:
    """Each reply to a WebSocket handshake states the API version; a handshake with an unknown version gets 400."""
    bearer = request_token(service, "viewer@t")
    url = build_stream_url(service)
    async with connect_stream(url, bearer) as listener:
        assert listener.response is not None
        assert listener.response.headers.get_all("Oi-Version") == [CURRENT]
    assert (await read_rejection(url)).headers.get_list("oi-version") == [CURRENT]
    credential = {"Authorization": f"Bearer {bearer}"}
    client = service.create_anonymous_client()
    for method, headers, status in (
        ("GET", HANDSHAKE | {"Sec-WebSocket-Version": "12"}, 426),
        ("GET", HANDSHAKE | {"Sec-WebSocket-Key": "x"}, 400),
        ("GET", HANDSHAKE | {"Host": "a b"}, 400),
        ("POST", HANDSHAKE, 405),
        ("GET", HANDSHAKE | {"Oi-Version": "2020-01-01"}, 400),
    ):
        reply = client.request(method, "/oi-api/live-stream", headers=headers | credential)
        assert (reply.status_code, reply.headers.get_list("oi-version")) == (status, [CURRENT])


@pytest.mark.parametrize("path", ["/oi-api/live-stream/", "/OI-API/live-stream", "/oi-api/live-streams"])
async def test_the_address_of_the_live_stream_is_exact(service: Service, path: str) -> None:
    """An address that differs from the live stream's gets 404, with and without a WebSocket handshake."""
    bearer = request_token(service, "viewer@t")
    check_problem(service.create_anonymous_client(bearer=bearer).get(path), 404, "ROUTE_NOT_FOUND")
    check_problem(await read_rejection(f"{service.url.replace('http', 'ws', 1)}{path}", bearer), 404, "ROUTE_NOT_FOUND")


async def test_a_rejected_handshake_is_logged_as_one_request(own_module_service: Service) -> None:
    """A rejected handshake has one log line, with the request id of the reply and without an error."""
    service = own_module_service
    bearer = request_token(service, "viewer@t")
    replies = [
        (await read_rejection(build_stream_url(service)), 401),
        (await read_rejection(build_stream_url(service, connection="nothing"), bearer), 404),
        (await read_rejection(build_stream_url(service, since="x"), bearer), 400),
        (await read_rejection(f"{service.url.replace('http', 'ws', 1)}/nothing"), 404),
    ]
    ids = [reply.headers["x-request-id"] for reply, _ in replies]
    log = wait_until(service.read_log, lambda text: all(identifier in text for identifier in ids))
    lines = [json.loads(line) for line in log.splitlines() if line.startswith("{")]
    assert not [line for line in lines if line["level"] in {"ERROR", "CRITICAL"}]
    for reply, status in replies:
        assert reply.status_code == status
        assert reply.json()["traceId"] == reply.headers["x-request-id"]
        [line] = [line for line in lines if line.get("requestId") == reply.headers["x-request-id"]]
        assert (line["message"], line["method"], line["status"]) == ("request", "GET", status)


async def test_impulses_of_a_connection_arrive_in_order(service: Service) -> None:
    """Impulses of a connection arrive in the order in which they were sent."""
    async with connect_stream(
        build_stream_url(service, connection="lathe"), request_token(service, "viewer@t")
    ) as client:
        sent = [create_message_id("order") for _ in range(1500)]
        for first in range(0, len(sent), 500):
            send_telemetry(service, "lathe", *({"messageId": identifier} for identifier in sent[first : first + 500]))
        assert [impulse["ID"] for impulse in await receive_impulses(client, len(sent))] == sent


async def test_a_stream_is_closed_when_its_token_expires(service: Service) -> None:
    """A stream is closed with code 4401 when its token expires; streams with other tokens stay open."""
    async with connect_stream(build_stream_url(service), request_token(service, "viewer@t")) as other:
        async with connect_stream(build_stream_url(service), sign_short_lived_token(service, "viewer@t", 3)) as client:
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 4401
        send_telemetry(service, "press", {"messageId": create_message_id()})
        assert len(await receive_impulses(other, 1)) == 1


async def test_streams_of_a_revoked_token_are_closed(service: Service) -> None:
    """Within 15 seconds after a token is revoked, its streams are closed with code 4401, also those of signed URLs."""
    bearer = request_token(service, "viewer@t")
    caller = service.create_anonymous_client(bearer=bearer)
    link = caller.get("/oi-api/live-stream/negotiate").json()["url"]
    async with (
        connect_stream(build_stream_url(service, surface="hall", connection="lathe"), bearer) as one,
        connect_stream(link) as two,
    ):
        assert (
            service.create_client("viewer@t").delete(f"/workspace/api/keys/jwt/{decode_token_id(bearer)}").status_code
            == 204
        )
        for client in (one, two):
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 15)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401
    assert (await read_rejection(link)).status_code == 401


async def test_a_slow_client_is_disconnected(service: Service) -> None:
    """A client that does not read is disconnected with code 1013 and does not delay other clients."""
    bearer = request_token(service, "viewer@t")
    filler = "x" * 30_000
    url = build_stream_url(service, connection="press")
    async with connect_stream(url, bearer) as reading, connect_stream(url, bearer) as idle:
        idle.transport.pause_reading()
        for _ in range(8):
            messages = [{"messageId": create_message_id("big"), "filler": filler} for _ in range(30)]
            await asyncio.to_thread(send_telemetry, service, "press", *messages)
        assert len(await receive_impulses(reading, 240)) == 240
        idle.transport.resume_reading()
        with pytest.raises(ConnectionClosed) as closed:
            await receive_impulses(idle, 240)
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1013


def build_future_date(days_ahead: int) -> str:
    """Return the date this many days ahead; each test uses dates of its own, so that replays do not overlap."""
    return f"{now() + timedelta(days=days_ahead):%Y-%m-%d}"


async def test_a_replay_precedes_live_impulses(service: Service) -> None:
    """A stream with a replay first returns the stored impulses, ordered by time and equal to those sent live."""
    bearer = request_token(service, "viewer@t")
    mark, day = create_message_id("replay"), build_future_date(200)
    sent = [
        {
            "messageId": f"{mark}-{number}",
            "timestamp": f"{day}T00:00:{59 - number:02d}.5Z",
            "n": number,
            "f": 1e-300,
        }
        for number in range(20)
    ]
    url = build_stream_url(service, connection="lathe")
    async with connect_stream(url, bearer) as client:
        send_telemetry(service, "lathe", *sent)
        live = await receive_impulses(client, len(sent))
    async with connect_stream(
        build_stream_url(service, connection="lathe", since=f"{day}T00:00:45Z"), bearer
    ) as client:
        replayed = await receive_impulses(client, 15)
        send_telemetry(service, "lathe", {"messageId": f"{mark}-last", "timestamp": "2026-05-01T00:00:00Z"})
        [last] = await receive_impulses(client, 1)
    assert replayed == [{**impulse, "Headers": {}} for impulse in reversed(live[:15])]
    assert last["ID"] == f"{mark}-last"


async def test_messages_with_numbered_ids_are_replayed_in_order(service: Service) -> None:
    """A replay sorts impulses with equal times by the numbers in their message ids."""
    mark, at = create_message_id("instant"), f"{build_future_date(220)}T00:00:00Z"
    sent = [{"messageId": f"{mark}-{number}", "timestamp": at} for number in range(12)]
    send_telemetry(service, "lathe", *sent)
    url = build_stream_url(service, connection="lathe", since=at)
    async with connect_stream(url, request_token(service, "viewer@t")) as client:
        assert [impulse["ID"] for impulse in await receive_impulses(client, 12)] == [each["messageId"] for each in sent]


async def test_repeated_messages_are_received_once(service: Service) -> None:
    """A message that is sent three times is received once, both live and after a replay."""
    bearer, again, last = request_token(service, "viewer@t"), create_message_id("again"), create_message_id("last")
    at = f"{build_future_date(240)}T00:00:00Z"
    async with connect_stream(build_stream_url(service, connection="lathe"), bearer) as client:
        for _ in range(3):
            send_telemetry(service, "lathe", {"messageId": again, "timestamp": at})
        send_telemetry(service, "lathe", {"messageId": last, "timestamp": at})
        assert [impulse["ID"] for impulse in await receive_impulses(client, 2)] == [again, last]
    async with connect_stream(build_stream_url(service, connection="lathe", since=at), bearer) as client:
        assert {impulse["ID"] for impulse in await receive_impulses(client, 2)} == {again, last}
        end = create_message_id("end")
        send_telemetry(service, "lathe", {"messageId": again, "timestamp": at}, {"messageId": end, "timestamp": at})
        assert [impulse["ID"] for impulse in await receive_impulses(client, 1)] == [end]


async def test_window_sec_replays_recent_messages(service: Service) -> None:
    """`windowSec` replays the messages of this number of seconds before the opening of the stream."""
    now_, old = create_message_id("now"), create_message_id("old")
    viewer = service.create_client("viewer@t")
    send_telemetry(service, "lathe", {"messageId": now_}, {"messageId": old, "timestamp": "2026-03-01T00:00:00Z"})
    wait_until(lambda: query_rows(service.create_client("editor@t"), f"Telemetry | where MessageId == '{old}'"), bool)
    link = viewer.get("/oi-api/live-stream/negotiate", params={"windowSec": "60", "connection": "lathe"}).json()["url"]
    async with connect_stream(link) as client:
        heard: set[str] = set()
        while now_ not in heard:
            heard |= {impulse["ID"] for impulse in await receive_impulses(client, 1)}
    assert old not in heard


# The second case uses a later day, because a replay contains all messages since the start of its day.
@pytest.mark.parametrize(("total", "day_offset"), [(2_000, 260), pytest.param(20_000, 261, marks=pytest.mark.soak)])
async def test_replay_and_live_stream_have_no_gap_and_no_repeat(service: Service, total: int, day_offset: int) -> None:
    """A client that opens a stream with a replay while messages are ingested receives each impulse exactly once."""
    bearer = request_token(service, "viewer@t")
    editor = {"Authorization": f"Bearer {request_token(service, 'editor@t')}"}
    mark, batch, day = create_message_id("seam"), 40, build_future_date(day_offset)
    url = build_stream_url(service, connection="pump-rig", since=f"{day}T00:00:00Z")

    async def send_messages() -> None:
        async with httpx.AsyncClient(base_url=service.url, headers=editor, trust_env=False, timeout=60) as http:
            for first in range(0, total, batch):
                # Two clocks: every other message seems older than the one before.
                messages = [
                    {"messageId": f"{mark}-{number}", "ts": f"{day}T{number % 2:02d}:00:00Z"}
                    for number in range(first, first + batch)
                ]
                reply = await http.post("/oi-api/telemetry/pump-rig", json=messages)
                assert reply.status_code == 202, reply.text

    async def receive_impulses_of_stream(delay: float) -> list[str]:
        await asyncio.sleep(delay)
        async with connect_stream(url, bearer) as client:
            heard = [impulse["ID"] for impulse in await receive_impulses(client, total)]
            assert len(set(heard)) == total, [each for each in set(heard) if heard.count(each) > 1][:5]
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(client.recv(), 0.5)
            return heard

    pouring = asyncio.create_task(send_messages())
    listeners = await asyncio.gather(*(receive_impulses_of_stream(delay / 10) for delay in range(8)))
    await pouring
    expected = {f"{mark}-{number}" for number in range(total)}
    for heard in listeners:
        assert set(heard) == expected


async def test_a_stopping_host_closes_its_streams(own_module_service: Service) -> None:
    """A stopping host closes live streams with code 1001; after its restart, it sends no impulse again."""
    service = own_module_service
    bearer = request_token(service, "viewer@t")
    async with connect_stream(build_stream_url(service), bearer) as client:
        send_telemetry(service, "press", {"messageId": "before"})
        assert [impulse["ID"] for impulse in await receive_impulses(client, 1)] == ["before"]
        assert await asyncio.to_thread(service.stop) == 0
        with pytest.raises(ConnectionClosed) as closed:
            await client.recv()
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 1001
    service.start()
    async with connect_stream(build_stream_url(service), bearer) as client:
        send_telemetry(service, "press", {"messageId": "after"})
        assert [impulse["ID"] for impulse in await receive_impulses(client, 1)] == ["after"]


async def test_a_disabled_members_streams_are_closed(own_module_service: Service, tmp_path: Path) -> None:
    """Live streams of a disabled member or a revoked token are closed with code 4401 and a reason."""
    service = own_module_service
    bearer = request_token(service, "viewer@t")
    link = service.create_client("editor@t").get("/oi-api/live-stream/negotiate").json()["url"]
    document = tmp_path / "disabled.yaml"
    text = (Path(__file__).parent / "workspace.yaml").read_text(encoding="utf-8")
    document.write_text(text.replace("role: Editor}", "role: Editor, enabled: false}"), encoding="utf-8")
    async with (
        connect_stream(link) as one,
        connect_stream(link) as two,
        connect_stream(build_stream_url(service), bearer) as three,
    ):
        command = ["-m", "shared.commands.workspace", "apply", str(document), "--as", "admin@t"]
        environment = os.environ | {"DATA_DIR": str(service.data_dir)}
        applied = await asyncio.create_subprocess_exec(sys.executable, *command, env=environment)
        assert await applied.wait() == 0
        assert (
            service.create_client("viewer@t").delete(f"/workspace/api/keys/jwt/{decode_token_id(bearer)}").status_code
            == 204
        )
        for client in (one, two, three):
            with pytest.raises(ConnectionClosed) as closed:
                await asyncio.wait_for(client.recv(), 20)
            assert closed.value.rcvd is not None
            assert closed.value.rcvd.code == 4401
            assert closed.value.rcvd.reason
