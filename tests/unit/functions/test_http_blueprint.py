"""Tests of how requests of the Functions host are converted, and of the HTTP triggers."""

import azure.functions as func
import pytest

from functions import GROUPS
from functions.http_blueprint import _to_request, build_catch_all_blueprint, build_http_blueprint


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


def test_every_route_accepts_all_methods() -> None:
    """No HTTP trigger lists methods, so that the request pipeline replies to unsupported methods."""
    app = func.FunctionApp()
    for blueprint in (build_http_blueprint(GROUPS), build_catch_all_blueprint()):
        app.register_functions(blueprint)
    bindings = [binding for function in app.get_functions() for binding in function.get_bindings_dict()["bindings"]]
    triggers = [binding for binding in bindings if binding["type"] == "httpTrigger"]
    assert triggers
    assert [trigger["route"] for trigger in triggers if trigger.get("methods")] == []
