"""Tests of the OpenAPI document: validity, filtering by access rights, and examples."""

import re
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from openapi_spec_validator import validate
from referencing import Registry
from referencing.jsonschema import DRAFT202012

from functions import GROUPS
from shared.auth.rights import AccessRight
from shared.http.operations import Access, Operation
from shared.openapi.paths import build_path_template
from tests.service.local_service import Service

GUARDED = [one for group in GROUPS for one in group.operations if one.access is Access.TOKEN]


def fetch_document(caller: httpx.Client) -> dict[str, Any]:
    """Return the OpenAPI document that the service serves to a caller."""
    reply = caller.get("/oi-api/openapi")
    assert reply.status_code == 200, reply.text
    document: dict[str, Any] = reply.json()
    return document


def list_operations(document: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    """Return the operations of a document by method and path."""
    return {
        (method.upper(), path): created for path, item in document["paths"].items() for method, created in item.items()
    }


def test_the_openapi_document_is_valid(service: Service) -> None:
    """The document follows the schema of OpenAPI 3.1, and operation ids are unique."""
    document = fetch_document(service.create_client("admin@t"))
    assert document["openapi"].startswith("3.1")
    validate(document)
    names = [created["operationId"] for created in list_operations(document).values()]
    assert len(names) == len(set(names))


def test_the_document_contains_approved_queries(service: Service) -> None:
    """An approved query has a path with parameters and columns in the document; a draft has no path."""
    document = fetch_document(service.create_client("viewer@t"))
    listed = service.create_client("viewer@t").get("/oi-api/warm-queries").json()["warmQueries"]
    for query in listed:
        path = f"/oi-api/warm-queries/{query['lookup']}"
        assert (path in document["paths"]) is (query["approval"] is not None)
        if query["approval"] is not None:
            created = document["paths"][path]["get"]
            names = {parameter["name"] for parameter in created["parameters"]}
            assert names == {
                "Oi-Version",
                "If-None-Match",
                "timeRange",
                "from",
                "to",
                "limit",
                "format",
                *(f"p.{one['name']}" for one in query["parameters"]),
            }


def test_the_document_contains_published_tables(service: Service) -> None:
    """A published table has paths for its exposed operations; a table that is missing or not published has none."""
    mine = {
        key: created
        for key, created in list_operations(fetch_document(service.create_client("admin@t"))).items()
        if "/tables/" in key[1]
    }
    orders = "/oi-api/data-stores/mes/databases/orders/tables"
    whole = [("GET", ""), ("POST", ""), ("GET", "/{documentId}"), ("PUT", "/{documentId}"), ("DELETE", "/{documentId}")]
    assert set(mine) == {
        *((method, f"{orders}/{table}{rest}") for table in ("workorders", "nested", "notes") for method, rest in whole),
        ("GET", f"{orders}/recipes"),
        ("GET", f"{orders}/recipes/{{documentId}}"),
        ("GET", f"{orders}/catalogue"),
        ("POST", f"{orders}/inbox"),
        ("GET", "/oi-api/data-stores/lab/databases/samples/tables/results"),
        ("GET", "/oi-api/data-stores/lab/databases/samples/tables/results/{documentId}"),
    }
    required = {
        key: [one["name"] for one in created["parameters"] if one["required"]]
        for key, created in mine.items()
        if "documentId" in key[1]
    }
    assert required["GET", f"{orders}/workorders/{{documentId}}"] == ["documentId", "partitionKey"]
    assert required["PUT", f"{orders}/workorders/{{documentId}}"] == ["documentId"]
    assert required["DELETE", f"{orders}/notes/{{documentId}}"] == ["documentId"]
    paths = {path.split("/")[7]: created["x-partition-key-path"] for (_, path), created in mine.items()}
    assert (paths["workorders"], paths["recipes"]) == ("/line", "/id")
    reader = service.create_client("admin@t", scopes="Workspace.Document.Read")
    assert {method for method, path in list_operations(fetch_document(reader)) if "/tables/" in path} == {"GET"}


def test_request_examples_of_tables_are_accepted(service: Service) -> None:
    """The request example of a table's POST can be stored, and the reply equals the example reply."""
    caller = service.create_client("admin@t")
    for (method, path), created in list_operations(fetch_document(caller)).items():
        if method == "POST" and "/tables/" in path:
            body = created["requestBody"]["content"]["application/json"]["example"]
            reply = caller.post(path, json=body)
            assert reply.status_code in (201, 409), reply.text
            shown = created["responses"]["201"]["content"]["application/json"]["example"]
            assert reply.status_code == 409 or reply.json() == shown


def test_the_document_describes_conditional_requests(service: Service) -> None:
    """The document describes the headers, the ETag and the 412 reply of each conditional operation."""
    mine = list_operations(fetch_document(service.create_client("admin@t")))
    query, document = "/oi-api/warm-queries/{lookup}", "/tables/workorders/{documentId}"
    document = next(path for _, path in mine if path.endswith(document))
    for method, path in (("PUT", query), ("DELETE", query), ("POST", f"{query}/approve"), ("DELETE", document)):
        created = mine[method, path]
        headers = {one["name"] for one in created["parameters"] if one["in"] == "header"}
        assert headers >= {"If-Match", "If-None-Match", "Oi-Version"}
        assert "412" in created["responses"]
    for method, path in (("PUT", query), ("POST", f"{query}/approve"), ("GET", document), ("PUT", document)):
        assert "ETag" in mine[method, path]["responses"]["200"]["headers"]


def test_every_path_parameter_has_an_example(service: Service) -> None:
    """Every path parameter has an example."""
    for path, operation in list_operations(fetch_document(service.create_client("admin@t"))).items():
        for parameter in operation["parameters"]:
            if parameter["in"] == "path":
                assert parameter["example"], (path, parameter["name"])


def test_every_json_body_has_an_example(service: Service) -> None:
    """Each request body, in each media type, and each JSON reply body has an example."""
    for key, created in list_operations(fetch_document(service.create_client("admin@t"))).items():
        for reply in created["responses"].values():
            content = reply.get("content", {})
            if "application/json" in content:
                assert "example" in content["application/json"], key
        for media_type, body in created.get("requestBody", {}).get("content", {}).items():
            assert "example" in body, (key, media_type)


def test_every_example_is_valid(service: Service) -> None:
    """Each example matches its schema, including formats."""
    document = fetch_document(service.create_client("admin@t"))
    resource = DRAFT202012.create_resource(document)
    registry = Registry().with_resource("urn:document", resource)
    shown = 0
    for content in _iterate_contents(document):
        if "example" in content:
            schema = _resolve_references(content["schema"])
            checker = Draft202012Validator(schema, registry=registry, format_checker=FormatChecker())
            assert [error.message for error in checker.iter_errors(content["example"])] == [], content
            shown += 1
    assert shown > 50


@pytest.mark.parametrize("right", [None, *AccessRight])
def test_the_document_contains_exactly_the_permitted_operations(service: Service, right: AccessRight | None) -> None:
    """For a token with one access right, the document lists exactly the operations that do not return 403."""
    granted = right or AccessRight.CATALOG_READ
    caller = service.create_client("admin@t", scopes=str(granted))
    shown = list_operations(fetch_document(caller))
    for operation in GUARDED:
        if {granted}.issuperset(operation.rights):
            assert not operation.docs.listed or (operation.method, build_path_template(operation)) in shown
        else:
            assert (operation.method, build_path_template(operation)) not in shown
            assert _call_operation(caller, operation).status_code == 403, operation.name


def test_an_unchanged_openapi_document_gets_304(service: Service) -> None:
    """The OpenAPI document has an ETag; a caller that sends this ETag again gets 304."""
    caller = service.create_client("viewer@t")
    first = caller.get("/oi-api/openapi")
    again = caller.get("/oi-api/openapi", headers={"If-None-Match": first.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_explorer_is_public_and_loads_only_files_of_its_origin(service: Service) -> None:
    """The API Explorer needs no token, and its policy allows only the origin of the service."""
    anonymous = service.create_anonymous_client()
    page = anonymous.get("/oi-api/explorer")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    policy = dict(part.strip().split(" ", 1) for part in page.headers["content-security-policy"].split(";"))
    assert (policy["default-src"], policy["script-src"], policy["connect-src"]) == ("'none'", "'self'", "'self'")
    for outside in ("..%2f..%2fpyproject.toml", "..%2findex.html", "nothing.js"):
        assert anonymous.get(f"/oi-api/explorer/{outside}").status_code == 404


def _iterate_contents(part: Any) -> Iterator[dict[str, Any]]:
    """Yield the OpenAPI Media Type Objects in a part of a document."""
    if isinstance(part, dict):
        for key, value in part.items():
            if key == "content" and isinstance(value, dict):
                yield from value.values()
            yield from _iterate_contents(value)
    elif isinstance(part, list):
        for each in part:
            yield from _iterate_contents(each)


def _resolve_references(schema: Any) -> Any:
    """Return a schema in which each `$ref` points into the whole document."""
    if isinstance(schema, dict):
        return {
            key: f"urn:document{value}" if key == "$ref" else _resolve_references(value)
            for key, value in schema.items()
        }
    return [_resolve_references(each) for each in schema] if isinstance(schema, list) else schema


def _call_operation(caller: httpx.Client, operation: Operation) -> httpx.Response:
    return caller.request(operation.method, re.sub(r"\{\*?[^{}]+\}", "some", f"/{operation.route}"))
