"""HTTP triggers that pass all requests to the request pipeline.

Each route is one function for all methods, and the pipeline selects the operation. A wrong method therefore gets a 405
with an Allow header, and an unknown address gets a problem document. The order in which the host matches overlapping
routes has no effect.
"""

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import cache
from typing import Any, Final
from urllib.parse import quote, unquote

import azure.functions as func
from werkzeug.datastructures import Headers

from functions.batch_span import read_trace_context
from functions.durable_runner import CLIENT
from functions.lazy_groups import LazyGroup
from shared.http.cors import Cors
from shared.http.messages import Reply, Request
from shared.http.pipeline import RequestPipeline
from shared.wiring import get_load_shedder, services

_NO_CONTENT: Final = frozenset({204, 304})
_PARAMETER: Final = re.compile(r"\{(\*?)([a-zA-Z]+)\}")
_ESCAPED_SLASH: Final = re.compile(r"%25(2[Ff])")
_VALUES_WITHOUT_SLASH: Final = frozenset({"documentId"})
"""Route parameters whose values contain no slash, but possibly ``%2F`` as a part of an id."""

type HttpHandler = Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]


def build_http_blueprint(groups: Iterable[LazyGroup]) -> func.Blueprint:
    """Build a blueprint with one Azure function for each route.

    If several groups declare the same route, one function is built for it. The reason: the functions accept all
    methods, and the host rejects two functions with the same route and methods (``ScriptHost.HttpRoutesConflict`` of
    Azure/azure-functions-host).
    """
    blueprint = func.Blueprint()
    routes: dict[str, list[LazyGroup]] = {}
    for group in groups:
        for endpoint in group.endpoints:
            # The host ignores slashes at the end of a route; the request pipeline does not.
            routes.setdefault(endpoint.route.rstrip("/"), []).append(group)
    # The host replaces an empty route with the function's name; the catch-all function serves the root instead.
    routes.pop("", None)
    for route, sharing in routes.items():
        name = re.sub(r"\W+", "_", f"{sharing[0].name}_{route}").strip("_").lower()
        register = _register_route_with_durable_client if any(group.durable for group in sharing) else _register_route
        register(blueprint, name, route)
    return blueprint


def build_catch_all_blueprint() -> func.Blueprint:
    """Build a blueprint with the Azure function that receives requests to all paths without a route."""
    blueprint = func.Blueprint()
    _register_route(blueprint, "unmatched", "{*path}")
    return blueprint


def _register_route(blueprint: func.Blueprint, function_name: str, route: str) -> None:
    async def serve_request(req: func.HttpRequest, context: func.Context) -> func.HttpResponse:
        return _to_response(await get_pipeline().serve(_to_request(req, route, read_trace_context(context))))

    # The SDK's decorator for the name would give the same name, and take a fifth of the time of a registration.
    serve_request.__name__ = function_name
    # Without a list of methods, the host passes every method to the pipeline, which rejects wrong ones with 405.
    blueprint.route(route=route, auth_level=func.AuthLevel.ANONYMOUS)(serve_request)


def _register_route_with_durable_client(blueprint: func.Blueprint, function_name: str, route: str) -> None:
    async def serve_request(req: func.HttpRequest, client: str, context: func.Context) -> func.HttpResponse:
        CLIENT.set(client)
        return _to_response(await get_pipeline().serve(_to_request(req, route, read_trace_context(context))))

    serve_request.__name__ = function_name
    bound = blueprint.durable_client_input(client_name="client")(serve_request)
    blueprint.route(route=route, auth_level=func.AuthLevel.ANONYMOUS)(bound)


@cache
def get_pipeline() -> RequestPipeline:
    """Return the request pipeline of this process, which is built at the first call."""
    from functions import GROUPS  # noqa: PLC0415  functions/__init__.py imports this module

    endpoints = (endpoint for group in GROUPS for endpoint in group.endpoints)
    app = services()
    return RequestPipeline(
        endpoints,
        app.access.authenticator,
        app.features.require_feature,
        app.rate_limits.admit,
        Cors(app.settings.list_cors_origins()),
        get_load_shedder(),
        runtime=app.runtime,
    )


