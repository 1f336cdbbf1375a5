"""Tests of the GraphQL interface over HTTP."""

from typing import Any

import httpx
import pytest

from tests.service.local_service import Service, check_problem

ADDRESS = "/v1/plant-t/graphql"


def execute_request(caller: httpx.Client, query: str, **variables: Any) -> dict[str, Any]:
    """Execute a GraphQL request that returns 200, and return the JSON reply."""
    reply = caller.post(ADDRESS, json={"query": query, "variables": variables})
    assert reply.status_code == 200, reply.text
    body: dict[str, Any] = reply.json()
    return body


def query_data(caller: httpx.Client, query: str, **variables: Any) -> dict[str, Any]:
    """Return the data of a reply without errors."""
    body = execute_request(caller, query, **variables)
    assert "errors" not in body, body
    found: dict[str, Any] = body["data"]
    return found


def list_error_codes(body: dict[str, Any]) -> list[str]:
    """Return the error codes of a GraphQL reply; fail if an error has no message or path."""
    assert all(error["message"] and isinstance(error["path"], list) for error in body["errors"])
    return [error["extensions"]["code"] for error in body["errors"]]


@pytest.fixture(scope="module")
def reader(service: Service) -> httpx.Client:
    """Return a client that may read the catalog and execute queries."""
    return service.create_client("viewer@t")


def test_the_graphql_route_accepts_api_keys_and_tokens(service: Service) -> None:
    """The GraphQL route accepts API keys and tokens; a missing or invalid credential gets 401 with UNAUTHORIZED."""
    for bearer in (service.read_api_key("viewer@t"),):
        assert query_data(service.create_anonymous_client(bearer=bearer), "{ workspace { id } }") == {
            "workspace": {"id": "plant-t"}
        }
    assert query_data(service.create_client("viewer@t"), "{ workspace { id } }") == {"workspace": {"id": "plant-t"}}
    for caller in (service.create_anonymous_client(), service.create_anonymous_client(bearer="oik_nonsense")):
        reply = caller.post(ADDRESS, json={"query": "{ workspace { id } }"})
        assert (reply.status_code, list_error_codes(reply.json()), reply.json()["errors"][0]["path"]) == (
            401,
            ["UNAUTHORIZED"],
            [],
        )
        assert reply.headers["www-authenticate"] == "Bearer"


def test_graphql_of_another_workspace_is_forbidden(reader: httpx.Client) -> None:
    """A URL with the id of another workspace than the deployment's is forbidden."""
    reply = reader.post("/v1/elsewhere/graphql", json={"query": "{ workspace { id } }"})
    assert (reply.status_code, list_error_codes(reply.json())) == (403, ["FORBIDDEN"])


def test_the_graphql_workspace_has_statistics(reader: httpx.Client) -> None:
    """The GraphQL field `workspace` has the numbers of connections, surfaces and queries."""
    found = query_data(
        reader,
        "{ workspace { name stats { connectionCount surfaceCount queryCount } } "
        "connections { totalCount } surfaces { totalCount } queries { totalCount } }",
    )
    assert found["workspace"]["stats"] == {
        "connectionCount": found["connections"]["totalCount"],
        "surfaceCount": found["surfaces"]["totalCount"],
        "queryCount": found["queries"]["totalCount"],
    }


def test_graphql_finds_queries_by_name_or_lookup(reader: httpx.Client) -> None:
    """A query is found by its name or lookup (id in URLs); for an unknown item the result is null."""
    listed = reader.get("/oi-api/warm-queries").json()["warmQueries"][0]
    query = "query($n: String!) { query(name: $n) { name kql surface { id queries { name } } } }"
    by_name = query_data(reader, query, n=listed["name"])["query"]
    assert by_name["kql"] == listed["kql"]
    assert by_name["surface"]["id"] == listed["surface"]
    assert {"name": listed["name"]} in by_name["surface"]["queries"]
    assert query_data(reader, query, n=listed["lookup"])["query"] == by_name
    nothing = '{ query(name: "none") { name } connection(id: "none") { id } surface(id: "none") { id } }'
    assert query_data(reader, nothing) == {"query": None, "connection": None, "surface": None}


