"""Live stream of telemetry that reconnects without lost or repeated messages."""

import json
from collections.abc import AsyncGenerator
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from oi._async.transport import AsyncTransport
from oi._async.waiting import sleep
from oi.errors import UnreachableError, build_api_error
from oi.instants import format_instant
from oi.stream_position import StreamPosition

_MAX_PAUSE = 30.0
_SERVER_ERROR = 500
_TOO_MANY = 429


async def stream_messages(
    transport: AsyncTransport,
    *,
    connection: str | None = None,
    surface: str | None = None,
    since: datetime | str | None = None,
) -> AsyncGenerator[dict[str, Any]]:
    """Yield new telemetry messages; after a lost network connection, continue with the messages that were missed.

    Exception: a message that arrives during the interruption is lost if it was measured more than a minute before the
    newest message.

    Args:
        transport: sends the requests.
        connection: short name of the only data connection to read; None for all connections.
        surface: short name of the only surface (group of connections) to read; None for all surfaces.
        since: start time; stored messages since this time are yielded first. None for new messages only.

    Raises:
        ApiError: the service rejects the request for the stream.
    """
    position = StreamPosition(format_instant(since))
    pause = 1.0
    while True:
        parameters = {"connection": connection, "surface": surface, "since": position.find_start()}
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        url = f"{transport.url.replace('http', 'ws', 1)}/oi-api/live-stream?{query}"
        headers = {"Authorization": f"Bearer {await transport.get_token()}"}
        try:
            async with connect(url, additional_headers=headers, proxy=None) as socket:
                pause = 1.0
                position.mark_opened()
                async for text in socket:
                    message = json.loads(text)
                    if position.accept(message):
                        yield message
        except InvalidStatus as refused:
            status = refused.response.status_code
            if status < _SERVER_ERROR and status != _TOO_MANY:
                raise build_api_error(status, _read_problem(refused.response.body)) from None
        except ConnectionClosed:
            pass  # the service restarts, or the token has expired
        except OSError as error:
            if pause >= _MAX_PAUSE:
                raise UnreachableError(f"{transport.url} does not respond: {error}") from error
        await sleep(pause)
        pause = min(_MAX_PAUSE, pause * 2)


def _read_problem(body: bytes | bytearray) -> dict[str, Any]:
    try:
        problem = json.loads(body)
    except ValueError:
        return {}
    return problem if isinstance(problem, dict) else {}
