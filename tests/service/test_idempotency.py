"""The Idempotency-Key of every POST that appends: a repeat gets the first answer."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem, wait_until
from tests.service.test_amendments import AMENDMENTS, BODY, approve, create

KEYS = "/workspace/api/keys"
QUERIES = "/oi-api/warm-queries"
DEFINITION = {"name": "Repeated", "surface": "hall", "kql": "Telemetry | count"}


def once(key: str) -> dict[str, str]:
    """Return the header."""
    return {"Idempotency-Key": key}


def created_events(admin: httpx.Client, name: str) -> list[Any]:
    """Return the audit events of keys of a name."""
    wanted = "target=AccessControl&actionType=ApiKey.Created&limit=1000"
    events = admin.get(f"/oi-api/provenance/events/query?{wanted}").json()
    return [event for event in events if event["AfterState"]["name"] == name]


def test_a_new_api_key_is_shown_again_to_who_repeats(service: Service) -> None:
    """One key is made, and its secret comes with each repeat; another body, caller or key is another matter."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    first = editor.post(KEYS, json={"name": "repeated"}, headers=once("new-key-1"))
    assert first.status_code == 201
    again = editor.post(KEYS, json={"name": "repeated"}, headers=once("new-key-1"))
    assert (again.status_code, again.json()) == (201, first.json())
    assert service.anonymous(first.json()["apiKey"]).get(f"{KEYS}/whoami").status_code == 200
    other = editor.post(KEYS, json={"name": "another"}, headers=once("new-key-1"))
    check_problem(other, 422, "IDEMPOTENCY_KEY_REUSED")
    mine = admin.post(KEYS, json={"name": "repeated"}, headers=once("new-key-1")).json()
    assert mine["keyId"] != first.json()["keyId"]
    assert len(created_events(admin, "repeated")) == 2
    assert len(created_events(admin, "another")) == 0
    assert check_failing_fields(editor.post(KEYS, json={"name": "x"}, headers=once(""))) == ["Idempotency-Key"]


def test_a_narrower_token_gets_no_wider_answer(service: Service) -> None:
    """A repeat with a token of other rights is another request: it shows no secret that the first token received."""
    wide, narrow = service.caller("editor@t"), service.caller("editor@t", "Workspace.Catalog.Read")
    first = wide.post(KEYS, json={"name": "wide"}, headers=once("new-key-wide"))
    assert first.status_code == 201
    check_problem(narrow.post(KEYS, json={"name": "wide"}, headers=once("new-key-wide")), 422, "IDEMPOTENCY_KEY_REUSED")
    again = service.caller("editor@t").post(KEYS, json={"name": "wide"}, headers=once("new-key-wide"))
    assert again.json() == first.json()


def test_repeats_at_once_make_one_api_key(service: Service) -> None:
    """Of many requests at once one makes the key, and all show it."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    with ThreadPoolExecutor(8) as pool:
        replies = list(
            pool.map(lambda _: editor.post(KEYS, json={"name": "crowd"}, headers=once("new-key-2")), range(8))
        )
    assert {reply.status_code for reply in replies} == {201}
    assert len({reply.json()["apiKey"] for reply in replies}) == 1
    assert len(created_events(admin, "crowd")) == 1
    assert sum(key["name"] == "crowd" for key in editor.get(KEYS).json()["keys"]) == 1


def test_a_refused_request_leaves_its_key_free(service: Service) -> None:
    """After a 400 or 403 the corrected request goes through under the same key."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    check_problem(
        editor.post(KEYS, json={"name": "free", "principal": "admin@t"}, headers=once("free")),
        403,
        "ACCESS_RIGHT_MISSING",
    )
    assert editor.post(KEYS, json={"name": "free"}, headers=once("free")).status_code == 201
    body = {**BODY, "ScopeKey": "free"}
    refused = admin.post(AMENDMENTS, json={**body, "ReasonCategory": "typo"}, headers=once("free"))
    check_problem(refused, 400, "REASON_CATEGORY_UNKNOWN")
    assert admin.post(AMENDMENTS, json=body, headers=once("free")).status_code == 201


def test_what_was_kept_survives_a_kill_and_shows_no_secret(own_service: Service) -> None:
    """After a power cut the repeat still gets the first answer, which no file holds in clear."""
    editor = own_service.start().caller("editor@t")
    first = editor.post(KEYS, json={"name": "kept"}, headers=once("kept")).json()
    own_service.kill()
    stored = b"".join(file.read_bytes() for file in own_service.data_dir.rglob("*.sqlite*"))
    assert first["keyId"].encode() in stored
    assert first["apiKey"].split("_", 2)[2].encode() not in stored
    editor = own_service.start().caller("editor@t")
    assert editor.post(KEYS, json={"name": "kept"}, headers=once("kept")).json() == first


