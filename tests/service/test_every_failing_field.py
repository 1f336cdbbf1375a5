"""Tests that an error reply lists the invalid fields of all validation steps."""

from typing import Any

import pytest

from tests.service.local_service import Service, check_failing_fields
from tests.service.test_amendments import AMENDMENTS, BODY
from tests.service.test_provenance import EVENTS

CORRECTION = [
    "EntityType",
    "EntityID",
    "OriginalRecord",
    "AmendedRecord",
    "ChangedFields",
    "ReasonCategory",
    "ReasonText",
]
AD_HOC = "/oi-api/warm-queries"
CONTAINERS = "/oi-api/data-stores/orders/containers"


@pytest.mark.parametrize(
    ("path", "body", "fields", "code"),
    [
        (AMENDMENTS, {}, [*CORRECTION, "ScopeKey"], "SCOPE_KEY_REQUIRED"),
        (AMENDMENTS, BODY, ["ScopeKey"], "SCOPE_KEY_REQUIRED"),
        (
            AMENDMENTS,
            {**BODY, "ScopeKey": "", "ReasonCategory": "x"},
            ["ScopeKey", "ReasonCategory"],
            "SCOPE_KEY_REQUIRED",
        ),
        (
            AMENDMENTS,
            {"ScopeKey": "", "ReasonCategory": "x"},
            [name for name in CORRECTION if name != "ReasonCategory"] + ["ScopeKey", "ReasonCategory"],
            "SCOPE_KEY_REQUIRED",
        ),
        (
            f"{AMENDMENTS}/000000000001/reject",
            {"RejectionReason": 5},
            ["RejectionReason", "scopeKey"],
            "SCOPE_KEY_REQUIRED",
        ),
        (f"{AMENDMENTS}/000000000001/reject?scopeKey=", {"ScopeKey": "s"}, ["scopeKey"], "SCOPE_KEY_REQUIRED"),
        (f"{AMENDMENTS}/000000000001/reject?scopeKey=s", {"ScopeKey": "t"}, ["ScopeKey"], "INVALID_REQUEST"),
        (
            AMENDMENTS,
            {**BODY, "ScopeKey": "s", "OriginalRecord": {"n": 2**53}, "ReasonCategory": "x"},
            ["OriginalRecord.n", "ReasonCategory"],
            "INVALID_REQUEST",
        ),
        (
            EVENTS,
            {"EntityType": "T", "EntityID": 2**53, "BeforeState": {"n": 2**53}, "AfterState": {"m": [0, 2**53]}},
            ["ActionType", "EntityID", "BeforeState.n", "AfterState.m[1]"],
            "INVALID_REQUEST",
        ),
        (
            f"{EVENTS}?target=zz",
            {"ScopeKey": 5},
            ["ActionType", "EntityType", "EntityID", "ScopeKey", "target"],
            "INVALID_REQUEST",
        ),
        (
            f"{EVENTS}?target=DomainAmendments",
            {"ActionType": "A", "EntityType": "T", "ScopeKey": "s"},
            ["EntityID", "target"],
            "INVALID_REQUEST",
        ),
        (f"{EVENTS}/verify", {"RecordID": None, "ScopeKey": ""}, ["RecordID", "ScopeKey"], "SCOPE_KEY_REQUIRED"),
        (EVENTS, {"ScopeKey": ""}, ["ActionType", "EntityType", "EntityID", "ScopeKey"], "SCOPE_KEY_REQUIRED"),
        (f"{EVENTS}/verify?target=zz", {"ScopeKey": ""}, ["ScopeKey", "target"], "SCOPE_KEY_REQUIRED"),
        (
            f"{EVENTS}/verify?target=zz",
            {"ScopeKey": 5, "RecordID": "x"},
            ["ScopeKey", "RecordID", "target"],
            "INVALID_REQUEST",
        ),
        (f"{EVENTS}/verify?target=zz", [], ["body", "target"], "INVALID_REQUEST"),
        (f"{EVENTS}/verify?target=DomainEvents", {"ScopeKey": 5}, ["ScopeKey"], "INVALID_REQUEST"),
        (AD_HOC, {"query": "", "timeRange": "x"}, ["timeRange", "query"], "INVALID_REQUEST"),
        (AD_HOC, {"query": ".show tables", "limit": 0}, ["limit", "query"], "INVALID_REQUEST"),
        (AD_HOC, {"Query": 5, "limit": 0}, ["Query", "limit"], "INVALID_REQUEST"),
        (AD_HOC, {"limit": 0}, ["query", "limit"], "INVALID_REQUEST"),
        (
            CONTAINERS,
            {"name": "!", "partitionKeyPath": "x", "dataClass": "evidence"},
            ["name", "partitionKeyPath", "dataClass"],
            "INVALID_REQUEST",
        ),
        (
            CONTAINERS,
            {"name": "!", "dataClass": "evidence"},
            ["partitionKeyPath", "name", "dataClass"],
            "INVALID_REQUEST",
        ),
        (
            CONTAINERS,
            {"name": "abc", "partitionKeyPath": "/x", "dataClass": "evidence"},
            ["dataClass"],
            "DATA_CLASS_REFUSED",
        ),
    ],
)
def test_all_invalid_fields_of_a_body_are_listed(
    service: Service, path: str, body: object, fields: list[str], code: str
) -> None:
    """The reply lists the errors of all validation steps; a missing scope determines the error code."""
    assert check_failing_fields(service.create_client("admin@t").post(path, json=body), code=code) == fields


