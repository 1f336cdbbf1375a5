"""Tests of a client's connection and of its buffer for new messages."""

import asyncio

import pytest

from emulators.web_pubsub.connection import ClientConnection
from emulators.web_pubsub.payloads import DataType, Payload
from tests.emulators.web_pubsub.test_outbox import Pipe


@pytest.mark.parametrize(("count", "size"), [(2_000, 10), (10, 256 * 1024)])
async def test_other_work_runs_between_batches_of_skipped_messages(count: int, size: int) -> None:
    """Other work runs after at most 500 buffered messages or 256 KiB, even if no message of the batch is sent."""
    pipe = Pipe()
    connection = ClientConnection("c", pipe, user_id=None, subprotocol=None, roles=())
    connection.start_buffering()
    for _ in range(count):
        connection.send_and_check_if_wait_needed(Payload(b"x" * size, DataType.TEXT))
    checked: list[int] = []

    def is_unwanted(data: bytes) -> bool:
        checked.append(len(data))
        return True

    sending = asyncio.create_task(connection.send_buffered_messages(is_unwanted))
    batches = []
    while not sending.done():
        checked.clear()
        await asyncio.sleep(0)
        batches.append((len(checked), sum(checked)))
    assert sum(messages for messages, _ in batches) == count
    assert all(messages <= 500 and data <= 256 * 1024 for messages, data in batches)
    assert pipe.taken == []
