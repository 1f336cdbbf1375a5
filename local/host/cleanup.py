"""Hourly deletion of data that the local host no longer needs."""

import sqlite3
from collections.abc import Awaitable, Callable

from local.host.shutdown import ShutdownSignal
from shared.observability.logs import fields, get_logger

_LOGGER = get_logger("local.cleanup")
_SECONDS = 3600.0


async def delete_hourly(data: str, delete: Callable[[], Awaitable[int]], stopping: ShutdownSignal) -> None:
    """Delete expired data now and then every hour until the host stops; failures are logged.

    Args:
        data: name of the data, for the log.
        delete: deletes the expired data, and returns the number of deleted items.
        stopping: signal that the host stops.
    """
    while not stopping.is_set():
        try:
            deleted = await delete()
        except sqlite3.Error:
            _LOGGER.exception("expired data cannot be deleted", extra=fields(data=data))
        else:
            if deleted:
                _LOGGER.info("expired data is deleted", extra=fields(data=data, deleted=deleted))
        await stopping.wait_for(_SECONDS)