def test_queries_show_lookup_parameters_and_approval(reader: httpx.Client) -> None:
    """A query has its lookup (id in URLs), its parameters and its approval, which is null for a draft."""
    query = (
        "query($n: String!) { query(name: $n) { lookup parameters { name type required default } "
        "approval { approvedBy approvedAt signature { userId } } } }"
    )
    assert query_data(reader, query, n="newest")["query"] == {
        "lookup": "newest",
        "parameters": [
            {"name": "connection", "type": "string", "required": True, "default": None},
            {"name": "above", "type": "real", "required": False, "default": -1000000},
        ],
        "approval": {"approvedBy": "admin@t", "approvedAt": "2026-01-05T08:00:00.000000Z", "signature": None},
    }
    assert query_data(reader, query, n="draft")["query"] == {"lookup": "draft", "parameters": [], "approval": None}


def test_paging_by_cursor_and_by_offset_return_the_same_items(reader: httpx.Client) -> None:
    """Paging by cursor and paging by offset return the same connections in the same order, each once."""
    whole = [node["id"] for node in query_data(reader, "{ connections { nodes { id } } }")["connections"]["nodes"]]
    query = "query($a: String) { connections(first: 1, after: $a) { nodes { id } pageInfo { hasNextPage endCursor } } }"
    seen, after, more = [], None, True
    while more:
        page = query_data(reader, query, a=after)["connections"]
        seen += [node["id"] for node in page["nodes"]]
        after, more = page["pageInfo"]["endCursor"], page["pageInfo"]["hasNextPage"]
    offset = "query($o: Int!) { connections(limit: 1, offset: $o) { nodes { id } } }"
    by_offset = [
        node["id"] for o in range(len(whole)) for node in query_data(reader, offset, o=o)["connections"]["nodes"]
    ]
    assert whole == seen == by_offset


def test_a_graphql_cursor_belongs_to_its_list(reader: httpx.Client) -> None:
    """A cursor of another list gets VALIDATION_ERROR; a filter does not make another list."""
    names = ("queries", "connections", "surfaces")
    pages = query_data(reader, "{" + " ".join(f"{name}(first: 1) {{ edges {{ cursor }} }}" for name in names) + "}")
    for name in names:
        cursor = pages[name]["edges"][0]["cursor"]
        for other in names:
            query = f'{{ {other}(after: "{cursor}") {{ totalCount }} }}'
            if other == name:
                assert query_data(reader, query)[name]["totalCount"] > 0
            else:
                assert list_error_codes(execute_request(reader, query)) == ["VALIDATION_ERROR"], (name, other)
    filtered = f'{{ queries(after: "{pages["queries"]["edges"][0]["cursor"]}", surface: "hall") {{ totalCount }} }}'
    assert query_data(reader, filtered)["queries"]["totalCount"] > 0


def test_a_graphql_page_of_zero_items_has_no_cursor(reader: httpx.Client) -> None:
    """A page with `first: 0` has `hasNextPage: true`, but no cursor."""
    parameters = "{ connections(first: 0) { nodes { id } pageInfo { hasNextPage endCursor } } }"
    page = query_data(reader, parameters)["connections"]
    assert page == {"nodes": [], "pageInfo": {"hasNextPage": True, "endCursor": None}}