def test_a_repeated_approval_releases_no_later_text(own_module_service: Service) -> None:
    """A query edited after its approval stays a draft, though the approval is sent again."""
    editor, admin = own_module_service.caller("editor@t"), own_module_service.caller("admin@t")
    assert editor.put(f"{QUERIES}/repeated", json=DEFINITION).status_code == 201
    first = admin.post(f"{QUERIES}/repeated/approve", headers=once("approve"))
    assert first.status_code == 200
    assert editor.put(f"{QUERIES}/repeated", json={**DEFINITION, "kql": "Telemetry | take 1"}).status_code == 200
    again = admin.post(f"{QUERIES}/repeated/approve", headers=once("approve"))
    assert (again.status_code, again.json()) == (200, first.json())
    check_problem(admin.get(f"{QUERIES}/repeated"), 403, "QUERY_NOT_APPROVED")
    assert admin.post(f"{QUERIES}/repeated/approve", headers=once("approve anew")).json()["kql"] == "Telemetry | take 1"


@pytest.mark.parametrize("verb", ["approve", "reject"])
def test_a_repeated_decision_is_the_first_one(service: Service, verb: str) -> None:
    """A decision sent again, at once or later, appends one transition; under another key it is 409."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    scope = f"again-{verb}"
    made = create(editor, scope).json()["RecordID"]
    address, where = f"{AMENDMENTS}/{made}/{verb}", {"scopeKey": scope}
    with ThreadPoolExecutor(6) as pool:
        replies = list(pool.map(lambda _: admin.post(address, params=where, headers=once(verb)), range(6)))
    assert {reply.status_code for reply in replies} == {200}
    assert {reply.json()["RecordID"] for reply in replies} == {"000000000002"}
    check_problem(admin.post(address, params=where, headers=once("other")), 409, "AMENDMENT_NOT_PENDING")
    if verb == "reject":
        changed = admin.post(address, params=where, json={"RejectionReason": "no"}, headers=once(verb))
        check_problem(changed, 422, "IDEMPOTENCY_KEY_REUSED")
    check_problem(approve(admin, scope, made), 409, "AMENDMENT_NOT_PENDING")


def test_a_repeated_correction_is_one(service: Service) -> None:
    """Created again under the same key it is the same record, with another body 422."""
    editor = service.caller("editor@t")
    body = {**BODY, "ScopeKey": "again"}
    first = editor.post(AMENDMENTS, json=body, headers=once("correction"))
    assert editor.post(AMENDMENTS, json=body, headers=once("correction")).json() == first.json()
    changed = editor.post(AMENDMENTS, json={**body, "ReasonText": "else"}, headers=once("correction"))
    check_problem(changed, 422, "IDEMPOTENCY_KEY_REUSED")


def test_kills_in_the_middle_leave_one_key_and_one_event_each(own_service: Service) -> None:
    """Killed while keys are made, then asked again: every request has one API key, one event, and one answer."""
    answers: dict[int, Any] = {}
    for _ in range(2):
        service = own_service.start()
        editor = service.caller("editor@t")
        with ThreadPoolExecutor(8) as pool:
            running = [pool.submit(_ask, editor, number, answers) for number in range(40)]
            before = len(answers)
            wait_until(lambda: len(answers), lambda now, before=before: now > before)  # type: ignore[misc]
            service.kill()
            [future.result() for future in running]
    editor, admin = own_service.start().caller("editor@t"), own_service.caller("admin@t")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: _ask(editor, number, answers), range(40)))
    kept = {key["keyId"]: key["name"] for key in editor.get(KEYS).json()["keys"] if key["name"].startswith("k-")}
    assert kept == {answer["keyId"]: f"k-{number}" for number, answer in answers.items()}
    assert len(kept) == 40
    for number in (0, 20, 39):
        assert len(created_events(admin, f"k-{number}")) == 1
        assert own_service.anonymous(answers[number]["apiKey"]).get(f"{KEYS}/whoami").status_code == 200


def _ask(client: httpx.Client, number: int, answers: dict[int, Any]) -> None:
    """Ask for a key, and keep the answer; a later one must be the same."""
    try:
        reply = client.post(KEYS, json={"name": f"k-{number}"}, headers=once(f"kill {number}"))
    except (httpx.TransportError, RuntimeError):
        return  # killed, or the client was closed with it
    assert reply.status_code == 201, reply.text
    assert answers.setdefault(number, reply.json()) == reply.json()
