"""The system key of the HTTP API: made at the first start, kept beside the other state."""

import os
import secrets
from pathlib import Path


def load_system_key(path: Path) -> str:
    """Return the key in a file that only its owner reads; the file is made when it is missing."""
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        kept = path.read_text(encoding="ascii").strip()
        if kept:
            return kept
        descriptor = os.open(path, os.O_WRONLY | os.O_TRUNC, 0o600)  # a start that was cut short left it empty
    key = secrets.token_urlsafe(32)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    return key
