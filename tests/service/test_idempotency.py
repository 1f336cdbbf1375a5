"""Tests of the Idempotency-Key header."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until
from tests.service.test_amendments import AMENDMENTS, BODY, approve_amendment, create_amendment

KEYS = "/workspace/api/keys"
QUERIES = "/oi-api/warm-queries"
DEFINITION = {"name": "Repeated", "surface": "hall", "kql": "Telemetry | count"}


def build_key_header(key: str) -> dict[str, str]:
    """Return the header Idempotency-Key with the given value."""
    return {"Idempotency-Key": key}


def list_created_events(admin: httpx.Client, name: str) -> list[Any]:
    """Return the audit events about the creation of API keys with this name."""
    expected = "target=AccessControl&actionType=ApiKey.Created&limit=1000"
    events = admin.get(f"/oi-api/provenance/events/query?{expected}").json()
    return [event for event in events if event["AfterState"]["name"] == name]


def test_a_retry_returns_the_same_api_key(service: Service) -> None:
    """A retried creation of an API key gets the first reply, with the same secret.

    The same Idempotency-Key with another body is rejected; another caller may use its value for a different API key.
    """
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    first = editor.post(KEYS, json={"name": "repeated"}, headers=build_key_header("new-key-1"))
    assert first.status_code == 201
    again = editor.post(KEYS, json={"name": "repeated"}, headers=build_key_header("new-key-1"))
    assert (again.status_code, again.json()) == (201, first.json())
    assert service.create_anonymous_client(first.json()["apiKey"]).get(f"{KEYS}/whoami").status_code == 200
    other = editor.post(KEYS, json={"name": "another"}, headers=build_key_header("new-key-1"))
    check_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    mine = admin.post(KEYS, json={"name": "repeated"}, headers=build_key_header("new-key-1")).json()
    assert mine["keyId"] != first.json()["keyId"]
    assert len(list_created_events(admin, "repeated")) == 2
    assert len(list_created_events(admin, "another")) == 0
    assert check_failing_fields(editor.post(KEYS, json={"name": "x"}, headers=build_key_header(""))) == [
        "Idempotency-Key"
    ]
    two = [("Idempotency-Key", "new-key-1"), ("Idempotency-Key", "new-key-2")]
    assert check_failing_fields(editor.post(KEYS, json={"name": "x"}, headers=two)) == ["Idempotency-Key"]


def test_a_retry_with_other_access_rights_is_a_new_request(service: Service) -> None:
    """A retry with a token that has other access rights is a new request and does not get the stored reply."""
    wide, narrow = service.create_client("editor@t"), service.create_client("editor@t", "Workspace.Catalog.Read")
    first = wide.post(KEYS, json={"name": "wide"}, headers=build_key_header("new-key-wide"))
    assert first.status_code == 201
    check_problem(
        narrow.post(KEYS, json={"name": "wide"}, headers=build_key_header("new-key-wide")),
        422,
        "IDEMPOTENCY_KEY_REUSED",
    )
    again = service.create_client("editor@t").post(
        KEYS, json={"name": "wide"}, headers=build_key_header("new-key-wide")
    )
    assert again.json() == first.json()


def test_a_retry_with_listed_rights_is_a_new_request(service: Service) -> None:
    """A retry with a token that lists all rights does not get the stored reply to a token that lists none.

    The key in this reply gets rights that its member gets later.
    """
    unlisted = service.create_client("editor@t")
    rights = unlisted.get(f"{KEYS}/whoami").json()["accessRights"]
    listed = service.create_client("editor@t", ",".join(rights))
    assert listed.get(f"{KEYS}/whoami").json()["accessRights"] == rights
    header = build_key_header("new-key-listed")
    replies = [client.post(KEYS, json={"name": "later"}, headers=header) for client in (unlisted, listed, unlisted)]
    assert replies[0].status_code == 201
    check_problem(replies[1], 422, "IDEMPOTENCY_KEY_REUSED")
    assert replies[2].json() == replies[0].json()


def create_client_with_given_key(service: Service, creator: httpx.Client, member: str, *rights: str) -> httpx.Client:
    """Return a client with a token of an API key that another person creates for a member."""
    given = creator.post(KEYS, json={"name": "given", "principal": member, "rights": rights})
    assert given.status_code == 201, given.text
    token = service.create_anonymous_client(given.json()["apiKey"]).get(f"{KEYS}/jwt").json()["Token"]
    return service.create_anonymous_client(token)


def test_a_retry_with_the_key_of_another_person_is_a_new_request(own_module_service: Service) -> None:
    """Only tokens of keys that the same persons made get the stored reply with a new key."""
    service, right, manage = own_module_service, "Workspace.Catalog.Read", "Workspace.Keys.Manage"
    admin = service.create_client("admin@t")
    manager = {"name": "Manager", "role": "Viewer", "rights": [manage]}
    assert admin.put("/oi-api/team/manager@t", json=manager).status_code == 201
    given_manager = create_client_with_given_key(service, admin, "manager@t", right, manage)
    clients = [
        service.create_client("viewer@t", right),
        create_client_with_given_key(service, admin, "viewer@t", right),
        create_client_with_given_key(service, given_manager, "viewer@t", right),
    ]
    for number, first in enumerate(clients):
        header = build_key_header(f"new-key-origin-{number}")
        replies = [client.post(KEYS, json={"name": "own"}, headers=header) for client in (first, *clients)]
        assert replies[0].status_code == 201, replies[0].text
        assert replies[number + 1].json() == replies[0].json()
        for other in (*replies[1 : number + 1], *replies[number + 2 :]):
            check_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")


def test_concurrent_retries_create_one_api_key(service: Service) -> None:
    """Concurrent requests with one Idempotency-Key create one API key, and each reply contains this API key."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(
                lambda _: editor.post(KEYS, json={"name": "crowd"}, headers=build_key_header("new-key-2")), range(8)
            )
        )
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["apiKey"] for reply in replies}) == 1
    assert len(list_created_events(admin, "crowd")) == 1
    assert sum(key["name"] == "crowd" for key in editor.get(KEYS).json()["keys"]) == 1


