"""Tests of the limit on the memory for bodies."""

import pytest

from local.http_server.body_memory import FREE_BYTES, BodyMemory
from shared.errors import WorkspaceError


def test_bodies_of_concurrent_requests_have_a_common_limit() -> None:
    """A body that exceeds the memory for all bodies is rejected; when another body is released, it is accepted."""
    memory = BodyMemory(1_000)
    with memory.open_body_byte_counter() as count_first:
        count_first(FREE_BYTES + 600)
        with memory.open_body_byte_counter() as count_second:
            count_second(FREE_BYTES)
            with pytest.raises(WorkspaceError) as caught:
                count_second(401)
        assert caught.value.code == "OVERLOADED"
    with memory.open_body_byte_counter() as count_second:
        count_second(FREE_BYTES + 1_000)


def test_small_bodies_do_not_count() -> None:
    """Small bodies are accepted although large ones use all the memory."""
    memory = BodyMemory(1_000)
    with memory.open_body_byte_counter() as count_large, memory.open_body_byte_counter() as count_small:
        count_large(FREE_BYTES + 1_000)
        count_small(FREE_BYTES)
        with pytest.raises(WorkspaceError):
            count_small(1)
