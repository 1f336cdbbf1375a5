"""Sends each request once: aiohttp by itself repeats a PUT or DELETE whose kept connection ends without a reply."""

import aiohttp
from azure.core.pipeline.transport import AioHttpTransport

from shared.backends.azure.cosmos_spans import traced


def sent_once_transport() -> AioHttpTransport:
    """Return a transport under which a lost connection is the caller's to judge; to be made in a running event loop.

    A repeat that nobody knows of would meet its own first try as a conflict (412) or find nothing (404).
    """
    session = aiohttp.ClientSession(
        trust_env=True, cookie_jar=aiohttp.DummyCookieJar(), auto_decompress=False, middlewares=(traced, _once)
    )
    return AioHttpTransport(session=session)


async def _once(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    try:
        return await handler(request)
    except aiohttp.ClientConnectorError:
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        # These two are what aiohttp repeats; the class above them it leaves alone.
        raise aiohttp.ClientConnectionError("the connection was lost") from error
