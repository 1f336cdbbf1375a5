"""Load test of the live stream."""

import pytest
import uvloop

from bench.live_stream import EVENTS_PER_SECOND, LISTENERS, SOURCES, send_to_listeners
from bench.running import run_service

SECONDS = 60


@pytest.mark.soak
def test_each_client_receives_its_connection_in_order() -> None:
    """At 1,000 events per second, each of 200 clients gets all impulses of its own connection, once and in order."""
    with run_service({"WORKSPACE_FILE": "bench/live_workspace.yaml"}) as running:
        heard = uvloop.run(send_to_listeners(running, SECONDS))
    assert len(heard) == LISTENERS
    for listener in heard:
        assert listener.numbers == list(range(EVENTS_PER_SECOND // SOURCES * SECONDS))
