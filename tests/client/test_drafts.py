"""Tests of drafts: new files that replace another file when they are complete."""

from pathlib import Path

import pytest
from oi.drafts import create_draft_file


def test_a_draft_replaces_the_file(tmp_path: Path) -> None:
    """A complete draft can replace the file, and nothing else remains in the folder."""
    path = tmp_path / "export.json"
    path.write_text("old")
    with create_draft_file(path) as draft:
        draft.write_text("new")
        draft.replace(path)
    assert (path.read_text(), list(tmp_path.iterdir())) == ("new", [path])


def test_drafts_of_one_file_are_different_files(tmp_path: Path) -> None:
    """Two drafts of the same file never share their content."""
    path = tmp_path / "export.json"
    with create_draft_file(path) as first, create_draft_file(path) as second:
        assert first != second
        assert first.exists()
        assert second.exists()


def test_the_error_about_a_draft_names_the_file(tmp_path: Path) -> None:
    """If a draft cannot be created, the error names the file that it would replace."""
    path = tmp_path / "missing" / "export.json"
    with pytest.raises(FileNotFoundError) as raised, create_draft_file(path):
        pass
    assert raised.value.filename == str(path)


def test_a_draft_is_removed_after_an_error(tmp_path: Path) -> None:
    """If an error occurs before a draft is complete, the draft is removed and the file stays unchanged."""
    path = tmp_path / "export.json"
    path.write_text("old")
    with pytest.raises(ValueError, match="incomplete"), create_draft_file(path):
        raise ValueError("incomplete")
    assert (path.read_text(), list(tmp_path.iterdir())) == ("old", [path])
