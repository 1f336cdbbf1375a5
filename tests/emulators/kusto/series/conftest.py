"""Fixture: one emulator for all modules of this folder, which only send queries."""

import pytest

from tests.emulators.kusto.endpoints import Endpoint


@pytest.fixture(scope="module")
def endpoint(shared_endpoint: Endpoint) -> Endpoint:
    """Return the emulator that several modules share."""
    return shared_endpoint
