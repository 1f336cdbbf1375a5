"""Fuzz test: random requests to every route never cause a 5xx error or a hang.

``FUZZ_SECONDS`` sets the duration of the soak test.
"""

import json
import os
import random
import re
import time
from collections.abc import Callable
from typing import Any

import httpx
import pytest

from functions import GROUPS
from shared.http.operations import Access, NoQuery, Operation
from tests.service.local_service import Service, verify_chain

SUITE_SECONDS, FEWEST = 10.0, 100
SOAK_SECONDS = float(os.environ.get("FUZZ_SECONDS", "600"))
SLOWEST_SECONDS = 70.0
MAX_GROWTH_BYTES = 400 * 1024 * 1024
OPERATIONS = [operation for group in GROUPS for operation in group.operations]
# Operations that take minutes or create unlimited tokens and keys if they are called at random.
PATIENT = frozenset({"start_connection_download", "start_surface_download", "start_surface_connection_download"})
TEXTS = (
    "",
    " ",
    "a",
    "pump",
    "hall",
    "0",
    "-1",
    "1e999",
    "NaN",
    "null",
    "true",
    "[]",
    "{}",
    "'",
    '"',
    "\\",
    "%",
    "%00",
    "..",
    "../../etc/passwd",
    "a/b",
    "a\u0000b",
    "\u202e",
    "\ufeff",
    "é",
    "😀",
    "P1D",
    "PT1H",
    "2026-01-05T08:00:00Z",
    "2026-13-45",
    "9" * 400,
    "x" * 5_000,
    "PlatformConfig",
    "DomainEvents",
    "DomainAmendments",
    "line-1",
    "000000000001",
    "oik_x_y",
    "<script>",
    "=1+1",
    "*",
    'W/"x"',
    "Bearer",
    "workspace://surfaces/hall",
)
JUNK: tuple[bytes, ...] = (
    b"",
    b"{",
    b"\xff",
    b"[]",
    b"null",
    b'"x"',
    b"0",
    b"{}",
    b"[{}]",
    b'{"a":1,"a":2}',
    b"[" * 5_000,
)


def draw_value(rng: random.Random, depth: int = 0) -> Any:
    """Return a random JSON value."""
    kind = rng.randrange(8 if depth < 4 else 5)
    makers: tuple[Callable[[], Any], ...] = (
        lambda: rng.choice(TEXTS),
        lambda: rng.choice((0, -1, 1, 2**53, -(2**63), 10**30, 0.1, -0.0, 1e308)),
        lambda: rng.choice((True, False, None)),
        lambda: rng.choice(TEXTS),
        lambda: rng.randrange(10_000),
        lambda: [draw_value(rng, depth + 1) for _ in range(rng.randrange(4))],
        lambda: {rng.choice(TEXTS): draw_value(rng, depth + 1) for _ in range(rng.randrange(4))},
        dict,
    )
    return makers[kind]()


def draw_body(operation: Operation, rng: random.Random) -> bytes:
    """Return a random body: bytes, a JSON value, or the example of the operation with one changed part."""
    dice = rng.random()
    if dice < 0.2:
        return rng.choice(JUNK)
    example = operation.docs.example
    if dice < 0.4 or not isinstance(example, dict):
        return json.dumps(draw_value(rng)).encode()
    members = dict(example)
    name = rng.choice([*members, rng.choice(TEXTS)])
    if rng.random() < 0.3:
        members.pop(name, None)
    else:
        members[name] = draw_value(rng)
    return json.dumps(members).encode()


def draw_query(operation: Operation, rng: random.Random) -> httpx.QueryParams:
    """Return random query parameters; most of their names are parameters of the operation."""
    known = (
        []
        if operation.query is NoQuery
        else [field.alias or name for name, field in operation.query.model_fields.items()]
    )
    names = rng.choices([*known, *known, "p.device", "x", rng.choice(TEXTS)], k=rng.randrange(4))
    return httpx.QueryParams([(name, rng.choice(TEXTS)) for name in names])


def draw_headers(rng: random.Random) -> dict[str, str]:
    """Return headers that routes read, with random values."""
    names = (
        "Accept",
        "If-Match",
        "If-None-Match",
        "Prefer",
        "Idempotency-Key",
        "Content-Type",
        "Range",
        "x-request-id",
        "Origin",
    )
    plain = [text for text in TEXTS if text.isprintable() and text.isascii() and text == text.strip()]
    return {name: rng.choice(plain) for name in rng.sample(names, rng.randrange(3))}


def send_random_requests(service: Service, seconds: float, seed: int) -> None:
    """Send random requests for some seconds; the message of a failure contains the seed."""
    rng = random.Random(seed)
    caller, sent, ends = service.create_client("admin@t"), 0, time.monotonic() + seconds
    while sent < FEWEST or time.monotonic() < ends:
        operation = rng.choice(OPERATIONS)
        route = re.sub(
            r"\{\*?[^{}]+\}", lambda _: rng.choice(TEXTS).replace("\u0000", "%00") or "x", f"/{operation.route}"
        )
        headers = draw_headers(rng) | ({} if operation.access is Access.PUBLIC else dict(caller.headers))
        query = httpx.QueryParams() if operation.name in PATIENT else draw_query(operation, rng)
        request = caller.build_request(
            operation.method,
            httpx.URL(caller.base_url).copy_with(path=route),
            params=query,
            content=draw_body(operation, rng),
            headers=headers,
        )
        started = time.monotonic()
        reply = caller.send(request)
        details = (
            f"seed {seed}, request {sent}: {operation.method} {request.url} {request.content[:500]!r}: {reply.text}"
        )
        assert reply.status_code != 500, details
        assert reply.status_code < 500 or reply.headers.get("content-type", "").startswith("application/"), details
        assert time.monotonic() - started < SLOWEST_SECONDS, details
        sent += 1


@pytest.fixture(scope="module")
def fuzzed_service(own_module_service: Service) -> Service:
    """Return a service that only this module uses and fills with random data."""
    return own_module_service


def test_the_service_works_after_random_requests(fuzzed_service: Service) -> None:
    """The service executes or rejects each random request, and works afterwards."""
    seed = random.randrange(2**32)
    send_random_requests(fuzzed_service, SUITE_SECONDS, seed)
    _is_healthy(fuzzed_service)


@pytest.mark.soak
def test_random_requests_do_not_leak_memory_soak(fuzzed_service: Service) -> None:
    """After many random requests, the service works and uses no more memory than before."""
    send_random_requests(fuzzed_service, SUITE_SECONDS, 1)
    before = fuzzed_service.read_memory_bytes()
    send_random_requests(fuzzed_service, SOAK_SECONDS, random.randrange(2**32))
    assert fuzzed_service.read_memory_bytes() - before < MAX_GROWTH_BYTES
    _is_healthy(fuzzed_service)


def _is_healthy(service: Service) -> None:
    assert service.create_anonymous_client().get("/healthz").status_code == 200
    admin = service.create_client("admin@t")
    for target in ("PlatformConfig", "AccessControl"):
        assert verify_chain(admin, target)["Empty"] is False
    for target in ("DomainEvents", "DomainAmendments"):
        verify_chain(admin, target, "line-1")  # random requests do not write to each of these chains in each run
