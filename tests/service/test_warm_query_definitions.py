"""Tests of creating, approving and deleting warm queries over HTTP."""

from typing import Any

import pytest

from tests.service.local_service import Service, check_failing_fields, check_problem

KQL = "Telemetry\n| where DeviceId == device\n| summarize n = count(), newest = max(Timestamp) by ConnectionLookup"
BODY: dict[str, Any] = {
    "name": "Made by the API",
    "surface": "hall",
    "kql": KQL,
    "parameters": [{"name": "device", "type": "string", "default": ""}],
}


@pytest.fixture(scope="module")
def changeable_service(own_module_service: Service) -> Service:
    """Return a service that the tests of this module may change."""
    return own_module_service


def save_query(service: Service, lookup: str, member: str = "editor@t", **changes: Any) -> Any:
    """Send the example definition by PUT and return the reply.

    The given properties replace properties of the example.
    """
    body = {name: value for name, value in {**BODY, **changes}.items() if value is not None}
    return service.create_client(member).put(f"/oi-api/warm-queries/{lookup}", json=body)


def test_a_query_is_created_approved_edited_and_deleted(changeable_service: Service) -> None:
    """A new query is a draft; after its approval it can be executed; an edit makes it a draft again."""
    admin, editor, viewer = (
        changeable_service.create_client("admin@t"),
        changeable_service.create_client("editor@t"),
        changeable_service.create_client("viewer@t"),
    )
    created = save_query(changeable_service, "life", name="Life", apiPath="hall/life")
    assert created.status_code == 201
    definition = created.json()
    assert definition["approval"] is None
    assert definition["editedBy"] == "editor@t"
    assert definition["schema"] == {
        "columns": [
            {"name": "ConnectionLookup", "type": "string"},
            {"name": "n", "type": "long"},
            {"name": "newest", "type": "datetime"},
        ]
    }
    check_problem(viewer.get("/oi-api/warm-queries/life"), 403, "QUERY_NOT_APPROVED")
    check_problem(editor.post("/oi-api/warm-queries/life/approve"), 403, "ACCESS_RIGHT_MISSING")
    approved = admin.post("/oi-api/warm-queries/life/approve")
    assert approved.status_code == 200
    assert approved.json()["approval"]["approvedBy"] == "admin@t"
    assert approved.json()["updatedAt"] == definition["updatedAt"]
    assert approved.json()["editedBy"] == "editor@t"
    assert admin.post("/oi-api/warm-queries/life/approve").json()["approval"] == approved.json()["approval"]
    assert viewer.get("/oi-api/warm-queries/hall/life").json()["governance"]["queryApprovedBy"] == "admin@t"
    edited = save_query(changeable_service, "life", name="Life", description="changed")
    assert (edited.status_code, edited.json()["approval"]) == (200, None)
    assert edited.json()["createdAt"] == definition["createdAt"]
    check_problem(viewer.get("/oi-api/warm-queries/life"), 403, "QUERY_NOT_APPROVED")
    assert editor.delete("/oi-api/warm-queries/life").status_code == 204
    check_problem(editor.delete("/oi-api/warm-queries/life"), 404, "WARM_QUERY_NOT_FOUND")
    check_problem(viewer.get("/oi-api/warm-queries/life"), 404, "WARM_QUERY_NOT_FOUND")
    check_problem(admin.post("/oi-api/warm-queries/life/approve"), 404, "WARM_QUERY_NOT_FOUND")


def test_the_last_editor_of_a_query_cannot_approve_it(changeable_service: Service) -> None:
    """The last editor of a query cannot approve it, even as an administrator."""
    assert save_query(changeable_service, "own", "admin@t", name="Own").status_code == 201
    check_problem(
        changeable_service.create_client("admin@t").post("/oi-api/warm-queries/own/approve"),
        403,
        "MAKER_CHECKER_VIOLATION",
    )


def test_the_list_of_queries_includes_drafts(changeable_service: Service) -> None:
    """The list contains each query, also drafts, with parameters, columns and approval, sorted by lookup."""
    queries = changeable_service.create_client("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    lookups = [query["lookup"] for query in queries]
    assert lookups == sorted(lookups)
    by_lookup = {query["lookup"]: query for query in queries}
    assert by_lookup["draft"]["approval"] is None
    assert by_lookup["newest"]["parameters"] == [
        {"name": "connection", "type": "string"},
        {"name": "above", "type": "real", "default": -1000000},
    ]
    assert {column["name"]: column["type"] for column in by_lookup["per-minute"]["schema"]["columns"]} == {
        "Minute": "datetime",
        "Pressure": "real",
        "Temperature": "real",
        "n": "long",
    }


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({"name": None, "surface": None, "kql": None}, ["name", "surface", "kql"]),
        ({"name": "", "kql": 5}, ["name", "kql"]),
        ({"surface": "nowhere"}, ["surface"]),
        ({"apiPath": "/x"}, ["apiPath"]),
        ({"apiPath": "x/../y"}, ["apiPath"]),
        ({"apiPath": "x/approve"}, ["apiPath"]),
        ({"cacheSeconds": -1}, ["cacheSeconds"]),
        ({"cacheSeconds": "5"}, ["cacheSeconds"]),
        ({"parameters": [{"name": "1x", "type": "text"}]}, ["parameters[0].name", "parameters[0].type"]),
        ({"parameters": [{"name": "device", "type": "long", "default": "x"}]}, ["parameters[0].default"]),
        ({"parameters": [{"name": "device", "type": "string"}] * 2}, ["parameters[1].name"]),
    ],
)
def test_the_error_about_a_definition_lists_every_invalid_field(
    changeable_service: Service, changes: dict[str, Any], fields: list[str]
) -> None:
    """The error reply lists each invalid field of a query definition, and nothing is stored."""
    assert check_failing_fields(save_query(changeable_service, "bad", **changes)) == fields
    check_problem(
        changeable_service.create_client("editor@t").delete("/oi-api/warm-queries/bad"), 404, "WARM_QUERY_NOT_FOUND"
    )


