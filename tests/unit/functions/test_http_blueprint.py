"""Tests of how requests of the Functions host are converted, and of the HTTP triggers."""

import re
from collections.abc import Callable
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

import azure.functions as func
import pytest
from hypothesis import assume, given, reject
from hypothesis import strategies as st

from functions import GROUPS
from functions.http_blueprint import _to_request, build_catch_all_blueprint, build_http_blueprint
from local.host.worker import LoadedFunction
from local.http_server.routes import RouteTable
from shared.auth.principals import CredentialKind, Principal
from shared.data_stores.document_rules import require_valid_document_id
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


def pass_through_local_host(method: str, raw_path: str) -> Match:
    """Return the operation that the app finds for the request that the local host makes of a path."""
    return find_operation(method, raw_path, raw_path)


def pass_through_azure(method: str, raw_path: str) -> Match:
    """Return the operation that the app finds for the request that the Functions host on Azure makes of a path."""
    path = decode_as_kestrel(raw_path)
    return find_operation(method, quote(path), encode_as_azure(path))


def find_operation(method: str, routed_path: str, path_in_url: str) -> Match:
    found = build_route_table().match(routed_path, method)
    assert found is not None
    url = f"http://h{path_in_url}"
    received = func.HttpRequest(method, url, headers={"host": "h"}, route_params=found.parameters, body=b"")
    return ROUTER.match(method, _to_request(received, found.function.name, {}).path)


def decode_as_kestrel(raw_path: str) -> str:
    """Decode a path once as Kestrel's ``UrlDecoder`` does: an escaped slash and bytes that are not UTF-8 stay."""
    decoded = unquote(re.sub("%(2[Ff])", r"%25\1", raw_path), errors="surrogateescape")
    return re.sub("[\udc80-\udcff]", lambda byte: f"%{ord(byte[0]) - 0xDC00:02X}", decoded)


def encode_as_azure(path: str) -> str:
    """Encode a decoded path as ASP.NET Core's ``PathString.ToUriComponent`` does: escapes are not encoded again."""
    parts = re.split("(%[0-9A-Fa-f]{2})", path)
    parts[::2] = [quote(part, "/!$&'()*+,:;=@") for part in parts[::2]]
    return "".join(parts)


@pytest.mark.parametrize(
    ("raw_path", "path", "in_url"),
    [
        ("/a%20b", "/a b", "/a%20b"),
        ("/a%2520b", "/a%20b", "/a%20b"),
        ("/a%2Fb", "/a%2Fb", "/a%2Fb"),
        ("/a%252fb", "/a%2fb", "/a%2fb"),
        ("/50%25", "/50%", "/50%25"),
        ("/%25zz%25E4", "/%zz%E4", "/%25zz%E4"),
        ("/%C3%BC%22%5C%ff", '/ü"\\%FF', "/%C3%BC%22%5C%FF"),
        ("/a+b:c@d;e=f,g!h$i&j'k(l)m*n~o", "/a+b:c@d;e=f,g!h$i&j'k(l)m*n~o", "/a+b:c@d;e=f,g!h$i&j'k(l)m*n~o"),
    ],
)
def test_a_path_is_decoded_and_encoded_as_on_azure(raw_path: str, path: str, in_url: str) -> None:
    """On Azure a path is decoded once, except for an escaped slash, and then an escape is not encoded again."""
    assert decode_as_kestrel(raw_path) == path
    assert encode_as_azure(path) == in_url


HOSTS = pytest.mark.parametrize("pass_through_host", [pass_through_local_host, pass_through_azure])
IDS = st.text(min_size=1) | st.text("%2fF05+ äa.", min_size=1)
DOCUMENT = "/oi-api/data-stores/mes/databases/orders/tables/workorders"


@HOSTS
@given(document_id=IDS)
def test_every_document_id_reaches_the_app(pass_through_host: Callable[[str, str], Match], document_id: str) -> None:
    """A document id that a client percent-encodes reaches the app unchanged."""
    try:
        require_valid_document_id(document_id, "id")
    except WorkspaceError:
        reject()
    match = pass_through_host("DELETE", f"{DOCUMENT}/{quote(document_id, safe='')}")
    assert match.path == {"store": "mes", "database": "orders", "table": "workorders", "documentId": document_id}


@HOSTS
@given(member_id=IDS)
def test_every_member_id_reaches_the_app(pass_through_host: Callable[[str, str], Match], member_id: str) -> None:
    """A member id that a client percent-encodes reaches the app unchanged; on Azure, `%2F` in an id becomes a slash."""
    assume(find_id_error(member_id) is None)
    assume(pass_through_host is pass_through_local_host or "%2f" not in member_id.lower())
    assert pass_through_host("PUT", f"/oi-api/team/{quote(member_id, safe='')}").path == {"id": member_id}


@pytest.mark.parametrize(
    ("pass_through_host", "encoded", "member_id", "document_id"),
    [
        (pass_through_local_host, "a%2Fb", "a/b", "a/b"),
        (pass_through_local_host, "a%252Fb", "a%2Fb", "a%2Fb"),
        (pass_through_azure, "a%2Fb", "a/b", "a%2Fb"),
        (pass_through_azure, "a%252Fb", "a/b", "a%2Fb"),
    ],
)
def test_only_azure_mixes_up_escaped_slashes(
    pass_through_host: Callable[[str, str], Match], encoded: str, member_id: str, document_id: str
) -> None:
    """Locally `%2F` is a slash and `%252F` is not; on Azure both are a slash in member ids, but not in document ids."""
    assert pass_through_host("PUT", f"/oi-api/team/{encoded}").path == {"id": member_id}
    parameters = pass_through_host("PUT", f"{DOCUMENT}/{encoded}").path
    assert parameters is not None
    assert parameters["documentId"] == document_id


def test_bytes_that_are_not_utf_8_do_not_change_the_route() -> None:
    """A parameter that is not UTF-8 belongs to its route, but has no value; on Azure its escapes stay in the value."""
    path = "/oi-api/connections/%FF"
    local, azure = pass_through_local_host("GET", path), pass_through_azure("GET", path)
    assert (local.endpoint.route, local.path) == ("oi-api/connections/{lookup}", None)
    assert (azure.endpoint.route, azure.path) == ("oi-api/connections/{lookup}", {"lookup": "%FF"})


@HOSTS
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
def test_the_rest_of_a_path_reaches_the_app(
    pass_through_host: Callable[[str, str], Match], path: str, route: str, parameters: dict[str, str]
) -> None:
    """Names with slashes reach the app unchanged, and a literal segment may be encoded."""
    match = pass_through_host("GET", path)
    assert (match.endpoint.route, match.path) == (route, parameters)


@HOSTS
@pytest.mark.parametrize("path", ["/oi-api/%2574eam/x", "/oi-api%2Fteam", "/oi-api/team/x/", "/OI-API/team/x"])
def test_another_spelling_of_a_route_is_unknown(pass_through_host: Callable[[str, str], Match], path: str) -> None:
    """A route that is encoded twice, or that differs in letter case or by a final slash, is unknown."""
    with pytest.raises(UnmatchedRequestError):
        pass_through_host("GET", path)
