"""Folders for files on their way, and what a power cut leaves in them."""

import shutil
from datetime import datetime
from pathlib import Path


def remove_left(scratch: Path, made_before: datetime) -> None:
    """Remove the folders in a scratch folder that nobody has put anything into since an instant."""
    for left in scratch.glob("*"):
        try:
            is_left = left.stat().st_mtime < made_before.timestamp()
        except FileNotFoundError:
            continue  # its owner is done with it
        if is_left:
            shutil.rmtree(left, ignore_errors=True)
