"""Benchmark: delay of 1,000 alert rules, which are evaluated every minute, and their effect on telemetry ingestion."""

import asyncio
import json
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import aiohttp
import duckdb

from bench.figures import Figure
from bench.imports import run_import_and_get_status
from bench.large_workspace import UNLIMITED_WORKSPACE
from bench.running import RunningService, call_service, request_token, run_service

RULES: Final = 1_000
QUERIES: Final = 40
WINDOWS: Final = ("PT1H", "PT2H", "PT3H", "PT4H", "PT5H")
STORED: Final = 1_000_000
STORED_TIME: Final = timedelta(hours=5)
EVENTS_PER_SECOND: Final = 1_000
SECONDS: Final = 120.0
_BATCH: Final = 500
_LOOK_SECONDS: Final = 5.0
_DOCUMENT_ROUTE: Final = "/oi-api/workspace/document"
_APPROVAL: Final = {"approvedBy": "admin@bench", "approvedAt": "2026-01-05T08:00:00Z"}
_KQL: Final = """Telemetry
| where DeviceId == "d-{number:02d}" and todouble(Payload.pressure) > {limit}
| summarize pressure = max(todouble(Payload.pressure)), messages = count() by DeviceId"""

_ROWS: Final = """SELECT
    strftime(TIMESTAMP '{first}' + INTERVAL (n * {step}) MICROSECOND, '%Y-%m-%dT%H:%M:%S.%fZ') AS timestamp,
    printf('d-%02d', n % 20) AS device, n % 97 / 10 AS pressure
FROM range({rows}) numbers(n)"""


def measure_alerts() -> Iterator[Figure]:
    """Compare the ingestion rate without alert rules with the rate while 1,000 rules are evaluated every minute.

    The table already contains a million rows of the last hours. The rules share 200 combinations of query and time
    range. The delay of an evaluation is the time since the rule was due.
    """
    with TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as folder:
        document = Path(folder) / "workspace.yaml"
        document.write_text(json.dumps(_build_workspace_document()), encoding="utf-8")
        with run_service({"WORKSPACE_FILE": str(document)}) as running:
            _import_rows_from_csv_file(running, Path(folder))
            alone = asyncio.run(_send_and_measure_messages_per_second(running, "alone", SECONDS / 4))
            asyncio.run(_add_alert_rules(running))
            beside, delay = asyncio.run(_measure_rate_and_delay_during_evaluation(running))
    detail = {"rules": RULES, "queriesWithWindows": QUERIES * len(WINDOWS), "rows": STORED, "seconds": SECONDS}
    yield Figure("alert_evaluation_delay", max(delay, 0.0), "s", at_most=60, detail=detail)
    rates = {"aloneEventsPerSecond": round(alone), "besideEventsPerSecond": round(beside)}
    yield Figure("alert_ingest_ratio", beside / alone, "ratio", at_least=0.8, detail=rates)


def _import_rows_from_csv_file(running: RunningService, folder: Path) -> None:
    """Import a million rows of the last five hours, which is the longest time range of a rule.

    An import takes seconds. Sending the rows as messages would take minutes.
    """
    file, first = folder / "rows.csv", (datetime.now(UTC) - STORED_TIME).replace(tzinfo=None)
    step = STORED_TIME // timedelta(microseconds=1) // STORED
    duckdb.execute(f"COPY ({_ROWS.format(first=first, step=step, rows=STORED)}) TO '{file}' (FORMAT csv, HEADER)")
    imported = run_import_and_get_status(running, file, "line")
    if imported["accepted"] != STORED:
        raise RuntimeError(f"the service accepted {imported['accepted']} of {STORED} rows")


def _build_message(id_prefix: str, number: int, at: datetime) -> dict[str, Any]:
    device, pressure = f"d-{number % 20:02d}", number % 97 / 10
    return {"timestamp": at.isoformat(), "messageId": f"{id_prefix}-{number}", "deviceId": device, "pressure": pressure}


