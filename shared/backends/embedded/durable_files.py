"""Files that are there whole or not at all, also after a power cut."""

import os
import uuid
from pathlib import Path


def create(path: Path, draft: Path, top: Path) -> bool:
    """Give a draft its name unless that is taken, and return whether it got it; the draft is gone afterwards.

    Args:
        path: the name.
        draft: a file that ``written`` returned.
        top: the folder, above the path, up to which new folders are put on disk.
    """
    try:
        # A link is created or refused as one step; what is linked is on disk already.
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_folders(path, top)
    return True


def written(path: Path, content: bytes, mode: int = 0o644) -> Path:
    """Write a file of its own beside a path, wait until the disk has it, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def sync_folders(path: Path, top: Path) -> None:
    """Wait until the disk has the names on the way from a folder to a path below it."""
    for folder in path.parents:
        _sync(folder)
        if folder == top:
            break


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
