"""Tests of telemetry over HTTP."""

import gzip
import json

import pytest
import zstandard

from tests.service.local_service import Service, check_failing_fields, check_problem, count_rows, query_rows, wait_until


def test_a_telemetry_message_is_stored_unchanged(service: Service) -> None:
    """Metadata of a message becomes columns; all other properties become the payload, with unchanged numbers."""
    editor = service.create_client("editor@t")
    payload = {"a": {"b": [1, 2.5, None, True, "ü\u20ac"]}, "big": 9007199254740993, "small": 1e-300, "": "empty name"}
    message = {"ts": "2026-02-01T01:00:00+01:00", "messageId": "whole", "deviceId": "rig-7", **payload}
    reply = editor.post("/oi-api/telemetry/pump-rig", json=message)
    assert (reply.status_code, reply.json()) == (202, {"accepted": 1})
    kql = "Telemetry | where MessageId == 'whole'"
    [row] = wait_until(lambda: query_rows(editor, kql), bool)
    assert row == {
        "Timestamp": "2026-02-01T00:00:00.000000Z",
        "ConnectionLookup": "pump-rig",
        "SurfaceLookups": ["hall"],
        "DeviceId": "rig-7",
        "MessageId": "whole",
        "Payload": payload,
    }


def test_properties_without_a_pointer_are_payload(service: Service) -> None:
    """Only properties at the connection's pointers are metadata; a property with a default name is payload."""
    editor = service.create_client("editor@t")
    message = {"ts": "2026-02-02T00:00:00Z", "timestamp": "yesterday", "messageId": "pointers"}
    assert editor.post("/oi-api/telemetry/pump-rig", json=message).status_code == 202
    [row] = wait_until(lambda: query_rows(editor, "Telemetry | where MessageId == 'pointers'"), bool)
    assert row["Timestamp"] == "2026-02-02T00:00:00.000000Z"
    assert row["Payload"] == {"timestamp": "yesterday"}
    reply = editor.post("/oi-api/telemetry/pump-rig", json=[{}, {"ts": 5}])
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == ["[1].ts"]
    assert "/ts" in reply.json()["detail"]


def test_a_message_without_metadata_gets_defaults(service: Service) -> None:
    """A message without metadata gets the time of receipt, a new id and the connection's lookup."""
    editor = service.create_client("editor@t")
    assert editor.post("/oi-api/telemetry/press", json={"mark": "bare"}).status_code == 202
    [row] = wait_until(lambda: query_rows(editor, "Telemetry | where Payload.mark == 'bare'"), bool)
    assert (row["DeviceId"], row["Payload"]) == ("press", {"mark": "bare"})
    assert row["MessageId"]
    assert row["Timestamp"] > "2026-06-01"


def test_messages_with_the_same_id_are_stored_once(service: Service) -> None:
    """If messages of a connection have the same id, only one is stored."""
    editor = service.create_client("editor@t")
    batch = [{"messageId": f"dup-{number}", "mark": "dup"} for number in range(20)]
    for _ in range(3):
        assert editor.post("/oi-api/telemetry/press", json=batch).status_code == 202
    assert editor.post("/oi-api/telemetry/press", json={"messageId": "last", "mark": "last"}).status_code == 202
    wait_until(lambda: query_rows(editor, "Telemetry | where Payload.mark == 'last'"), bool)
    assert len(query_rows(editor, "Telemetry | where Payload.mark == 'dup'")) == 20


