"""Warm queries on condition over HTTP: nobody overwrites, approves or removes a text that they have not seen."""

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem
from tests.service.test_warm_query_definitions import BODY, put


@pytest.fixture(scope="module")
def plant(own_module_service: Service) -> Service:
    """Return a service that this module may change."""
    return own_module_service


def conditional(service: Service, method: str, path: str, member: str, **headers: str) -> Any:
    """Return the reply to a request on condition; header names have an underscore for each hyphen."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = {**BODY, "name": f"Conditional {path}"} if method == "PUT" else None
    return service.caller(member).request(method, f"/oi-api/warm-queries/{path}", json=body, headers=named)


def listed(service: Service, lookup: str) -> dict[str, Any]:
    """Return a definition as it is listed."""
    queries = service.caller("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    return next(query for query in queries if query["lookup"] == lookup)


def test_every_definition_has_a_strong_tag(plant: Service) -> None:
    """Header, body and list name the same state: another one after each edit and each approval, and only then."""
    made = put(plant, "tagged", name="Tagged")
    approved = plant.caller("admin@t").post("/oi-api/warm-queries/tagged/approve")
    edited = put(plant, "tagged", name="Tagged")
    tags = [reply.headers["etag"] for reply in (made, approved, edited)]
    assert [reply.json()["etag"] for reply in (made, approved, edited)] == tags
    assert len(set(tags)) == 3
    assert all(re.fullmatch(r'"[0-9a-f]{64}"', tag) for tag in tags)
    assert put(plant, "beside", name="Beside").status_code == 201
    assert listed(plant, "tagged")["etag"] == tags[-1]
    every = plant.caller("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    assert len({query["etag"] for query in every}) == len(every)


def test_tags_outlive_the_process(own_service: Service) -> None:
    """What was read before a restart is still what If-Match names."""
    own_service.start()
    before = {query["lookup"]: query["etag"] for query in _list(own_service)}
    own_service.kill()
    own_service.start()
    assert {query["lookup"]: query["etag"] for query in _list(own_service)} == before
    approved = conditional(own_service, "POST", "draft/approve", "admin@t", If_Match=before["draft"])
    assert approved.status_code == 200


def _list(service: Service) -> list[dict[str, Any]]:
    queries: list[dict[str, Any]] = service.caller("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    return queries


def test_nobody_overwrites_removes_or_approves_what_they_have_not_seen(plant: Service) -> None:
    """With If-Match of an older state nothing is changed and nothing recorded; with that of the newest it is."""
    made = conditional(plant, "PUT", "seen", "editor@t", If_None_Match="*")
    assert made.status_code == 201
    check_problem(conditional(plant, "PUT", "seen", "editor@t", If_None_Match="*"), 412, "PRECONDITION_FAILED")
    edited = conditional(plant, "PUT", "seen", "editor@t", If_Match=made.headers["etag"])
    assert edited.status_code == 200
    for stale in (made.headers["etag"], f"W/{edited.headers['etag']}", '"x", "y"'):
        for method, path, who in (
            ("PUT", "seen", "editor@t"),
            ("POST", "seen/approve", "admin@t"),
            ("DELETE", "seen", "editor@t"),
        ):
            check_problem(conditional(plant, method, path, who, If_Match=stale), 412, "PRECONDITION_FAILED")
    assert listed(plant, "seen")["etag"] == edited.headers["etag"]
    assert verbs(plant, "seen") == ["Created", "Updated"]
    newest = f'"x", {edited.headers["etag"]}'
    approved = conditional(plant, "POST", "seen/approve", "admin@t", If_Match=newest)
    assert (approved.status_code, approved.json()["etag"]) == (200, approved.headers["etag"])
    check_problem(conditional(plant, "DELETE", "seen", "editor@t", If_Match=newest), 412, "PRECONDITION_FAILED")
    assert conditional(plant, "DELETE", "seen", "editor@t", If_Match=approved.headers["etag"]).status_code == 204
    assert verbs(plant, "seen") == ["Created", "Updated", "Approved", "Removed"]


def verbs(service: Service, lookup: str) -> list[str]:
    """Return what the audit log says was done to a query."""
    query = "target=PlatformConfig&entityType=WarmQuery&limit=1000"
    events = service.caller("admin@t").get(f"/oi-api/provenance/events/query?{query}").json()
    mine = sorted((event for event in events if event["EntityID"] == lookup), key=lambda event: str(event["RecordID"]))
    return [event["ActionType"].rsplit(".", 1)[1] for event in mine]


def test_conditions_come_after_what_is_malformed_missing_or_forbidden(plant: Service) -> None:
    """A header that is no list of tags is named with the other fields; 404 and 403 come before 412."""
    for path, method, who in (
        ("absent", "DELETE", "editor@t"),
        ("absent/approve", "POST", "admin@t"),
        ("absent", "PUT", "editor@t"),
    ):
        assert check_failing_fields(conditional(plant, method, path, who, If_Match="1a")) == ["If-Match"]
        assert check_failing_fields(conditional(plant, method, path, who, If_None_Match='"a')) == ["If-None-Match"]
    headers = {"If-Match": "unquoted"}
    bad = plant.caller("editor@t").put("/oi-api/warm-queries/bad", json={**BODY, "surface": "nowhere"}, headers=headers)
    assert sorted(check_failing_fields(bad)) == ["If-Match", "surface"]
    check_problem(conditional(plant, "DELETE", "absent", "editor@t", If_Match="*"), 404, "WARM_QUERY_NOT_FOUND")
    check_problem(conditional(plant, "POST", "absent/approve", "admin@t", If_Match='"x"'), 404, "WARM_QUERY_NOT_FOUND")
    check_problem(conditional(plant, "PUT", "absent", "editor@t", If_Match="*"), 412, "PRECONDITION_FAILED")
    assert conditional(plant, "PUT", "kept", "admin@t").status_code == 201
    refused = conditional(plant, "POST", "kept/approve", "admin@t", If_Match='"x"')
    check_problem(refused, 403, "MAKER_CHECKER_VIOLATION")
    assert conditional(plant, "PUT", "kept", "editor@t", If_Match="*").status_code == 200


def test_of_simultaneous_edits_one_is_stored(plant: Service) -> None:
    """Sixteen editors who looked at the same state: one saves, the others are told that it is another now."""
    start = put(plant, "crowd", name="Crowd").headers["etag"]
    callers = [plant.caller("editor@t") for _ in range(16)]

    def save(number: int) -> Any:
        body = {**BODY, "name": "Crowd", "description": str(number)}
        return callers[number].put("/oi-api/warm-queries/crowd", json=body, headers={"If-Match": start})

    with ThreadPoolExecutor(16) as pool:
        replies = list(pool.map(save, range(16)))
    [winner] = [reply for reply in replies if reply.status_code == 200]
    for reply in replies:
        if reply is not winner:
            check_problem(reply, 412, "PRECONDITION_FAILED")
    assert listed(plant, "crowd")["etag"] == winner.headers["etag"]
    assert listed(plant, "crowd")["description"] == winner.json()["description"]


def test_a_repeated_approval_gets_the_first_answer_though_the_tag_moved_on(plant: Service) -> None:
    """The same key with the same If-Match is the same request; with another one it is another request."""
    made = put(plant, "repeated", name="Repeated")
    named = {"If_Match": made.headers["etag"], "Idempotency_Key": "approve-on-condition"}
    first = conditional(plant, "POST", "repeated/approve", "admin@t", **named)
    assert first.status_code == 200
    again = conditional(plant, "POST", "repeated/approve", "admin@t", **named)
    assert (again.status_code, again.json(), again.headers["etag"]) == (200, first.json(), first.headers["etag"])
    edited = put(plant, "repeated", name="Repeated")
    other = {**named, "If_Match": edited.headers["etag"]}
    check_problem(conditional(plant, "POST", "repeated/approve", "admin@t", **other), 422, "IDEMPOTENCY_KEY_REUSED")
    assert listed(plant, "repeated")["approval"] is None
    fresh = {**named, "Idempotency_Key": "approve-anew"}
    check_problem(conditional(plant, "POST", "repeated/approve", "admin@t", **fresh), 412, "PRECONDITION_FAILED")
    fresh["If_Match"] = edited.headers["etag"]
    assert conditional(plant, "POST", "repeated/approve", "admin@t", **fresh).status_code == 200
