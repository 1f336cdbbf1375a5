"""Files that are complete or absent, even after a power cut."""

import os
import uuid
from pathlib import Path


def create(path: Path, draft: Path, top: Path) -> bool:
    """Give a draft its final name unless that name exists; return whether it did. The draft is deleted.

    Args:
        path: the final name.
        draft: a file returned by :func:`write_draft`.
        top: a folder above the path; new folders below it are flushed to disk.
    """
    try:
        # Creating a hard link is atomic, and the content is on disk already.
        os.link(draft, path)
    except FileExistsError:
        return False
    finally:
        draft.unlink()
    sync_folders(path, top)
    return True


def write_draft(path: Path, content: bytes, mode: int = 0o644) -> Path:
    """Write a new file with a random name next to a path, flush it to disk, and return it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def sync_folders(path: Path, top: Path) -> None:
    """Flush to disk the folders from a path up to a folder above it."""
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
