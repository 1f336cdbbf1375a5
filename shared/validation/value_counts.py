"""Number of values in a JSON value, for limits on the work that one call of pydantic does."""

from typing import Any


def count_json_values(json_value: Any, maximum: int) -> int:
    """Count the values in the arrays and objects of a JSON value; stop as soon as the count exceeds ``maximum``."""
    count = 0
    waiting = [json_value]
    while waiting and count <= maximum:
        container = waiting.pop()
        if isinstance(container, dict | list):
            count += len(container)
            if count <= maximum:
                waiting.extend(container.values() if isinstance(container, dict) else container)
    return count
