"""The live stream under load."""

import pytest
import uvloop

from bench.live_stream import EVENTS_PER_SECOND, LISTENERS, SOURCES, measure
from bench.running import run_service

SECONDS = 60


@pytest.mark.soak
def test_every_listener_hears_its_machine_in_order() -> None:
    """A thousand events a second to two hundred listeners: each hears its machine's, all of them, once and in order."""
    with run_service({"WORKSPACE_FILE": "bench/live_workspace.yaml"}) as running:
        heard = uvloop.run(measure(running, SECONDS))
    assert len(heard) == LISTENERS
    for listener in heard:
        assert listener.numbers == list(range(EVENTS_PER_SECOND // SOURCES * SECONDS))
