"""Tests of the audit log over HTTP."""

import base64
import csv
import hashlib
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest
import rfc8785

from tests.service.conftest import WORKSPACE
from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until

EVENTS = "/oi-api/provenance/events"
EVENT: dict[str, Any] = {"ActionType": "Batch.Released", "EntityType": "Batch", "EntityID": "B-1"}


def write_event(
    client: httpx.Client, scope: str | None = None, target: str | None = None, **properties: Any
) -> httpx.Response:
    """Append the example event and return the reply.

    The given properties replace properties of the example; the value None removes a property.
    """
    body = {name: value for name, value in {**EVENT, "ScopeKey": scope, **properties}.items() if value is not None}
    return client.post(EVENTS, json=body, params={} if target is None else {"target": target})


def query_records(client: httpx.Client, **parameters: Any) -> Any:
    """Return the records that match a query."""
    reply = client.get(f"{EVENTS}/query", params=parameters)
    assert reply.status_code == 200, reply.text
    return reply.json()


def check_chain(records: list[dict[str, Any]], target: str, scope: str) -> None:
    """Check that the records, oldest first, are a complete chain whose hashes follow the published rule."""
    previous = hashlib.sha256(f"oi-provenance/v1\nplant-t\n{target}\n{scope}".encode()).hexdigest()
    # JSON has one number type, a double; Python parses large whole numbers as integers.
    parsed = json.loads(json.dumps(records), parse_int=lambda text: int(text) if len(text) < 16 else float(text))
    for number, record in enumerate(parsed, 1):
        body = {name: value for name, value in record.items() if name != "Hash"}
        assert record["RecordID"] == f"{number:012d}"
        assert record["PreviousHash"] == previous
        assert record["Hash"] == hashlib.sha256(rfc8785.dumps(body)).hexdigest()
        previous = record["Hash"]


def test_server_owned_properties_are_set_by_the_service(service: Service) -> None:
    """The service ignores properties that it sets itself and unknown properties; it stores all others unchanged."""
    editor = service.create_client("editor@t")
    forged: dict[str, Any] = {
        "UserID": "x",
        "Timestamp": "1999",
        "RecordID": "9",
        "PreviousHash": "0",
        "Hash": "0",
        "Extra": {"a": 1},
    }
    state = {"ü": [1, 2.5, 1e20, None, True], "nested": {"b": "\u20ac", "a": ""}}
    reply = write_event(editor, "owned", AfterState=state, NodeID=None, Name="n", **forged)
    assert reply.status_code == 201
    record = reply.json()
    assert set(record) == {
        *("RecordID", "Timestamp", "UserID", "ActionType", "EntityType", "EntityID"),
        *("AfterState", "Name", "PreviousHash", "Hash"),
    }
    assert (record["UserID"], record["RecordID"], record["AfterState"]) == ("editor@t", "000000000001", state)
    assert query_records(editor, scopeKey="owned") == [record]
    check_chain([record], "DomainEvents", "owned")


@pytest.mark.parametrize("property_name", ["ActionType", "EntityType", "EntityID"])
@pytest.mark.parametrize("value", [None, "", 5])
def test_missing_required_properties_are_listed(service: Service, property_name: str, value: object) -> None:
    """An event with a missing, empty or ill-typed required property gets 400 and is not stored."""
    editor = service.create_client("editor@t")
    changed: dict[str, Any] = {property_name: value}
    assert check_failing_fields(write_event(editor, "required", **changed)) == [property_name]
    assert query_records(editor, scopeKey="required") == []


@pytest.mark.parametrize(
    "body",
    [
        b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":{"n":9007199254740992}}',
        b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":{"n":NaN}}',
        b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":{"n":1e999}}',
        b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":{"s":"\\ud800"}}',
        b'{"ActionType":"a","ActionType":"a","EntityType":"b","EntityID":"c"}',
        b'{"ActionType":"a","EntityType":"b","EntityID":"c","AfterState":[1]}',
        b"[]",
        b"nothing",
    ],
)
def test_values_without_canonical_form_are_rejected(service: Service, body: bytes) -> None:
    """An event with a value that has no unique canonical form is rejected."""
    assert service.create_client("editor@t").post(EVENTS, content=body).status_code == 400


