"""Tests of sign-in codes of the local host."""

import asyncio
import stat
import time
from pathlib import Path

import pytest

from local.host.processes import record_running_host
from local.sign_in import __main__ as sign_in
from local.sign_in import codes as sign_in_codes
from local.sign_in.codes import SignInCodes


@pytest.fixture
def codes(tmp_path: Path) -> SignInCodes:
    """Return the sign-in codes of a new data directory."""
    return SignInCodes(tmp_path / "sign-in")


async def test_a_sign_in_code_can_be_used_once(codes: SignInCodes) -> None:
    """A sign-in code can be used once."""
    code = await codes.create("viewer@t")
    assert await codes.redeem_and_find_member_id(code) == "viewer@t"
    assert await codes.redeem_and_find_member_id(code) is None


@pytest.mark.parametrize("code", ["", "x", "../address", "\ud800", "a" * 10_000])
async def test_unknown_codes_are_rejected(codes: SignInCodes, code: str) -> None:
    """An unknown sign-in code is rejected, and other codes remain valid."""
    assert await codes.redeem_and_find_member_id(code) is None
    made = await codes.create()
    assert await codes.redeem_and_find_member_id(code) is None
    assert await codes.redeem_and_find_member_id(made) == ""


async def test_a_sign_in_code_expires_after_15_minutes(codes: SignInCodes, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sign-in code expires after 15 minutes."""
    code = await codes.create()
    later = time.time() + sign_in_codes.LIFETIME_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    assert await codes.redeem_and_find_member_id(code) is None


async def test_expired_codes_are_removed(codes: SignInCodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Creating a sign-in code deletes expired codes and keeps valid codes."""
    await codes.create()
    later = time.time() + sign_in_codes.LIFETIME_SECONDS + 1
    monkeypatch.setattr(time, "time", lambda: later)
    second, third = await codes.create(), await codes.create()
    assert len(list((tmp_path / "sign-in").iterdir())) == 2
    assert (await codes.redeem_and_find_member_id(second), await codes.redeem_and_find_member_id(third)) == ("", "")


async def test_concurrent_requests_use_a_code_once(codes: SignInCodes) -> None:
    """If several requests use a code at once, exactly one succeeds."""
    code = await codes.create("x")
    taken = await asyncio.gather(*(codes.redeem_and_find_member_id(code) for _ in range(8)))
    assert sorted(taken, key=str) == [None] * 7 + ["x"]


async def test_code_is_stored_as_a_hash_for_its_owner(codes: SignInCodes, tmp_path: Path) -> None:
    """Sign-in codes are stored as hashes in files that only their owner can read."""
    code = await codes.create()
    [path] = (tmp_path / "sign-in").iterdir()
    assert code not in path.name + path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_the_command_prints_a_sign_in_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command prints a link to the running host with a valid code."""
    with record_running_host(tmp_path, "http://127.0.0.1:7099"):
        assert sign_in.main(["--data-dir", str(tmp_path), "--as", "viewer@t"]) == 0
    address, _, code = capsys.readouterr().out.strip().partition("#sign-in=")
    assert address == "http://127.0.0.1:7099/console/"
    assert asyncio.run(sign_in_codes.open_sign_in_codes(tmp_path).redeem_and_find_member_id(code)) == "viewer@t"


def test_the_sign_in_command_needs_a_running_host(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """If no host runs, the command creates no code and exits with 1."""
    for _ in range(2):
        assert sign_in.main(["--data-dir", str(tmp_path)]) == 1
        assert "make run" in capsys.readouterr().err
        assert not (tmp_path / "sign-in").exists()
        with record_running_host(tmp_path, "http://127.0.0.1:7099"):
            pass