@pytest.mark.parametrize(
    "query",
    [
        "{ nope }",
        "{",
        "{ query(name: 5) { name } }",
        "{ queries(first: 1, limit: 1) { totalCount } }",
        "{ queries(first: 501) { totalCount } }",
        "{ queries(limit: -1) { totalCount } }",
        '{ queries(after: "nonsense") { totalCount } }',
        "{ connections(status: BROKEN) { totalCount } }",
        "{ " + " ".join(f"a{n}: workspace {{ id }}" for n in range(51)) + " }",
        "{ queries(first: 500) { nodes { surface { connections { id name } } } } }",
        "{ surfaces(first: 1) { nodes" + " { connections { surfaces" * 6 + " { id }" + " } }" * 6 + " } }",
        "{ workspace { " + "id " * 5001 + "} }",
    ],
)
def test_invalid_graphql_documents_get_validation_error(reader: httpx.Client, query: str) -> None:
    """A GraphQL document gets VALIDATION_ERROR if it cannot be parsed, does not match the schema or exceeds a limit."""
    assert set(list_error_codes(execute_request(reader, query))) == {"VALIDATION_ERROR"}


SIZED = "query($n: Int) { connections(first: $n) { totalCount } }"
GIVEN = 'mutation($p: JSON) { executeQuery(name: "none", parameters: $p) { rows } }'


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, {"query": SIZED, "variables": {"n": 2**31}}),
        (200, {"query": SIZED, "variables": {"n": 10**30}}),
        (200, {"query": SIZED, "variables": {"n": True}}),
        (200, {"query": "query($n: String!) { query(name: $n) { name } }", "variables": {"n": None}}),
        (200, {"query": "query($n: String!) { query(name: $n) { name } }"}),
        (200, {"query": 'query($n: String = "x") { query(name: $n) { name } }', "variables": {"n": None}}),
        (200, {"query": "query($b: Boolean = true) { workspace { id @skip(if: $b) } }", "variables": {"b": None}}),
        (200, {"query": "query A { workspace { id } } query B { workspace { id } }"}),
        (200, {"query": "query A { workspace { id } } query A { workspace { name } }"}),
        (200, {"query": "query A { workspace { id } }", "operationName": "B"}),
        (200, {"query": "subscription { workspace { id } }"}),
        (200, {"query": "fragment F on Query { workspace { id } }"}),
        (200, {"query": GIVEN.replace("$p: JSON", f"$p: JSON = {'9' * 4900}")}),
        (200, {"query": GIVEN.replace("($p: JSON)", "").replace("$p", "9" * 4900)}),
        (200, {"query": GIVEN.replace("($p: JSON)", "").replace("$p", "1e999")}),
        (200, {"query": '{ query(name: "\\ud800") { name } }'}),
        (400, {"query": "{ workspace { id } }", "extensions": []}),
        (400, {"query": "  "}),
        (400, [{"query": "{ workspace { id } }"}]),
    ],
)
def test_hostile_graphql_requests_get_validation_error(reader: httpx.Client, status: int, body: Any) -> None:
    """Out-of-range values, unknown operations, batches and similar requests get VALIDATION_ERROR with a path."""
    reply = reader.post(ADDRESS, json=body)
    assert (reply.status_code, set(list_error_codes(reply.json()))) == (status, {"VALIDATION_ERROR"}), reply.text


def test_null_arguments_of_graphql_count_as_missing(reader: httpx.Client) -> None:
    """A null argument in a GraphQL document has the same effect as a missing argument."""
    whole = query_data(reader, "{ connections { totalCount } queries { totalCount } surfaces { totalCount } }")
    nothing = "first: null, after: null, limit: null, offset: null"
    asked_with_null = (
        f"{{ connections(status: null, {nothing}) {{ totalCount }} queries(surface: null, {nothing}) {{ totalCount }} "
        f"surfaces({nothing}) {{ totalCount }} }}"
    )
    assert query_data(reader, asked_with_null) == whole


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("{ __typename }", {"__typename": "Query"}),
        ("mutation { __typename }", {"__typename": "Mutation"}),
        ("{ workspace @skip(if: true) { id } }", {}),
        ("query($b: Boolean = false) { workspace @include(if: $b) { id } }", {}),
        ('{ query(name: "\u2603 \U0001f600") { name } }', {"query": None}),
        ("{ workspace {" + " id" * 4900 + "} }", {"workspace": {"id": "plant-t"}}),
    ],
)
def test_documents_with_directives_typename_or_many_fields_are_executed(
    reader: httpx.Client, query: str, expected: dict[str, Any]
) -> None:
    """Valid documents with directives, `__typename`, non-ASCII names or thousands of fields are executed."""
    assert query_data(reader, query) == expected