def test_a_body_over_a_mebibyte_gets_413(service: Service) -> None:
    """A body just under 1 MiB is stored; a larger body gets 413."""
    editor = service.create_client("editor@t")
    assert write_event(editor, "large", AfterState={"x": "y" * 1_040_000}).status_code == 201
    check_problem(write_event(editor, "large", AfterState={"x": "y" * 1_048_576}), 413, "BODY_TOO_LARGE")


def test_service_tokens_cannot_write_to_the_audit_log(service: Service) -> None:
    """A service token can read the audit log; each write gets 401 before any other check."""
    historian = service.create_client("historian")
    check_problem(historian.post(EVENTS, json={}), 401, "UNAUTHENTICATED")
    assert historian.get(f"{EVENTS}/query").status_code == 200
    check_problem(write_event(service.create_client("viewer@t")), 403, "ACCESS_RIGHT_MISSING")


@pytest.mark.parametrize(
    ("target", "scope", "code"),
    [
        ("Nothing", None, "TARGET_UNKNOWN"),
        ("platformconfig", None, "TARGET_UNKNOWN"),
        ("PlatformConfig", "s", "TARGET_SCOPE_MISMATCH"),
        ("AccessControl", "s", "TARGET_SCOPE_MISMATCH"),
        ("DomainEvents", None, "TARGET_SCOPE_MISMATCH"),
        ("DomainAmendments", None, "TARGET_SCOPE_MISMATCH"),
        (None, "", "SCOPE_KEY_REQUIRED"),
    ],
)
def test_target_and_scope_must_match(service: Service, target: str | None, scope: str | None, code: str) -> None:
    """On all audit routes, an invalid pair of target and scope is rejected with its own error code."""
    editor = service.create_client("editor@t")
    named = {name: value for name, value in (("target", target), ("scopeKey", scope)) if value is not None}
    in_query = {} if target is None else {"target": target}
    in_body = {} if scope is None else {"ScopeKey": scope}
    for reply in (
        editor.post(EVENTS, json={**EVENT, **in_body}, params=in_query),
        editor.get(f"{EVENTS}/query", params=named),
        editor.get(f"{EVENTS}/export", params=named),
        editor.post(f"{EVENTS}/verify", json=in_body, params=in_query),
    ):
        check_problem(reply, 400, code)


def test_events_cannot_be_written_to_amendments(service: Service) -> None:
    """Events with the target DomainAmendments are rejected."""
    check_problem(write_event(service.create_client("editor@t"), "s", "DomainAmendments"), 400, "TARGET_READ_ONLY")


def test_the_default_target_is_platform_config(service: Service) -> None:
    """Without scope and target, the routes use the chain PlatformConfig, which contains the audit events of `apply`."""
    admin = service.create_client("admin@t")
    reply = admin.get(f"{EVENTS}/query", params={"limit": 1})
    assert reply.headers["x-provenance-target"] == "PlatformConfig"
    assert reply.headers["x-provenance-has-more"] == "true"
    assert write_event(admin, None, ActionType="Note.Written").json()["ActionType"] == "Note.Written"
    issued = query_records(admin, target="AccessControl", actionType="Token.Issued", userId="admin@t")
    assert issued
    assert {record["EntityType"] for record in issued} == {"Token"}


@pytest.mark.parametrize("scope", ["a/b", "../../etc", "ü\u20ac\U0001f600", "x" * 1000, " ", "a?b#c%20", "O'Brien; --"])
def test_any_text_is_a_valid_scope(service: Service, scope: str) -> None:
    """Each text is a valid scope with its own chain, also with slashes, special characters or 1,000 characters."""
    editor = service.create_client("editor@t")
    record = write_event(editor, scope).json()
    assert query_records(editor, scopeKey=scope) == [record]
    check_chain([record], "DomainEvents", scope)
    verdict = editor.post(f"{EVENTS}/verify", json={"ScopeKey": scope}).json()
    assert (verdict["ChainValid"], verdict["Empty"]) == (True, False)


