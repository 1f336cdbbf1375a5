"""Tests of signed notes (the format of checkpoints) and of verifier keys."""

from pathlib import Path

import pytest

from shared.provenance.notes import (
    NoteError,
    VerifierKey,
    build_checkpoint_origin,
    verify_and_parse_checkpoint,
    verify_note_and_get_text,
)
from tests.unit.shared.provenance.chains import PLATFORM, WORKSPACE, Ledger, open_ledger


async def test_invalid_checkpoint_notes_are_rejected(ledger: Ledger, tmp_path: Path) -> None:
    """A note is rejected if it has another key, another chain, a changed text or an invalid format."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    key = await ledger.checkpoints.load_verifier_key()
    origin = build_checkpoint_origin(WORKSPACE, "PlatformConfig")
    assert verify_and_parse_checkpoint(made.note, key, origin).size == 7
    async with open_ledger(tmp_path / "second") as second:
        stranger = await second.checkpoints.load_verifier_key()
    for note, by, of in (
        (made.note, stranger, origin), (made.note, key, origin + "x"),
        (made.note.replace(b"\n7\n", b"\n8\n"), key, origin),
        (made.note[:-1], key, origin), (b"", key, origin), (b"\xff", key, origin), (made.note * 2, key, origin),
        (made.note.replace(b"\n\n", b"\n"), key, origin), (made.note + b"\x00", key, origin),
    ):  # fmt: skip
        with pytest.raises(NoteError):
            verify_and_parse_checkpoint(note, by, of)


async def test_note_signatures_of_unknown_keys_are_ignored(ledger: Ledger) -> None:
    """Signature lines of unknown keys, such as those of witnesses, are ignored."""
    made = await ledger.checkpoints.create_if_grown(PLATFORM)
    assert made is not None
    other = made.note + b"\xe2\x80\x94 witness.example AAAAAAAA\n"
    assert verify_note_and_get_text(other, await ledger.checkpoints.load_verifier_key()).startswith(
        "oi-provenance/plant-a/PlatformConfig\n7\n"
    )


@pytest.mark.parametrize("text", ["", "a", "a+b+c", "a+00000000+AQID", "n+00000000+Ag=="])
def test_invalid_verifier_keys_are_rejected(text: str) -> None:
    """A verifier key is rejected for an invalid form, signature type, public key or id."""
    with pytest.raises(NoteError):
        VerifierKey.parse(text)