def _to_request(req: func.HttpRequest, route: str, trace_context: Mapping[str, str]) -> Request:
    path, query = _split_url_into_path_and_query(req.url, req.headers.get("host", ""))
    return Request(
        method=req.method.upper(),
        path=_encode_path_parameters(path, route, req.route_params),
        query=query,
        headers={name.lower(): value for name, value in req.headers.items()},
        body=req.get_body(),
        trace_context=trace_context,
    )


def _split_url_into_path_and_query(url: str, host_header: str) -> tuple[str, str]:
    """Return the path and the query string of a URL, both as they are in the URL; a URL parser would decode them.

    The value of the Host header is removed from the start of the URL first, because a slash or question mark in an
    invalid Host header must not count as the start of the path or query.
    """
    after_scheme = url.partition("://")[2]
    rest = after_scheme.removeprefix(host_header)
    if not rest.startswith("/"):
        authority, _, _ = after_scheme.partition("?")[0].partition("/")
        rest = after_scheme.removeprefix(authority)
    path, _, query = rest.partition("#")[0].partition("?")
    return path if path.startswith("/") else f"/{path}", query


def _encode_path_parameters(path: str, route: str, values: Mapping[str, str]) -> str:
    """Replace the route parameters in a URL's path by their percent-encoded values, and return the path.

    A parameter whose decoded text in the path already equals its value is not changed.

    Args:
        path: percent-encoded path of the URL.
        route: route template of the function, such as ``items/{id}``.
        values: values of the route parameters by name, as the Functions host has decoded them.

    The local host passes the URL on as sent. The host on Azure decodes the path of a request once and builds the URL
    from it, but does not encode a percent sign before two hexadecimal digits (``ToRpcHttp`` of
    Azure/azure-functions-host, ``PathString.ToUriComponent``). So ``%20`` and ``%2520`` of a request give the same URL,
    and only the values of the parameters differ. That host never decodes an escaped slash, so ``%2F`` and ``%252F``
    also give the same value; it counts as a slash unless the values of the parameter cannot contain one.
    """
    if "{" not in route:
        return path
    segments = path.split("/")
    for position, part in enumerate(route.split("/"), start=1):
        parameter = _PARAMETER.fullmatch(part)
        # The host omits the parameter for the rest of the path if the rest is empty.
        if parameter is not None and parameter[2] in values:
            end = None if parameter[1] else position + 1
            value = values[parameter[2]]
            if unquote("/".join(segments[position:end])) != value:
                segments[position:end] = [
                    _encode_path_parameter_value(parameter[2], value, "/" if parameter[1] else "")
                ]
    return "/".join(segments)


def _encode_path_parameter_value(parameter_name: str, value: str, safe_characters: str) -> str:
    """Percent-encode the value of a route parameter, except for the characters in ``safe_characters``.

    The text ``%2F`` in the value stays ``%2F``, because it represents a slash. For parameters in
    ``_VALUES_WITHOUT_SLASH`` it becomes ``%252F``, because it is part of an id.
    """
    encoded = quote(value, safe_characters)
    return encoded if parameter_name in _VALUES_WITHOUT_SLASH else _ESCAPED_SLASH.sub(r"%\1", encoded)


class _ResponseWithoutContent(func.HttpResponse):
    """Response without content and without Content-Type.

    The worker's binding would add a Content-Type to a plain response.
    """

    def __init__(self, reply: Reply) -> None:
        super().__init__(status_code=reply.status)
        headers = {name: value for name, value in reply.headers.items() if name.lower() != "content-type"}
        self._untyped_headers = _HeadersWithoutContentType(headers)

    @property
    def headers(self) -> Headers:
        """Headers of the response, without Content-Type."""
        return self._untyped_headers


class _HeadersWithoutContentType(Headers):
    """Headers that ignore the assignment of a Content-Type."""

    def __setitem__(self, key: Any, value: Any) -> None:
        """Set a header; do nothing if it is Content-Type."""
        if str(key).lower() != "content-type":
            super().__setitem__(key, value)


def _to_response(reply: Reply) -> func.HttpResponse:
    if reply.status in _NO_CONTENT or (not reply.body and "Content-Type" not in reply.headers):
        return _ResponseWithoutContent(reply)
    return func.HttpResponse(
        reply.body,
        status_code=reply.status,
        headers=reply.headers,
        mimetype=reply.headers.get("Content-Type", "application/octet-stream"),
    )
