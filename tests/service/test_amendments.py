"""Corrections over HTTP."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.test_provenance import assert_linked

AMENDMENTS = "/oi-api/provenance/amendments"
BODY: dict[str, Any] = {
    "EntityType": "Batch",
    "EntityID": "B-1",
    "OriginalRecord": {"weight": 10},
    "AmendedRecord": {"weight": 11},
    "ChangedFields": ["weight"],
    "ReasonCategory": "data-entry-error",
    "ReasonText": "typed wrongly",
}


def create(client: httpx.Client, scope: str | None, **members: Any) -> httpx.Response:
    """Return the reply to creating the usual correction with changes; None takes a member out."""
    body = {name: value for name, value in {**BODY, "ScopeKey": scope, **members}.items() if value is not None}
    return client.post(AMENDMENTS, json=body)


def approve(client: httpx.Client, scope: str, amendment: str) -> httpx.Response:
    """Return the reply to an approval."""
    return client.post(f"{AMENDMENTS}/{amendment}/approve", params={"scopeKey": scope})


def reject(client: httpx.Client, scope: str, amendment: str, **members: Any) -> httpx.Response:
    """Return the reply to a rejection."""
    return client.post(f"{AMENDMENTS}/{amendment}/reject", json={"ScopeKey": scope, **members})


def test_the_life_of_a_correction(service: Service) -> None:
    """Created pending, approved by another, found by every filter, never changed in place."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    made = create(editor, "life", AmendedBy="x", AmendedAt="x", Status="approved", Extra=1)
    assert made.status_code == 201
    original = made.json()
    assert original | {"AmendedAt": "", "Hash": "", "PreviousHash": ""} == {
        **BODY,
        "ScopeKey": "life",
        "RecordID": "000000000001",
        "AmendedBy": "editor@t",
        "AmendedAt": "",
        "Status": "pending",
        "PreviousHash": "",
        "Hash": "",
    }
    approved = approve(admin, "life", original["RecordID"])
    assert approved.status_code == 200
    transition = approved.json()
    assert transition | {"ApprovedAt": "", "Hash": "", "PreviousHash": ""} == {
        "RecordID": "000000000002",
        "ScopeKey": "life",
        "EntityType": "Batch",
        "EntityID": "B-1",
        "AmendmentID": "000000000001",
        "Status": "approved",
        "ApprovedBy": "admin@t",
        "ApprovedAt": "",
        "Meaning": "approval",
        "PreviousHash": "",
        "Hash": "",
    }
    chain = admin.get(f"{AMENDMENTS}/chain", params={"scopeKey": "life", "entityId": "B-1"}).json()
    assert chain == [original, transition]
    assert_linked(chain, "DomainAmendments", "life")


def listed(client: httpx.Client, **parameters: Any) -> list[int]:
    """Return the sequence numbers of a query."""
    reply = client.get(AMENDMENTS, params=parameters)
    assert reply.status_code == 200, reply.text
    assert {"x-provenance-scanned", "x-provenance-has-more", "x-provenance-target"} <= set(reply.headers)
    return [int(record["RecordID"]) for record in reply.json()]


def test_queries_know_status_and_transitions(service: Service) -> None:
    """Pending means undecided; approved and rejected include the decisions; author and reason match originals only."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    for number in range(4):
        create(editor, "status", EntityID=f"e{number}", ReasonCategory="other" if number else "delayed-entry")
    approve(admin, "status", "000000000002")
    reject(admin, "status", "000000000003", RejectionReason="no")
    assert listed(admin, scopeKey="status") == [6, 5, 4, 3, 2, 1]
    assert listed(admin, scopeKey="status", status="pending") == [4, 1]
    assert listed(admin, scopeKey="status", status="pending", limit=1) == [4]
    assert listed(admin, scopeKey="status", status="approved") == [5]
    assert listed(admin, scopeKey="status", status="rejected") == [6]
    assert listed(admin, scopeKey="status", entityId="e1") == [5, 2]
    assert listed(admin, scopeKey="status", amendedBy="editor@t") == [4, 3, 2, 1]
    assert listed(admin, scopeKey="status", reasonCategory="delayed-entry") == [1]
    assert listed(admin, scopeKey="status", fromSequence=2, toSequence=5, limit=2, offset=1) == [4, 3]
    check_problem(admin.get(AMENDMENTS, params={"scopeKey": "status", "status": "maybe"}), 400, "INVALID_REQUEST")


@pytest.mark.parametrize(
    ("members", "fields"),
    [
        ({name: None}, [name])
        for name in ("EntityType", "EntityID", "OriginalRecord", "AmendedRecord", "ChangedFields", "ReasonText")
    ]
    + [
        ({"ChangedFields": []}, ["ChangedFields"]),
        ({"ChangedFields": "weight"}, ["ChangedFields"]),
        ({"OriginalRecord": []}, ["OriginalRecord"]),
        ({"EntityID": ""}, ["EntityID"]),
    ],
)
def test_bad_corrections_name_their_fields(service: Service, members: dict[str, Any], fields: list[str]) -> None:
    """Every required member is required, and typed."""
    reply = create(service.caller("editor@t"), "bad", **members)
    assert [field.partition("[")[0] for field in check_failing_fields(reply)] == fields


@pytest.mark.parametrize("sent", ["typo", "Other", "", 5, {"a": 1}, ["other"]])
def test_an_off_list_reason_tells_what_was_sent_and_what_is_allowed(service: Service, sent: Any) -> None:
    """The reply names both, whatever was sent."""
    told = check_problem(create(service.caller("editor@t"), "bad", ReasonCategory=sent), 400, "REASON_CATEGORY_UNKNOWN")
    assert told["sent"] == sent
    categories = service.caller("viewer@t").get("/oi-api/provenance/reason-categories").json()["categories"]
    assert told["allowed"] == categories
    assert len(categories) == 7


def test_a_scope_is_required_everywhere(service: Service) -> None:
    """No corrections endpoint falls back to the workspace."""
    admin = service.caller("admin@t")
    for reply in (
        create(admin, None),
        create(admin, ""),
        admin.get(AMENDMENTS),
        admin.get(f"{AMENDMENTS}/chain", params={"entityId": "x"}),
        admin.post(f"{AMENDMENTS}/000000000001/approve", json={"ScopeKey": "s"}),
        admin.post(f"{AMENDMENTS}/000000000001/reject", json={}),
    ):
        check_problem(reply, 400, "SCOPE_KEY_REQUIRED")
    assert check_failing_fields(admin.get(f"{AMENDMENTS}/chain", params={"scopeKey": "s"})) == ["entityId"]


def test_maker_and_checker_are_two(service: Service) -> None:
    """The author neither approves nor rejects, and nothing changes."""
    admin = service.caller("admin@t")
    made = create(admin, "own").json()["RecordID"]
    check_problem(approve(admin, "own", made), 403, "MAKER_CHECKER_VIOLATION")
    check_problem(reject(admin, "own", made), 403, "MAKER_CHECKER_VIOLATION")
    assert listed(admin, scopeKey="own", status="pending") == [1]
    check_problem(approve(service.caller("editor@t"), "own", made), 403, "ACCESS_RIGHT_MISSING")


def test_a_decided_correction_stays_decided(service: Service) -> None:
    """A second decision is 409 with the status, to its author too; a transition is no correction."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    made = create(editor, "decided").json()["RecordID"]
    rejected = reject(admin, "decided", made).json()
    assert "RejectionReason" not in rejected
    assert (rejected["RejectedBy"], rejected["Meaning"]) == ("admin@t", "rejection")
    for reply in (approve(admin, "decided", made), reject(admin, "decided", made)):
        assert check_problem(reply, 409, "AMENDMENT_NOT_PENDING")["currentStatus"] == "rejected"
    for unknown in (rejected["RecordID"], "000000000099", "1", "x", "0000000000001"):
        check_problem(approve(admin, "decided", unknown), 404, "AMENDMENT_NOT_FOUND")
    check_problem(approve(admin, "elsewhere", made), 404, "AMENDMENT_NOT_FOUND")


