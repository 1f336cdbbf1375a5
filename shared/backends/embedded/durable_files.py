"""Creation of files that are either complete or missing, even after a power cut."""

import os
import uuid
from pathlib import Path


def create(path: Path, draft: Path, top: Path) -> bool:
    """Create a file from a draft unless the file exists; return whether it was created. The draft is deleted.

    Args:
        path: path of the new file.
        draft: file from :func:`write_draft`.
        top: folder above the path; folders below it, which may be new, are flushed to disk.
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
    """Write a draft: a new file with a random name next to ``path``. Flush it to disk, and return its path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return draft


def sync_folders(path: Path, top: Path) -> None:
    """Flush the folders that contain a path to disk, up to the folder ``top``."""
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
