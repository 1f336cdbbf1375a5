"""Small limits of simulated worlds, so that little data runs the code for much data."""

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from types import ModuleType
from typing import Any, Final
from unittest.mock import patch

import shared.runtime
from functions import query_reply
from shared.alerts import scheduler
from shared.audit_bundles import chain_section
from shared.backends.azure import cosmos_alerts, cosmos_catalog, cosmos_connection_states, cosmos_webhooks
from shared.catalog import document_service, service
from shared.cold_data import archive, inventory, reading
from shared.downloads import work
from shared.graphql_api import service as graphql_service
from shared.imports import archive_writer
from shared.live_stream import publishing, replay
from shared.telemetry import acceptance
from shared.warm_queries import columns

COPIES: Final = (acceptance, document_service, graphql_service, query_reply, service)
"""Modules that copy a limit when they are imported.

They are imported before the first world: a world with small limits would otherwise change them for all later worlds of
its process, whose replays would then differ.
"""

_SHARE: Final = 0.1
LIMITS: Final[tuple[tuple[ModuleType, dict[str, Any]], ...]] = (
    # Worker threads process all texts.
    (shared.runtime, {"LARGE": 1}),
    (chain_section, {"STEP_RECORDS": 2, "PROOFS_PER_PART": 2}),
    # A transaction stores one alert.
    (cosmos_alerts, {"MAX_OPERATIONS": 2}),
    # A change of the catalog does not fit into one transaction.
    (cosmos_catalog, {"MAX_OPERATIONS": 2}),
    # The footer of an archive blob needs a second read.
    (inventory, {"FOOTER_BYTES": 64}),
    # The reader of the archive has the files of one hour at a time.
    (reading, {"BLOCK_HOURS": 1, "AROUND": timedelta(0)}),
    # A list of queries requests the columns of one query at a time.
    (columns, {"LIST_REQUESTS": 1}),
    # Each of the following modules runs one operation at a time.
    (scheduler, {"TASKS_AT_ONCE": 1}),
    (cosmos_webhooks, {"_WRITES_AT_ONCE": 1}),
    (archive, {"CONCURRENT_WRITES": 1}),
    (archive_writer, {"_CONCURRENT": 1}),
    (work, {"CONCURRENT_PLANS": 1}),
    (publishing, {"CONCURRENT_CONNECTIONS": 1}),
    (replay, {"CONCURRENT_REPLAYS": 1}),
    # Each connection has items of its own.
    (cosmos_connection_states, {"MAX_CONNECTIONS": 1}),
)


@contextmanager
def use_small_limits(seed: int) -> Iterator[None]:
    """Context manager: replace some limits of the service by small ones; the seed decides which.

    Args:
        seed: seed of the world.
    """
    source = random.Random(f"limits {seed}")
    with ExitStack() as stack:
        for module, limits in LIMITS:
            if source.random() < _SHARE:
                stack.enter_context(patch.multiple(module, **limits))
        yield