def _build_workspace_document() -> dict[str, Any]:
    return {
        **UNLIMITED_WORKSPACE,
        "connections": [{"lookup": "line", "name": "Line", "type": "CLOUD_EVENT_HUB"}],
        "surfaces": [{"lookup": "hall", "name": "Hall", "connections": ["line"]}],
        "warmQueries": [
            {
                "lookup": f"q-{number}",
                "name": f"Query {number}",
                "surface": "hall",
                "kql": _KQL.format(number=number % 20, limit=4 + number / 100),
                "approval": _APPROVAL,
            }
            for number in range(QUERIES)
        ],
    }


async def _add_alert_rules(running: RunningService) -> None:
    """Create the alert rules, five for each combination of query and time range.

    One workspace document adds all rules in one change. One request per rule would take minutes, because the service
    loads the whole catalog after each change.
    """
    token = request_token(running.url, running.folder, "admin@bench")
    async with aiohttp.ClientSession(running.url, headers={"Authorization": f"Bearer {token}"}) as session:
        async with session.get(_DOCUMENT_ROUTE, raise_for_status=True) as reply:
            document = {**await reply.json(), "alertRules": [_build_alert_rule(number) for number in range(RULES)]}
        async with session.post(f"{_DOCUMENT_ROUTE}/plan", json=document, raise_for_status=True) as reply:
            condition = {"If-Match": (await reply.json())["planTag"]}
        async with session.put(_DOCUMENT_ROUTE, json=document, headers=condition, raise_for_status=True):
            pass


def _build_alert_rule(number: int) -> dict[str, Any]:
    combination = number % (QUERIES * len(WINDOWS))
    return {
        "lookup": f"r-{number:04d}",
        "name": f"Rule {number}",
        "severity": "info",
        "surface": "hall",
        "kind": "threshold",
        "every": "PT1M",
        "query": f"q-{combination % QUERIES}",
        "timeRange": WINDOWS[combination // QUERIES],
        "condition": {"column": "pressure", "operator": "gt", "value": 4 + number / 2_000},
    }


async def _send_and_measure_messages_per_second(running: RunningService, id_prefix: str, seconds: float) -> float:
    """Send messages for ``seconds`` at a fixed rate; return the messages per second that the service accepted.

    ``id_prefix`` is the first part of the message ids.
    """
    accepted = 0
    async with aiohttp.ClientSession(headers=running.headers) as session:
        started = time.perf_counter()
        while (passed := time.perf_counter() - started) < seconds:
            if accepted > passed * EVENTS_PER_SECOND:
                await asyncio.sleep(accepted / EVENTS_PER_SECOND - passed)
            now = datetime.now(UTC)
            batch = [_build_message(id_prefix, number, now) for number in range(accepted, accepted + _BATCH)]
            async with session.post(f"{running.url}/oi-api/telemetry/line", json=batch) as reply:
                reply.raise_for_status()
            accepted += _BATCH
        return accepted / (time.perf_counter() - started)


class _RateAndDelay(NamedTuple):
    """Messages per second that the service accepted, and the longest delay of a rule's evaluation in seconds."""

    messages_per_second: float
    longest_delay_seconds: float


async def _measure_rate_and_delay_during_evaluation(running: RunningService) -> _RateAndDelay:
    """Send telemetry while alert rules are evaluated."""
    sending = asyncio.create_task(_send_and_measure_messages_per_second(running, "beside", SECONDS))
    longest = 0.0
    while not sending.done():
        await asyncio.wait([sending], timeout=_LOOK_SECONDS)
        longest = max(longest, await asyncio.to_thread(_measure_longest_evaluation_delay_seconds, running))
    return _RateAndDelay(sending.result(), longest)


def _measure_longest_evaluation_delay_seconds(running: RunningService) -> float:
    """Return the longest time in seconds by which the evaluation of an alert rule is late."""
    rules: Any = call_service(running, "/oi-api/alert-rules")["rules"]
    now = datetime.now(UTC)
    if len(rules) != RULES:
        raise RuntimeError(f"the service has {len(rules)} instead of {RULES} alert rules")
    if any(rule["state"] == "error" for rule in rules):
        raise RuntimeError("the evaluation of an alert rule failed")
    due = (datetime.fromisoformat(rule["nextEvaluationAt"]) for rule in rules)
    return max((now - at).total_seconds() for at in due)