@pytest.fixture(scope="module")
def ten_records(service: Service) -> list[dict[str, Any]]:
    """Return the ten records of the scope `ten`, oldest first."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    return [
        write_event(
            editor if number % 2 else admin,
            "ten",
            ActionType=f"A{number % 3}",
            EntityType=f"T{number % 2}",
            EntityID=f"=E{number}",
        ).json()
        for number in range(10)
    ]


@pytest.mark.parametrize(
    ("parameters", "expected", "more"),
    [
        ({}, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1], False),
        ({"limit": 3}, [10, 9, 8], True),
        ({"limit": 10}, [10, 9, 8, 7, 6, 5, 4, 3, 2, 1], False),
        ({"limit": 3, "offset": 8}, [2, 1], False),
        ({"offset": 100}, [], False),
        ({"fromSequence": 3, "toSequence": 5}, [5, 4, 3], False),
        ({"fromSequence": 3, "toSequence": 5, "limit": 2}, [5, 4], True),
        ({"fromSequence": 11}, [], False),
        ({"toSequence": 0}, [], False),
        ({"fromSequence": -5, "toSequence": 1}, [1], False),
        ({"actionType": "A0"}, [10, 7, 4, 1], False),
        ({"actionType": "A0", "limit": 3}, [10, 7, 4], True),
        ({"actionType": "A0", "entityType": "T0"}, [7, 1], False),
        ({"userId": "editor@t"}, [10, 8, 6, 4, 2], False),
        ({"userId": "nobody"}, [], False),
    ],
)
def test_audit_records_are_filtered_and_paged(
    service: Service, ten_records: list[dict[str, Any]], parameters: dict[str, Any], expected: list[int], more: object
) -> None:
    """Records are listed newest first.

    A date range includes both ends; a header of the reply says whether more records exist.
    """
    reply = service.create_client("viewer@t").get(f"{EVENTS}/query", params={"scopeKey": "ten", **parameters})
    assert [int(record["RecordID"]) for record in reply.json()] == expected
    assert reply.json() == [ten_records[number - 1] for number in expected]
    assert reply.headers["x-provenance-has-more"] == ("true" if more else "false")
    assert int(reply.headers["x-provenance-scanned"]) >= len(expected)
    assert reply.headers["x-provenance-target"] == "DomainEvents"
    assert "x-provenance-ignored" not in reply.headers


def test_dates_of_a_range_are_compared_as_instants(service: Service, ten_records: list[dict[str, Any]]) -> None:
    """The ends of a date range belong to it; times with an offset are converted, and times without a zone are UTC."""
    viewer = service.create_client("viewer@t")
    third, fifth = ten_records[2]["Timestamp"], ten_records[4]["Timestamp"]
    inside = query_records(viewer, scopeKey="ten", startDate=third, endDate=fifth)
    assert {"000000000003", "000000000004", "000000000005"} <= {record["RecordID"] for record in inside}
    assert query_records(viewer, scopeKey="ten", startDate=third[:-1], endDate=fifth[:-1]) == inside
    assert query_records(viewer, scopeKey="ten", endDate="2020-01-01") == []
    assert len(query_records(viewer, scopeKey="ten", startDate="2020-01-01T00:00:00+14:00")) == 10


@pytest.mark.parametrize(
    ("parameters", "ignored"),
    [
        ({"limit": "x"}, "limit"),
        ({"limit": "0"}, "limit"),
        ({"limit": "+2", "offset": "+0"}, "limit, offset"),
        ({"limit": "-1", "offset": "-1"}, "limit, offset"),
        ({"startDate": "yesterday", "endDate": "2026-13-01", "offset": "1.5"}, "startDate, endDate, offset"),
        ({"entityType": "", "actionType": "", "userId": ""}, "entityType, actionType, userId"),
    ],
)
def test_invalid_limits_and_dates_of_audit_queries_are_ignored_and_listed(
    service: Service, ten_records: list[dict[str, Any]], parameters: dict[str, str], ignored: str
) -> None:
    """Invalid limits, offsets and dates, and empty filters, are replaced by the defaults and listed in a header."""
    reply = service.create_client("viewer@t").get(f"{EVENTS}/query", params={"scopeKey": "ten", **parameters})
    assert (reply.status_code, len(reply.json())) == (200, len(ten_records))
    named = {name.strip() for name in reply.headers["x-provenance-ignored"].split(",")}
    assert named == {name.strip() for name in ignored.split(",")}


@pytest.mark.parametrize("name", ["fromSequence", "toSequence"])
@pytest.mark.parametrize("value", ["x", "1.5", "", "1e3"])
def test_an_invalid_sequence_number_gets_400(service: Service, name: str, value: str) -> None:
    """A query for an invalid sequence number is rejected with 400."""
    reply = service.create_client("viewer@t").get(f"{EVENTS}/query", params={"scopeKey": "ten", name: value})
    assert check_failing_fields(reply) == [name]


def test_a_scope_without_records_is_empty(service: Service) -> None:
    """Reading a scope without records returns 200 and an empty list; verifying the scope reports an empty chain."""
    viewer = service.create_client("viewer@t")
    assert query_records(viewer, scopeKey="never") == []
    assert viewer.post(f"{EVENTS}/verify", json={"ScopeKey": "never"}).json() == {
        "Valid": None,
        "ChainValid": True,
        "Empty": True,
        "Record": None,
        "RecomputedHash": None,
        "BrokenAt": None,
        "ForkDetected": False,
        "Reason": "nothing to check",
        "Target": "DomainEvents",
    }


def test_verifying_a_record_returns_its_recomputed_digest(service: Service, ten_records: list[dict[str, Any]]) -> None:
    """If a verification request has a RecordID, the reply contains this record and its recomputed digest."""
    viewer = service.create_client("viewer@t")
    verdict = viewer.post(f"{EVENTS}/verify", json={"ScopeKey": "ten", "RecordID": "000000000004"}).json()
    assert (verdict["Valid"], verdict["ChainValid"], verdict["Record"]) == (True, True, ten_records[3])
    assert verdict["RecomputedHash"] == ten_records[3]["Hash"]
    for absent in ("000000000000", "000000000011"):
        reply = viewer.post(f"{EVENTS}/verify", json={"ScopeKey": "ten", "RecordID": absent})
        check_problem(reply, 404, "RECORD_NOT_FOUND")


@pytest.mark.parametrize("record_id", ["", None, 0, "4", "00000000004", "0000000000004", "00000000000x", {}, []])
def test_a_malformed_record_id_gets_400(service: Service, record_id: object) -> None:
    """A RecordID with any invalid value, also null, gets 400."""
    reply = service.create_client("viewer@t").post(f"{EVENTS}/verify", json={"ScopeKey": "ten", "RecordID": record_id})
    assert check_failing_fields(reply) == ["RecordID"]


def test_an_export_of_audit_records_is_json_or_csv(service: Service, ten_records: list[dict[str, Any]]) -> None:
    """A JSON export has whole records; a CSV export has eight columns, in which formulas are escaped.

    The names of both files end in .csv.
    """
    editor = service.create_client("editor@t")
    as_json = editor.get(f"{EVENTS}/export", params={"scopeKey": "ten"})
    assert as_json.json() == ten_records
    check_chain(as_json.json(), "DomainEvents", "ten")
    assert as_json.headers["content-disposition"] == 'attachment; filename="provenance-ten.csv"'
    assert as_json.headers["x-provenance-has-more"] == "false"
    as_csv = editor.get(f"{EVENTS}/export", params={"scopeKey": "ten", "format": "csv", "limit": 2})
    assert as_csv.headers["x-provenance-has-more"] == "true"
    header, *lines = csv.reader(io.StringIO(as_csv.text, newline=""))
    columns = ["RecordID", "Timestamp", "UserID", "ActionType", "EntityType", "EntityID", "PreviousHash", "Hash"]
    assert header == columns
    assert lines[0] == [ten_records[0][name] if name != "EntityID" else "'=E0" for name in columns]
    assert len(lines) == 2
    check_problem(editor.get(f"{EVENTS}/export", params={"format": "xml"}), 400, "INVALID_REQUEST")
    name = editor.get(f"{EVENTS}/export", params={"scopeKey": "a/b ü"}).headers["content-disposition"]
    assert name == 'attachment; filename="provenance-a_b__.csv"'
    workspace = editor.get(f"{EVENTS}/export", params={"format": "csv"}).headers["content-disposition"]
    assert workspace == 'attachment; filename="provenance-PlatformConfig.csv"'


def test_a_retry_with_an_idempotency_key_appends_one_record(service: Service) -> None:
    """A retry gets the first reply; with another body it is rejected; callers do not share Idempotency-Keys."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    body = {**EVENT, "ScopeKey": "once"}
    headers = {"Idempotency-Key": "k-1"}
    first = editor.post(EVENTS, json=body, headers=headers)
    again = editor.post(EVENTS, json=body, headers=headers)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json() == first.json()
    other = editor.post(EVENTS, json={**body, "EntityID": "B-2"}, headers=headers)
    check_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    assert admin.post(EVENTS, json=body, headers=headers).json()["RecordID"] == "000000000002"
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda _: editor.post(EVENTS, json=body, headers={"Idempotency-Key": "k-2"}), range(8)))
    assert {reply.json()["RecordID"] for reply in replies} == {"000000000003"}
    assert len(query_records(editor, scopeKey="once")) == 3


