"""Tests of files that are either complete or missing after a crash."""

from pathlib import Path

from shared.backends.embedded.durable_files import create_file, write_draft


def test_a_file_is_created_from_its_draft(tmp_path: Path) -> None:
    """The new file has the content of the draft, in a new folder, and the draft is deleted."""
    path = tmp_path / "a" / "b" / "file"
    draft = write_draft(path, b"content")
    assert not path.exists()
    assert create_file(path, draft, tmp_path)
    assert path.read_bytes() == b"content"
    assert list(path.parent.iterdir()) == [path]


def test_an_existing_file_is_not_replaced(tmp_path: Path) -> None:
    """If the file exists, its content remains and the draft is deleted."""
    path = tmp_path / "file"
    path.write_bytes(b"first")
    assert not create_file(path, write_draft(path, b"second"), tmp_path)
    assert path.read_bytes() == b"first"
    assert list(tmp_path.iterdir()) == [path]


def test_a_draft_has_the_given_mode(tmp_path: Path) -> None:
    """A draft of a secret file is readable only for its owner from the start."""
    assert write_draft(tmp_path / "key", b"secret", 0o600).stat().st_mode & 0o777 == 0o600