def test_of_many_decisions_at_once_one_wins(service: Service) -> None:
    """Simultaneous approvals and rejections leave exactly one transition."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    for number in range(1, 6):
        made = create(editor, "race", EntityID=f"r{number}").json()["RecordID"]
        with ThreadPoolExecutor(8) as pool:
            replies = list(
                pool.map(lambda turn, id_=made: (approve if turn % 2 else reject)(admin, "race", id_), range(8))
            )
        assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
        chain = admin.get(f"{AMENDMENTS}/chain", params={"scopeKey": "race", "entityId": f"r{number}"}).json()
        assert len(chain) == 2


def test_a_service_has_no_say(service: Service) -> None:
    """Without an identity create, approve and reject are 401 before anything is judged."""
    historian = service.caller("historian")
    for path in (AMENDMENTS, f"{AMENDMENTS}/x/approve", f"{AMENDMENTS}/x/reject"):
        check_problem(historian.post(path, content=b"{"), 401, "UNAUTHENTICATED")
    assert historian.get(AMENDMENTS, params={"scopeKey": "life"}).status_code == 200


def test_corrections_are_read_as_events_too(service: Service) -> None:
    """The events routes read DomainAmendments, filter by actor and own time, and verify it."""
    editor = service.caller("editor@t")
    create(editor, "as-events")
    parameters = {"target": "DomainAmendments", "scopeKey": "as-events"}
    found = editor.get("/oi-api/provenance/events/query", params={**parameters, "userId": "editor@t"}).json()
    assert [record["AmendedBy"] for record in found] == ["editor@t"]
    text = editor.get("/oi-api/provenance/events/export", params={**parameters, "format": "csv"}).text
    cells = text.split("\r\n")[1].split(",")
    assert (cells[1], cells[2], cells[3]) == (found[0]["AmendedAt"], "editor@t", "")
    reply = editor.post(
        "/oi-api/provenance/events/verify", params={"target": "DomainAmendments"}, json={"ScopeKey": "as-events"}
    )
    assert (reply.json()["ChainValid"], reply.json()["Target"]) == (True, "DomainAmendments")


def test_the_report_of_an_entity_is_a_page(service: Service) -> None:
    """Where HTML is preferred the chain comes as a page with everything an auditor asks, and no markup of others."""
    editor, admin = service.caller("editor@t"), service.caller("admin@t")
    text = "<script>alert(1)</script> & more"
    create(editor, "page", ReasonText=text, AmendedRecord={"weight": 11, "<b>": text})
    made = create(editor, "page").json()["RecordID"]
    reject(admin, "page", made, RejectionReason="not <i>so</i>")
    parameters = {"scopeKey": "page", "entityId": "B-1"}
    reply = admin.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html,*/*;q=0.1"})
    assert reply.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "<script>" not in reply.text
    assert "<i>" not in reply.text
    for expected in ("editor@t", "admin@t", "data-entry-error", "rejected", "pending", "not &lt;i&gt;so", made):
        assert expected in reply.text
    assert admin.get(f"{AMENDMENTS}/chain", params=parameters).headers["content-type"] == "application/json"
