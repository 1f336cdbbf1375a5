"""Tests of amendments over HTTP."""

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.test_provenance import check_chain

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


def create_amendment(client: httpx.Client, scope: str | None, **properties: Any) -> httpx.Response:
    """Create the example amendment and return the reply.

    The given properties replace properties of the example; the value None removes a property.
    """
    body = {name: value for name, value in {**BODY, "ScopeKey": scope, **properties}.items() if value is not None}
    return client.post(AMENDMENTS, json=body)


def approve_amendment(client: httpx.Client, scope: str, amendment: str) -> httpx.Response:
    """Approve an amendment and return the reply."""
    return client.post(f"{AMENDMENTS}/{amendment}/approve", params={"scopeKey": scope})


def reject_amendment(client: httpx.Client, scope: str, amendment: str, **properties: Any) -> httpx.Response:
    """Reject an amendment and return the reply."""
    return client.post(f"{AMENDMENTS}/{amendment}/reject", json={"ScopeKey": scope, **properties})


def test_an_amendment_is_created_and_approved(service: Service) -> None:
    """A new amendment is pending until another principal approves it; every filter finds it, and it stays unchanged."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    created = create_amendment(editor, "life", AmendedBy="x", AmendedAt="x", Status="approved", Extra=1)
    assert created.status_code == 201
    original = created.json()
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
    approved = approve_amendment(admin, "life", original["RecordID"])
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
    check_chain(chain, "DomainAmendments", "life")


def list_sequence_numbers(client: httpx.Client, **parameters: Any) -> list[int]:
    """Return the sequence numbers of the records that match the query parameters."""
    reply = client.get(AMENDMENTS, params=parameters)
    assert reply.status_code == 200, reply.text
    assert {"x-provenance-scanned", "x-provenance-has-more", "x-provenance-target"} <= set(reply.headers)
    return [int(record["RecordID"]) for record in reply.json()]


def test_amendments_can_be_filtered_by_status_author_and_reason(service: Service) -> None:
    """The status filter returns amendments and their decisions.

    The author and reason filters return only amendments.
    """
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    for number in range(4):
        create_amendment(editor, "status", EntityID=f"e{number}", ReasonCategory="other" if number else "delayed-entry")
    approve_amendment(admin, "status", "000000000002")
    reject_amendment(admin, "status", "000000000003", RejectionReason="no")
    assert list_sequence_numbers(admin, scopeKey="status") == [6, 5, 4, 3, 2, 1]
    assert list_sequence_numbers(admin, scopeKey="status", status="pending") == [4, 1]
    assert list_sequence_numbers(admin, scopeKey="status", status="pending", limit=1) == [4]
    assert list_sequence_numbers(admin, scopeKey="status", status="approved") == [5]
    assert list_sequence_numbers(admin, scopeKey="status", status="rejected") == [6]
    assert list_sequence_numbers(admin, scopeKey="status", entityId="e1") == [5, 2]
    assert list_sequence_numbers(admin, scopeKey="status", amendedBy="editor@t") == [4, 3, 2, 1]
    assert list_sequence_numbers(admin, scopeKey="status", reasonCategory="delayed-entry") == [1]
    assert list_sequence_numbers(admin, scopeKey="status", fromSequence=2, toSequence=5, limit=2, offset=1) == [4, 3]
    check_problem(admin.get(AMENDMENTS, params={"scopeKey": "status", "status": "maybe"}), 400, "INVALID_REQUEST")


def test_empty_filters_of_amendments_are_ignored_and_listed(service: Service) -> None:
    """Empty filters of the list of amendments are ignored, and a header of the reply lists them."""
    create_amendment(service.create_client("editor@t"), "empty filters")
    names = ("entityId", "entityType", "reasonCategory", "amendedBy")
    parameters = {"scopeKey": "empty filters", **dict.fromkeys(names, "")}
    reply = service.create_client("admin@t").get(AMENDMENTS, params=parameters)
    assert (len(reply.json()), reply.headers["x-provenance-ignored"]) == (1, ", ".join(names))


@pytest.mark.parametrize(
    ("properties", "fields"),
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
def test_missing_and_invalid_fields_of_an_amendment_are_listed(
    service: Service, properties: dict[str, Any], fields: list[str]
) -> None:
    """The 400 reply lists each required field that is missing or has a wrong type."""
    reply = create_amendment(service.create_client("editor@t"), "bad", **properties)
    assert [field.partition("[")[0] for field in check_failing_fields(reply)] == fields


@pytest.mark.parametrize("sent", ["typo", "Other", "", 5, {"a": 1}, ["other"]])
def test_the_error_about_an_unknown_reason_lists_the_allowed_categories(service: Service, sent: Any) -> None:
    """The error about an unknown reason category states this category and the allowed categories."""
    details = check_problem(
        create_amendment(service.create_client("editor@t"), "bad", ReasonCategory=sent), 400, "REASON_CATEGORY_UNKNOWN"
    )
    assert details["sent"] == sent
    categories = service.create_client("viewer@t").get("/oi-api/provenance/reason-categories").json()["categories"]
    assert details["allowed"] == categories
    assert len(categories) == 7


def test_every_amendments_route_requires_a_scope(service: Service) -> None:
    """Every amendments route rejects a request without a scope."""
    admin = service.create_client("admin@t")
    for reply in (
        create_amendment(admin, None),
        create_amendment(admin, ""),
        admin.get(AMENDMENTS),
        admin.get(f"{AMENDMENTS}/chain", params={"entityId": "x"}),
        admin.post(f"{AMENDMENTS}/000000000001/approve", json={"ScopeKey": "s"}),
        admin.post(f"{AMENDMENTS}/000000000001/reject", json={}),
    ):
        check_problem(reply, 400, "SCOPE_KEY_REQUIRED")
    assert check_failing_fields(admin.get(f"{AMENDMENTS}/chain", params={"scopeKey": "s"})) == ["entityId"]


def test_authors_cannot_decide_their_amendments(service: Service) -> None:
    """Authors can neither approve nor reject their own amendment, and a rejected attempt changes nothing."""
    admin = service.create_client("admin@t")
    created = create_amendment(admin, "own").json()["RecordID"]
    check_problem(approve_amendment(admin, "own", created), 403, "MAKER_CHECKER_VIOLATION")
    check_problem(reject_amendment(admin, "own", created), 403, "MAKER_CHECKER_VIOLATION")
    assert list_sequence_numbers(admin, scopeKey="own", status="pending") == [1]
    check_problem(approve_amendment(service.create_client("editor@t"), "own", created), 403, "ACCESS_RIGHT_MISSING")


def test_a_second_decision_about_an_amendment_is_rejected(service: Service) -> None:
    """A second decision about an amendment is rejected with 409 and the current status.

    A decision itself cannot be approved or rejected.
    """
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    created = create_amendment(editor, "decided").json()["RecordID"]
    rejected = reject_amendment(admin, "decided", created).json()
    assert "RejectionReason" not in rejected
    assert (rejected["RejectedBy"], rejected["Meaning"]) == ("admin@t", "rejection")
    for reply in (approve_amendment(admin, "decided", created), reject_amendment(admin, "decided", created)):
        assert check_problem(reply, 409, "AMENDMENT_NOT_PENDING")["currentStatus"] == "rejected"
    for unknown in (rejected["RecordID"], "000000000099", "1", "x", "0000000000001"):
        check_problem(approve_amendment(admin, "decided", unknown), 404, "AMENDMENT_NOT_FOUND")
    check_problem(approve_amendment(admin, "elsewhere", created), 404, "AMENDMENT_NOT_FOUND")


def test_one_of_concurrent_decisions_about_an_amendment_is_stored(service: Service) -> None:
    """Of concurrent approvals and rejections of an amendment, exactly one is stored."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    for number in range(1, 6):
        created = create_amendment(editor, "race", EntityID=f"r{number}").json()["RecordID"]
        with ThreadPoolExecutor(8) as pool:
            replies = list(
                pool.map(
                    lambda turn, id_=created: (approve_amendment if turn % 2 else reject_amendment)(admin, "race", id_),
                    range(8),
                )
            )
        assert sorted(reply.status_code for reply in replies) == [200] + [409] * 7
        chain = admin.get(f"{AMENDMENTS}/chain", params={"scopeKey": "race", "entityId": f"r{number}"}).json()
        assert len(chain) == 2