def test_a_repeat_with_an_idempotency_key_stores_messages_once(service: Service) -> None:
    """Repeats with a caller's Idempotency-Key store messages without an id once; equal messages of a request remain."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    for headers in ({"Idempotency-Key": "k"}, {"Idempotency-Key": "k"}, {}):
        reply = editor.post("/oi-api/telemetry/press", json=[{"mark": "again"}] * 2, headers=headers)
        assert reply.status_code == 202
    ndjson = {"Idempotency-Key": "k", "Content-Type": "application/x-ndjson"}
    for client in (editor, admin, admin):
        reply = client.post("/oi-api/telemetry/press", content=b'{"mark":"again"}\n' * 2, headers=ndjson)
        assert reply.status_code == 202
    assert editor.post("/oi-api/telemetry/press", json={"mark": "end"}).status_code == 202
    wait_until(lambda: query_rows(editor, "Telemetry | where Payload.mark == 'end'"), bool)
    assert len(query_rows(editor, "Telemetry | where Payload.mark == 'again'")) == 6
    refused = editor.post("/oi-api/telemetry/press", json={}, headers={"Idempotency-Key": ""})
    assert check_failing_fields(refused) == ["Idempotency-Key"]


@pytest.mark.parametrize(
    ("body", "status", "code", "fields"),
    [
        (b"", 400, "BODY_NOT_JSON", ["body"]),
        (b"not json", 400, "BODY_NOT_JSON", ["body"]),
        (b'{"a":1,"a":2}', 400, "BODY_NOT_JSON", ["body"]),
        (b'{"a":NaN}', 400, "BODY_NOT_JSON", ["body"]),
        (b'[{},{"a":1,"a":2}]', 400, "BODY_NOT_JSON", ["[1]"]),
        (b"[" + b"{}," * 500 + b"1e400]", 400, "BODY_NOT_JSON", ["body"]),
        (
            b'[{"timestamp":"9999-01-01T00:00:00Z"},{"timestamp":5}]',
            400,
            "INVALID_REQUEST",
            ["[1].timestamp", "[0].timestamp"],
        ),
        (b"5", 400, "INVALID_REQUEST", None),
        (b"[]", 400, "INVALID_REQUEST", None),
        (b"[5]", 400, "INVALID_REQUEST", None),
        (json.dumps([{}] * 501).encode(), 400, "INVALID_REQUEST", None),
        (b'{"timestamp":"yesterday"}', 400, "INVALID_REQUEST", ["timestamp"]),
        (b'{"timestamp":"2026-01-01T00:00:00"}', 400, "INVALID_REQUEST", ["timestamp"]),
        (b'{"metrics":[{"name":"cpu","tags":{},"fields":{},"timestamp":1}]}', 400, "INVALID_REQUEST", ["metrics"]),
        (b'[{},{"messageId":5,"deviceId":[]}]', 400, "INVALID_REQUEST", ["[1].messageId", "[1].deviceId"]),
        (b'{"x":"' + b"y" * 300_000 + b'"}', 413, "MESSAGE_TOO_LARGE", None),
        (b'{"x":"' + b"y" * 2 * 1024 * 1024 + b'"}', 413, "BODY_TOO_LARGE", None),
    ],
)
def test_invalid_telemetry_is_rejected_as_a_whole(
    service: Service, body: bytes, status: int, code: str, fields: list[str] | None
) -> None:
    """If one message is invalid, the request is rejected with status, code and fields, and no message is stored."""
    editor = service.create_client("editor@t")
    reply = editor.post("/oi-api/telemetry/press", content=body)
    check_problem(reply, status, code)
    if fields is not None:
        assert sorted(check_failing_fields(reply, status, code)) == sorted(fields)


def test_telemetry_of_unknown_and_disabled_connections_is_rejected(service: Service) -> None:
    """Telemetry for an unknown connection is rejected with 404, for a disabled connection with 409."""
    editor = service.create_client("editor@t")
    check_problem(editor.post("/oi-api/telemetry/nothing", json={}), 404, "CONNECTION_NOT_FOUND")
    check_problem(editor.post("/oi-api/telemetry/PRESS", json={}), 404, "CONNECTION_NOT_FOUND")
    check_problem(editor.post("/oi-api/telemetry/stopped", json={}), 409, "CONNECTION_DISABLED")


def test_sending_telemetry_requires_the_right(service: Service) -> None:
    """A viewer cannot send telemetry."""
    check_problem(
        service.create_client("viewer@t").post("/oi-api/telemetry/press", json={}), 403, "ACCESS_RIGHT_MISSING"
    )


def test_five_hundred_messages_are_accepted(service: Service) -> None:
    """An array of 500 messages, the largest allowed number, is accepted."""
    editor = service.create_client("editor@t")
    before = count_rows(editor, "pump-rig")
    batch = [{"messageId": f"many-{number}"} for number in range(500)]
    assert editor.post("/oi-api/telemetry/pump-rig", json=batch).json() == {"accepted": 500}
    wait_until(lambda: count_rows(editor, "pump-rig"), lambda now: now == before + 500)


@pytest.mark.parametrize("encoding", ["", "gzip", "zstd"])
def test_ndjson_lines_are_accepted_with_each_content_encoding(service: Service, encoding: str) -> None:
    """Each line of an NDJSON body becomes a message, whether the body has a supported Content-Encoding or none."""
    editor = service.create_client("editor@t")
    mark = f"lines-{encoding}"
    lines = "".join(f'{{"messageId":"{mark}-{number}","mark":"{mark}"}}\n' for number in range(600)).encode()
    body = {"": lambda: lines, "gzip": lambda: gzip.compress(lines), "zstd": lambda: zstandard.compress(lines)}
    headers = {"Content-Type": "application/x-ndjson", **({"Content-Encoding": encoding} if encoding else {})}
    reply = editor.post("/oi-api/telemetry/press", content=body[encoding](), headers=headers)
    assert (reply.status_code, reply.json()) == (202, {"accepted": 600})
    kql = f"Telemetry | where Payload.mark == '{mark}'"
    wait_until(lambda: len(query_rows(editor, kql)), lambda rows: rows == 600)


def test_one_invalid_line_rejects_the_request(service: Service) -> None:
    """If one line is invalid, the error names this line, and no message of the request is stored."""
    editor = service.create_client("editor@t")
    body = b'{"mark":"half"}\n{"mark":"half","ts":"yesterday"}\n'
    reply = editor.post("/oi-api/telemetry/pump-rig", content=body, headers={"Content-Type": "application/x-ndjson"})
    assert check_failing_fields(reply, 400, "INVALID_REQUEST") == ["line 2.ts"]
    assert editor.post("/oi-api/telemetry/pump-rig", json={"messageId": "after-half"}).status_code == 202
    wait_until(lambda: query_rows(editor, "Telemetry | where MessageId == 'after-half'"), bool)
    assert query_rows(editor, "Telemetry | where Payload.mark == 'half'") == []


def test_size_limits_of_telemetry_count_decoded_bytes(service: Service) -> None:
    """Size limits count decoded bytes: 1 MiB for JSON, 16 MiB for lines.

    An unknown Content-Encoding gets 415.
    """
    editor = service.create_client("editor@t")
    bomb = gzip.compress(bytes(64 * 1024 * 1024))
    for headers in ({}, {"Content-Type": "application/x-ndjson"}):
        reply = editor.post("/oi-api/telemetry/press", content=bomb, headers={"Content-Encoding": "gzip", **headers})
        check_problem(reply, 413, "BODY_TOO_LARGE")
    large = gzip.compress(b'{"a":"%b"}' % (b"x" * 1024 * 1024))
    reply = editor.post("/oi-api/telemetry/press", content=large, headers={"Content-Encoding": "gzip"})
    check_problem(reply, 413, "BODY_TOO_LARGE")
    reply = editor.post("/oi-api/telemetry/press", content=b"x", headers={"Content-Encoding": "gzip"})
    check_problem(reply, 400, "BODY_NOT_DECODABLE")
    for encoding in ("br", "gzip, gzip"):
        reply = editor.post("/oi-api/telemetry/press", content=b"x", headers={"Content-Encoding": encoding})
        check_problem(reply, 415, "CONTENT_ENCODING_UNSUPPORTED")
        assert reply.headers["accept-encoding"] == "gzip, zstd, identity"
