"""Drafts: new files that are written beside a file and replace it when they are complete.

This module needs only the standard library, because offline verification uses it, too.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def create_draft_file(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """Context manager: create an empty file in the folder of ``target``, yield its path, and remove it at the end.

    A file that was moved to ``target`` is not removed. The name of the draft is random, so that two processes that
    replace the same file never write to the same draft.

    Args:
        target: path of the file that the draft replaces.
        mode: permissions of the draft, which the umask of the process reduces.

    Raises:
        OSError: the file cannot be created.
    """
    draft = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
    draft.touch(mode, exist_ok=False)
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
