"""Benchmark: time, memory and blocking of the event loop while a large workspace document is planned and applied."""

import json
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

from bench.event_loop import run_healthz_probe
from bench.figures import Figure
from bench.memory import read_resident_mb
from bench.running import RunningService, request_token, run_service

CONNECTIONS = 5_000
QUERIES = 2_000
CONNECTIONS_PER_SURFACE = 50
BODY_BYTES = 5_000_000
ROUTE = "/oi-api/workspace/document"
ADMINISTRATOR = "admin@bench"
_FILLER = "// the comment of a query that somebody explains in detail\n"
_REPEATS = 3


def measure_workspace_document() -> Iterator[Figure]:
    """Measure how a service plans (previews) and applies a workspace document of 5 MB with 7,000 items.

    The time for which ``/healthz`` is blocked is measured in a second run, because this measurement itself costs time.
    """
    quiet = _measure_plan_and_apply(calls_healthz=False)
    probed = _measure_plan_and_apply(calls_healthz=True)
    detail = {"bodyBytes": quiet.body_bytes, "connections": CONNECTIONS, "queries": QUERIES}
    yield Figure("workspace_document_plan", quiet.plan_seconds, "s", at_most=2, detail=detail)
    yield Figure("workspace_document_apply", quiet.apply_seconds, "s", at_most=10)
    yield Figure("workspace_document_memory", quiet.memory, "MB", at_most=300)
    blocked = {"plan": round(probed.plan_blocked, 1), "apply": round(probed.apply_blocked, 1)}
    yield Figure("workspace_document_blocked", max(blocked.values()), "ms", at_most=50, detail=blocked)


@dataclass(frozen=True, slots=True)
class _DocumentRun:
    """Measurements of a new service that plans and then applies the workspace document.

    Attributes:
        body_bytes: size of the document.
        plan_seconds: duration of the fastest request for a plan.
        apply_seconds: duration of the request that applies the document.
        memory: growth of the service's resident memory in MB, from the idle service until the document is applied.
        plan_blocked: longest call of ``/healthz`` during the plan, in milliseconds; 0 if it was not called.
        apply_blocked: longest call of ``/healthz`` while the document is applied, in milliseconds; 0 if not called.
    """

    body_bytes: int
    plan_seconds: float
    apply_seconds: float
    memory: float
    plan_blocked: float
    apply_blocked: float


def _measure_plan_and_apply(*, calls_healthz: bool) -> _DocumentRun:
    """Plan and apply the document in a new service; optionally measure how long ``/healthz`` is blocked meanwhile."""
    with ExitStack() as stack:
        running = stack.enter_context(run_service())
        probe = stack.enter_context(run_healthz_probe(running.url)) if calls_healthz else None
        headers = {"Authorization": f"Bearer {request_token(running.url, running.folder, ADMINISTRATOR)}"}
        body = json.dumps(_extend_document(_send_request_and_get_json(running, "GET", ROUTE, headers))).encode()
        idle = read_resident_mb(running.pid)
        planned, starts = [], []
        for _ in range(_REPEATS):
            starts.append(time.monotonic())
            planned.append(_send_timed_request(running, "POST", f"{ROUTE}/plan", headers, body))
        middle = time.monotonic()
        applied, _ = _send_timed_request(running, "PUT", ROUTE, {**headers, "If-Match": planned[0][1]["planTag"]}, body)
        ended = time.monotonic()
        memory = read_resident_mb(running.pid) - idle
        again = _send_request_and_get_json(running, "POST", f"{ROUTE}/plan", headers, body)
        if len(planned[0][1]["changes"]) < CONNECTIONS + QUERIES:
            raise RuntimeError("the plan does not contain all changes of the workspace document")
        if again["changes"]:
            raise RuntimeError("after the workspace document was applied, a new plan still contains changes")
        blocked = [0.0, 0.0]
        if probe is not None:
            # The shortest plan is least affected by other processes and by work that follows the service's start.
            spans = pairwise([*starts, middle])
            plan_blocked = min(probe.find_longest_call_milliseconds(since, until) for since, until in spans)
            blocked = [plan_blocked, probe.find_longest_call_milliseconds(middle, ended)]
        return _DocumentRun(len(body), min(seconds for seconds, _ in planned), applied, memory, *blocked)


def _extend_document(exported_document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the exported workspace document with many more connections, surfaces (groups of them) and queries."""
    lookups = [f"line-{number}" for number in range(CONNECTIONS)]
    connections = [
        {"lookup": lookup, "name": f"Line {lookup}", "type": "CLOUD_EVENT_HUB", "source": {"devices": [f"{lookup}-*"]}}
        for lookup in lookups
    ]
    groups = range(0, CONNECTIONS, CONNECTIONS_PER_SURFACE)
    surfaces = [
        {
            "lookup": f"hall-{start}",
            "name": f"Hall {start}",
            "connections": lookups[start : start + CONNECTIONS_PER_SURFACE],
        }
        for start in groups
    ]
    rest = BODY_BYTES - len(json.dumps([connections, surfaces]))
    queries = [
        {
            "lookup": f"count-{number}",
            "name": f"Count {number}",
            "surface": f"hall-{number % len(groups) * CONNECTIONS_PER_SURFACE}",
            "parameters": [{"name": "device", "type": "string", "default": ""}],
            "kql": _build_query_kql(number, rest // QUERIES),
        }
        for number in range(QUERIES)
    ]
    added: dict[str, list[Any]] = {"connections": [*connections], "surfaces": [*surfaces], "warmQueries": [*queries]}
    return {**exported_document, **{section: [*exported_document[section], *items] for section, items in added.items()}}


def _build_query_kql(number: int, byte_count: int) -> str:
    text = "Telemetry\n| where isempty(device) or DeviceId == device\n| summarize n = count()\n"
    text += f"| extend number = {number}\n"
    return text + _FILLER * ((byte_count - 250) // len(_FILLER))


class _TimedReply(NamedTuple):
    """JSON object of a reply, and the seconds from the request to the reply."""

    seconds: float
    document: dict[str, Any]


def _send_timed_request(
    running: RunningService, method: str, path: str, headers: Mapping[str, str], body: bytes
) -> _TimedReply:
    started = time.perf_counter()
    reply = _send_request_and_get_json(running, method, path, headers, body)
    return _TimedReply(time.perf_counter() - started, reply)


def _send_request_and_get_json(
    running: RunningService, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
) -> dict[str, Any]:
    url = running.url + path
    request = urllib.request.Request(url, body, {"Content-Type": "application/json", **headers}, method=method)  # noqa: S310  our own
    with urllib.request.urlopen(request, timeout=240) as reply:  # noqa: S310  our own
        value: dict[str, Any] = json.load(reply)
    return value
