"""Creation of files that are either complete or missing, even after a power cut."""

import os
import uuid
from pathlib import Path


def try_move_temporary_file_to_new_path(target_path: Path, temporary_path: Path, top_folder: Path) -> bool:
    """Move a temporary file to a new path; if a file exists there, delete the temporary file and return False.

    Args:
        target_path: path of the new file.
        temporary_path: file from :func:`write_temporary_file`.
        top_folder: a folder above the file; all folders from ``top_folder`` to the file are flushed to disk, because
            they are possibly new.
    """
    try:
        # Creating a hard link is atomic, and the content is on disk already.
        os.link(temporary_path, target_path)
    except FileExistsError:
        return False
    finally:
        temporary_path.unlink()
    fsync_folders_up_to(target_path, top_folder)
    return True


def write_temporary_file(target_path: Path, content: bytes, mode: int = 0o644) -> Path:
    """Write content to a new file with a random name next to ``target_path``, flush it to disk, and return its path.

    If the content cannot be written, the file is deleted.

    Args:
        target_path: path next to which the file is created; missing folders are created.
        content: complete content of the file.
        mode: permissions of the file.

    Raises:
        OSError: the file cannot be written, for instance because the disk is full.
    """
    target_path.parent.mkdir(parents=True, exist_ok=True)
    temporary = target_path.with_name(f"{target_path.name}.{uuid.uuid4().hex}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except BaseException:
        # Each retry uses a new name, so the files of failed attempts would fill the disk.
        temporary.unlink(missing_ok=True)
        raise
    return temporary


def fsync_folders_up_to(path: Path, top_folder: Path) -> None:
    """Flush all folders between a path and the folder ``top_folder`` to disk, so that the path survives a power cut."""
    for folder in path.parents:
        _fsync_folder(folder)
        if folder == top_folder:
            break


def _fsync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