def test_the_error_names_the_exceeded_cost_limit(reader: httpx.Client) -> None:
    """The reply to a GraphQL document that exceeds a cost limit names the limit."""
    costly = "{ queries(first: 500) { nodes { surface { connections { id name } } } } }"
    assert "10000" in execute_request(reader, costly)["errors"][0]["message"]


def test_a_missing_right_is_an_error_of_the_graphql_field(service: Service) -> None:
    """If an access right is missing, the status is 200, and the field that requires it has the error FORBIDDEN."""
    caller = service.create_client("viewer@t", scopes="Workspace.WarmQuery.Execute")
    body = execute_request(caller, '{ connection(id: "x") { id } }')
    assert (list_error_codes(body), body["errors"][0]["path"], body["data"]) == (
        ["FORBIDDEN"],
        ["connection"],
        {"connection": None},
    )
    refused = service.create_client("viewer@t", scopes="Workspace.Catalog.Read")
    assert list_error_codes(execute_request(refused, 'mutation { executeQuery(name: "x") { rows } }')) == ["FORBIDDEN"]


def test_execute_query_runs_approved_queries(service: Service) -> None:
    """`executeQuery` returns the result of an approved query.

    A draft is FORBIDDEN, and an unknown query is not found.
    """
    editor, admin, viewer = (service.create_client(f"{who}@t") for who in ("editor", "admin", "viewer"))
    body = {
        "name": "Asked by GraphQL",
        "surface": "hall",
        "kql": "print answer = n * 2, at = datetime(2026-01-05)",
        "parameters": [{"name": "n", "type": "long"}],
    }
    assert editor.put("/oi-api/warm-queries/by-graphql", json=body).status_code in {200, 201}
    run = (
        'mutation($p: JSON) { executeQuery(name: "Asked by GraphQL", parameters: $p) { rows columns { name type } '
        "meta { rowCount executionTime truncated } governance { queryApprovedBy queryApprovedAt } } }"
    )
    assert list_error_codes(execute_request(viewer, run, p={"n": 21})) == ["FORBIDDEN"]
    assert admin.post("/oi-api/warm-queries/by-graphql/approve").status_code == 200
    created = query_data(viewer, run, p={"n": 21})["executeQuery"]
    assert created["rows"][0]["answer"] == 42
    assert created["columns"] == [{"name": "answer", "type": "long"}, {"name": "at", "type": "datetime"}]
    assert (created["meta"]["rowCount"], created["meta"]["truncated"]) == (1, False)
    assert created["governance"]["queryApprovedBy"] == "admin@t"
    largest = run.replace("$p)", "$p, limit: 10000)")
    assert query_data(viewer, largest, p={"n": 21})["executeQuery"]["rows"] == created["rows"]
    for wrong in ({}, {"n": "x"}, {"n": 1, "m": 2}, [1], "n"):
        assert list_error_codes(execute_request(viewer, run, p=wrong)) == ["VALIDATION_ERROR"], wrong
    unknown = 'mutation { executeQuery(name: "none") { rows } }'
    assert list_error_codes(execute_request(viewer, unknown)) == ["RESOURCE_NOT_FOUND"]
    assert editor.delete("/oi-api/warm-queries/by-graphql").status_code == 204


def test_a_graphql_get_request_executes_only_queries(reader: httpx.Client) -> None:
    """A GET request can execute a GraphQL query; a mutation is rejected with 405 and Allow: POST."""
    assert reader.get(ADDRESS, params={"query": "{ workspace { id } }"}).json()["data"]["workspace"]["id"] == "plant-t"
    refused = reader.get(ADDRESS, params={"query": 'mutation { executeQuery(name: "x") { rows } }'})
    assert (refused.status_code, refused.headers["allow"]) == (405, "POST")
    assert refused.json()["errors"]


