"""Joins the host's HTTP triggers to the door.

Each route is one function for all methods, and each function hands its request to the same door, which finds the
operation itself. So a wrong method is a 405 with Allow, an unknown address a problem document, and nothing depends on
the order in which the host tries overlapping routes.
"""

import re
from collections.abc import Awaitable, Callable
from functools import cache

import azure.functions as func

from shared.http.door import Door
from shared.http.messages import Reply, Request
from shared.http.operations import Group
from shared.wiring import services

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
type HttpHandler = Callable[[func.HttpRequest], Awaitable[func.HttpResponse]]


def http_blueprint(group: Group) -> func.Blueprint:
    """Return the functions of an endpoint group, one per route."""
    blueprint = func.Blueprint()
    for route in dict.fromkeys(operation.route for operation in group.operations):
        name = re.sub(r"\W+", "_", f"{group.name}_{route}").strip("_").lower()
        _register(blueprint, name, route)
    return blueprint


def catch_all_blueprint() -> func.Blueprint:
    """Return the function that answers for every other address."""
    blueprint = func.Blueprint()
    _register(blueprint, "unmatched", "{*path}")
    return blueprint


def _register(blueprint: func.Blueprint, name: str, route: str) -> None:
    async def serve(req: func.HttpRequest) -> func.HttpResponse:
        return _response(await _door().serve(_request(req)))

    serve.__name__ = name
    methods = [func.HttpMethod[method] for method in METHODS]
    routed = blueprint.route(route=route, methods=methods, auth_level=func.AuthLevel.ANONYMOUS)(serve)
    blueprint.function_name(name)(routed)


@cache
def _door() -> Door:
    from functions import GROUPS  # noqa: PLC0415  the table of contents imports this module

    operations = (operation for group in GROUPS for operation in group.operations)
    return Door(operations, services().authenticator, services().require_feature)


def _request(req: func.HttpRequest) -> Request:
    # Cut by hand: the path must stay percent-encoded as it came.
    target = req.url.partition("://")[2]
    path, _, query = target.partition("?")
    return Request(
        method=req.method.upper(),
        path="/" + path.partition("/")[2],
        query=query.partition("#")[0],
        headers={name.lower(): value for name, value in req.headers.items()},
        body=req.get_body(),
    )


def _response(reply: Reply) -> func.HttpResponse:
    return func.HttpResponse(
        reply.body,
        status_code=reply.status,
        headers=reply.headers,
        mimetype=reply.headers.get("Content-Type", "application/octet-stream"),
    )
