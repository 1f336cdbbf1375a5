"""Runs work whose time grows with a text outside the event loop, so that other requests go on meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Final

LARGE: Final = 16_384
"""Characters or bytes from which work leaves the event loop; below, a change of threads takes longer than the work."""


async def off_loop[**P, T](size: int, work: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return the result of a function, called in a worker thread where its text is large.

    Args:
        size: of the text, in characters or bytes.
        work: a function that uses nothing that belongs to the event loop.
        args: its arguments.
        kwargs: its named arguments.
    """
    if size < LARGE:
        return work(*args, **kwargs)
    return await asyncio.to_thread(work, *args, **kwargs)
