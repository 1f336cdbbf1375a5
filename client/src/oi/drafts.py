"""Draft files: temporary files in the folder of a target file, which replace the target when they are complete.

This module needs only the standard library, because offline verification uses it, too.
"""

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def create_draft_file(target: Path, mode: int = 0o666) -> Iterator[Path]:
    """Context manager: create an empty draft file in the folder of ``target``, and yield the path of the draft.

    The caller writes the draft and moves it to ``target``; a draft that the caller did not move is removed at the end.
    The name of the draft is random, so that two processes that replace the same file never write to the same draft.

    Args:
        target: path of the file that the draft replaces.
        mode: permissions of the draft, which the umask of the process reduces.

    Raises:
        OSError: the file cannot be created; the error names ``target``, because users do not know the draft.
    """
    draft = target.with_name(f"{target.name}.{secrets.token_hex(8)}.part")
    try:
        draft.touch(mode, exist_ok=False)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(target)) from None
    try:
        yield draft
    finally:
        draft.unlink(missing_ok=True)