def test_concurrent_appends_do_not_fork_the_chain(service: Service) -> None:
    """Concurrent appends neither conflict nor fork the chain, and leave no gap in the sequence numbers."""
    editor = service.create_client("editor@t")
    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(lambda number: write_event(editor, "crowd", EntityID=f"e{number}"), range(300)))
    assert {reply.status_code for reply in replies} == {201}
    records = editor.get(f"{EVENTS}/export", params={"scopeKey": "crowd"}).json()
    check_chain(records, "DomainEvents", "crowd")
    assert {record["EntityID"] for record in records} == {f"e{number}" for number in range(300)}
    times = [record["Timestamp"] for record in records]
    assert times == sorted(times)


@pytest.fixture(scope="module")
def signing_service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """Return a service that signs checkpoints every second; tests of this module may change and kill it."""
    own = Service(tmp_path_factory.mktemp("signing") / "data", WORKSPACE, {"CHECKPOINT_SCHEDULE": "*/1 * * * * *"})
    yield own.start()
    own.stop()


def test_a_chain_survives_a_kill(signing_service: Service) -> None:
    """After a kill, each acknowledged record is stored, and new records continue the chain."""
    editor = signing_service.create_client("editor@t")
    stored = [write_event(editor, "kill", EntityID=str(number)).json() for number in range(50)]
    signing_service.kill()
    editor = signing_service.start().create_client("editor@t")
    stored.append(write_event(editor, "kill", EntityID="after").json())
    assert editor.get(f"{EVENTS}/export", params={"scopeKey": "kill"}).json() == stored
    check_chain(stored, "DomainEvents", "kill")


