"""Concurrent calls of one operation for many items; an error is raised only after all running calls have ended."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable


async def call_for_each[T, R](
    operation: Callable[[T], Awaitable[R]], items: Iterable[T], max_concurrent_calls: int
) -> list[R]:
    """Call an operation for each item; return the results in the order of the items.

    If a call raises an error, no further call starts, and the error is raised after all running calls have ended. The
    caller can then delete what the calls used, for example the folder of their files.

    Args:
        operation: function to call with each item.
        items: the items; each is taken only when its call starts.
        max_concurrent_calls: maximum number of calls at a time.
    """
    waiting = enumerate(items)
    results: dict[int, R] = {}
    has_failed = False

    async def call_for_waiting_items() -> None:
        nonlocal has_failed
        while not has_failed and (entry := next(waiting, None)) is not None:
            number, item = entry
            try:
                results[number] = await operation(item)
            except BaseException:
                has_failed = True
                raise

    # A task for each item would block the event loop if there are very many items.
    for error in await asyncio.gather(
        *(call_for_waiting_items() for _ in range(max_concurrent_calls)), return_exceptions=True
    ):
        if error is not None:
            raise error
    return [results[number] for number in range(len(results))]