@pytest.mark.parametrize(
    ("body", "content_type", "status"),
    [
        (b"no json", "application/json", 400),
        (b"[]", "application/json", 400),
        (b"{}", "application/json", 400),
        (b'{"query": 5}', "application/json", 400),
        (b'{"query": "{ a }", "query": "{ b }"}', "application/json", 400),
        (b'{"query": "{ workspace { id } }", "variables": []}', "application/json", 400),
        (b"{ workspace { id } }", "application/graphql", 400),
        (b'{"query": "' + b" " * 1_048_576 + b'"}', "application/json", 413),
    ],
)
def test_replies_to_malformed_graphql_requests_have_an_errors_array(
    reader: httpx.Client, body: bytes, content_type: str, status: int
) -> None:
    """The reply to a malformed GraphQL request has an error status and an `errors` array."""
    reply = reader.post(ADDRESS, content=body, headers={"Content-Type": content_type})
    assert (reply.status_code, list_error_codes(reply.json())) == (status, ["VALIDATION_ERROR"]), reply.text


def test_graphql_media_type_has_an_error_status(reader: httpx.Client) -> None:
    """If a client accepts application/graphql-response+json, an invalid document gets 400 in this media type."""
    headers = {"Accept": "application/graphql-response+json"}
    good = reader.post(ADDRESS, json={"query": "{ workspace { id } }"}, headers=headers)
    bad = reader.post(ADDRESS, json={"query": "{ nope }"}, headers=headers)
    assert (good.status_code, bad.status_code) == (200, 400)
    assert good.headers["content-type"].startswith("application/graphql-response+json")
    assert bad.headers["content-type"].startswith("application/graphql-response+json")


def test_graphql_errors_have_the_preferred_media_type(service: Service) -> None:
    """If the client prefers application/graphql-response+json, request errors have this media type."""
    newer, query = {"Accept": "application/graphql-response+json"}, {"query": "{ workspace { id } }"}
    known, nobody = service.create_client("viewer@t"), service.create_anonymous_client()
    refusals = [
        (400, known.post(ADDRESS, content=b"no json", headers={**newer, "Content-Type": "application/json"})),
        (401, nobody.post(ADDRESS, json=query, headers=newer)),
        (403, known.post("/v1/other/graphql", json=query, headers=newer)),
        (405, known.get(ADDRESS, params={"query": 'mutation { executeQuery(name: "x") { rows } }'}, headers=newer)),
        (405, known.delete(ADDRESS, headers=newer)),
        (413, known.post(ADDRESS, json={"query": " " * 1_048_576}, headers=newer)),
        (415, known.post(ADDRESS, content=b"{}", headers={**newer, "Content-Encoding": "gzip"})),
    ]
    for status, reply in refusals:
        assert (reply.status_code, reply.headers["content-type"].partition(";")[0]) == (status, newer["Accept"])
        [error] = reply.json()["errors"]
        assert error["extensions"]["code"]
    assert list_error_codes(refusals[6][1].json()) == ["VALIDATION_ERROR"]
    assert refusals[1][1].headers["www-authenticate"] == "Bearer"
    assert refusals[4][1].headers["allow"] == "GET, HEAD, POST"
    assert nobody.post(ADDRESS, json=query).headers["content-type"].startswith("application/json")
    check_problem(known.delete(ADDRESS), 405, "METHOD_NOT_ALLOWED")


def test_introspection_shows_the_schema(reader: httpx.Client) -> None:
    """The standard introspection query returns the schema."""
    from graphql import build_client_schema, get_introspection_query, print_type  # noqa: PLC0415

    schema = build_client_schema(query_data(reader, get_introspection_query()))  # type: ignore[arg-type]  # as it came
    connection = schema.type_map["Connection"]
    assert "stats: ConnectionStats\n" in print_type(connection)