def test_a_grown_chain_gets_a_checkpoint_and_proofs(signing_service: Service) -> None:
    """Whenever a chain has grown, the service signs a checkpoint.

    An inclusion proof connects a record with the checkpoint, or with any other size of the chain.
    """
    editor = signing_service.create_client("editor@t")
    records = [write_event(editor, "signed", EntityID=str(number)).json() for number in range(5)]
    address = "/oi-api/provenance/checkpoint?scopeKey=signed"
    check_problem(editor.get("/oi-api/provenance/checkpoint?scopeKey=never"), 404, "CHECKPOINT_NOT_FOUND")
    checkpoint = wait_until(lambda: editor.get(address).json(), lambda value: value.get("size") == 5)
    assert set(checkpoint) == {"origin", "size", "rootHash", "lastHash", "timestamp", "signedNote"}
    assert checkpoint["lastHash"] == records[-1]["Hash"]
    assert checkpoint["signedNote"].startswith(f"{checkpoint['origin']}\n5\n{checkpoint['rootHash']}\n")
    proof = editor.get("/oi-api/provenance/proof?scopeKey=signed&sequence=2&size=5").json()
    root = compute_root(bytes.fromhex(records[1]["Hash"]), proof["leafIndex"], proof["size"], proof["hashes"])
    assert base64.b64encode(root).decode() == checkpoint["rootHash"]
    growth = editor.get("/oi-api/provenance/proof?scopeKey=signed&from=3&size=5").json()
    assert (growth["from"], growth["size"]) == (3, 5)
    assert check_failing_fields(editor.get("/oi-api/provenance/proof?scopeKey=signed&sequence=6&size=5")) == [
        "sequence"
    ]
    proofs = [
        editor.get(f"/oi-api/provenance/proof?scopeKey=signed&sequence=2{size}").json()
        for size in ("&size=4", "", "&size=6")
    ]
    assert [proof.get("size") or proof["errors"][0]["message"] for proof in proofs] == [
        4,
        "is required: the number of records that the proof covers, such as the size of a checkpoint",
        "must be from 1 to 5, the number of records in the chain",
    ]
    key = signing_service.create_anonymous_client().get("/.well-known/oi-checkpoint-key")
    assert key.status_code == 200
    assert key.text.count("+") >= 2


