"""Tests of how requests of the Functions host are converted, and of the HTTP triggers."""

import azure.functions as func
import pytest

from functions import GROUPS
from functions.http_blueprint import _to_request, build_catch_all_blueprint, build_http_blueprint
from shared.auth.principals import CredentialKind, Principal
from shared.http.messages import Reply
from shared.http.operations import Access, Call, Group
from shared.http.pipeline import RequestPipeline


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
    request = _to_request(func.HttpRequest("get", url, headers={"Host": host}, body=b""), {})
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
    reply = await pipeline.serve(_to_request(sent, {}))
    assert (reply.status, reply.error_code) == ((204, "") if body else (411, "LENGTH_REQUIRED"))


async def forbid_authentication(authorization: str, accepted: frozenset[CredentialKind]) -> Principal:
    """Fail, because the operation is public."""
    raise AssertionError(f"a public operation authenticated {authorization} as one of {accepted}")


async def forbid_features(feature: str) -> None:
    """Fail, because the operation needs no feature."""
    raise AssertionError(f"the operation needs no feature such as {feature}")


def test_every_route_accepts_all_methods() -> None:
    """No HTTP trigger lists methods, so that the request pipeline replies to unsupported methods."""
    app = func.FunctionApp()
    for blueprint in (build_http_blueprint(GROUPS), build_catch_all_blueprint()):
        app.register_functions(blueprint)
    bindings = [binding for function in app.get_functions() for binding in function.get_bindings_dict()["bindings"]]
    triggers = [binding for binding in bindings if binding["type"] == "httpTrigger"]
    assert triggers
    assert [trigger["route"] for trigger in triggers if trigger.get("methods")] == []