@pytest.mark.parametrize(
    ("path", "fields", "code"),
    [
        (f"{AMENDMENTS}/chain", ["scopeKey", "entityId"], "SCOPE_KEY_REQUIRED"),
        (f"{AMENDMENTS}/chain?scopeKey=s", ["entityId"], "INVALID_REQUEST"),
        (f"{AMENDMENTS}?status=zz", ["status", "scopeKey"], "SCOPE_KEY_REQUIRED"),
        (
            f"{EVENTS}/query?fromSequence=x&toSequence=y&target=zz&scopeKey=",
            ["fromSequence", "toSequence", "scopeKey", "target"],
            "SCOPE_KEY_REQUIRED",
        ),
        (f"{EVENTS}/query?target=zz&scopeKey=", ["scopeKey", "target"], "SCOPE_KEY_REQUIRED"),
        (f"{EVENTS}/query?fromSequence=x&target=DomainEvents", ["fromSequence", "target"], "INVALID_REQUEST"),
        (f"{EVENTS}/query?target=zz", ["target"], "TARGET_UNKNOWN"),
        (f"{EVENTS}/query?target=DomainEvents", ["target"], "TARGET_SCOPE_MISMATCH"),
        (f"{EVENTS}/export?format=xml&target=zz", ["format", "target"], "INVALID_REQUEST"),
        ("/oi-api/provenance/proof", ["size", "sequence"], "INVALID_REQUEST"),
        ("/oi-api/provenance/proof?target=zz&from=x", ["from", "target", "size"], "INVALID_REQUEST"),
        ("/oi-api/provenance/receipt?target=zz&size=x", ["size", "target", "recordId"], "INVALID_REQUEST"),
        ("/oi-api/provenance/receipt?recordId=x&from=y&zz=1", ["zz", "recordId", "from"], "INVALID_REQUEST"),
        ("/workspace/api/keys/jwt?minutes=x&scopes=zz", ["minutes", "scopes"], "INVALID_REQUEST"),
        ("/workspace/api/keys/jwt?minutes=40000&scopes=zz", ["minutes", "scopes"], "INVALID_REQUEST"),
        ("/workspace/api/keys/jwt?scopes=,&minutes=0", ["minutes", "scopes"], "INVALID_REQUEST"),
    ],
)
def test_all_invalid_parameters_are_listed(service: Service, path: str, fields: list[str], code: str) -> None:
    """The reply lists all invalid parameters; the first of them determines the error code."""
    assert check_failing_fields(service.create_client("admin@t").get(path), code=code) == fields


def test_an_invalid_body_does_not_hide_invalid_parameters(service: Service) -> None:
    """If the body is not JSON, invalid parameters are still listed."""
    reply = service.create_client("admin@t").post(f"{EVENTS}/verify?target=zz", content=b"{")
    assert check_failing_fields(reply, code="BODY_NOT_JSON") == ["body", "target"]


def test_allowed_reason_categories_are_returned_with_other_errors(service: Service) -> None:
    """If one of several errors is an unknown reason category, the reply lists the allowed categories."""
    reply = service.create_client("editor@t").post(AMENDMENTS, json={"ReasonCategory": "whim"}).json()
    assert reply["sent"] == "whim"
    assert (
        reply["allowed"]
        == service.create_client("editor@t").get("/oi-api/provenance/reason-categories").json()["categories"]
    )
    assert reply["code"] == "SCOPE_KEY_REQUIRED"


@pytest.mark.parametrize(
    ("lookup", "changes", "fields", "code"),
    [
        ("several", {"surface": "nowhere", "kql": "xx yy"}, ["kql", "surface"], "QUERY_INVALID"),
        ("several", {"surface": "nowhere", "kql": ".show tables"}, ["kql", "surface"], "QUERY_NOT_READ_ONLY"),
        ("several", {"kql": "xx yy"}, ["kql"], "QUERY_INVALID"),
        ("bad!", {"surface": "nowhere", "kql": "xx yy"}, ["lookup", "kql", "surface"], "INVALID_REQUEST"),
        (
            "several",
            {"surface": "nowhere", "name": "", "kql": "xx yy", "cacheSeconds": -1, "apiPath": "a//b"},
            ["name", "cacheSeconds", "apiPath", "kql", "surface"],
            "INVALID_REQUEST",
        ),
        (
            "several",
            {"surface": "nowhere", "parameters": [{"name": "1", "type": "zz"}]},
            ["parameters[0].name", "parameters[0].type", "surface"],
            "INVALID_REQUEST",
        ),
    ],
)
def test_all_errors_of_a_query_definition_are_listed(
    service: Service, lookup: str, changes: dict[str, Any], fields: list[str], code: str
) -> None:
    """The reply lists the query engine's errors about the KQL text and the errors of all other fields."""
    body = {"name": "Several", "surface": "hall", "kql": "Telemetry | count", **changes}
    reply = service.create_client("editor@t").put(f"/oi-api/warm-queries/{lookup}", json=body)
    assert check_failing_fields(reply, code=code) == fields
