"""Tests of the access key of the Web PubSub emulator in the local host."""

from pathlib import Path

import pytest

from local.host.live_stream import load_or_create_access_key


def test_an_access_key_is_created_once(tmp_path: Path) -> None:
    """The access key is created once, in a file that only its owner can read."""
    path = tmp_path / "key"
    key = load_or_create_access_key(path)
    assert (len(key), path.stat().st_mode & 0o777) == (64, 0o600)
    assert load_or_create_access_key(path) == key


@pytest.mark.parametrize("content", ["", "a" * 63])
def test_an_incomplete_access_key_is_rejected(tmp_path: Path, content: str) -> None:
    """An empty or cut file of the access key is rejected, because its content could be guessed."""
    path = tmp_path / "key"
    path.write_text(content)
    with pytest.raises(OSError, match="must have 64 characters"):
        load_or_create_access_key(path)
