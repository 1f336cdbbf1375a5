"""Tests of how requests of the Functions host are converted, and of the HTTP triggers."""

from functools import cache
from typing import Any
from urllib.parse import quote

import azure.functions as func
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from functions import GROUPS
from functions.http_blueprint import _to_request, build_catch_all_blueprint, build_http_blueprint
from local.host.worker import LoadedFunction
from local.http_server.routes import RouteTable, decode_path, encode_path
from shared.auth.principals import CredentialKind, Principal
from shared.data_stores.document_rules import check_document_id
from shared.errors import WorkspaceError
from shared.http.messages import Reply
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline
from shared.http.router import Match, Router, UnmatchedRequestError
from shared.validation.names import find_id_error


@pytest.mark.parametrize(
    ("url", "host", "path", "query"),
    [
        ("http://h:1/a%2Fb/?c=%20&d", "h:1", "/a%2Fb/", "c=%20&d"),
        ("http://h/", "h", "/", ""),
        ("http://h", "h", "/", ""),
        ("http://h?a/b", "h", "/", "a/b"),
        ("http://h//a", "h", "//a", ""),
        ("https://other/a?b", "h", "/a", "b"),
        ("https://hh/a", "h", "/a", ""),
        ("http://h/a", "", "/a", ""),
        ("http://h/a#f?x", "h", "/a", ""),
        ("http://h/keys?x/healthz", "h/keys?x", "/healthz", ""),
        ("http://h?x/healthz", "h?x", "/healthz", ""),
        ("http://h#/healthz", "h#", "/healthz", ""),
        ("http://h/a://b/c", "h", "/a://b/c", ""),
    ],
)
def test_path_and_query_of_a_request_stay_percent_encoded(url: str, host: str, path: str, query: str) -> None:
    """Path and query stay percent-encoded, and a Host header does not change them."""
    request = _to_request(func.HttpRequest("get", url, headers={"Host": host}, body=b""), "{*path}", {})
    assert (request.method, request.path, request.query) == ("GET", path, query)


@pytest.mark.parametrize("body", [b"", b"{}"])
async def test_a_chunked_body_that_the_host_dropped_is_not_an_empty_body(body: bytes) -> None:
    """A request gets 411 before its operation runs if the host received the body in chunks and dropped it."""
    group = Group("test")

    @group.endpoint("POST", "things", access=Access.PUBLIC)
    async def post_thing(_: Call) -> Reply:
        """Reply."""
        return Reply(204)

    sent = func.HttpRequest("POST", "http://h/things", headers={"Transfer-Encoding": "chunked"}, body=body)
    pipeline = RequestPipeline(group.operations, forbid_authentication, forbid_features)
    reply = await pipeline.serve(_to_request(sent, "things", {}))
    assert (reply.status, reply.error_code) == ((204, "") if body else (411, "LENGTH_REQUIRED"))


async def forbid_authentication(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Fail, because the operation is public."""
    raise AssertionError(f"a public operation authenticated {authorization} as one of {accepted}")


async def forbid_features(feature: str) -> None:
    """Fail, because the operation needs no feature."""
    raise AssertionError(f"the operation needs no feature such as {feature}")


def list_triggers() -> list[dict[str, Any]]:
    app = func.FunctionApp()
    for blueprint in (build_http_blueprint(GROUPS), build_catch_all_blueprint()):
        app.register_functions(blueprint)
    bindings = [binding for function in app.get_functions() for binding in function.get_bindings_dict()["bindings"]]
    return [binding for binding in bindings if binding["type"] == "httpTrigger"]


def test_every_route_accepts_all_methods() -> None:
    """No HTTP trigger lists methods, so that the request pipeline replies to unsupported methods."""
    triggers = list_triggers()
    assert triggers
    assert [trigger["route"] for trigger in triggers if trigger.get("methods")] == []


ROUTER = Router(endpoint for group in GROUPS for endpoint in group.endpoints)


@cache
def build_route_table() -> RouteTable:
    routes = RouteTable()
    for trigger in list_triggers():
        routes.add(LoadedFunction(trigger["route"], trigger["route"], trigger, None), "")
    return routes


def pass_through_host(method: str, raw_path: str) -> Match:
    """Return the operation that the app finds for the request that the host makes of a path."""
    path = decode_path(raw_path)
    found = build_route_table().match(path, method)
    assert found is not None
    url = f"http://h{encode_path(path)}"
    received = func.HttpRequest(method, url, headers={"host": "h"}, route_params=found.parameters, body=b"")
    return ROUTER.match(method, _to_request(received, found.function.name, {}).path)


IDS = st.text(min_size=1) | st.text("%2fF05+ äa.", min_size=1)
DOCUMENT = "/oi-api/data-stores/mes/databases/orders/tables/workorders"


@given(IDS)
def test_every_document_id_reaches_the_app(document_id: str) -> None:
    """A document id that a client percent-encodes reaches the app unchanged."""
    try:
        check_document_id(document_id, "id")
    except WorkspaceError:
        reject()
    match = pass_through_host("DELETE", f"{DOCUMENT}/{quote(document_id, safe='')}")
    assert match.path == {"store": "mes", "database": "orders", "table": "workorders", "documentId": document_id}


@given(IDS)
def test_every_member_id_reaches_the_app(member_id: str) -> None:
    """A member id that a client percent-encodes reaches the app unchanged, also if it contains a slash."""
    assume(find_id_error(member_id) is None)
    assert pass_through_host("PUT", f"/oi-api/team/{quote(member_id, safe='')}").path == {"id": member_id}


@pytest.mark.parametrize(
    ("path", "route", "parameters"),
    [
        ("/oi-api/warm-queries/hall/rows.v1", "oi-api/warm-queries/{*lookup}", {"lookup": "hall/rows.v1"}),
        ("/oi-api/warm-queries/hall%2Frows", "oi-api/warm-queries/{*lookup}", {"lookup": "hall/rows"}),
        ("/oi-api/warm-queries/a%2562", "oi-api/warm-queries/{*lookup}", {"lookup": "a%62"}),
        ("/oi-api/warm-queries/hall/rows/", "oi-api/warm-queries/{*lookup}", {"lookup": "hall/rows/"}),
        ("/oi-api/%74eam/x", "oi-api/team/{id}", {"id": "x"}),
        ("/", "", {}),
    ],
)
def test_the_rest_of_a_path_reaches_the_app(path: str, route: str, parameters: dict[str, str]) -> None:
    """Names with slashes reach the app unchanged, and a literal segment may be encoded."""
    match = pass_through_host("GET", path)
    assert (match.endpoint.route, match.path) == (route, parameters)


@pytest.mark.parametrize("path", ["/oi-api/%2574eam/x", "/oi-api%2Fteam", "/oi-api/team/x/", "/OI-API/team/x"])
def test_another_spelling_of_a_route_is_unknown(path: str) -> None:
    """A route that is encoded twice, or that differs in letter case or by a final slash, is unknown."""
    with pytest.raises(UnmatchedRequestError):
        pass_through_host("GET", path)
