"""Joins the host's HTTP triggers to the door.

Each route is one function for all methods, and each function hands its request to the same door, which finds the
operation itself. So a wrong method is a 405 with Allow, an unknown address a problem document, and nothing depends on
the order in which the host tries overlapping routes.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final

import azure.functions as func
from werkzeug.datastructures import Headers

from functions.batch_span import trace_context
from functions.durable_runner import CLIENT
from functions.lazy_groups import LazyGroup
from shared.http.cors import Cors
from shared.http.load_shedding import get_load_shedder
from shared.http.messages import Reply, Request
from shared.http.pipeline import RequestPipeline
from shared.wiring import services

_NO_CONTENT: Final = frozenset({204, 304})

type HttpHandler = Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]


def http_blueprint(groups: Iterable[LazyGroup]) -> func.Blueprint:
    """Return one function for each route of all groups.

    The functions list no methods, so the host rejects a route that two functions share, also when two groups declare
    it with different methods (``ScriptHost.HttpRoutesConflict`` of Azure/azure-functions-host).
    """
    blueprint = func.Blueprint()
    routes: dict[str, list[LazyGroup]] = {}
    for group in groups:
        for endpoint in group.endpoints:
            # The host ignores slashes at the end of a route; the request pipeline does not.
            routes.setdefault(endpoint.route.rstrip("/"), []).append(group)
    # The host reads an empty route as the function's name; the catch-all function serves the root instead.
    routes.pop("", None)
    for route, sharing in routes.items():
        name = re.sub(r"\W+", "_", f"{sharing[0].name}_{route}").strip("_").lower()
        register = _register_with_client if any(group.durable for group in sharing) else _register
        register(blueprint, name, route)
    return blueprint


def catch_all_blueprint() -> func.Blueprint:
    """Return the function that answers for every other address."""
    blueprint = func.Blueprint()
    _register(blueprint, "unmatched", "{*path}")
    return blueprint


def _register(blueprint: func.Blueprint, name: str, route: str) -> None:
    async def serve(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
        return _response(await get_pipeline().serve(_request(req, trace_context(context))))

    serve.__name__ = name
    # No methods: the host then passes on every one, and the door answers 405 where it is the wrong one.
    routed = blueprint.route(route=route, auth_level=func.AuthLevel.ANONYMOUS)(serve)
    blueprint.function_name(name)(routed)


def _register_with_client(blueprint: func.Blueprint, name: str, route: str) -> None:
    async def serve(req: func.HttpRequest, client: str, context: func.Context) -> func.HttpResponse:
        CLIENT.set(client)
        return _response(await get_pipeline().serve(_request(req, trace_context(context))))

    serve.__name__ = name
    bound = blueprint.durable_client_input(client_name="client")(serve)
    routed = blueprint.route(route=route, auth_level=func.AuthLevel.ANONYMOUS)(bound)
    blueprint.function_name(name)(routed)


@cache
def get_pipeline() -> RequestPipeline:
    """Return the door of this process."""
    from functions import GROUPS  # noqa: PLC0415  the table of contents imports this module

    endpoints = (endpoint for group in GROUPS for endpoint in group.endpoints)
    app = services()
    return RequestPipeline(
        endpoints, app.authenticator, app.require_feature, app.limits, Cors(app.settings.origins()), get_load_shedder()
    )


def _request(req: func.HttpRequest, trace_context: Mapping[str, str]) -> Request:
    path, query = _target(req.url, req.headers.get("host", ""))
    return Request(
        method=req.method.upper(),
        path=path,
        query=query,
        headers={name.lower(): value for name, value in req.headers.items()},
        body=req.get_body(),
        trace_context=trace_context,
    )


def _target(url: str, host: str) -> tuple[str, str]:
    """Return the path and the query of a request's URL, percent-encoded as they came.

    Cut by hand, since URL parsers decode; and at the caller's own Host where the URL begins with it, since a slash or
    question mark in a Host must not pass for the begin of the path.
    """
    after_scheme = url.partition("://")[2]
    rest = after_scheme.removeprefix(host)
    if not rest.startswith("/"):
        authority, _, _ = after_scheme.partition("?")[0].partition("/")
        rest = after_scheme.removeprefix(authority)
    path, _, query = rest.partition("#")[0].partition("?")
    return path if path.startswith("/") else f"/{path}", query


class _Untyped(func.HttpResponse):
    """A response without content, which has no type either; the binding adds one wherever there is none."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(status_code=reply.status)
        kept = {name: value for name, value in reply.headers.items() if name.lower() != "content-type"}
        self._untyped = _UntypedHeaders(kept)

    @property
    def headers(self) -> Headers:
        """The headers, of which none is a Content-Type."""
        return self._untyped


class _UntypedHeaders(Headers):
    """Headers that take no Content-Type."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set a header."""
        if str(key).lower() != "content-type":
            super().__setitem__(key, value)


def _response(reply: Reply) -> func.HttpResponse:
    if reply.status in _NO_CONTENT or (not reply.body and "Content-Type" not in reply.headers):
        return _Untyped(reply)
    return func.HttpResponse(
        reply.body,
        status_code=reply.status,
        headers=reply.headers,
        mimetype=reply.headers.get("Content-Type", "application/octet-stream"),
    )
