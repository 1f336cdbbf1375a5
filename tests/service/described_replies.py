"""Check that the OpenAPI document lists the errors and headers that the service returns for an operation."""

import re
from functools import cache
from urllib.parse import unquote

import httpx

from functions import GROUPS
from shared.http.operations import Operation
from shared.http.security_headers import SECURITY_HEADERS
from shared.openapi.operation_errors import list_error_codes
from shared.openapi.paths import PLACEHOLDER
from shared.openapi.responses import build_error_components, build_responses
from shared.openapi.schemas import SchemaRegistry

_GENERAL_HEADERS = {
    *{name.lower() for name in SECURITY_HEADERS},
    "connection", "content-encoding", "content-length", "content-type", "date", "pragma", "server", "server-timing",
    "transfer-encoding", "vary", "access-control-allow-origin", "access-control-expose-headers",
}  # fmt: skip
"""Headers of HTTP itself, which the OpenAPI document does not list."""

_DEPRECATION_HEADERS = {"deprecation", "sunset", "link"}
"""Headers that the document lists for successful replies only, because operations share the error replies."""

_FIRST_ERROR = 400

_METHODS = {"GET", "POST", "PUT", "PATCH", "DELETE"}
_OF_ALL_ROUTES = {"ROUTE_NOT_FOUND", "METHOD_NOT_ALLOWED", "INVALID_REQUEST", "URI_TOO_LONG", "HEADERS_TOO_LARGE"}
"""Codes of requests whose line or headers break a rule, which any address can return."""


def check_described_error(reply: httpx.Response) -> None:
    """Fail if the OpenAPI document does not list the reply's error code for its operation and status."""
    if reply.headers.get("content-type") != "application/problem+json" or reply.request.method == "HEAD":
        return
    reply.read()
    code = reply.json()["code"]
    operation = _find_operation(reply.request.method, reply.request.url.path)
    if operation is None or code in _OF_ALL_ROUTES:
        return
    listed = list_error_codes(operation, reply.status_code)
    assert code in listed, f"add {code} to OWN_CODES[{operation.name!r}] in shared/openapi/operation_errors.py"


def check_described_headers(reply: httpx.Response) -> None:
    """Fail if the OpenAPI document does not list a header of the reply for its operation and status."""
    operation = _find_operation(reply.request.method, reply.request.url.path)
    if operation is None or reply.request.method not in _METHODS:
        return
    listed = _list_headers(operation.method, operation.route).get(reply.status_code)
    if listed is None:
        return
    missing = {name.lower() for name in reply.headers} - listed - _GENERAL_HEADERS
    if reply.status_code >= _FIRST_ERROR:
        missing -= _DEPRECATION_HEADERS
    assert not missing, f"the OpenAPI document lists no {missing} for {operation.name} {reply.status_code}"


@cache
def _list_headers(method: str, route: str) -> dict[int, set[str]]:
    """Return the names of the documented headers of an operation by status, in lower case."""
    operation = next(one for _, one in _list_routes() if (one.method, one.route) == (method, route))
    schemas = SchemaRegistry()
    responses = build_responses(operation, schemas)
    shared, _ = build_error_components(schemas)
    return {
        int(status): {
            name.lower()
            for name in (shared[one["$ref"].rpartition("/")[2]] if "$ref" in one else one).get("headers", {})
        }
        for status, one in responses.items()
    }


def _find_operation(method: str, path: str) -> Operation | None:
    found = [one for pattern, one in _list_routes() if one.method == method and pattern.fullmatch(unquote(path))]
    # Of several routes, the one with the fewest parameters matches, as in the router.
    return min(found, key=lambda one: (one.route.count("*"), one.route.count("{")), default=None)


@cache
def _list_routes() -> list[tuple[re.Pattern[str], Operation]]:
    operations = [one for group in GROUPS for one in group.operations]
    return [(_compile_route(one.route), one) for one in operations]


def _compile_route(route: str) -> re.Pattern[str]:
    parts = re.split(PLACEHOLDER.pattern.replace("(", "(?:"), route)
    names = [each.group(0) for each in PLACEHOLDER.finditer(route)]
    wanted = [".+" if name.startswith("{*") else "[^/]+" for name in names]
    pieces = [re.escape(part) + value for part, value in zip(parts, [*wanted, ""], strict=True)]
    return re.compile("/" + "".join(pieces))