def compute_root(leaf: bytes, index: int, size: int, hashes: list[str]) -> bytes:
    """Return the Merkle root that an audit path results in (RFC 9162 section 2.1.3.2)."""
    node, last = hashlib.sha256(b"\0" + leaf).digest(), size - 1
    for text in hashes:
        other = base64.b64decode(text)
        if index % 2 or index == last:
            node = hashlib.sha256(b"\1" + other + node).digest()
            while index % 2 == 0 and index:
                index, last = index // 2, last // 2
        else:
            node = hashlib.sha256(b"\1" + node + other).digest()
        index, last = index // 2, last // 2
    return node


def test_audit_routes_return_503_without_a_provenance_policy(own_service: Service, tmp_path: Any) -> None:
    """If the workspace has no provenance policy, each audit route returns 503 to callers with the access right."""
    document = tmp_path / "bare.yaml"
    document.write_text("workspace: {id: bare, name: Bare}\nteam: [{id: a@t, name: A, role: Admin}]\n")
    own_service._environment["WORKSPACE_FILE"] = str(document)
    admin = own_service.start().create_client("a@t")
    for method, path in (
        ("POST", EVENTS),
        ("GET", f"{EVENTS}/query"),
        ("POST", f"{EVENTS}/verify"),
        ("GET", f"{EVENTS}/export"),
        ("GET", "/oi-api/provenance/checkpoint"),
        ("GET", "/oi-api/provenance/proof"),
        ("GET", "/oi-api/provenance/receipt"),
        ("POST", "/oi-api/provenance/amendments"),
        ("GET", "/oi-api/provenance/amendments"),
        ("GET", "/oi-api/provenance/amendments/chain"),
        ("GET", "/oi-api/provenance/reason-categories"),
        ("POST", "/oi-api/provenance/amendments/000000000001/approve"),
        ("POST", "/oi-api/provenance/amendments/000000000001/reject"),
    ):
        reply = admin.request(method, path, content=b"not json")
        check_problem(reply, 503, "PROVENANCE_NOT_PROVISIONED")


