"""Tests of the sign-in codes of the web console."""

import json
import os
from pathlib import Path

import pytest

from local.sign_in.codes import build_sign_in_link, open_sign_in_codes
from shared.backends.embedded import durable_files


async def test_a_sign_in_code_can_be_redeemed_once(tmp_path: Path) -> None:
    """A sign-in code can be redeemed once, only for its member, and by any process that uses the same folder."""
    code = await open_sign_in_codes(tmp_path).create("ann@plant-a")
    other = open_sign_in_codes(tmp_path)
    assert await other.redeem_and_find_member_id(code) == "ann@plant-a"
    assert await other.redeem_and_find_member_id(code) is None


async def test_the_stored_files_do_not_contain_the_code(tmp_path: Path) -> None:
    """The stored files contain no usable code, and only their owner can read them."""
    code = await open_sign_in_codes(tmp_path).create()
    folder = tmp_path / "sign-in"
    [file] = folder.iterdir()
    assert code not in file.name + file.read_text(encoding="utf-8")
    assert (folder.stat().st_mode & 0o777, file.stat().st_mode & 0o777) == (0o700, 0o600)


@pytest.mark.parametrize("content", [json.dumps({"member": "a", "expiresAt": 1.0}), "{", "{}", "[]"])
async def test_an_expired_or_damaged_code_is_unknown(tmp_path: Path, content: str) -> None:
    """An expired or damaged code is unknown, and the next new code removes it."""
    codes = open_sign_in_codes(tmp_path)
    code = await codes.create()
    [file] = (tmp_path / "sign-in").iterdir()
    file.write_text(content, encoding="utf-8")
    await codes.create()
    assert not file.exists()
    assert await codes.redeem_and_find_member_id(code) is None


async def test_the_file_of_a_code_that_is_being_stored_is_retained(tmp_path: Path) -> None:
    """A new code does not delete the unfinished file of another code, which another process is still writing."""
    await open_sign_in_codes(tmp_path).create()
    [file] = (tmp_path / "sign-in").iterdir()
    unfinished = durable_files.write_temporary_file(file.with_name("0" * 64), b"")
    await open_sign_in_codes(tmp_path).create()
    assert unfinished.exists()


async def test_the_file_of_an_interrupted_process_is_deleted(tmp_path: Path) -> None:
    """A new code deletes the unfinished file of a process that ended while it stored a code."""
    await open_sign_in_codes(tmp_path).create()
    [file] = (tmp_path / "sign-in").iterdir()
    unfinished = durable_files.write_temporary_file(file.with_name("0" * 64), b"")
    os.utime(unfinished, (0, 0))
    await open_sign_in_codes(tmp_path).create()
    assert not unfinished.exists()


@pytest.mark.parametrize("code", ["", "unknown", "../x", "\ud800"])
async def test_a_text_that_is_not_a_code_is_unknown(tmp_path: Path, code: str) -> None:
    """A text that is not a sign-in code is rejected like an unknown code, and never used as a file name."""
    assert await open_sign_in_codes(tmp_path).redeem_and_find_member_id(code) is None


def test_a_sign_in_link_has_the_code_in_its_fragment() -> None:
    """The code is in the URL's fragment, which browsers do not send, so that no log contains it."""
    assert build_sign_in_link("http://127.0.0.1:7071", "c") == "http://127.0.0.1:7071/console/#sign-in=c"