def test_service_tokens_cannot_amend(service: Service) -> None:
    """Service tokens get 401 for creating, approving and rejecting amendments, before the request is validated."""
    historian = service.create_client("historian")
    for path in (AMENDMENTS, f"{AMENDMENTS}/x/approve", f"{AMENDMENTS}/x/reject"):
        check_problem(historian.post(path, content=b"{"), 401, "UNAUTHENTICATED")
    assert historian.get(AMENDMENTS, params={"scopeKey": "life"}).status_code == 200


def test_audit_event_routes_can_read_amendments(service: Service) -> None:
    """The routes that query and verify audit events also accept the target DomainAmendments."""
    editor = service.create_client("editor@t")
    create_amendment(editor, "as-events")
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


def test_the_amendment_report_of_an_entity_is_html(service: Service) -> None:
    """A client that accepts HTML gets the amendments of an entity as a page, in which all values are escaped."""
    editor, admin = service.create_client("editor@t"), service.create_client("admin@t")
    text = "<script>alert(1)</script> & more"
    create_amendment(editor, "page", ReasonText=text, AmendedRecord={"weight": 11, "<b>": text})
    created = create_amendment(editor, "page").json()["RecordID"]
    reject_amendment(admin, "page", created, RejectionReason="not <i>so</i>")
    parameters = {"scopeKey": "page", "entityId": "B-1"}
    reply = admin.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html,*/*;q=0.1"})
    assert reply.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    assert "<script>" not in reply.text
    assert "<i>" not in reply.text
    for expected in ("editor@t", "admin@t", "data-entry-error", "rejected", "pending", "not &lt;i&gt;so", created):
        assert expected in reply.text
    for expected in ("<dt>Entity type</dt>", "The chain is intact: 3 records", "<dt>Checkpoint</dt>", "(admin@t)"):
        assert expected in reply.text
    limited = service.create_client("admin@t", "Workspace.Amendment.Read")
    page = limited.get(f"{AMENDMENTS}/chain", params=parameters, headers={"Accept": "text/html"}).text
    assert ("<dt>Verification</dt>" in page, "All times are UTC." in page) == (False, True)
    assert admin.get(f"{AMENDMENTS}/chain", params=parameters).headers["content-type"] == "application/json"