def test_the_reply_to_a_new_record_links_to_its_checkpoint(service: Service) -> None:
    """The reply to a new record has a link to the checkpoint that will cover the record."""
    reply = write_event(service.create_client("editor@t"), "receipt /ü")
    where = urlencode({"target": "DomainEvents", "scopeKey": "receipt /ü"})
    assert reply.headers["link"] == f'</oi-api/provenance/checkpoint?{where}>; rel="checkpoint"'


def test_a_blank_idempotency_key_is_rejected(service: Service) -> None:
    """A blank Idempotency-Key is rejected, because a script with an unset variable would send it for all events."""
    editor = service.create_client("editor@t")
    reply = editor.post(EVENTS, json={**EVENT, "ScopeKey": "blank"}, headers={"Idempotency-Key": ""})
    assert check_failing_fields(reply) == ["Idempotency-Key"]
    assert query_records(editor, scopeKey="blank") == []


def test_a_rejected_request_does_not_use_up_its_idempotency_key(service: Service) -> None:
    """After a 400 reply, the client may send the corrected request with the same Idempotency-Key."""
    editor, headers = service.create_client("editor@t"), {"Idempotency-Key": "mended"}
    body = {**EVENT, "ScopeKey": "mended", "AfterState": {"x": 2**60}}
    assert editor.post(EVENTS, json=body, headers=headers).status_code == 400
    assert editor.post(EVENTS, json={**body, "AfterState": {"x": 1}}, headers=headers).status_code == 201


def test_a_scope_too_long_for_queries_is_rejected(service: Service) -> None:
    """A new record is rejected if its scope is too long for a query string."""
    assert check_failing_fields(write_event(service.create_client("editor@t"), "x" * 1025)) == ["ScopeKey"]
    reply = write_event(service.create_client("editor@t"), "\u20ac" * 1000)
    assert reply.status_code == 201
    assert "link" not in reply.headers


def test_huge_sequence_numbers_and_limits_are_valid(service: Service, ten_records: list[dict[str, Any]]) -> None:
    """A huge sequence number and a huge limit are valid."""
    huge = "9" * 30
    parameters = {"scopeKey": "ten", "toSequence": huge, "fromSequence": f"-{huge}", "limit": huge}
    reply = service.create_client("viewer@t").get(f"{EVENTS}/query", params=parameters)
    assert (len(reply.json()), "x-provenance-ignored" in reply.headers) == (10, False)


def test_a_query_without_a_limit_returns_100_records(service: Service) -> None:
    """Without a limit, a query returns 100 records and an export up to 10,000; a header says whether more match."""
    editor = service.create_client("editor@t")
    for _ in range(101):
        assert write_event(editor, "hundred").status_code == 201
    for path, expected in (
        ("query?", (100, "true")),
        ("query?limit=1001&", (101, "false")),
        ("export?", (101, "false")),
    ):
        reply = editor.get(f"{EVENTS}/{path}scopeKey=hundred")
        assert (len(reply.json()), reply.headers["x-provenance-has-more"]) == expected


def test_a_renamed_checkpoint_is_detected(signing_service: Service) -> None:
    """Verification fails if an old checkpoint was stored under the name of a later one."""
    editor = signing_service.create_client("editor@t")
    write_event(editor, "copied")
    address = "/oi-api/provenance/checkpoint?scopeKey=copied"
    signed = wait_until(lambda: editor.get(address), lambda reply: reply.status_code == 200).json()["signedNote"]
    folder = signing_service.data_dir / "checkpoints" / "DomainEvents"
    [note] = [path for path in folder.rglob("*000000000001") if path.read_text(encoding="utf-8") == signed]
    (note.parent / "000000000099").write_bytes(note.read_bytes())
    verdict = editor.post(f"{EVENTS}/verify", json={"ScopeKey": "copied"}).json()
    assert verdict["ChainValid"] is False
    assert verdict["BrokenAt"].endswith("000000000099")
    check_problem(editor.get(address), 409, "CHECKPOINT_REFUSED")
