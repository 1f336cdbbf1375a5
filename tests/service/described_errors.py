"""Check that the OpenAPI document lists each error that the service returns for the operation."""

import re
from functools import cache
from urllib.parse import unquote

import httpx

from functions import GROUPS
from shared.http.operations import Operation
from shared.openapi.operation_errors import list_error_codes
from shared.openapi.paths import PLACEHOLDER

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
