"""Tests of the limits of the sizing model, and of their remedies."""

from pathlib import Path

import pytest

from scripts.sizing.load import Load
from scripts.sizing.model import compute_deployment_sizes, find_exceeded_limits

ROOT = Path(__file__).parents[4]
PAGE = ROOT / "docs" / "how-to" / "size-a-deployment.md"


@pytest.mark.parametrize(
    ("limit", "load"),
    [
        ("event-hubs-units", Load(messages_per_second=20_000.0, connections=400)),
        ("event-hubs-premium", Load(messages_per_second=500_000.0, connections=1_000)),
        ("event-hubs-partitions", Load(messages_per_second=15_000.0, connections=9_000)),
        ("connection-partition", Load(busiest_connection_messages_per_second=5_000.0)),
        ("connection-live", Load(busiest_connection_messages_per_second=300.0, listeners=1)),
        ("catalog", Load(connections=10_001)),
        ("chain-appends", Load(audit_events_per_second=3_000.0)),
        ("chain-verify", Load(audit_events_per_second=1.0)),
        ("cosmos-serverless", Load(audit_events_per_second=1_000.0, production=False)),
        ("streaming-ingestion", Load(messages_per_second=5_000.0)),
        ("archive-listing", Load(connections=9_000)),
        ("web-pubsub-units", Load(listeners=90_000)),
        ("instances", Load(http_requests_per_second=50_000.0)),
        ("memory-quota", Load(http_requests_per_second=50_000.0)),
    ],
)
def test_an_exceeded_limit_has_a_remedy(limit: str, load: Load) -> None:
    """Each exceeded limit is reported with its name and a remedy, and is on the page size-a-deployment.md."""
    found = {each.name: each for each in find_exceeded_limits(compute_deployment_sizes(load))}
    assert limit in found
    assert found[limit].remedy
    assert f"| `{limit}` |" in PAGE.read_text(encoding="utf-8")
    # The defaults exceed only the limit of long chains, so the load above exceeds this one.
    assert limit not in {
        each.name for each in find_exceeded_limits(compute_deployment_sizes(Load(audit_events_per_second=0.001)))
    }
