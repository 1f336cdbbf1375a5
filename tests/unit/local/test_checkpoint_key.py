"""Tests of the command that replaces the checkpoint key."""

from pathlib import Path

import pytest

from local.checkpoint_key import main
from shared.backends.embedded.key_files import FileNoteSigner


async def test_the_old_key_stays_trusted_after_a_replacement(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """After the key is replaced, the old key stays trusted, and the command prints the file of the new key."""
    path = tmp_path / "checkpoint-key.pem"
    signer = FileNoteSigner(path, tmp_path / "checkpoints")
    old = await signer.load_public_key_der()
    assert main(["rotate", "--data-dir", str(tmp_path)]) == 0
    assert await FileNoteSigner(path, tmp_path / "checkpoints").load_public_key_der() != old
    assert str(path) in capsys.readouterr().out
    assert old in await FileNoteSigner(path, tmp_path / "checkpoints").load_trusted_keys_der()


def test_a_missing_data_directory_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If the data directory is missing, the command prints its name and does not create it."""
    missing = tmp_path / "none"
    assert main(["rotate", "--data-dir", str(missing)]) == 1
    assert str(missing) in capsys.readouterr().err
    assert not missing.exists()


def test_an_invalid_key_file_is_not_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An invalid key file is not replaced, because old signatures could then never be verified."""
    path = tmp_path / "checkpoint-key.pem"
    path.write_text("not a key", encoding="utf-8")
    assert main(["rotate", "--data-dir", str(tmp_path)]) == 1
    assert capsys.readouterr().err
    assert path.read_text(encoding="utf-8") == "not a key"
