"""Derive the package ``oi._sync`` from ``oi._async``; with ``--check``, write nothing but report differences.

The asyncio client is the source: ``async``, ``await`` and similar words are removed from its modules. ``waiting.py`` is
written by hand in both packages.
"""

import re
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parent.parent / "src" / "oi" / "_async"
TARGET = SOURCE.parent / "_sync"
WRITTEN_BY_HAND = frozenset({"waiting.py"})
_WORDS = (
    (r"\(await ([^()]*(?:\([^()]*\))?[^()]*)\)\.", r"\1."),
    (r"\bawait ", ""),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\basynccontextmanager\b", "contextmanager"),
    (r"\b__a(enter|exit|iter|next)__\b", r"__\1__"),
    (r"\ba(close|read|iter_bytes)\b", r"\1"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"\boi\._async\b", "oi._sync"),
    # `connect` of websockets.sync is a function; only the class `reconnect` has a method to override.
    (r"\bwebsockets\.asyncio\.client import connect\b", "websockets.sync.client import reconnect as connect"),
)


def convert_module_to_sync(source_code: str) -> str:
    """Convert the source code of a module of the asyncio client to code without asyncio; return it formatted."""
    for pattern, replacement in _WORDS:
        source_code = re.sub(pattern, replacement, source_code)
    command = [sys.executable, "-m", "ruff", "format", "--stdin-filename", str(TARGET / "module.py"), "-"]
    return subprocess.run(command, input=source_code, capture_output=True, text=True, check=True).stdout


def main(arguments: list[str]) -> int:
    """Write the modules of ``oi._sync``, or with ``--check`` compare the derived code with the files.

    Return 1 if a file differs with ``--check``, else 0.
    """
    stale = []
    for path in sorted(SOURCE.glob("*.py")):
        if path.name in WRITTEN_BY_HAND:
            continue
        text, target = convert_module_to_sync(path.read_text(encoding="utf-8")), TARGET / path.name
        if path.name == "__init__.py":
            text = '"""Client without asyncio, derived from ``oi._async`` by scripts/make_sync.py."""\n'
        if not target.exists() or target.read_text(encoding="utf-8") != text:
            stale.append(path.name)
            if "--check" not in arguments:
                target.write_text(text, encoding="utf-8")
    print("\n".join(stale) if stale else "oi._sync is up to date")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