def test_a_rejected_request_does_not_use_up_its_idempotency_key(service: Service) -> None:
    """After a 400 or 403 reply, the client may send the corrected request with the same Idempotency-Key."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    check_problem(
        editor.post(KEYS, json={"name": "free", "principal": "admin@t"}, headers=build_key_header("free")),
        403,
        "ACCESS_RIGHT_MISSING",
    )
    assert editor.post(KEYS, json={"name": "free"}, headers=build_key_header("free")).status_code == 201
    body = {**BODY, "ScopeKey": "free"}
    refused = admin.post(AMENDMENTS, json={**body, "ReasonCategory": "typo"}, headers=build_key_header("free"))
    check_problem(refused, 400, "REASON_CATEGORY_UNKNOWN")
    assert admin.post(AMENDMENTS, json=body, headers=build_key_header("free")).status_code == 201


def test_stored_replies_survive_a_kill_encrypted(own_module_service: Service) -> None:
    """After a kill, a retry gets the first reply; no stored file contains the API key's secret in plain text."""
    editor = own_module_service.create_client("editor@t")
    first = editor.post(KEYS, json={"name": "kept"}, headers=build_key_header("kept")).json()
    own_module_service.kill()
    stored = b"".join(file.read_bytes() for file in own_module_service.data_dir.rglob("*.sqlite*"))
    assert first["keyId"].encode() in stored
    assert first["apiKey"].split("_", 2)[2].encode() not in stored
    editor = own_module_service.start().create_client("editor@t")
    assert editor.post(KEYS, json={"name": "kept"}, headers=build_key_header("kept")).json() == first


