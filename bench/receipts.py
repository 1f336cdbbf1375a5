"""Benchmark: receipts (RFC 9942) of audit records per second over HTTP, compared with inclusion proofs as JSON."""

import json
import statistics
import urllib.request
from collections.abc import Iterator

from bench.figures import Figure
from bench.running import RunningService, measure_replies_per_second, post_bodies_and_measure_seconds, run_service

ROUNDS = 5
SECONDS = 2.0
CONNECTIONS = 16
RECORDS = 2_000
SEQUENCE = 777
_CHAIN = "target=DomainEvents&scopeKey=receipts"


def measure_receipts() -> Iterator[Figure]:
    """Measure the replies per second for the inclusion proof and for the receipt of one record, alternately."""
    rates: dict[str, list[float]] = {"proof": [], "receipt": []}
    with run_service() as running:
        size = _fill_chain_and_count_signed_records(running)
        address = f"{running.url}/oi-api/provenance"
        paths = {
            "proof": f"{address}/proof?{_CHAIN}&sequence={SEQUENCE}&size={size}",
            "receipt": f"{address}/receipt?{_CHAIN}&recordId={SEQUENCE:012d}&size={size}",
        }
        for _ in range(ROUNDS):
            for name, url in paths.items():
                rate = measure_replies_per_second(
                    url, running.headers, connection_count=CONNECTIONS, duration_seconds=SECONDS
                )
                rates[name].append(rate)
    median = {name: statistics.median(values) for name, values in rates.items()}
    detail = {f"{name}PerSecond": round(rate) for name, rate in median.items()}
    detail |= {"connections": CONNECTIONS, "records": size}
    yield Figure("receipt_to_proof", median["receipt"] / median["proof"], "ratio", at_least=0.8, detail=detail)


def _fill_chain_and_count_signed_records(running: RunningService) -> int:
    """Append audit events and sign a checkpoint by creating an audit bundle; return the number of records."""
    event = {"ScopeKey": "receipts", "ActionType": "Changed", "EntityType": "Batch", "EntityID": "B-1"}
    body = json.dumps({**event, "AfterState": {"note": "x" * 200}}).encode()
    post_bodies_and_measure_seconds(f"{running.url}/oi-api/provenance/events", running.headers, [body] * RECORDS, 64)
    bundle = json.dumps({"scopes": [{"target": "DomainEvents", "scopeKey": "receipts"}]}).encode()
    headers = {**running.headers, "Content-Type": "application/json", "Prefer": "wait=60"}
    request = urllib.request.Request(f"{running.url}/oi-api/provenance/bundles", bundle, headers)  # noqa: S310  our own
    with urllib.request.urlopen(request, timeout=120) as reply:  # noqa: S310  our own
        json.load(reply)
    checkpoint = f"{running.url}/oi-api/provenance/checkpoint?{_CHAIN}"
    with urllib.request.urlopen(urllib.request.Request(checkpoint, headers=headers), timeout=60) as reply:  # noqa: S310  our own
        return int(json.load(reply)["size"])
