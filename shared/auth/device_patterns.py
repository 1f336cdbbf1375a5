"""Shell-style patterns of device ids, such as ``rig-*``.

Separate from ``telemetry_binding``, because the connections of the catalog have such patterns, too.
"""

import re
from collections.abc import Callable
from fnmatch import translate
from functools import lru_cache
from typing import Final

_MAX_REMEMBERED_DEVICES: Final = 10_000
"""Maximum number of device ids whose results a check remembers, which take about 3 MB."""


@lru_cache(maxsize=1_000)
def compile_device_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile shell-style patterns (``*``, ``?``, ``[abc]``) to one expression whose ``match`` tests a device id.

    One expression is much faster than a test of each pattern.

    Args:
        patterns: patterns of which one must match the whole device id; without patterns, no device id matches.
    """
    return re.compile("|".join(map(translate, patterns)) or "(?!)")


def build_device_id_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    """Return a function that returns whether a device id matches one of several shell-style patterns.

    It remembers its results, because many messages have the same device, and a test of many patterns can take
    milliseconds.

    Args:
        patterns: patterns of which one must match the whole device id; without patterns, no device id matches.
    """
    expression = compile_device_patterns(patterns)

    @lru_cache(_MAX_REMEMBERED_DEVICES)
    def is_matching(device_id: str) -> bool:
        return expression.match(device_id) is not None

    return is_matching
