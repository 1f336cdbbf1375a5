"""Lock and pause of the client without asyncio; ``oi._async.waiting`` is its counterpart."""

import threading
import time

Lock = threading.Lock


def sleep(seconds: float) -> None:
    """Wait for some seconds."""
    time.sleep(seconds)