@pytest.mark.parametrize("name", ["Newest ", "Ne\u200bwest", "\u202etsewen", "Ku\u0308hlung"])
def test_a_query_name_must_be_normalized(changeable_service: Service, name: str) -> None:
    """A name with outer spaces or hidden characters, or not in NFC, is rejected."""
    assert check_failing_fields(save_query(changeable_service, "bad", name=name)) == ["name"]


@pytest.mark.parametrize("lookup", ["-x", "a%20b", "x" * 65, "%C3%BC"])
def test_an_invalid_lookup_is_rejected(changeable_service: Service, lookup: str) -> None:
    """An invalid lookup (id in URLs) is rejected with 400 and the field's name."""
    assert check_failing_fields(save_query(changeable_service, lookup)) == ["lookup"]


@pytest.mark.parametrize(
    ("kql", "code"),
    [
        ("Telemetry | wherex 1", "QUERY_INVALID"),
        ("Telemetry | where NoColumn == 1", "QUERY_INVALID"),
        ("Nothing", "QUERY_INVALID"),
        ("Telemetry | where DeviceId == undeclared", "QUERY_INVALID"),
        (".show tables", "QUERY_NOT_READ_ONLY"),
    ],
)
def test_invalid_kql_is_not_stored(changeable_service: Service, kql: str, code: str) -> None:
    """If the engine rejects the KQL of a query, the query is not stored."""
    check_problem(save_query(changeable_service, "bad", kql=kql), 400, code)


def test_names_and_api_paths_of_queries_are_unique(changeable_service: Service) -> None:
    """Names and API paths of queries are unique."""
    check_problem(save_query(changeable_service, "other", name="Newest readings"), 409, "WARM_QUERY_NAME_TAKEN")
    check_problem(
        save_query(changeable_service, "other", name="Other", apiPath="hall/pump-rig/minutes"),
        409,
        "WARM_QUERY_PATH_TAKEN",
    )
    check_problem(save_query(changeable_service, "other", name="Other", apiPath="newest"), 409, "WARM_QUERY_PATH_TAKEN")


@pytest.mark.parametrize(
    ("lookup", "fields"),
    [
        ("other", {"name": "newest"}),
        ("other", {"name": "hall/pump-rig/minutes"}),
        ("Twin", {"name": "Other"}),
        ("other", {"name": "Other", "apiPath": "Twin"}),
    ],
)
def test_a_query_name_must_not_identify_another_query(
    changeable_service: Service, lookup: str, fields: dict[str, str]
) -> None:
    """A query's name must differ from the lookup (id in URLs) and the API path of every other query."""
    assert save_query(changeable_service, "twin-name", name="Twin").status_code in (200, 201)
    check_problem(save_query(changeable_service, lookup, **fields), 409, "WARM_QUERY_NAME_TAKEN")


def test_managing_queries_requires_rights(changeable_service: Service) -> None:
    """Listing, writing and approving queries need three separate access rights."""
    check_problem(save_query(changeable_service, "x", "viewer@t"), 403, "ACCESS_RIGHT_MISSING")
    check_problem(
        changeable_service.create_client("viewer@t").delete("/oi-api/warm-queries/newest"), 403, "ACCESS_RIGHT_MISSING"
    )
    narrow = changeable_service.create_client("editor@t", scopes="Workspace.WarmQuery.Execute")
    check_problem(narrow.get("/oi-api/warm-queries"), 403, "ACCESS_RIGHT_MISSING")


def test_a_reply_warns_of_functions_with_approximate_results(changeable_service: Service) -> None:
    """The reply to PUT warns of functions that the local engine approximates, and can be sent back with PUT."""
    kql = "print y = dynamic([1, 2, 3]) | project series_periods_detect(y, 0.0, 50.0, 2), series_abs(y)"
    stored = save_query(changeable_service, "periods-noted", name="Periods noted", kql=kql, parameters=[])
    message = "On Data Explorer, other results are possible: series_periods_detect (approximate)."
    assert (stored.status_code, stored.json()["warnings"]) == (201, [{"field": "kql", "message": message}])
    repeated = changeable_service.create_client("editor@t").put(
        "/oi-api/warm-queries/periods-noted", json=stored.json()
    )
    assert (repeated.status_code, len(repeated.json()["warnings"])) == (200, 1)
    exact = save_query(changeable_service, "periods-noted", name="Periods noted", kql="print 1", parameters=[])
    assert (exact.status_code, "warnings" in exact.json()) == (200, False)
