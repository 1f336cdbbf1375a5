"""Record of the threads that call a function."""

import threading
from typing import Any

import pytest


def record_calls_in_event_loop(monkeypatch: pytest.MonkeyPatch, owner: object, name: str) -> list[bool]:
    """Replace a function by one that also records its calls.

    Args:
        monkeypatch: restores the function after the test.
        owner: module or class of the function.
        name: name of the function.

    Returns:
        A list to which each call appends True if it runs in the thread of the event loop, which is the main thread.
    """
    function = getattr(owner, name)
    calls: list[bool] = []

    def record_and_call(*args: Any, **kwargs: Any) -> Any:
        calls.append(threading.current_thread() is threading.main_thread())
        return function(*args, **kwargs)

    monkeypatch.setattr(owner, name, record_and_call)
    return calls
