"""Shell-style patterns of device ids, such as ``rig-*``.

Separate from ``telemetry_binding``, because the connections of the catalog have such patterns, too.
"""

import re
from fnmatch import translate
from functools import lru_cache


@lru_cache(maxsize=1_000)
def compile_device_patterns(patterns: tuple[str, ...]) -> re.Pattern[str]:
    """Compile shell-style patterns (``*``, ``?``, ``[abc]``) to one expression whose ``match`` tests a device id.

    One expression is much faster than a test of each pattern.

    Args:
        patterns: patterns of which one must match the whole device id; without patterns, no device id matches.
    """
    return re.compile("|".join(map(translate, patterns)) or "(?!)")
