"""Tests of conditional requests on warm queries, which prevent lost updates."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.test_warm_query_definitions import BODY, save_query


@pytest.fixture(scope="module")
def changeable_service(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


def send_conditional_request(service: Service, method: str, path: str, member: str, **headers: str) -> Any:
    """Send a conditional request.

    Keyword arguments are headers; an underscore in a name stands for a hyphen.
    """
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {**BODY, "name": f"Conditional {path}"} if method == "PUT" else None
    return service.create_client(member).request(method, f"/oi-api/warm-queries/{path}", json=body, headers=named)


def find_listed_query(service: Service, lookup: str) -> dict[str, Any]:
    """Return a query's definition from the list of queries."""
    queries = service.create_client("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    return next(query for query in queries if query["lookup"] == lookup)


def test_every_query_definition_has_a_strong_etag(changeable_service: Service) -> None:
    """Header, body and list contain the same ETag of a query, which changes with each edit and approval."""
    created = save_query(changeable_service, "tagged", name="Tagged")
    approved = changeable_service.create_client("admin@t").post("/oi-api/warm-queries/tagged/approve")
    edited = save_query(changeable_service, "tagged", name="Tagged")
    tags = [reply.headers["etag"] for reply in (created, approved, edited)]
    assert [reply.json()["etag"] for reply in (created, approved, edited)] == tags
    assert len(set(tags)) == 3
    assert all(re.fullmatch(r'"[0-9a-f]{64}"', tag) for tag in tags)
    assert save_query(changeable_service, "beside", name="Beside").status_code == 201
    assert find_listed_query(changeable_service, "tagged")["etag"] == tags[-1]
    every = changeable_service.create_client("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    assert len({query["etag"] for query in every}) == len(every)


def test_query_etags_survive_a_restart(changeable_service: Service) -> None:
    """After a restart, If-Match accepts an ETag from before the restart."""
    before = {query["lookup"]: query["etag"] for query in _list_queries(changeable_service)}
    changeable_service.kill()
    changeable_service.start()
    assert {query["lookup"]: query["etag"] for query in _list_queries(changeable_service)} == before
    approved = send_conditional_request(
        changeable_service, "POST", "draft/approve", "admin@t", If_Match=before["draft"]
    )
    assert approved.status_code == 200


def _list_queries(service: Service) -> list[dict[str, Any]]:
    queries: list[dict[str, Any]] = service.create_client("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    return queries


def test_if_match_prevents_lost_updates(changeable_service: Service) -> None:
    """A change with an old ETag in If-Match is rejected; a change with the current ETag is stored and audited."""
    created = send_conditional_request(changeable_service, "PUT", "seen", "editor@t", If_None_Match="*")
    assert created.status_code == 201
    check_problem(
        send_conditional_request(changeable_service, "PUT", "seen", "editor@t", If_None_Match="*"),
        412,
        "PRECONDITION_FAILED",
    )
    edited = send_conditional_request(changeable_service, "PUT", "seen", "editor@t", If_Match=created.headers["etag"])
    assert edited.status_code == 200
    for stale in (created.headers["etag"], f"W/{edited.headers['etag']}", '"x", "y"'):
        for method, path, who in (
            ("PUT", "seen", "editor@t"),
            ("POST", "seen/approve", "admin@t"),
            ("DELETE", "seen", "editor@t"),
        ):
            check_problem(
                send_conditional_request(changeable_service, method, path, who, If_Match=stale),
                412,
                "PRECONDITION_FAILED",
            )
    assert find_listed_query(changeable_service, "seen")["etag"] == edited.headers["etag"]
    assert list_audited_actions(changeable_service, "seen") == ["Created", "Updated"]
    newest = f'"x", {edited.headers["etag"]}'
    approved = send_conditional_request(changeable_service, "POST", "seen/approve", "admin@t", If_Match=newest)
    assert (approved.status_code, approved.json()["etag"]) == (200, approved.headers["etag"])
    check_problem(
        send_conditional_request(changeable_service, "DELETE", "seen", "editor@t", If_Match=newest),
        412,
        "PRECONDITION_FAILED",
    )
    assert (
        send_conditional_request(
            changeable_service, "DELETE", "seen", "editor@t", If_Match=approved.headers["etag"]
        ).status_code
        == 204
    )
    assert list_audited_actions(changeable_service, "seen") == ["Created", "Updated", "Approved", "Removed"]


def list_audited_actions(service: Service, lookup: str) -> list[str]:
    """Return the actions on a query in the audit log."""
    query = "target=PlatformConfig&entityType=WarmQuery&limit=1000"
    events = service.create_client("admin@t").get(f"/oi-api/provenance/events/query?{query}").json()
    mine = sorted((event for event in events if event["EntityID"] == lookup), key=lambda event: str(event["RecordID"]))
    return [event["ActionType"].rsplit(".", 1)[1] for event in mine]


def test_conditional_headers_are_checked_after_all_other_rules(changeable_service: Service) -> None:
    """Conditional headers are checked last, after fields, access rights and the existence of the query."""
    for path, method, who in (
        ("absent", "DELETE", "editor@t"),
        ("absent/approve", "POST", "admin@t"),
        ("absent", "PUT", "editor@t"),
    ):
        assert check_failing_fields(send_conditional_request(changeable_service, method, path, who, If_Match="1a")) == [
            "If-Match"
        ]
        assert check_failing_fields(
            send_conditional_request(changeable_service, method, path, who, If_None_Match='"a')
        ) == ["If-None-Match"]
    headers = {"If-Match": "unquoted"}
    bad = changeable_service.create_client("editor@t").put(
        "/oi-api/warm-queries/bad", json={**BODY, "surface": "nowhere"}, headers=headers
    )
    assert sorted(check_failing_fields(bad)) == ["If-Match", "surface"]
    check_problem(
        send_conditional_request(changeable_service, "DELETE", "absent", "editor@t"), 404, "WARM_QUERY_NOT_FOUND"
    )
    check_problem(
        send_conditional_request(changeable_service, "DELETE", "absent", "editor@t", If_Match="*"),
        412,
        "PRECONDITION_FAILED",
    )
    check_problem(
        send_conditional_request(changeable_service, "POST", "absent/approve", "admin@t", If_Match='"x"'),
        404,
        "WARM_QUERY_NOT_FOUND",
    )
    check_problem(
        send_conditional_request(changeable_service, "PUT", "absent", "editor@t", If_Match="*"),
        412,
        "PRECONDITION_FAILED",
    )
    assert send_conditional_request(changeable_service, "PUT", "kept", "admin@t").status_code == 201
    refused = send_conditional_request(changeable_service, "POST", "kept/approve", "admin@t", If_Match='"x"')
    check_problem(refused, 403, "MAKER_CHECKER_VIOLATION")
    assert send_conditional_request(changeable_service, "PUT", "kept", "editor@t", If_Match="*").status_code == 200


def test_one_of_concurrent_query_edits_is_stored(changeable_service: Service) -> None:
    """Of sixteen concurrent edits with the same ETag, one is stored, and the others are rejected with 412."""
    start = save_query(changeable_service, "crowd", name="Crowd").headers["etag"]
    callers = [changeable_service.create_client("editor@t") for _ in range(16)]

    def save_edit(number: int) -> Any:
        body = {**BODY, "name": "Crowd", "description": str(number)}
        return callers[number].put("/oi-api/warm-queries/crowd", json=body, headers={"If-Match": start})

    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(save_edit, range(16)))
    [winner] = [reply for reply in replies if reply.status_code == 200]
    for reply in replies:
        if reply is not winner:
            check_problem(reply, 412, "PRECONDITION_FAILED")
    assert find_listed_query(changeable_service, "crowd")["etag"] == winner.headers["etag"]
    assert find_listed_query(changeable_service, "crowd")["description"] == winner.json()["description"]


def test_a_retried_approval_ignores_the_new_etag(changeable_service: Service) -> None:
    """A retry of an approval gets the first reply if its If-Match header is the same, and otherwise an error."""
    created = save_query(changeable_service, "repeated", name="Repeated")
    named = {"If_Match": created.headers["etag"], "Idempotency_Key": "approve-on-condition"}
    first = send_conditional_request(changeable_service, "POST", "repeated/approve", "admin@t", **named)
    assert first.status_code == 200
    again = send_conditional_request(changeable_service, "POST", "repeated/approve", "admin@t", **named)
    assert (again.status_code, again.json(), again.headers["etag"]) == (200, first.json(), first.headers["etag"])
    edited = save_query(changeable_service, "repeated", name="Repeated")
    other = {**named, "If_Match": edited.headers["etag"]}
    check_problem(
        send_conditional_request(changeable_service, "POST", "repeated/approve", "admin@t", **other),
        422,
        "IDEMPOTENCY_KEY_REUSED",
    )
    assert find_listed_query(changeable_service, "repeated")["approval"] is None
    fresh = {**named, "Idempotency_Key": "approve-anew"}
    check_problem(
        send_conditional_request(changeable_service, "POST", "repeated/approve", "admin@t", **fresh),
        412,
        "PRECONDITION_FAILED",
    )
    fresh["If_Match"] = edited.headers["etag"]
    assert (
        send_conditional_request(changeable_service, "POST", "repeated/approve", "admin@t", **fresh).status_code == 200
    )