def test_a_retried_approval_does_not_approve_later_edits(own_module_service: Service) -> None:
    """If a query was edited after its approval, a retry of the approval does not approve the edit."""
    editor, admin = own_module_service.create_client("editor@t"), own_module_service.create_client("admin@t")
    assert editor.put(f"{QUERIES}/repeated", json=DEFINITION).status_code == 201
    first = admin.post(f"{QUERIES}/repeated/approve", headers=build_key_header("approve"))
    assert first.status_code == 200
    assert editor.put(f"{QUERIES}/repeated", json={**DEFINITION, "kql": "Telemetry | take 1"}).status_code == 200
    again = admin.post(f"{QUERIES}/repeated/approve", headers=build_key_header("approve"))
    assert (again.status_code, again.json()) == (200, first.json())
    check_problem(admin.get(f"{QUERIES}/repeated"), 403, "QUERY_NOT_APPROVED")
    assert (
        admin.post(f"{QUERIES}/repeated/approve", headers=build_key_header("approve anew")).json()["kql"]
        == "Telemetry | take 1"
    )


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_retried_decision_returns_the_first_reply(service: Service, verb: str) -> None:
    """A decision that is retried with its Idempotency-Key is stored once; with another Idempotency-Key it gets 409."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    scope = f"again-{verb}"
    created = create_amendment(editor, scope).json()["RecordID"]
    address, where = f"{AMENDMENTS}/{created}/{verb}", {"scopeKey": scope}
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda _: admin.post(address, params=where, headers=build_key_header(verb)), range(6)))
    assert {reply.status_code for reply in replies} == {200}
    assert {reply.json()["RecordID"] for reply in replies} == {"000000000002"}
    check_problem(admin.post(address, params=where, headers=build_key_header("other")), 409, "AMENDMENT_NOT_PENDING")
    if verb == "reject":
        changed = admin.post(address, params=where, json={"RejectionReason": "no"}, headers=build_key_header(verb))
        check_problem(changed, 422, "IDEMPOTENCY_KEY_REUSED")
    check_problem(approve_amendment(admin, scope, created), 409, "AMENDMENT_NOT_PENDING")


def test_a_retried_amendment_is_stored_once(service: Service) -> None:
    """A retried amendment gets the first reply; the same Idempotency-Key with another body gets 422."""
    editor = service.create_client("editor@t")
    body = {**BODY, "ScopeKey": "again"}
    first = editor.post(AMENDMENTS, json=body, headers=build_key_header("correction"))
    assert editor.post(AMENDMENTS, json=body, headers=build_key_header("correction")).json() == first.json()
    changed = editor.post(AMENDMENTS, json={**body, "ReasonText": "else"}, headers=build_key_header("correction"))
    check_problem(changed, 422, "IDEMPOTENCY_KEY_REUSED")


def test_a_retried_amendment_gets_the_first_reply_after_a_change_of_the_policy(own_module_service: Service) -> None:
    """A retried amendment gets the first reply, although its reason category was removed from the policy meanwhile."""
    admin, editor = (own_module_service.create_client(member) for member in ("admin@t", "editor@t"))
    before = admin.get("/oi-api/workspace").json()["policies"]
    categories = {**before["provenance"], "reasonCategories": ["changed", BODY["ReasonCategory"]]}

    def send() -> Any:
        return editor.post(AMENDMENTS, json={**BODY, "ScopeKey": "policy"}, headers=build_key_header("policy"))

    def set_policy(provenance: Any) -> None:
        body = {"name": "Test plant", "policies": {**before, "provenance": provenance}}
        assert admin.put("/oi-api/workspace", json=body).status_code == 200

    set_policy(categories)
    first = send()
    assert first.status_code == 201
    set_policy({**categories, "reasonCategories": ["changed"]})
    assert (send().status_code, send().json()) == (201, first.json())
    set_policy(categories)
    assert send().json() == first.json()


@pytest.mark.parametrize("kills", [1, pytest.param(6, marks=pytest.mark.soak)])
def test_retries_after_kills_create_each_api_key_once(own_module_service: Service, kills: int) -> None:
    """If the creation of an API key is retried after kills, one key and one audit event exist.

    All replies are equal.
    """
    replies: dict[int, Any] = {}
    service = own_module_service
    for _ in range(kills):
        editor = service.create_client("editor@t")
        with ThreadPoolExecutor(8) as pool:
            running = [pool.submit(_create_key, editor, number, replies) for number in range(40)]
            before = len(replies)
            wait_until(lambda: len(replies), lambda now, before=before: now > before)  # type: ignore[misc]
            service.kill()
            [future.result() for future in running]
        service.start()
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _create_key(editor, number, replies), range(40)))
    remaining = {key["keyId"]: key["name"] for key in editor.get(KEYS).json()["keys"] if key["name"].startswith("k-")}
    assert remaining == {answer["keyId"]: f"k-{number}" for number, answer in replies.items()}
    assert len(remaining) == 40
    for number in (0, 20, 39):
        assert len(list_created_events(admin, f"k-{number}")) == 1
        assert service.create_anonymous_client(replies[number]["apiKey"]).get(f"{KEYS}/whoami").status_code == 200


def _create_key(client: httpx.Client, number: int, replies: dict[int, Any]) -> None:
    """Create an API key and store the reply; fail if it differs from an earlier reply to the same request."""
    try:
        reply = client.post(KEYS, json={"name": f"k-{number}"}, headers=build_key_header(f"kill {number}"))
    except (httpx.TransportError, RuntimeError):
        return  # the service was killed, or its client was closed
    assert reply.status_code == 201, reply.text
    assert replies.setdefault(number, reply.json()) == reply.json()
