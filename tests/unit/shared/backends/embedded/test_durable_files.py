"""Tests of files that after a crash are either complete or missing."""

import resource
from pathlib import Path

import pytest

from shared.backends.embedded.durable_files import try_move_temporary_file_to_new_path, write_temporary_file


def test_a_file_is_created_from_a_temporary_file(tmp_path: Path) -> None:
    """The new file has the content of the temporary file, which is deleted; its folder is created."""
    path = tmp_path / "a" / "b" / "file"
    temporary = write_temporary_file(path, b"content")
    assert not path.exists()
    assert try_move_temporary_file_to_new_path(path, temporary, tmp_path)
    assert path.read_bytes() == b"content"
    assert list(path.parent.iterdir()) == [path]


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    """If the file exists, its content stays, and the temporary file is deleted."""
    path = tmp_path / "file"
    path.write_bytes(b"first")
    assert not try_move_temporary_file_to_new_path(path, write_temporary_file(path, b"second"), tmp_path)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_temporary_file_has_the_given_permissions(tmp_path: Path) -> None:
    """The temporary file of a secret is readable only by its owner from the beginning."""
    assert write_temporary_file(tmp_path / "key", b"secret", 0o600).stat().st_mode & 0o777 == 0o600


def test_a_failed_write_leaves_no_file(tmp_path: Path) -> None:
    """If the content cannot be written completely, the temporary file is deleted, and the error is raised."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, limits[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            write_temporary_file(tmp_path / "file", b"x" * 300_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert list(tmp_path.iterdir()) == []
